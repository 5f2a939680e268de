// SPDX-License-Identifier: Apache-2.0
/*
 * What elements were before they were written in place: positions in their block, ascending, and
 * values, block by block of a plan. A journal lies end to end, or on pages as a cast has listed it.
 * It never names an element that is what it was: merging leaves those out.
 *
 * All pointers are device memory; launchers enqueue on `stream`, a cudaStream_t, and return at once.
 */
#ifndef CUDA_JOURNAL_H
#define CUDA_JOURNAL_H

#include "cuda/decode.h"
#include "cuda/list_changes.h"
#include "cuda/plan.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JOURNAL_PAGE 512u /* entries */

struct cuda_journal {
    const uint32_t *positions;
    const uint8_t *values;
    const uint64_t *first; /* of each block: its first entry; on pages: its first page in `pages` */
    const uint64_t *value; /* byte where its values begin, a multiple of 8; NULL on pages */
    const uint32_t *count; /* its entries */
    const uint32_t *pages; /* the entry at which each page begins; NULL: end to end */
    uint32_t stride;       /* on pages: from one value to the next, in bytes */
};

/* Where a merged journal goes. */
struct cuda_journal_room {
    uint32_t *positions;
    uint8_t *values;
    const uint64_t *first, *value;
};

/*
 * Of two journals of the same weights, `newer` begun where `older` ended, the one for both: where both
 * name an element the older value counts. First how many entries each block has; then, with room for
 * those, the entries. Positions beyond a block are left out. Twin: journal_merge_portable() in
 * gpu/cast_portable.c.
 */
enum ulp_status cuda_journal_count(const struct cuda_plan *plan, const struct cuda_journal *older,
                                   const struct cuda_journal *newer, uint32_t *counts,
                                   void *stream);
enum ulp_status cuda_journal_merge(const struct cuda_plan *plan, const struct cuda_journal *older,
                                   const struct cuda_journal *newer,
                                   const struct cuda_journal_room *to, void *stream);

/* The same with no older one: `newer`, end to end. Its blocks must have as many entries as there is
 * room for. */
enum ulp_status cuda_journal_copy(const struct cuda_plan *plan, const struct cuda_journal *newer,
                                  const struct cuda_journal_room *to, void *stream);

/* Writes the values back. */
enum ulp_status cuda_journal_restore(const struct cuda_plan *plan,
                                     const struct cuda_journal *journal, void *stream);

/* How the elements moved since, as cuda_decode_remember() says: the move of an entry is where it is.
 * Twin: moves_list_add() in patch/moves.c. */
enum ulp_status cuda_journal_moves(const struct cuda_plan *plan, const struct cuda_journal *journal,
                                   decode_move *moves, void *stream);

/* As cuda_list_changes(), for `count` blocks from `first_block` on, by which numbers count. */
enum ulp_status cuda_journal_list(const struct cuda_plan *plan, const struct cuda_journal *journal,
                                  uint32_t first_block, uint32_t count, uint32_t limit,
                                  struct cuda_change *changes, uint32_t *found, void *stream);

#ifdef __cplusplus
}
#endif

#endif
