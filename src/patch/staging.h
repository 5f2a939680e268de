// SPDX-License-Identifier: Apache-2.0
/* Memory for what grows with the model (decoded changes, history): from the heap within a budget,
 * beyond it from a file that has no name. */
#ifndef PATCH_STAGING_H
#define PATCH_STAGING_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Zeroed means the defaults. */
struct staging_room {
    uint64_t heap_bytes;   /* 0: STAGING_BYTES_DEFAULT */
    const char *directory; /* NULL or "": TMPDIR, or /tmp */
};

/* Beyond some tens of MiB memory is as slow as the file that is mapped instead. */
#define STAGING_BYTES_DEFAULT (UINT64_C(64) << 20)

struct staging;

enum ulp_status staging_new(struct staging_room room, struct staging **ret_staging);
void staging_free(struct staging *staging);

/* Memory that lives as long as the staging, aligned for anything; from any thread. Its contents are
 * anything. */
enum ulp_status staging_take(struct staging *staging, size_t bytes, void *ret_pointer);

uint64_t staging_held(const struct staging *staging);    /* on the heap */
uint64_t staging_spilled(const struct staging *staging); /* in the file */

#endif
