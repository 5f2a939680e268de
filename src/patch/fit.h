// SPDX-License-Identifier: Apache-2.0
/* Whether patches are for these weights at all: asked before anything is decoded. */
#ifndef PATCH_FIT_H
#define PATCH_FIT_H

#include "patch/patch.h"
#include "patch/weights.h"

bool same_root(const struct ulp_root *a, const struct ulp_root *b);

struct short_root {
    char hex[ULP_ROOT_HEX_BYTES];
};

/* The first digits of a root: enough for people. */
struct short_root short_root(const struct ulp_root *root);

/* One whole patch, or parts of one that lead to `child`; of a tile, parts of just its regions.
 * *ret_already: the weights are the child, and there is nothing to do. */
enum ulp_status fit_check(const struct ulp_weights *weights, const struct ulp_patch *const *parts,
                          size_t count, const struct ulp_root *child, bool *ret_already);

/* The weights hold all that the patch covers: ULP_E_REGIONS when they are a tile that does not, or
 * the patch is whole. Their tensors are the same. */
enum ulp_status fit_held(const struct ulp_weights *weights, const struct ulp_patch *patch);

/* The weights are the patch's parent, and remember what it needs. */
enum ulp_status fit_base(const struct ulp_weights *weights, const struct ulp_patch *patch);

/* The patch's history is what the weights remember, or it has none. */
enum ulp_status fit_history(const struct ulp_weights *weights, const struct ulp_patch *patch);

/* The root that parts lead to; ULP_E_REGIONS unless they tile all tensors, ULP_E_WRONG_BASE when
 * they start from different states. */
enum ulp_status parts_root(const struct ulp_patch *const *parts, size_t count,
                           struct ulp_root *ret_child);

#endif
