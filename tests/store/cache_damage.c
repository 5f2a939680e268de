// SPDX-License-Identifier: Apache-2.0
/* Whatever is in the cache's directory, whatever fails there or within: what is read is right, and
 * damage goes. */
#include "tests/store/cached.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_at(const char *path, off_t at, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, text, strlen(text), at), strlen(text));
    close(file);
}

/* As a disk does it: no time tells of it. */
static void rot(const char *path) {
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    write_at(path, 999, "x");
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){info.st_atim, info.st_mtim}, 0),
                     0);
}

static void damage(const struct scene *scene, int kind) {
    const char *path = cache_path(scene, scene->keys[0]);

    switch (kind) {
    case 0:
        rot(path);
        break;
    case 1:
        assert_int_equal(truncate(path, 999), 0);
        break;
    case 2:
        write_at(path, OBJECT_BYTES, "x");
        break;
    case 3:
        assert_int_equal(truncate(path, 0), 0);
        break;
    case 4:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink(cache_path(scene, scene->keys[1]), path), 0);
        break;
    case 5:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0666), 0);
        break;
    default:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(link(cache_path(scene, scene->keys[1]), path), 0);
        break;
    }
}

static void test_damage_goes(void **state) {
    (void)state;
    for (int kind = 0; kind < 7; kind++) {
        struct scene scene = scene_make();
        struct ulp_store *store = cached(&scene, UINT64_MAX);

        assert_ok(check_object(store, &scene, 0));
        assert_ok(check_object(store, &scene, 1));
        damage(&scene, kind);
        assert_ok(check_object(store, &scene, 0));
        assert_int_equal(scene.asked->bytes, 3 * OBJECT_BYTES);
        assert_ok(check_object(store, &scene, 0));
        assert_ok(check_object(store, &scene, 1));
        assert_int_equal(scene.asked->bytes, 3 * OBJECT_BYTES);
        ulp_store_free(store);
        scene_remove(&scene);
    }
}

/* Also to whoever reads only from the middle on, though he has read it before. */
static void test_damage_in_the_middle(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);
    uint64_t total = 0;
    size_t got = 0;
    char byte = 0;

    (void)state;
    assert_ok(check_object(store, &scene, 0));
    clock_sleep_ns(20000000); /* file systems count time in larger steps */
    write_at(cache_path(&scene, scene.keys[0]), 999, "x");
    assert_ok(ulp_store_read(store, scene.keys[0], 999, &byte, 1, &got, &total));
    assert_int_equal((uint8_t)byte, (uint8_t)(999 * 7));
    assert_int_equal(entries_in(scene.directory), 0);
    ulp_store_free(store);
    scene_remove(&scene);
}

static const char *fill_path(const struct scene *scene, const char *key) {
    char name[128];

    snprintf(name, sizeof name, ".%s.fill", strrchr(key, '/') + 1);
    return path_in(scene->directory, name);
}

/* Of the object itself, and of another, which making room finds; a link is left alone. */
static void test_what_killed_ones_left(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);

    (void)state;
    plant_file(path_in(scene.origin, "precious"), "precious");
    plant_file(fill_path(&scene, scene.keys[0]), "half of it");
    plant_file(fill_path(&scene, scene.keys[1]), "half of it");
    assert_int_equal(link(path_in(scene.origin, "precious"), fill_path(&scene, scene.keys[2])), 0);
    assert_ok(check_object(store, &scene, 0));
    assert_int_equal(entries_in(scene.directory), 1);
    assert_int_equal(symlink(path_in(scene.origin, "precious"), fill_path(&scene, scene.keys[3])),
                     0);
    assert_ok(check_object(store, &scene, 3)); /* not kept */
    assert_int_equal(entries_in(scene.directory), 2);
    assert_file(path_in(scene.origin, "precious"), "precious");
    ulp_store_free(store);
    scene_remove(&scene);
}

/* ---- a clock that runs only while somebody sleeps ---- */

static uint64_t fake_now(void *user) {
    return *(uint64_t *)user;
}

static void fake_sleep(void *user, uint64_t duration_ns) {
    *(uint64_t *)user += duration_ns;
}

