// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors gathered into groups that people think in. By layer: everything under a name with a
 * number in it ("model.layers.7"), or a tensor that belongs to none. By kind: what all layers have.
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

/*
 * The same by what tensors are for, whatever layer they are in: the parts of their names behind the
 * first number, without numbers and without "weight" at the end ("self_attn.q_proj",
 * "mlp.experts.up_proj"); names without a number stay whole. Sorted by name.
 */
enum ulp_status groups_make_by_kind(const struct ulp_tensor *tensors,
                                    const struct ulp_tensor_report *reports, size_t count,
                                    struct group **ret_groups, size_t *ret_count);

/* Adds `from` to `to`. */
void report_add(struct ulp_tensor_report *to, const struct ulp_tensor_report *from);

#endif
