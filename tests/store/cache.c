// SPDX-License-Identifier: Apache-2.0
/* The cache: what is asked of the store within, what is kept and for how long. */
#include "tests/store/cached.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_everything_is_fetched_once(void **state) {
    struct scene scene = scene_make();

    (void)state;
    for (int round = 0; round < 3; round++) {
        struct ulp_store *store = cached(&scene, UINT64_MAX);

        for (size_t i = 0; i < OBJECTS; i++)
            assert_ok(check_object(store, &scene, i));
        assert_ok(check_large(store, &scene));
        assert_int_equal(scene.asked->bytes, OBJECTS * OBJECT_BYTES + LARGE_BYTES);
        ulp_store_free(store);
    }
    assert_int_equal(entries_in(scene.directory), OBJECTS + 1);
    scene_remove(&scene);
}

static void assert_bytes_at(struct ulp_store *store, const char *key, uint64_t offset,
                            size_t expected, uint64_t expected_total) {
    uint8_t data[400];
    uint64_t total = 0;
    size_t got = 0;

    assert_ok(ulp_store_read(store, key, offset, data, sizeof data, &got, &total));
    assert_true(got == expected && total == expected_total);
}

/* The middle of what is not there is fetched alone; what is there serves every range. */
static void test_ranges(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX), *other = cached(&scene, UINT64_MAX);

    (void)state;
    assert_bytes_at(store, scene.keys[0], 500, 400, OBJECT_BYTES);
    assert_int_equal(scene.asked->bytes, 400);
    assert_int_equal(entries_in(scene.directory), 0);
    assert_bytes_at(store, scene.keys[0], 0, 400, OBJECT_BYTES);
    assert_int_equal(scene.asked->bytes, 400 + OBJECT_BYTES);
    for (int i = 0; i < 2; i++) { /* the other handle has to verify it for itself */
        assert_bytes_at(i ? other : store, scene.keys[0], 900, 100, OBJECT_BYTES);
        assert_bytes_at(i ? other : store, scene.keys[0], OBJECT_BYTES, 0, OBJECT_BYTES);
        assert_bytes_at(i ? other : store, scene.keys[0], UINT64_MAX, 0, OBJECT_BYTES);
    }
    assert_int_equal(scene.asked->bytes, 400 + OBJECT_BYTES);
    ulp_store_free(store);
    ulp_store_free(other);
    scene_remove(&scene);
}

/* Records, and names that only look like hashes, are asked for each time. */
static void test_what_is_not_kept(void **state) {
    static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);
    char keys[5][128];

    (void)state;
    for (int i = 1; i < 4; i++) {
        assert_object(store, "run/log/1", "a record");
        assert_int_equal(scene.asked->log_reads, i);
    }
    snprintf(keys[0], 128, "run/part/%.63s", hex);
    snprintf(keys[1], 128, "run/part/%s0", hex);
    snprintf(keys[2], 128, "run/part/%.63sF", hex);
    snprintf(keys[3], 128, "run/%s/x", hex);
    snprintf(keys[4], 128, "%s", hex); /* of other bytes */
    for (size_t i = 0; i < COUNT(keys); i++) {
        uint64_t before = scene.asked->reads;

        put_text(store, keys[i], "first");
        assert_object(store, keys[i], "first");
        put_text(store, keys[i], "second");
        assert_object(store, keys[i], "second");
        assert_int_equal(scene.asked->reads, before + 2);
    }
    assert_int_equal(entries_in(scene.directory), 0);
    ulp_store_free(store);
    scene_remove(&scene);
}

