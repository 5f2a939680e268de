// SPDX-License-Identifier: Apache-2.0
/*
 * The journal of a change in place: the decoded changes, so that writing them can be repeated after
 * a crash. It appears under its name complete and synced, before the first write, and goes after
 * the last. It is read by the library that wrote it, on the same machine, and is no exchange
 * format.
 */
#ifndef PATCH_JOURNAL_H
#define PATCH_JOURNAL_H

#include "patch/apply.h"

enum ulp_status journal_write(const char *path, const struct ulp_apply *apply);

/* Zeroed means none. */
struct journal {
    struct file_map map;
    struct ulp_root parent, child;
    uint64_t records;
};

enum ulp_status journal_open(const char *path, struct journal *ret_journal);

/* The same for bytes that are in memory; takes over `map`, also when it fails. */
enum ulp_status journal_parse(const char *what, struct file_map *map, struct journal *ret_journal);
void journal_release(struct journal *journal);

/* Goes through its blocks, in order, each checked to lie inside of the grid. */
enum ulp_status journal_each_block(const struct journal *journal, const struct grid *grid,
                                   staged_block_fn fn, void *user);

#endif
