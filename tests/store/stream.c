// SPDX-License-Identifier: Apache-2.0
/* Streams: the same bytes as reads, in order, through every store and every wrapper. */
#include "tests/store/cached.h"

#include <unistd.h>

struct taken {
    uint8_t *data;
    uint64_t next, first, pieces, stop_at;
};

static enum ulp_status take(void *user, uint64_t offset, const void *data, size_t bytes) {
    struct taken *taken = user;

    if (taken->pieces++ == 0)
        taken->first = taken->next = offset;
    if (offset != taken->next || !bytes)
        return ulp_fail(ULP_E_INTERNAL, "a piece at %llu", (unsigned long long)offset);
    if (taken->stop_at && offset + bytes >= taken->stop_at)
        return ulp_fail(ULP_E_NO_SPACE, "enough of it");
    memcpy(taken->data + (offset - taken->first), data, bytes);
    taken->next += bytes;
    return ULP_OK;
}

static void check_range(struct ulp_store *store, const char *key, const uint8_t *object,
                        size_t length, uint64_t offset, uint64_t bytes) {
    const uint64_t left = offset < length ? length - offset : 0;
    const uint64_t expected = bytes < left ? bytes : left;
    struct taken taken = {.data = malloc(length + 1)};
    uint64_t total = 77;

    assert_ok(ulp_store_stream(store, key, offset, bytes, take, &taken, &total));
    assert_int_equal(total, length);
    assert_int_equal(taken.next - taken.first, expected);
    assert_true(!expected || taken.first == offset);
    if (expected)
        assert_memory_equal(taken.data, object + offset, expected);
    free(taken.data);
}

static void ranges(struct place *place) {
    enum { BYTES = (9 << 20) + 3 };
    static uint8_t object[BYTES];
    const uint64_t places[] = {0, 1, 4096, 8 << 20, BYTES - 1, BYTES, BYTES + 1, UINT64_MAX};
    struct taken taken = {.data = object};
    uint64_t total = 77;

    test_random_bytes(object, sizeof object);
    assert_ok(ulp_store_put(place->store, "o", object, sizeof object));
    assert_ok(ulp_store_put(place->store, "empty", NULL, 0));
    for (size_t i = 0; i < COUNT(places); i++)
        for (size_t j = 0; j < COUNT(places); j++)
            check_range(place->store, "o", object, BYTES, places[i], places[j]);
    check_range(place->store, "empty", object, 0, 0, 0);
    check_range(place->store, "empty", object, 0, 0, 10);
    assert_fails(ulp_store_stream(place->store, "none", 0, 0, take, &taken, &total),
                 ULP_E_NOT_FOUND, "none");
    assert_fails(ulp_store_stream(place->store, "none", 0, 9, take, &taken, &total),
                 ULP_E_NOT_FOUND, "none");
    assert_fails(ulp_store_stream(place->store, "../x", 0, 9, take, &taken, &total), ULP_E_NAME,
                 "../x");
    assert_fails(ulp_store_stream(place->store, "o", 0, 9, NULL, &taken, &total), ULP_E_USAGE,
                 "NULL");
    taken.stop_at = 1;
    assert_fails(ulp_store_stream(place->store, "o", 0, BYTES, take, &taken, &total),
                 ULP_E_NO_SPACE, "enough of it");
    assert_int_equal(total, 77);
}

TEST_EACH(ranges)

/* Of the large object: read by one stream, and kept. */
static void stream_large(struct ulp_store *store, const struct scene *scene) {
    struct taken taken = {.data = malloc(LARGE_BYTES)};
    char key[128];
    uint64_t total = 0;

    assert_ok(ulp_store_stream(store, scene->large, 0, LARGE_BYTES, take, &taken, &total));
    assert_true(total == LARGE_BYTES && taken.next == LARGE_BYTES);
    key_of(taken.data, LARGE_BYTES, key);
    assert_string_equal(key, scene->large);
    free(taken.data);
}

static void test_through_a_cache(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, 1 << 30);

    (void)state;
    stream_large(store, &scene);
    assert_int_equal(scene.asked->reads, 1); /* one request, not one for each piece */
    assert_int_equal(scene.asked->bytes, LARGE_BYTES);
    stream_large(store, &scene);
    assert_ok(check_large(store, &scene));
    assert_int_equal(scene.asked->reads, 1);
    assert_int_equal(truncate(cache_path(&scene, scene.large), 100), 0); /* it rots */
    stream_large(store, &scene);
    assert_in_range(scene.asked->bytes, 2 * LARGE_BYTES, 2 * LARGE_BYTES + 100);
    stream_large(store, &scene);
    assert_in_range(scene.asked->bytes, 2 * LARGE_BYTES, 2 * LARGE_BYTES + 100);
    ulp_store_free(store);
    scene_remove(&scene);
}

/* Whoever stops listening leaves nothing wrong behind; nor does a cache without room stop anybody. */
static void test_cache_that_keeps_nothing(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, 1 << 30);
    struct taken taken = {.data = malloc(LARGE_BYTES), .stop_at = LARGE_BYTES};
    uint64_t total = 77;

    (void)state;
    assert_fails(ulp_store_stream(store, scene.large, 0, LARGE_BYTES, take, &taken, &total),
                 ULP_E_NO_SPACE, "enough of it");
    assert_int_equal(entries_in(scene.directory), 0);
    taken = (struct taken){.data = taken.data};
    assert_ok(ulp_store_stream(store, scene.large, 0, 1000, take, &taken, &total)); /* a part */
    assert_int_equal(taken.next, 1000);
    assert_int_equal(entries_in(scene.directory), 0);
    ulp_store_free(store);
    store = cached(&scene, 1000);
    stream_large(store, &scene);
    assert_int_equal(entries_in(scene.directory), 0);
    free(taken.data);
    ulp_store_free(store);
    scene_remove(&scene);
}

static enum ulp_fault flip(void *user, enum ulp_store_op op, const char *key) {
    (void)key;
    return op == ULP_STORE_READ && (*(unsigned *)user)++ == 1 ? ULP_FAULT_FLIP : ULP_FAULT_NONE;
}

/* The store that lies is asked about each piece. */
static void test_faults(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = NULL;
    struct taken taken = {.data = malloc(LARGE_BYTES)};
    unsigned reads = 0;
    uint64_t total = 0;
    char key[128];

    (void)state;
    assert_ok(ulp_store_open(scene.origin, &store));
    assert_ok(ulp_store_fault(store, flip, &reads, &store));
    assert_ok(ulp_store_stream(store, scene.large, 0, LARGE_BYTES, take, &taken, &total));
    assert_int_equal(reads, 2);
    key_of(taken.data, LARGE_BYTES, key);
    assert_string_not_equal(key, scene.large);
    free(taken.data);
    ulp_store_free(store);
    scene_remove(&scene);
}

TEST_MAIN(test_ranges, test_through_a_cache, test_cache_that_keeps_nothing, test_faults)
