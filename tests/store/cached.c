// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/store/cached.h"

#include "hash/sha256.h"

#include <sys/mman.h>

void key_of(const void *data, size_t bytes, char key[128]) {
    struct sha256 *hash = NULL;
    uint8_t digest[SHA256_BYTES];
    int length = snprintf(key, 128, "run/part/");

    assert_ok(sha256_begin(&hash));
    assert_ok(sha256_add(hash, data, bytes));
    assert_ok(sha256_end(hash, digest));
    sha256_free(hash);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(key + length + 2 * i, 3, "%02x", digest[i]);
}

static void fill(uint8_t data[OBJECT_BYTES], size_t index) {
    for (size_t i = 0; i < OBJECT_BYTES; i++)
        data[i] = (uint8_t)(i * 7 + index);
}

static const uint8_t *large_bytes(void) {
    static uint8_t bytes[LARGE_BYTES];

    if (!bytes[0]) {
        test_random_bytes(bytes, sizeof bytes);
        bytes[0] = 1;
    }
    return bytes;
}

struct scene scene_make(void) {
    struct scene scene = {.origin = temp_directory_make(), .directory = temp_directory_make()};
    struct ulp_store *store = NULL;
    uint8_t data[OBJECT_BYTES];

    scene.asked =
        mmap(NULL, sizeof *scene.asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(scene.asked != MAP_FAILED);
    assert_ok(ulp_store_open(scene.origin, &store));
    for (size_t i = 0; i < OBJECTS; i++) {
        fill(data, i);
        key_of(data, sizeof data, scene.keys[i]);
        assert_ok(ulp_store_put(store, scene.keys[i], data, sizeof data));
    }
    key_of(large_bytes(), LARGE_BYTES, scene.large);
    assert_ok(ulp_store_put(store, scene.large, large_bytes(), LARGE_BYTES));
    put_text(store, "run/log/1", "a record");
    ulp_store_free(store);
    return scene;
}

void scene_remove(struct scene *scene) {
    munmap(scene->asked, sizeof *scene->asked);
    temp_directory_remove(scene->origin);
    temp_directory_remove(scene->directory);
}

static void count(void *user, const struct ulp_store_event *event) {
    struct asked *asked = user;

    if (event->op != ULP_STORE_READ)
        return;
    atomic_fetch_add(strstr(event->key, "log") ? &asked->log_reads : &asked->reads, 1);
    atomic_fetch_add(&asked->bytes, event->bytes);
}

struct ulp_store *cached(const struct scene *scene, uint64_t bytes_max) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_open(scene->origin, &store));
    assert_ok(ulp_store_trace(store, count, scene->asked, &store));
    assert_ok(ulp_store_cache(store, scene->directory, bytes_max, &store));
    return store;
}

const char *cache_path(const struct scene *scene, const char *key) {
    return path_in(scene->directory, strrchr(key, '/') + 1);
}

enum ulp_status check_object(struct ulp_store *store, const struct scene *scene, size_t index) {
    uint8_t expected[OBJECT_BYTES], found[OBJECT_BYTES + 1];
    size_t at = 0, got = 1;
    uint64_t total = OBJECT_BYTES;
    enum ulp_status status = ULP_OK;

    fill(expected, index);
    while (!status && got && total == OBJECT_BYTES && at < OBJECT_BYTES) {
        status = ulp_store_read(store, scene->keys[index], at, found + at, 300, &got, &total);
        at += got;
    }
    if (!status && (at != OBJECT_BYTES || memcmp(found, expected, sizeof expected) != 0))
        status = ulp_fail(ULP_E_INTERNAL, "object %zu is wrong: %zu bytes", index, at);
    return status;
}

enum ulp_status check_large(struct ulp_store *store, const struct scene *scene) {
    static _Thread_local uint8_t piece[3 << 20];
    size_t at = 0, got = 1;
    uint64_t total = 0;
    enum ulp_status status = ULP_OK;

    while (!status && got && at < LARGE_BYTES) {
        status = ulp_store_read(store, scene->large, at, piece, sizeof piece, &got, &total);
        if (!status && (total != LARGE_BYTES || memcmp(piece, large_bytes() + at, got) != 0))
            status = ulp_fail(ULP_E_INTERNAL, "the large object is wrong behind %zu", at);
        at += got;
    }
    if (!status && at != LARGE_BYTES)
        status = ulp_fail(ULP_E_INTERNAL, "%zu bytes", at);
    return status;
}
