// SPDX-License-Identifier: Apache-2.0
/* The keyed sums of all pieces of a plan, in one launch: the same bits as on the CPU. */
#ifndef CUDA_DIGEST_BLOCKS_H
#define CUDA_DIGEST_BLOCKS_H

#include "cuda/plan.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the mixes of each block's words to the two lanes of its piece. The arrays of the plan and
 * `sums` are device memory. Enqueued on `stream`; returns at once. */
enum ulp_status cuda_digest_blocks(const struct cuda_plan *plan, unsigned long long *sums,
                                   void *stream);

#ifdef __cplusplus
}
#endif

#endif
