// SPDX-License-Identifier: Apache-2.0
/* Full disks and killed processes: the target keeps its old contents. */
#include "tests/test.h"

#include "base/file.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_text(const char *path, const char *text) {
    struct buffer buffer = BUFFER(1000000);

    assert_ok(file_read(path, FILE_REFUSE_LINKS, &buffer));
    assert_string_equal(buffer_text(&buffer), text);
    buffer_release(&buffer);
}

/* Entries other than `but`; the name of the last one goes into ret_name. */
static size_t others(const char *directory, const char *but, char ret_name[256]) {
    DIR *stream = opendir(directory);
    struct dirent *entry;
    size_t count = 0;

    assert_non_null(stream);
    while ((entry = readdir(stream))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            !strcmp(entry->d_name, but))
            continue;
        snprintf(ret_name, 256, "%s", entry->d_name);
        count++;
    }
    closedir(stream);
    return count;
}

/* Nothing is asserted while the limit is on, since even a report of cmocka might run into it. */
static enum ulp_status replace_within(rlim_t bytes_max, const char *path, const void *data,
                                      size_t bytes) {
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = file_write(path, data, bytes, ULP_COMMIT_REPLACE);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    return status;
}

static void test_a_full_disk_keeps_the_old_file(void **state) {
    static const rlim_t limits[] = {0, 1, 4095, 4096, 99999};
    static char data[100001];
    char *directory = temp_directory_make(), name[256];
    const char *path = path_in(directory, "target");

    (void)state;
    memset(data, 'n', sizeof data - 1);
    assert_ok(file_write(path, "old", 3, ULP_COMMIT_REPLACE));
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        assert_fails(replace_within(limits[i], path, data, 100000), ULP_E_NO_SPACE,
                     "cannot write '");
        assert_text(path, "old");
        assert_int_equal(others(directory, "target", name), 0);
    }
    assert_ok(replace_within(100000, path, data, 100000));
    assert_text(path, data);
    temp_directory_remove(directory);
}

static void test_a_size_beyond_the_disk_is_seen_at_opening(void **state) {
    char *directory = temp_directory_make(), name[256];
    struct file_writer writer = {0};
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = file_writer_open(path_in(directory, "target"), 1001, &writer);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, ULP_E_NO_SPACE);
    assert_non_null(strstr(ulp_last_error(), "cannot size '"));
    assert_null(writer.path);
    assert_int_equal(others(directory, "target", name), 0);
    temp_directory_remove(directory);
}

/* In the child: writes half, says so, and waits for the end. */
static void write_half_and_wait(const char *path, int say) {
    struct file_writer writer = {0};
    char word = 'n';

    if (!file_writer_open(path, 8, &writer) && !file_writer_put(&writer, 0, "new!", 4))
        word = 'y';
    if (write(say, &word, 1) != 1)
        word = 'n';
    for (;;)
        pause();
}

/* A child that dies by SIGKILL between writing and commit. */
static void die_while_writing(const char *path) {
    int ends[2], result = 0;
    char word = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_half_and_wait(path, ends[1]);
    assert_int_equal(read(ends[0], &word, 1), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
    assert_int_equal(word, 'y');
    close(ends[0]);
    close(ends[1]);
}

static void test_a_killed_writer_leaves_the_target_untouched(void **state) {
    char *directory = temp_directory_make(), name[256] = "";
    const char *path = path_in(directory, "model.safetensors");

    (void)state;
    file_writer_always_named(true);
    die_while_writing(path);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(file_write(path, "old", 3, ULP_COMMIT_REPLACE));
    die_while_writing(path);
    file_writer_always_named(false);
    assert_text(path, "old");
    assert_int_equal(others(directory, "model.safetensors", name), 2);
    assert_int_equal(name[0], '.'); /* no pattern such as *.safetensors finds what is left */
    assert_null(strstr(name, "safetensors"));
    assert_ok(file_write(path, "next", 4, ULP_COMMIT_REPLACE));
    assert_text(path, "next");
    temp_directory_remove(directory);
}

/* Where files can be without a name, nothing at all is left. */
static void test_a_killed_writer_leaves_nothing(void **state) {
    char *directory = temp_directory_make(), name[256] = "";
    const char *path = path_in(directory, "model.safetensors");
    struct file_writer writer = {0};
    bool nameless;

    (void)state;
    assert_ok(file_writer_open(path, 0, &writer));
    nameless = !writer.temporary[0];
    file_writer_release(&writer);
    if (!nameless)
        skip(); /* this file system has none */
    die_while_writing(path);
    assert_int_equal(others(directory, "model.safetensors", name), 0);
    temp_directory_remove(directory);
}

TEST_MAIN(test_a_full_disk_keeps_the_old_file, test_a_size_beyond_the_disk_is_seen_at_opening,
          test_a_killed_writer_leaves_the_target_untouched, test_a_killed_writer_leaves_nothing)
