// SPDX-License-Identifier: Apache-2.0
/*
 * Logarithms and powers of two in integers. Everything that shapes a patch is computed with these,
 * so that every machine chooses the same models and builds the same tables.
 */
#ifndef CODE_FIXED_H
#define CODE_FIXED_H

#include <stdint.h>

/* Fractional bits of a cost: 1 bit is 1 << COST_SHIFT. */
#define COST_SHIFT 12

/* log2(x) of x >= 1, in units of 2^-COST_SHIFT; exact to about one unit. */
uint32_t fixed_log2(uint64_t x);

/* Bits that `count` symbols of probability count / total cost, with COST_SHIFT fractional bits. */
uint64_t fixed_cost(uint64_t count, uint64_t total);

/* 2^(-x / 2048) in units of 2^-32, for x up to 65535; 2^32 for 0. */
uint64_t fixed_exp2_negative(uint32_t x);

/* q^n for q in units of 2^-32. */
uint64_t fixed_power(uint64_t q, uint64_t n);

#endif
