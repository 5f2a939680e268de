// SPDX-License-Identifier: Apache-2.0
/* Each allocation fails once, and then all from there on: no leak, no half an object, and a failure
 * that says so. */
#include "tests/store/stores.h"

struct scene {
    char *directory; /* NULL for a store in memory */
    struct ulp_store *store;
};

static int count_one(void *user, const char *key, uint64_t bytes) {
    (void)key;
    (void)bytes;
    ++*(unsigned *)user;
    return 0;
}

static enum ulp_status put_in_two(struct ulp_store *store) {
    static const char data[5000] = "two pieces";
    struct ulp_store_writer *writer = NULL;
    enum ulp_status status = ulp_store_put_begin(store, "a/put", &writer);

    if (!status)
        status = ulp_store_put_write(writer, data, 10);
    if (!status)
        status = ulp_store_put_write(writer, data, sizeof data);
    if (!writer)
        return status;
    if (status) {
        ulp_store_put_end(writer, 0);
        return status;
    }
    return ulp_store_put_end(writer, 1);
}

/* One call of each kind; ends at the first that fails. */
static enum ulp_status use(struct scene *scene) {
    uint64_t total = 0;
    size_t got = 0;
    char byte;
    unsigned count = 0;
    enum ulp_status status = scene->directory ? ulp_store_open(scene->directory, &scene->store)
                                              : ulp_store_memory(&scene->store);

    if (!status)
        status = ulp_store_create(scene->store, "a/created", "created", 7);
    if (!status)
        status = put_in_two(scene->store);
    if (!status)
        status = ulp_store_put(scene->store, "b", "b", 1);
    if (!status)
        status = ulp_store_read(scene->store, "a/put", 0, &byte, 1, &got, &total);
    if (!status)
        status = ulp_store_list(scene->store, "", "", count_one, &count);
    if (!status && (count != 3 || total != 5010))
        status = ULP_E_INTERNAL;
    if (!status)
        status = ulp_store_remove(scene->store, "b");
    return status;
}

/* What is there is complete. */
static bool complete(struct ulp_store *store, const char *key, uint64_t bytes) {
    uint64_t found = 0;
    enum ulp_status status = ulp_store_stat(store, key, &found);

    return status == ULP_E_NOT_FOUND || (!status && found == bytes);
}

static bool all_complete(struct ulp_store *store) {
    return !store || (complete(store, "a/created", 7) && complete(store, "a/put", 5010) &&
                      complete(store, "b", 1));
}

/* 0 when no allocation was left to fail. Nothing is asserted meanwhile. */
static bool fail_at(bool directory, uint64_t at, int persistent) {
    struct scene scene = {.directory = directory ? temp_directory_make() : NULL};
    enum ulp_status status;
    bool said, fine;

    failing_allocator_start(at, persistent);
    status = use(&scene);
    said = ulp_last_error()[0] != 0;
    fine = all_complete(scene.store);
    ulp_store_free(scene.store);
    failing_allocator_stop();
    if (scene.directory)
        temp_directory_remove(scene.directory);
    assert_true(fine);
    if (!status)
        return false;
    assert_int_equal(status, ULP_E_NOMEM);
    assert_true(said);
    return true;
}

static void fail_everywhere(bool directory) {
    for (int persistent = 0; persistent < 2; persistent++) {
        uint64_t at = 0;

        while (fail_at(directory, at, persistent))
            at++;
        assert_true(at > 10);
    }
}

static void test_in_memory(void **state) {
    (void)state;
    fail_everywhere(false);
}

static void test_in_a_directory(void **state) {
    size_t open_before = entries_in("/proc/self/fd");

    (void)state;
    fail_everywhere(true);
    assert_int_equal(entries_in("/proc/self/fd"), open_before);
}

TEST_MAIN(test_in_memory, test_in_a_directory)
