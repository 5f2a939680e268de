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

/* One whole patch, or parts of one that lead to `child`. *ret_already: the weights are the child,
 * and there is nothing to do. */
enum ulp_status fit_check(const struct ulp_weights *weights, const struct ulp_patch *const *parts,
                          size_t count, const struct ulp_root *child, bool *ret_already);

/* The weights are the patch's parent, and remember what it needs. */
enum ulp_status fit_base(const struct ulp_weights *weights, const struct ulp_patch *patch);

/* The patch's history is what the weights remember, or it has none. */
enum ulp_status fit_history(const struct ulp_weights *weights, const struct ulp_patch *patch);

/* The root that parts lead to; ULP_E_REGIONS unless they tile all tensors. */
enum ulp_status parts_root(const struct ulp_patch *const *parts, size_t count,
                           struct ulp_root *ret_child);

#endif
