// SPDX-License-Identifier: Apache-2.0
/* The tensors of a state in a table: names, dtypes and shapes, each said once. */
#ifndef PATCH_LAYOUT_H
#define PATCH_LAYOUT_H

#include "base/arena.h"
#include "base/cursor.h"

#include <ulpsync/model.h>

/* `tensors` are sorted by name. */
enum ulp_status layout_write(const struct ulp_tensor *tensors, size_t count, struct buffer *out);

/* Tensors without data, in the arena. Whether the encoding was canonical is not looked at. */
enum ulp_status layout_read(struct cursor *cursor, struct arena *arena,
                            struct ulp_tensor **ret_tensors, size_t *ret_count);

/* ULP_E_LAYOUT unless both have the same names, dtypes and shapes; says what differs, and calls
 * them by the names given ("the model", "the patch"). */
enum ulp_status layout_compare(const struct ulp_tensor *have, size_t have_count,
                               const struct ulp_tensor *want, size_t want_count,
                               const char *have_name, const char *want_name);

/* Copies the descriptions into the arena, sorted by name. */
enum ulp_status layout_copy(const struct ulp_tensor *tensors, size_t count, struct arena *arena,
                            struct ulp_tensor **ret_tensors);

#endif
