// SPDX-License-Identifier: Apache-2.0
/*
 * Two states in device memory, of which one is in use while the other is written. Blocks of both are
 * those of one plan, at other addresses. All launchers enqueue on `stream`, a cudaStream_t, and
 * return at once; ULP_E_DEVICE when a launch is refused.
 */
#ifndef CUDA_DECODE_SECOND_H
#define CUDA_DECODE_SECOND_H

#include "cuda/decode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the elements at the listed positions from one state to the other. Of the list only blocks,
 * ranges and positions are looked at. */
enum ulp_status cuda_second_catch_up(const struct cuda_decode *list, const struct cuda_block *from,
                                     const struct cuda_block *to, void *stream);

/* Writes the values to `to` and leaves in their place the elements that `from` has there. Without
 * `to`, NULL, nothing is written but the list. */
enum ulp_status cuda_second_write(const struct cuda_decode *decode, const struct cuda_block *from,
                                  const struct cuda_block *to, void *stream);

#ifdef __cplusplus
}
#endif

#endif
