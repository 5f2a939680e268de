// SPDX-License-Identifier: Apache-2.0
/* A model's files as an anchor: the weights, and what a loader needs beside them. */
#ifndef SYNC_ANCHOR_FILES_H
#define SYNC_ANCHOR_FILES_H

#include "sync/holder.h"

/* The plain files of a directory that are not hidden, in byte order of their names. */
struct file_names {
    const char **names; /* in the arena */
    size_t count;
};
enum ulp_status file_names_list(const char *directory, struct arena *arena,
                                struct file_names *ret_names);

/* DIRECTORY/NAME, in the text, which has room for PATH_MAX. */
enum ulp_status anchor_path(const char *directory, const char *name, char *path);

/* Stores the files of the model in `directory`; by reference, only those beside the weights. What
 * the map in `record` has already is named again and not sent. */
enum ulp_status anchor_files_put(const struct work *work, const struct record *record,
                                 uint64_t folder, const char *directory, struct arena *arena,
                                 struct anchor *anchor);

/* Fetches them into a directory. */
enum ulp_status anchor_files_get(const struct work *work, const struct anchor *anchor,
                                 const char *directory);

/* The same without the files of weights. */
enum ulp_status anchor_files_get_beside(const struct work *work, const struct anchor *anchor,
                                        const char *directory);

/* Copies one file to a free name. */
enum ulp_status plain_file_copy(const char *from, const char *to);

/* Copies the files of a model at `path`, a file or a directory, into a directory. */
enum ulp_status model_files_copy(const char *path, const char *directory);

/* The SHA-256 that an anchor by reference gives for the weights; see docs/format/chain.md. `reader`
 * is of their data. */
enum ulp_status content_hash(const struct ulp_tensor *tensors, size_t count,
                             const struct piece_reader *reader, struct hash *ret_hash);

#endif
