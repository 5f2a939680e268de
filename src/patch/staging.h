// SPDX-License-Identifier: Apache-2.0
/* Memory for decoded changes: from the heap within a budget, beyond it from a file that has no
 * name. */
#ifndef PATCH_STAGING_H
#define PATCH_STAGING_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct staging;

/* `directory` NULL or "": TMPDIR, or /tmp. */
enum ulp_status staging_new(uint64_t budget, const char *directory, struct staging **ret_staging);
void staging_free(struct staging *staging);

/* Memory that lives as long as the staging; from any thread. Its contents are anything. */
enum ulp_status staging_take(struct staging *staging, size_t bytes, void *ret_pointer);

uint64_t staging_held(const struct staging *staging);    /* on the heap */
uint64_t staging_spilled(const struct staging *staging); /* in the file */

#endif
