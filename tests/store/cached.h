// SPDX-License-Identifier: Apache-2.0
/* A store with objects that are named by their hashes, and caches of it that count what they ask. */
#ifndef TESTS_STORE_CACHED_H
#define TESTS_STORE_CACHED_H

#include "tests/store/stores.h"

#include <stdatomic.h>

enum { OBJECTS = 12, OBJECT_BYTES = 1000, LARGE_BYTES = (12 << 20) + 5 };

/* Read from the store within; in memory that processes share. */
struct asked {
    atomic_uint_fast64_t reads, bytes, log_reads;
};

struct scene {
    char *origin, *directory; /* of the store within, and of the cache */
    struct asked *asked;
    char keys[OBJECTS][128];
    char large[128];
};

struct scene scene_make(void);
void scene_remove(struct scene *scene);

/* A new handle on both. */
struct ulp_store *cached(const struct scene *scene, uint64_t bytes_max);

/* The file of an object, be there one or not. */
const char *cache_path(const struct scene *scene, const char *key);

/* A key that says what these bytes are. */
void key_of(const void *data, size_t bytes, char key[128]);

/* Object `index` in full, through pieces; a status, for threads and children. */
enum ulp_status check_object(struct ulp_store *store, const struct scene *scene, size_t index);
enum ulp_status check_large(struct ulp_store *store, const struct scene *scene);

#endif
