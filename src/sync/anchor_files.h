// SPDX-License-Identifier: Apache-2.0
/* A model's files as an anchor: the weights, and what a loader needs beside them. */
#ifndef SYNC_ANCHOR_FILES_H
#define SYNC_ANCHOR_FILES_H

#include "chain/record.h"
#include "store/store.h"

/* Stores the files of the model at `path`, a file or a directory; hidden ones and directories are
 * left out. */
enum ulp_status anchor_files_put(struct ulp_store *store, const char *run, const char *path,
                                 struct arena *arena, struct anchor *anchor, uint64_t *stored);

#endif
