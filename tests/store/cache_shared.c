// SPDX-License-Identifier: Apache-2.0
/* One cache for many: threads with one handle and with two, and processes. */
#include "tests/store/cached.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, PROCESSES = 4 };

struct readers {
    const struct scene *scene;
    struct ulp_store *stores[2];
};

/* Everybody wants the same at the same time. */
static enum ulp_status read_one(void *user, uint64_t index) {
    const struct readers *readers = user;

    return check_object(readers->stores[index % 2], readers->scene, index / 8 % OBJECTS);
}

static enum ulp_status read_large(void *user, uint64_t index) {
    const struct readers *readers = user;

    return check_large(readers->stores[index % 2], readers->scene);
}

static void run_threads(uint64_t bytes_max, uint64_t expected_bytes) {
    struct scene scene = scene_make();
    struct readers readers = {&scene, {cached(&scene, bytes_max), cached(&scene, bytes_max)}};
    struct ulp_pool *pool = NULL;

    assert_ok(ulp_pool_new(THREADS, &pool));
    assert_ok(ulp_pool_run(pool, OBJECTS * 24, read_one, &readers, NULL));
    assert_ok(ulp_pool_run(pool, 4, read_large, &readers, NULL));
    ulp_pool_free(pool);
    if (expected_bytes)
        assert_int_equal(scene.asked->bytes, expected_bytes);
    else
        assert_true(entries_in(scene.directory) < 4 + THREADS);
    ulp_store_free(readers.stores[0]);
    ulp_store_free(readers.stores[1]);
    scene_remove(&scene);
}

static void test_threads(void **state) {
    (void)state;
    run_threads(UINT64_MAX, OBJECTS * OBJECT_BYTES + LARGE_BYTES);
}

static void test_threads_with_little_room(void **state) {
    (void)state;
    run_threads(3 * OBJECT_BYTES, 0);
}

static int read_all(const struct scene *scene, uint64_t bytes_max) {
    struct ulp_store *store = cached(scene, bytes_max);
    enum ulp_status status = check_large(store, scene);

    for (size_t i = 0; !status && i < 4 * OBJECTS; i++)
        status = check_object(store, scene, i % OBJECTS);
    if (status)
        fprintf(stderr, "%s: %s\n", ulp_status_name(status), ulp_last_error());
    ulp_store_free(store);
    return status != ULP_OK;
}

static void run_processes(const struct scene *scene, uint64_t bytes_max) {
    pid_t children[PROCESSES];
    int ended;

    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (!children[i])
            _exit(read_all(scene, bytes_max));
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &ended, 0), children[i]);
        assert_true(WIFEXITED(ended));
        assert_int_equal(WEXITSTATUS(ended), 0);
    }
}

static void test_processes(void **state) {
    struct scene scene = scene_make();

    (void)state;
    run_processes(&scene, UINT64_MAX);
    assert_int_equal(scene.asked->bytes, OBJECTS * OBJECT_BYTES + LARGE_BYTES);
    assert_int_equal(entries_in(scene.directory), OBJECTS + 1);
    scene_remove(&scene);
}

static void test_processes_with_little_room(void **state) {
    struct scene scene = scene_make();

    (void)state;
    run_processes(&scene, 3 * OBJECT_BYTES);
    assert_true(entries_in(scene.directory) < 4 + PROCESSES);
    scene_remove(&scene);
}

/* The first read asks for a piece, the second for all that is behind it. */
static void end_at_the_second(void *user, const struct ulp_store_event *event) {
    unsigned *reads = user;

    if (event->op == ULP_STORE_READ && ++*reads == 2)
        raise(SIGKILL);
}

static void read_and_be_killed(const struct scene *scene) {
    struct ulp_store *store = NULL;
    unsigned reads = 0;

    if (!ulp_store_open(scene->origin, &store) &&
        !ulp_store_trace(store, end_at_the_second, &reads, &store) &&
        !ulp_store_cache(store, scene->directory, UINT64_MAX, &store))
        check_large(store, scene);
    _exit(1);
}

static void test_killed_while_fetching(void **state) {
    struct scene scene = scene_make();
    struct ulp_store *store = cached(&scene, UINT64_MAX);
    pid_t child = fork();
    int ended;

    (void)state;
    assert_true(child >= 0);
    if (!child)
        read_and_be_killed(&scene);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended));
    assert_int_equal(entries_in(scene.directory), 1);
    assert_ok(check_large(store, &scene));
    assert_int_equal(entries_in(scene.directory), 1);
    scene.asked->bytes = 0;
    assert_ok(check_large(store, &scene));
    assert_int_equal(scene.asked->bytes, 0);
    ulp_store_free(store);
    scene_remove(&scene);
}

TEST_MAIN(test_threads, test_threads_with_little_room, test_processes,
          test_processes_with_little_room, test_killed_while_fetching)
