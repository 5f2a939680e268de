// SPDX-License-Identifier: Apache-2.0
/*
 * An anchor that is on its way into memory which is in use. Its files are kept aside, large ones not
 * in memory, until all of it is verified and may be copied over in one go.
 */
#ifndef SYNC_MEMORY_ASIDE_H
#define SYNC_MEMORY_ASIDE_H

#include "sync/anchor_shard.h"

/* Zeroed means none. */
struct aside {
    struct fetched_shard *files;
    size_t file_count;
    struct arena arena;
    struct ulp_tensor *tensors; /* in the order of the weights */
    struct ulp_sum *sums;
    struct ulp_root root;
};

/* Fetches the anchor's weights; ULP_E_LAYOUT if they have other tensors. */
enum ulp_status aside_load(struct aside *aside, const struct work *work,
                           const struct anchor *anchor, const struct ulp_weights *weights);

/* Copies it over the weights, which forget how they came about. Nothing here can fail. */
void aside_show(struct aside *aside, struct ulp_weights *weights);

/* The same without copying: whoever did so for weights that are elsewhere. */
void aside_settle(struct aside *aside, struct ulp_weights *weights);
void aside_release(struct aside *aside);

#endif