static void test_one_who_has_stopped_is_not_waited_for(void **state) {
    uint64_t now = 1;
    const struct clock_hooks hooks = {fake_now, fake_now, fake_sleep, &now};
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);
    int other;

    (void)state;
    plant_file(fill_path(&scene, scene.keys[0]), "half of it");
    other = open(fill_path(&scene, scene.keys[0]), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    clock_install(&hooks);
    assert_ok(check_object(store, &scene, 0));
    clock_install(NULL);
    assert_in_range(now, UINT64_C(4000000000), UINT64_C(20000000000));
    assert_file(fill_path(&scene, scene.keys[0]), "half of it");
    close(other);
    ulp_store_free(store);
    scene_remove(&scene);
}

/* ---- failing ---- */

static void test_without_a_directory(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);

    (void)state;
    assert_int_equal(rmdir(scene.directory), 0);
    for (int round = 0; round < 2; round++)
        assert_ok(check_object(store, &scene, 0));
    assert_ok(check_large(store, &scene));
    assert_int_equal(mkdir(scene.directory, 0777), 0);
    ulp_store_free(store);
    scene_remove(&scene);
}

/* Files may not grow behind 9 MB meanwhile, so nothing is asserted. */
static enum ulp_status read_on_a_full_disk(struct ulp_store *store, const struct scene *scene) {
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status = ULP_E_INTERNAL;

    if (!getrlimit(RLIMIT_FSIZE, &before)) {
        limit = before;
        limit.rlim_cur = 9000000;
        if (!setrlimit(RLIMIT_FSIZE, &limit))
            status = check_large(store, scene);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    signal(SIGXFSZ, handler);
    return status;
}

static void test_a_full_disk(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);

    (void)state;
    assert_ok(read_on_a_full_disk(store, &scene));
    assert_int_equal(entries_in(scene.directory), 0);
    assert_ok(check_large(store, &scene));
    assert_int_equal(entries_in(scene.directory), 1);
    ulp_store_free(store);
    scene_remove(&scene);
}

/* The reads that are yet to succeed. */
static enum ulp_fault fail_later(void *user, enum ulp_store_op op, const char *key) {
    int *left = user;

    (void)key;
    return op == ULP_STORE_READ && (*left)-- <= 0 ? ULP_FAULT_BEFORE : ULP_FAULT_NONE;
}

/* What fails in the middle of fetching is told to whoever asks for that. */
static void test_failures_within(void **state) {
    (void)state;
    for (int good = 0; good < 5; good++) {
        struct scene scene = scene_make();
        struct ulp_store *store = NULL;
        int left = good;
        enum ulp_status status;

        assert_ok(ulp_store_open(scene.origin, &store));
        assert_ok(ulp_store_fault(store, fail_later, &left, &store));
        assert_ok(ulp_store_cache(store, scene.directory, UINT64_MAX, &store));
        status = check_large(store, &scene); /* 3 MB, and the rest in two pieces */
        assert_int_equal(status, good < 3 ? ULP_E_IO : ULP_OK);
        assert_int_equal(entries_in(scene.directory), good < 3 ? 0 : 1);
        left = 100;
        assert_ok(check_large(store, &scene));
        assert_int_equal(entries_in(scene.directory), 1);
        ulp_store_free(store);
        scene_remove(&scene);
    }
}

/* 0 when no allocation was left to fail. */
static bool fail_allocation(const struct scene *scene, uint64_t at, int persistent) {
    struct ulp_store *store = NULL;
    enum ulp_status opened, status = ULP_OK;
    uint64_t asked;

    failing_allocator_start(at, persistent);
    opened = ulp_store_open(scene->origin, &store);
    if (!opened)
        opened = ulp_store_cache(store, scene->directory, UINT64_MAX, &store);
    for (size_t i = 0; !opened && !status && i < 3; i++)
        status = check_object(store, scene, i % 2);
    if (!opened)
        ulp_store_free(store);
    asked = failing_allocator_stop();
    assert_true(!opened || opened == ULP_E_NOMEM);
    assert_ok(status);
    unlink(cache_path(scene, scene->keys[0]));
    unlink(cache_path(scene, scene->keys[1]));
    assert_int_equal(entries_in(scene->directory), 0);
    return at < asked;
}

static void test_failing_allocations(void **state) {
    struct scene scene = scene_make();

    (void)state;
    for (int persistent = 0; persistent < 2; persistent++) {
        uint64_t at = 0;

        while (fail_allocation(&scene, at, persistent))
            at++;
        assert_in_range(at, 10, 200);
    }
    scene_remove(&scene);
}

TEST_MAIN(test_damage_goes, test_damage_in_the_middle, test_what_killed_ones_left,
          test_one_who_has_stopped_is_not_waited_for, test_without_a_directory, test_a_full_disk,
          test_failures_within, test_failing_allocations)
