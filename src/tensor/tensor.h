// SPDX-License-Identifier: Apache-2.0
/* What holds for every tensor, whoever made it: names, sizes, order. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <ulpsync/model.h>

/* Checks a name that is about to be used: 1 to LIMIT_NAME_BYTES bytes of UTF-8, not the reserved
 * "__metadata__". `what` begins the message. */
enum ulp_status tensor_check_name(const char *what, const char *name);

/*
 * Computes elements and bits from dtype and shape and checks them against `stored_bytes`, or, for a
 * dtype that is not known, derives the width from them.
 */
enum ulp_status tensor_measure(const char *what, struct ulp_tensor *tensor, uint64_t stored_bytes);

/* Bytes of a tensor of known dtype. */
enum ulp_status tensor_bytes(const char *what, const struct ulp_tensor *tensor,
                             uint64_t *ret_bytes);

/* Checks tensors that a caller describes: nothing missing, names allowed, bits and bytes as
 * tensor_measure() would set them. Whether two have one name is not looked at. */
enum tensor_data { TENSOR_WITHOUT_DATA, TENSOR_WITH_DATA };
enum ulp_status tensor_check_all(const struct ulp_tensor *tensors, size_t count,
                                 enum tensor_data data);

/* Sorts by name, in byte order; ULP_E_DUPLICATE names one that occurs twice. */
enum ulp_status tensor_sort(const char *what, struct ulp_tensor *tensors, size_t count);

/* In a sorted array; NULL if it is not there. */
const struct ulp_tensor *tensor_find(const struct ulp_tensor *tensors, size_t count,
                                     const char *name);

#endif
