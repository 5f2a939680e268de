// SPDX-License-Identifier: Apache-2.0
/* Arithmetic on sizes from outside. Those that can overflow say true when they do, and then the
 * result must not be used. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool add_overflows(uint64_t a, uint64_t b, uint64_t *ret_sum) {
    return __builtin_add_overflow(a, b, ret_sum);
}

static inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t *ret_product) {
    return __builtin_mul_overflow(a, b, ret_product);
}

static inline uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

#endif
