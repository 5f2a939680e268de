// SPDX-License-Identifier: Apache-2.0
/*
 * Faults of src/base that once were there. Each test opens with what went wrong.
 */
#include "tests/test.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <unistd.h>

/* file_write.c: in a container a process has the same number after every restart, so that what a
 * killed one left behind has just the name that the next one wants. */
static void test_a_leftover_of_a_killed_namesake_does_no_harm(void **state) {
    char *directory = temp_directory_make(), name[64];
    struct file_writer writer = {0};
    long process = 0;
    unsigned serial = 0;

    (void)state;
    file_writer_always_named(true);
    assert_ok(file_writer_open(path_in(directory, "target"), 0, &writer));
    if (sscanf(writer.temporary, ".ulpsync-tmp-%ld-%u", &process, &serial) == 2) {
        snprintf(name, sizeof name, ".ulpsync-tmp-%ld-%u", process, serial + 1);
        assert_int_equal(symlink("nowhere", path_in(directory, name)), 0);
    }
    file_writer_release(&writer);
    assert_ok(file_write(path_in(directory, "target"), "x", 1, ULP_COMMIT_REPLACE));
    file_writer_always_named(false);
    temp_directory_remove(directory);
}

/* file_read.c: the first 64 KiB stay in the buffer when a later piece finds no memory. */
static void test_a_failed_file_read_adds_nothing(void **state) {
    static uint8_t data[200000];
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "file");
    struct buffer buffer = BUFFER(sizeof data + 4);
    enum ulp_status status;

    (void)state;
    assert_ok(file_write(path, data, sizeof data, ULP_COMMIT_REPLACE));
    assert_ok(buffer_append_text(&buffer, "kept"));
    failing_allocator_start(1, 1);
    status = file_read(path, FILE_FOLLOW_LINKS, &buffer);
    mem_install(NULL);
    assert_int_equal(status, ULP_E_NOMEM);
    assert_int_equal(buffer.used, 4);
    assert_string_equal(buffer_text(&buffer), "kept");
    buffer_release(&buffer);
    temp_directory_remove(directory);
}

/* json.c: half a string stays in the buffer. */
static void test_a_failed_json_append_adds_nothing(void **state) {
    struct buffer buffer = BUFFER(5);

    (void)state;
    assert_ok(buffer_append_text(&buffer, "["));
    assert_fails(json_append_string(&buffer, "abcdef"), ULP_E_LIMIT, "more than 5 bytes");
    assert_string_equal(buffer_text(&buffer), "[");
    buffer_release(&buffer);
}

/* status.c: the message is formatted over the text that it quotes. */
static void test_a_message_may_quote_the_one_before(void **state) {
    (void)state;
    ulp_fail(ULP_E_IO, "inner");
    ulp_fail(ULP_E_IO, "outer: %s", ulp_last_error());
    assert_string_equal(ulp_last_error(), "outer: inner");
}

static enum ulp_status fail_loudly(void *user, uint64_t index) {
    (void)user;
    clock_sleep_ns(100000);
    return ulp_fail(ULP_E_IO, "loud %d", (int)index);
}

static enum ulp_status fail_silently(void *user, uint64_t index) {
    (void)user;
    clock_sleep_ns(100000);
    return index == 3 ? ULP_E_HOLE : ULP_OK;
}

/* pool.c: a task that leaves no message is reported with an older one of the thread it ran on. */
static void test_a_silent_failure_borrows_no_message(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    for (int round = 0; round < 20; round++) {
        assert_fails(ulp_pool_run(pool, 100, fail_loudly, NULL, NULL), ULP_E_IO, "loud 0");
        assert_int_equal(ulp_pool_run(pool, 4, fail_silently, NULL, NULL), ULP_E_HOLE);
        assert_null(strstr(ulp_last_error(), "loud"));
    }
    ulp_pool_free(pool);
}

struct endless {
    atomic_int failed, restarted;
};

static enum ulp_status fail_at_five(void *user, uint64_t index) {
    struct endless *endless = user;

    if (index < 5 && atomic_load(&endless->failed)) {
        atomic_fetch_add(&endless->restarted, 1);
        return ulp_fail(ULP_E_IO, "task %d again", (int)index);
    }
    if (index == 5) {
        atomic_store(&endless->failed, 1);
        return ulp_fail(ULP_E_IO, "task 5");
    }
    clock_sleep_ns(1000000);
    return ULP_OK;
}

/* pool.c: the counter of the next task wraps around to 0 and everything starts again. */
static void test_the_largest_count_does_not_start_again(void **state) {
    struct ulp_pool *pool = NULL;
    struct endless endless = {0};

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    assert_int_equal(ulp_pool_run(pool, UINT64_MAX, fail_at_five, &endless, NULL), ULP_E_IO);
    ulp_pool_free(pool);
    assert_int_equal(atomic_load(&endless.restarted), 0);
}

static enum ulp_status sleep_unless_first(void *user, uint64_t index) {
    (void)user;
    clock_sleep_ns(index ? 20000000 : 1000);
    return ULP_OK;
}

static int remember(void *user, uint64_t done, uint64_t total) {
    (void)total;
    *(uint64_t *)user = done;
    return 0;
}

/* pool.c: the caller reports behind its own tasks only, so that a bar may end at 3 of 4. */
static void test_progress_ends_with_all_done(void **state) {
    struct ulp_pool *pool = NULL;
    uint64_t last = 0;
    struct ulp_progress progress = {remember, &last};

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    for (int round = 0; round < 10; round++) {
        assert_ok(ulp_pool_run(pool, 4, sleep_unless_first, NULL, &progress));
        assert_int_equal(last, 4);
    }
    ulp_pool_free(pool);
}

/* file_write.c: these reach the rename, which says EBUSY, which becomes ULP_E_IO. */
static void test_dots_name_directories(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_fails(file_write(path_in(directory, "."), "x", 1, ULP_COMMIT_REPLACE), ULP_E_USAGE,
                 "names a directory");
    assert_fails(file_write(path_in(directory, ".."), "x", 1, ULP_COMMIT_REPLACE), ULP_E_USAGE,
                 "names a directory");
    temp_directory_remove(directory);
}

/* buffer.c: doubling wraps to 0 and never ends; the alarm does. Last, for that reason. */
static void test_a_huge_maximum_still_ends(void **state) {
    struct buffer buffer = BUFFER(SIZE_MAX);

    (void)state;
    alarm(5);
    assert_fails(buffer_append_fill(&buffer, 0, SIZE_MAX / 2 + 1), ULP_E_INTERNAL,
                 "a buffer without a maximum");
    alarm(0);
    buffer_release(&buffer);
}

TEST_MAIN(test_a_leftover_of_a_killed_namesake_does_no_harm, test_a_failed_file_read_adds_nothing,
          test_a_failed_json_append_adds_nothing, test_a_message_may_quote_the_one_before,
          test_a_silent_failure_borrows_no_message, test_the_largest_count_does_not_start_again,
          test_progress_ends_with_all_done, test_dots_name_directories,
          test_a_huge_maximum_still_ends)
