// SPDX-License-Identifier: Apache-2.0
/*
 * What a step would take in the usual sparse form: the gaps between changed positions as varints, then
 * the new BF16 values, all through zstd at level 1. To stand beside our own figures.
 */
#ifndef RL_GAPS_H
#define RL_GAPS_H

#include <stddef.h>
#include <stdint.h>

/* The bytes before zstd, and after; `after` is 0 where the build has no zstd. */
void gaps_measure(const uint16_t *old, const uint16_t *new, size_t count, size_t *ret_before,
                  size_t *ret_after);

#endif
