// SPDX-License-Identifier: Apache-2.0
// Where the elements of a block are in its tensor. Twin: patch/place.c, place_offset().
#pragma once

#include "cuda/device.cuh"
#include "cuda/place.h"

// From the first element of the block to that of a position.
__device__ static __forceinline__ uint64_t place_step(const struct cuda_place &place, uint32_t position) {
    if (position < place.left)
        return position;
    const uint32_t behind = position - place.left, row = behind / place.columns;

    return place.next + row * place.pitch + (behind - row * place.columns);
}

// The same place in words of `each` elements: rows of a band of columns begin and end on words.
__device__ static __forceinline__ struct cuda_place place_in_words(struct cuda_place place, uint32_t each) {
    if (place.left == PLACE_END_TO_END)
        return place;
    place.left /= each;
    place.columns /= each;
    place.pitch /= each;
    place.next /= each;
    return place;
}
