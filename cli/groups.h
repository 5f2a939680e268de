// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors gathered into groups that people think in: a layer, which is everything under a name with
 * a number in it ("model.layers.7"), or a tensor that belongs to none.
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include <stddef.h>
#include <ulpsync/ulpsync.h>

struct group {
    const char *name; /* of its first tensor; the group's own is the first `length` bytes of it */
    size_t length;
    size_t tensors;
    struct ulp_tensor_report total;
};

/* Adds up reports of tensors in name order. Layers come in order of their numbers. To be freed with
 * free(). */
enum ulp_status groups_make(const struct ulp_tensor *tensors,
                            const struct ulp_tensor_report *reports, size_t count,
                            struct group **ret_groups, size_t *ret_count);

/* Adds `from` to `to`. */
void report_add(struct ulp_tensor_report *to, const struct ulp_tensor_report *from);

#endif
