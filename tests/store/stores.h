// SPDX-License-Identifier: Apache-2.0
/* Every kind of store, empty, for tests that hold for all of them. */
#ifndef TESTS_STORE_STORES_H
#define TESTS_STORE_STORES_H

#include "tests/test.h"

#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct place {
    struct ulp_store *store;
    char *directory; /* NULL for a store in memory */
};

/* Runs the test on a fresh store of each kind, and checks that no file is left open. */
void for_each_store(void (*test)(struct place *place));

/* test_NAME, which runs NAME on each. */
#define TEST_EACH(name)                                                                            \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        for_each_store(name);                                                                      \
    }

/* A store in a directory of its own. */
struct place directory_place(void);
void place_free(struct place *place);

void put_text(struct ulp_store *store, const char *key, const char *text);
void assert_object(struct ulp_store *store, const char *key, const char *text);
void assert_absent(struct ulp_store *store, const char *key);

/* Reads a whole object of at most `room` bytes; for threads, where nothing can be asserted. */
enum ulp_status read_whole(struct ulp_store *store, const char *key, void *data, size_t room,
                           size_t *ret_bytes);

/* The keys of a listing, each followed by a space. */
struct listed {
    char text[8192];
    size_t count;
};
struct listed listed(struct ulp_store *store, const char *prefix, const char *after);

/* Everything in a directory but "." and "..", hidden or not. */
size_t entries_in(const char *directory);

/* A file that no store has written. */
void plant_file(const char *path, const char *text);
void assert_file(const char *path, const char *text);

#endif
