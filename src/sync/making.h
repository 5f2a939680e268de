// SPDX-License-Identifier: Apache-2.0
/*
 * The patches of one step: made, stored and opened again, so that they can be checked and applied.
 * One whole patch, or one for each tile, of which some may have none.
 */
#ifndef SYNC_MAKING_H
#define SYNC_MAKING_H

#include "sync/holder.h"
#include "sync/upload.h"

/* One patch: where it is in the upload. All zero: a tile that has none. */
struct made {
    uint64_t first_byte, bytes;
    size_t first_part, part_count;
    uint64_t changes;
};

/* Zeroed means none. */
struct making {
    struct upload upload;
    struct made *made;
    size_t count, room;
    size_t filling;             /* the one whose last part was not sent, and 1; 0: none */
    size_t parts_cut;           /* of the patches in front of it */
    struct ulp_patch **patches; /* those that there are, in order, once they are opened */
    size_t patch_count;
    struct ulp_diff_report report; /* of the last one, with changes and bytes of all */
};

enum ulp_status making_begin(struct making *making, const struct work *work, uint64_t folder);

/* Makes the next patch from the weights, which the holder gave, to `tensors`, and sends it. */
enum ulp_status making_add(struct making *making, struct holder *holder,
                           const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                           size_t count, const struct ulp_diff_options *options);

/* The same for a tile of a tiling; one without regions has no patch. */
enum ulp_status making_add_tile(struct making *making, struct holder *holder,
                                const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                                size_t count, const struct ulp_tiling *tiling, unsigned tile,
                                const struct work *work);

/* No more are added: opens them. They are still on their way to the store. */
enum ulp_status making_open(struct making *making);

/* Waits until they are stored. */
enum ulp_status making_end(struct making *making, const struct work *work);

/* What a way says of them, in the arena. */
enum ulp_status making_stored(const struct making *making, struct arena *arena,
                              const struct stored_patch **ret_patches);
void making_release(struct making *making);

#endif