/* Everything but reading is the store's own affair. */
static void test_the_rest_goes_through(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);
    uint64_t bytes = 0;

    (void)state;
    assert_string_equal(ulp_store_name(store), scene.origin);
    assert_ok(check_object(store, &scene, 0));
    assert_ok(ulp_store_stat(store, scene.keys[0], &bytes));
    assert_int_equal(bytes, OBJECT_BYTES);
    assert_int_equal(listed(store, "run/part/", "").count, OBJECTS + 1);
    assert_ok(ulp_store_remove(store, scene.keys[0]));
    assert_absent(store, scene.keys[0]);
    assert_int_equal(entries_in(scene.directory), 0);
    assert_ok(ulp_store_create(store, "run/log/2", "x", 1));
    assert_fails(ulp_store_create(store, "run/log/2", "x", 1), ULP_E_EXISTS, "run/log/2");
    assert_object(store, "run/log/2", "x");
    ulp_store_free(store);
    scene_remove(&scene);
}

/* As if it had last been read so many seconds after 1970. */
static void set_age(const struct scene *scene, size_t index, time_t seconds) {
    struct timespec times[2] = {{seconds, 0}, {0, UTIME_OMIT}};

    assert_int_equal(utimensat(AT_FDCWD, cache_path(scene, scene->keys[index]), times, 0), 0);
}

static bool is_kept(const struct scene *scene, const char *key) {
    return !access(cache_path(scene, key), F_OK);
}

static void test_the_oldest_goes(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, 3 * OBJECT_BYTES + 500);

    (void)state;
    plant_file(path_in(scene.directory, "foreign"), "a file of somebody else");
    for (size_t i = 0; i < 3; i++) {
        assert_ok(check_object(store, &scene, i));
        set_age(&scene, i, 1000 + (time_t)i);
    }
    assert_ok(check_object(store, &scene, 0)); /* so that it is the newest */
    assert_ok(check_object(store, &scene, 3));
    assert_true(is_kept(&scene, scene.keys[0]) && is_kept(&scene, scene.keys[2]) &&
                is_kept(&scene, scene.keys[3]));
    assert_false(is_kept(&scene, scene.keys[1]));
    assert_ok(check_object(store, &scene, 4));
    assert_false(is_kept(&scene, scene.keys[2]));
    assert_ok(check_large(store, &scene)); /* never fits */
    assert_int_equal(entries_in(scene.directory), 4);
    for (size_t i = 0; i < OBJECTS; i++)
        assert_ok(check_object(store, &scene, i));
    assert_int_equal(entries_in(scene.directory), 4);
    assert_file(path_in(scene.directory, "foreign"), "a file of somebody else");
    ulp_store_free(store);
    scene_remove(&scene);
}

/* Also on a file system that keeps the time of the first reading only. */
static void test_reading_makes_younger(void **state) {
    static const size_t order[] = {0, 0, 1, 1, 2, 2, 0, 3};
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, 3 * OBJECT_BYTES);

    (void)state;
    for (size_t i = 0; i < COUNT(order); i++) {
        assert_ok(check_object(store, &scene, order[i]));
        clock_sleep_ns(20000000); /* file systems count time in larger steps */
    }
    assert_true(is_kept(&scene, scene.keys[0]));
    assert_false(is_kept(&scene, scene.keys[1]));
    ulp_store_free(store);
    scene_remove(&scene);
}

static void test_arguments(void **state) {
    struct ulp_store *store = NULL, *inner = NULL;

    (void)state;
    assert_fails(ulp_store_cache(NULL, "/tmp", 1, &store), ULP_E_USAGE, "NULL");
    assert_ok(ulp_store_memory(&inner));
    assert_fails(ulp_store_cache(inner, NULL, 1, &store), ULP_E_USAGE, "NULL");
    assert_ok(ulp_store_memory(&inner));
    assert_fails(ulp_store_cache(inner, "/tmp", 1, NULL), ULP_E_USAGE, "NULL");
    assert_ok(ulp_store_memory(&inner));
    assert_fails(ulp_store_cache(inner, "/nowhere/at/all", 1, &store), ULP_E_NOT_FOUND,
                 "/nowhere/at/all");
    assert_null(store);
}

TEST_MAIN(test_everything_is_fetched_once, test_ranges, test_what_is_not_kept,
          test_the_rest_goes_through, test_the_oldest_goes, test_reading_makes_younger,
          test_arguments)
