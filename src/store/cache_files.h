// SPDX-License-Identifier: Apache-2.0
/*
 * Objects that are named by the SHA-256 of their bytes, in a directory that processes of one machine
 * share. NAME is an object; `.NAME.fill` is one that somebody fetches, and locked meanwhile. Nobody
 * writes into a file that was there before, follows a link, or believes what is there: an object is
 * whatever has the hash that its name says. So nothing has to be synced, either.
 *
 * Nothing here may make a read fail, so failures are not told of: without the cache it goes on.
 */
#ifndef STORE_CACHE_FILES_H
#define STORE_CACHE_FILES_H

#include "base/status.h"
#include "hash/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hexadecimal digits, in lower case. */
#define CACHE_NAME_LENGTH 64

struct cache_files {
    int directory; /* descriptor + 1 */
    uint64_t bytes_max;
};

/* Makes the directory if its parent is there. This one says why it fails. */
enum ulp_status cache_files_open(const char *path, uint64_t bytes_max,
                                 struct cache_files *ret_files);
void cache_files_release(struct cache_files *files);

/* The name of the object with this key, which points into it; NULL if the key does not end in a
 * hash. */
const char *cache_name(const char *key);

/* A descriptor, or -1. */
int cache_find(const struct cache_files *files, const char *name);
void cache_drop(const struct cache_files *files, const char *name);

/* Ends the hash: whether it is the one that the name says; and whether that of an open file's bytes
 * is. */
bool cache_hash_is(struct sha256 *hash, const char *name);
bool cache_is_genuine(int file, const char *name);

/* Who fetches an object: we, into the file that is returned; or somebody else, into that file; or
 * it cannot be kept. */
enum cache_claim { CLAIM_OURS, CLAIM_OTHERS, CLAIM_IMPOSSIBLE };
enum cache_claim cache_claim(const struct cache_files *files, const char *name, int *ret_file);

/* Waits until somebody else has ended, well or not, and closes the file. Whoever was stopped, or
 * has stopped fetching, is not waited for: false. */
bool cache_wait(const struct cache_files *files, const char *name, int file);

/* Removes what was not read for longest, until `bytes` more fit. */
bool cache_make_room(const struct cache_files *files, uint64_t bytes);

/* Ends our own: with `keep` it becomes the object, without nothing is left. */
void cache_end(const struct cache_files *files, const char *name, int file, bool keep);

#endif
