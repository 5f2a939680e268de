// SPDX-License-Identifier: Apache-2.0
/* History in device memory: how the elements of a state moved last, block by block of its plan. What
 * struct moves is in the host's. */
#ifndef GPU_DEVICE_MOVES_H
#define GPU_DEVICE_MOVES_H

#include "cuda/decode.h"
#include "gpu/device_journal.h"
#include "gpu/device_plan.h"

struct device_moves {
    struct room room; /* decode_move, block by block */
    uint64_t *first;  /* of each block of the plan */
    uint32_t *count;
};

/* How the elements are about to move by what was decoded, `changes` of them. */
enum ulp_status device_moves_make(const struct device_plan *plan, const struct cuda_decode *decode,
                                  uint64_t changes, void *stream, struct device_moves **ret_moves);

/* How the elements have moved that the journal names, to what they are now. */
enum ulp_status device_moves_of_journal(const struct device_plan *plan,
                                        const struct device_journal *journal, void *stream,
                                        struct device_moves **ret_moves);
void device_moves_free(struct device_moves *moves); /* NULL is fine */

#endif
