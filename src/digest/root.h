// SPDX-License-Identifier: Apache-2.0
/*
 * The root of a state: SHA-256 over every tensor's name, dtype, shape and content sum, in name
 * order. docs/format/root.md gives the bytes that are hashed.
 */
#ifndef DIGEST_ROOT_H
#define DIGEST_ROOT_H

#include <ulpsync/model.h>

/* `order` sorts the tensors by name: order[0] is the index of the first. */
enum ulp_status root_of_sums(const struct ulp_tensor *tensors, const size_t *order, size_t count,
                             const struct ulp_sum *sums, struct ulp_root *ret_root);

/* Fills `ret_order` as root_of_sums() wants it; ULP_E_DUPLICATE when two names are equal. */
enum ulp_status root_order(const struct ulp_tensor *tensors, size_t count, size_t *ret_order);

/* From scratch; see ulp_state_digest(). */
enum ulp_status state_digest(const struct ulp_tensor *tensors, size_t count, struct ulp_pool *pool,
                             const struct ulp_progress *progress, struct ulp_sum *ret_sums,
                             struct ulp_root *ret_root);

#endif
