// SPDX-License-Identifier: Apache-2.0
/* Putting: over what is there, at once, or not at all. */
#include "tests/store/stores.h"

#include <stdatomic.h>

static void replaces(struct place *place) {
    put_text(place->store, "a/b", "old and long");
    put_text(place->store, "a/b", "new");
    assert_object(place->store, "a/b", "new");
    assert_string_equal(listed(place->store, "", "").text, "a/b ");
    if (place->directory)
        assert_int_equal(entries_in(path_in(place->directory, "a")), 1);
}

static void test_put_replaces(void **state) {
    (void)state;
    for_each_store(replaces);
}

static void aborted(struct place *place) {
    struct ulp_store_writer *writer = NULL;

    put_text(place->store, "a/old", "old");
    assert_ok(ulp_store_put_begin(place->store, "a/old", &writer));
    assert_ok(ulp_store_put_write(writer, "new", 3));
    assert_ok(ulp_store_put_end(writer, 0));
    assert_object(place->store, "a/old", "old");
    assert_ok(ulp_store_put_begin(place->store, "a/new", &writer));
    assert_ok(ulp_store_put_write(writer, "new", 3));
    assert_string_equal(listed(place->store, "", "").text, "a/old ");
    assert_ok(ulp_store_put_end(writer, 0));
    assert_absent(place->store, "a/new");
    assert_ok(ulp_store_put_begin(place->store, "a/new", &writer));
    assert_ok(ulp_store_put_end(writer, 0));
    assert_absent(place->store, "a/new");
    if (place->directory)
        assert_int_equal(entries_in(path_in(place->directory, "a")), 1);
}

static void test_aborted_writers_leave_nothing(void **state) {
    (void)state;
    for_each_store(aborted);
}

/* The last one to end is what stays; neither disturbs the other. */
static void two_writers(struct place *place) {
    struct ulp_store_writer *one = NULL, *two = NULL;

    assert_ok(ulp_store_put_begin(place->store, "a/b", &one));
    assert_ok(ulp_store_put_begin(place->store, "a/b", &two));
    assert_ok(ulp_store_put_write(one, "1", 1));
    assert_ok(ulp_store_put_write(two, "22", 2));
    assert_ok(ulp_store_put_write(one, "1", 1));
    assert_ok(ulp_store_put_write(two, "22", 2));
    assert_ok(ulp_store_put_end(two, 1));
    assert_object(place->store, "a/b", "2222");
    assert_ok(ulp_store_put_end(one, 1));
    assert_object(place->store, "a/b", "11");
}

static void test_two_writers_of_one_object(void **state) {
    (void)state;
    for_each_store(two_writers);
}

enum { CONTENTS = 40000, REPLACEMENTS = 60, THREADS = 4 };

struct scene {
    struct ulp_store *store;
    atomic_bool over;
    atomic_uint reads;
};

/* Versions differ in every byte and in length. */
static enum ulp_status replace_often(struct scene *scene) {
    static char data[CONTENTS];
    enum ulp_status status = ULP_OK;

    for (int round = 0; !status && round < REPLACEMENTS; round++) {
        memset(data, 'a' + round % 26, sizeof data);
        status = ulp_store_put(scene->store, "a/b", data, sizeof data - (size_t)(round % 26));
    }
    atomic_store(&scene->over, true);
    return status;
}

static enum ulp_status read_one(struct scene *scene) {
    char data[CONTENTS];
    size_t bytes = 0;
    enum ulp_status status = read_whole(scene->store, "a/b", data, sizeof data, &bytes);

    if (status)
        return status;
    if (bytes != CONTENTS - (size_t)(data[0] - 'a') || memcmp(data, data + 1, bytes - 1) != 0)
        return ulp_fail(ULP_E_INTERNAL, "a mixture of %zu bytes", bytes);
    atomic_fetch_add(&scene->reads, 1);
    return ULP_OK;
}

static enum ulp_status read_or_replace(void *user, uint64_t index) {
    struct scene *scene = user;
    enum ulp_status status = ULP_OK;

    if (!index)
        return replace_often(scene);
    do
        status = read_one(scene);
    while (!status && !atomic_load(&scene->over));
    return status;
}

static void whole_versions(struct place *place) {
    struct scene scene = {.store = place->store};
    struct ulp_pool *pool = NULL;
    char *first = malloc(CONTENTS);

    assert_non_null(first);
    memset(first, 'a', CONTENTS);
    assert_ok(ulp_store_put(place->store, "a/b", first, CONTENTS));
    free(first);
    assert_ok(ulp_pool_new(THREADS, &pool));
    assert_ok(ulp_pool_run(pool, THREADS, read_or_replace, &scene, NULL));
    ulp_pool_free(pool);
    assert_true(atomic_load(&scene.reads) >= THREADS - 1);
}

static void test_readers_see_whole_versions(void **state) {
    (void)state;
    for_each_store(whole_versions);
}

TEST_MAIN(test_put_replaces, test_aborted_writers_leave_nothing, test_two_writers_of_one_object,
          test_readers_see_whole_versions)
