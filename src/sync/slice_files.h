// SPDX-License-Identifier: Apache-2.0
/*
 * A slice of a state as a model on disk: files with the headers and lengths of the whole one, in
 * which only the bytes of the slice are written. What was never written reads as zeros and takes no
 * room where the file system can have holes.
 */
#ifndef SYNC_SLICE_FILES_H
#define SYNC_SLICE_FILES_H

#include "sync/slice.h"

/* Into an empty directory: what the slice has of an anchor, and the files beside the weights. The
 * root is that of the whole state, which is fetched file by file. */
enum ulp_status slice_files_load(const struct work *work, const struct slice *slice,
                                 const struct anchor *anchor, const char *directory,
                                 struct ulp_root *ret_root);

/* The same of a whole model. */
enum ulp_status slice_files_take(const struct work *work, const struct slice *slice,
                                 const char *path, const char *directory,
                                 struct ulp_root *ret_root);

/* The slice in `from`, whose state has root `parent`, a step further. */
enum ulp_status slice_files_step(const struct work *work, const struct slice *slice,
                                 const char *from, const struct ulp_root *parent,
                                 const struct step *step, const char *directory);

/* A hidden file beside the slice says which one it is, and of which state. Writing it is the last
 * thing before the directory gets its name. */
enum ulp_status slice_mark_write(const struct slice *slice, const char *directory,
                                 const struct ulp_root *root);

/* ULP_E_OTHER_RUN if the directory holds another slice, or a whole model. */
enum ulp_status slice_mark_read(const struct slice *slice, const char *directory,
                                struct ulp_root *ret_root);
bool slice_mark_exists(const char *directory);

#endif
