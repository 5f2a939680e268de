// SPDX-License-Identifier: Apache-2.0
/* What is collected is what is read, in memory and in a file, and nothing is left behind. */
#include "tests/test.h"

#include "base/file.h"
#include "base/spool.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t entries_in(const char *directory) {
    DIR *stream = opendir(directory);
    size_t count = 0;

    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2; /* . and .. */
}

/* Appends `total` random bytes in pieces of up to `piece` and reads them back. */
static void collect(size_t memory, const char *directory, size_t total, size_t piece,
                    bool in_memory) {
    struct spool spool = {0};
    uint8_t *bytes = malloc(total + 1);
    const uint8_t *view = NULL, *again = NULL;
    size_t seen = 1, done = 0;

    assert_non_null(bytes);
    test_random_bytes(bytes, total);
    assert_ok(spool_open(&spool, memory, directory));
    while (done < total) {
        size_t step = 1 + test_random() % piece;

        step = step < total - done ? step : total - done;
        assert_ok(spool_append(&spool, bytes + done, step));
        done += step;
    }
    assert_int_equal(!spool.file, in_memory);
    assert_true(in_memory || !spool.memory.data);
    assert_ok(spool_view(&spool, &view, &seen));
    assert_int_equal(seen, total);
    assert_memory_equal(view, bytes, total);
    assert_ok(spool_view(&spool, &again, &seen));
    assert_ptr_equal(view, again);
    if (!in_memory && *directory)
        assert_int_equal(entries_in(directory), 0);
    spool_release(&spool);
    free(bytes);
}

static void test_in_memory_up_to_the_last_byte(void **state) {
    static const size_t totals[] = {0, 1, 63, 64, 65, 4095, 4096, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        collect(totals[i], "/nowhere/at/all", totals[i], 1000, true);
        collect(SIZE_MAX, "/nowhere/at/all", totals[i], 1000, true);
    }
}

static void test_beyond_memory(void **state) {
    static const size_t memories[] = {0, 1, 64, 4096, 99999};
    char *directory = temp_directory_make();

    (void)state;
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) {
        collect(memories[i], directory, memories[i] + 1, 50, false);
        collect(memories[i], directory, 100000, 3000, false);
    }
    collect(4096, "", 10000, 3000, false);
    temp_directory_remove(directory);
}

static void test_the_directory_of_the_environment(void **state) {
    char *directory = temp_directory_make();
    struct stat there, made;
    int file = -1;

    (void)state;
    assert_int_equal(setenv("TMPDIR", directory, 1), 0);
    assert_ok(file_nameless(NULL, &file));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(stat(directory, &there), 0);
    assert_int_equal(fstat(file, &made), 0);
    assert_int_equal(made.st_dev, there.st_dev);
    assert_int_equal(made.st_nlink, 0);
    assert_int_equal(made.st_mode & 0777, 0600);
    assert_int_equal(close(file), 0);
    assert_string_equal(file_nameless_directory(""), "/tmp");
    assert_string_equal(file_nameless_directory("here"), "here");
    temp_directory_remove(directory);
}

static void test_nowhere_to_go(void **state) {
    struct spool spool = {0};
    const uint8_t *view = NULL;
    size_t bytes = 0;

    (void)state;
    assert_ok(spool_open(&spool, 4, "/nowhere/at/all"));
    assert_ok(spool_append(&spool, "abc", 3));
    assert_fails(spool_append(&spool, "defg", 4), ULP_E_NOT_FOUND,
                 "temporary file in '/nowhere/at/all'");
    assert_ok(spool_append(&spool, "d", 1));
    assert_ok(spool_view(&spool, &view, &bytes));
    assert_int_equal(bytes, 4);
    assert_memory_equal(view, "abcd", 4);
    spool_release(&spool);
    spool_release(&spool);
}

/* Nothing is asserted while the limit is on, since even a report of cmocka might run into it. */
static enum ulp_status append_within(rlim_t bytes_max, struct spool *spool, const void *data,
                                     size_t bytes) {
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = spool_append(spool, data, bytes);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    return status;
}

/* What does not fit leaves what was there, before the file and in it; once there is room it goes
 * on. */
static void test_a_full_disk(void **state) {
    static uint8_t bytes[30000];
    char *directory = temp_directory_make();
    struct spool spool = {0};
    const uint8_t *view = NULL;
    size_t seen = 0;

    (void)state;
    test_random_bytes(bytes, sizeof bytes);
    assert_ok(spool_open(&spool, 10000, directory));
    assert_ok(spool_append(&spool, bytes, 10000));
    assert_fails(append_within(5000, &spool, bytes + 10000, 10000), ULP_E_NO_SPACE, directory);
    assert_int_equal(spool.file, 0);
    assert_fails(append_within(15000, &spool, bytes + 10000, 10000), ULP_E_NO_SPACE, directory);
    assert_int_equal(spool.written, 10000);
    assert_ok(spool_append(&spool, bytes + 10000, 20000));
    assert_ok(spool_view(&spool, &view, &seen));
    assert_int_equal(seen, sizeof bytes);
    assert_memory_equal(view, bytes, sizeof bytes);
    assert_fails(spool_append(&spool, bytes, 1), ULP_E_INTERNAL, "is added to");
    spool_release(&spool);
    temp_directory_remove(directory);
}

static enum ulp_status some_appends(const char *directory) {
    static const uint8_t bytes[1000];
    struct spool spool = {0};
    enum ulp_status status = spool_open(&spool, 4000, directory);

    for (unsigned i = 0; !status && i < 8; i++)
        status = spool_append(&spool, bytes, sizeof bytes);
    spool_release(&spool);
    return status;
}

static void test_every_failed_allocation(void **state) {
    char *directory = temp_directory_make();
    uint64_t count;

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    assert_ok(some_appends(directory));
    count = failing_allocator_stop();
    assert_true(count > 2);
    for (uint64_t i = 0; i < count; i++) {
        failing_allocator_start(i, 0);
        assert_fails(some_appends(directory), ULP_E_NOMEM, "out of memory");
        failing_allocator_stop();
    }
    temp_directory_remove(directory);
}

TEST_MAIN(test_in_memory_up_to_the_last_byte, test_beyond_memory,
          test_the_directory_of_the_environment, test_nowhere_to_go, test_a_full_disk,
          test_every_failed_allocation)
