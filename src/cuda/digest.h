// SPDX-License-Identifier: Apache-2.0
/* The keyed sum of scan/digest_sum.h over words in device memory: the same bits as on the CPU. */
#ifndef CUDA_DIGEST_H
#define CUDA_DIGEST_H

#include <stddef.h>
#include <ulpsync/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the mixes of `words` words at `device_words` (8-byte aligned), the first of which is word
 * `first_word` of its tensor, to the two lanes at `device_sum`. Enqueued on `stream` (a
 * cudaStream_t); returns at once. ULP_E_DEVICE when the launch is refused.
 */
enum ulp_status cuda_digest_words(const void *device_words, size_t words, uint64_t first_word,
                                  uint64_t *device_sum, void *stream);

#ifdef __cplusplus
}
#endif

#endif
