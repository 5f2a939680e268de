// SPDX-License-Identifier: Apache-2.0
/* A small model on disk, in a directory with other things, and a patch for it. */
#ifndef TESTS_PATCH_DISK_H
#define TESTS_PATCH_DISK_H

#include "tests/patch/state.h"
#include "tests/tensor/sample.h"

#define DISK_SHARDS 3

/* Where path_in() would be used again too soon. */
struct path {
    char text[4096];
};
struct path path_of(const char *directory, const char *name);

struct disk {
    char *top;        /* a directory that goes with the test */
    char model[4096]; /* a directory in it */
    struct state base, next;
    struct ulp_root base_root, next_root;
    struct bytes bytes;
    struct ulp_patch *patch;
};

/* `per_mille` of the elements change. */
struct disk disk_make(unsigned shards, unsigned per_mille);
void disk_free(struct disk *disk);

/* Puts the model's files back to the base. */
void disk_reset(const struct disk *disk, unsigned shards);

/* The root of what is at `path`, which opens. */
struct ulp_root root_at(const char *path);
void assert_holds_root(const char *path, const struct ulp_root *root);

/* Names and contents of all files of a directory, hidden ones too. */
struct bytes directory_bytes(const char *directory);

struct bytes file_bytes(const char *path);
void write_file(const char *path, const void *data, size_t bytes);

/* Name of a shard of the model, counted from 1. */
struct path shard_path(const struct disk *disk, unsigned shard, unsigned shards);

/* A complete journal for the model, as if its writer had been killed before the first write. */
void plant_journal(const struct disk *disk);
struct path journal_of(const struct disk *disk);

#endif
