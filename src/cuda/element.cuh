// SPDX-License-Identifier: Apache-2.0
// Elements as unsigned words of their width.
#pragma once

#include <cstdint>

template <unsigned WIDTH> struct element;
template <> struct element<1> {
    typedef uint8_t type;
    typedef int8_t step;
};
template <> struct element<2> {
    typedef uint16_t type;
    typedef int16_t step;
};
template <> struct element<4> {
    typedef uint32_t type;
    typedef int32_t step;
};
template <> struct element<8> {
    typedef uint64_t type;
    typedef int64_t step;
};
