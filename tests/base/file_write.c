// SPDX-License-Identifier: Apache-2.0
/* A name shows nothing, or the old contents, until a commit shows the new ones. */
#include "tests/test.h"

#include "base/file.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_holds(const char *path, const void *data, size_t bytes) {
    struct buffer buffer = BUFFER(bytes + 1);

    assert_ok(file_read(path, FILE_REFUSE_LINKS, &buffer));
    assert_int_equal(buffer.used, bytes);
    if (bytes)
        assert_memory_equal(buffer.data, data, bytes);
    buffer_release(&buffer);
}

/* Entries of a directory besides . and .. */
static size_t entries(const char *directory) {
    DIR *stream = opendir(directory);
    size_t count = 0;

    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2;
}

static void test_nothing_is_visible_before_the_commit(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer writer = {0};

    (void)state;
    assert_ok(file_writer_open(path, 5, &writer));
    assert_ok(file_writer_put(&writer, 0, "12345", 5));
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(file_writer_commit(&writer, ULP_COMMIT_REPLACE));
    assert_holds(path, "12345", 5);
    file_writer_release(&writer);
    assert_holds(path, "12345", 5);
    assert_int_equal(entries(directory), 1);
    temp_directory_remove(directory);
}

static void test_release_without_commit_leaves_nothing(void **state) {
    char *directory = temp_directory_make();
    struct file_writer writer = {0};

    (void)state;
    file_writer_release(&writer);
    assert_ok(file_writer_open(path_in(directory, "target"), 5, &writer));
    assert_ok(file_writer_put(&writer, 0, "12345", 5));
    assert_int_equal(entries(directory), writer.temporary[0] ? 1 : 0);
    file_writer_release(&writer);
    assert_int_equal(entries(directory), 0);
    file_writer_release(&writer);
    temp_directory_remove(directory);
}

/* A reader that has the old file mapped goes on reading the old bytes. */
static void test_a_commit_replaces_and_does_not_overwrite(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer writer = {0};
    struct file_map map = {0};

    (void)state;
    assert_ok(file_write(path, "old contents", 12, ULP_COMMIT_REPLACE));
    assert_ok(file_map_open(path, FILE_REFUSE_LINKS, &map));
    assert_ok(file_writer_open(path, 3, &writer));
    assert_ok(file_writer_put(&writer, 0, "new", 3));
    assert_holds(path, "old contents", 12);
    assert_ok(file_writer_commit(&writer, ULP_COMMIT_REPLACE));
    assert_holds(path, "new", 3);
    assert_memory_equal(map.data, "old contents", 12);
    file_map_release(&map);
    file_writer_release(&writer);
    assert_int_equal(entries(directory), 1);
    temp_directory_remove(directory);
}

static void test_bytes_never_written_are_zero(void **state) {
    static const uint8_t expected[10000] = {[5000] = 'x', [9999] = 'y'};
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer writer = {0};

    (void)state;
    assert_ok(file_writer_open(path, 10000, &writer));
    assert_ok(file_writer_put(&writer, 9999, "y", 1));
    assert_ok(file_writer_put(&writer, 5000, "x", 1));
    assert_ok(file_writer_put(&writer, 0, NULL, 0));
    assert_ok(file_writer_commit(&writer, ULP_COMMIT_REPLACE));
    file_writer_release(&writer);
    assert_holds(path, expected, sizeof expected);
    temp_directory_remove(directory);
}

static void test_two_writers_of_one_name_do_not_mix(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer one = {0}, two = {0};

    (void)state;
    assert_ok(file_writer_open(path, 3, &one));
    assert_ok(file_writer_open(path, 3, &two));
    assert_ok(file_writer_put(&one, 0, "one", 3));
    assert_ok(file_writer_put(&two, 0, "two", 3));
    assert_ok(file_writer_commit(&one, ULP_COMMIT_REPLACE));
    assert_holds(path, "one", 3);
    assert_ok(file_writer_commit(&two, ULP_COMMIT_REPLACE));
    assert_holds(path, "two", 3);
    file_writer_release(&one);
    file_writer_release(&two);
    assert_int_equal(entries(directory), 1);
    temp_directory_remove(directory);
}

static void test_a_directory_is_never_replaced(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");

    (void)state;
    assert_int_equal(mkdir(path, 0777), 0);
    assert_fails(file_write(path, "x", 1, ULP_COMMIT_REPLACE), ULP_E_FILE_KIND,
                 "cannot put into place '");
    assert_fails(file_write(path_in(path, ""), "x", 1, ULP_COMMIT_REPLACE), ULP_E_USAGE,
                 "names a directory");
    assert_fails(file_write("", "x", 1, ULP_COMMIT_REPLACE), ULP_E_USAGE, "names a directory");
    assert_int_equal(entries(path), 0);
    assert_int_equal(entries(directory), 1);
    temp_directory_remove(directory);
}

static void test_the_parent_must_be_a_directory(void **state) {
    char *directory = temp_directory_make();
    struct file_writer writer = {0};

    (void)state;
    assert_fails(file_writer_open(path_in(directory, "none/target"), 0, &writer), ULP_E_NOT_FOUND,
                 "cannot open directory '");
    assert_ok(file_write(path_in(directory, "file"), "x", 1, ULP_COMMIT_REPLACE));
    assert_fails(file_writer_open(path_in(directory, "file/target"), 0, &writer), ULP_E_NOT_FOUND,
                 "cannot open directory '");
    assert_null(writer.path);
    assert_int_equal(entries(directory), 1);
    temp_directory_remove(directory);
}

static void test_sizes_no_file_can_have_are_refused(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer writer = {0};

    (void)state;
    assert_fails(file_writer_open(path, UINT64_MAX, &writer), ULP_E_LIMIT, "what a file can hold");
    assert_fails(file_writer_open(path, (uint64_t)INT64_MAX + 1, &writer), ULP_E_LIMIT,
                 "what a file can hold");
    assert_null(writer.path);
    assert_int_equal(entries(directory), 0);
    temp_directory_remove(directory);
}

/* A link is replaced by the file; what it pointed to stays as it was. */
static void test_a_link_is_replaced_and_not_followed(void **state) {
    char *directory = temp_directory_make();
    const char *link = path_in(directory, "link"), *file = path_in(directory, "file");

    (void)state;
    assert_ok(file_write(file, "old", 3, ULP_COMMIT_REPLACE));
    assert_int_equal(symlink("file", link), 0);
    assert_ok(file_write(link, "new", 3, ULP_COMMIT_REPLACE));
    assert_holds(link, "new", 3);
    assert_holds(file, "old", 3);
    temp_directory_remove(directory);
}

static void test_replace_takes_contents_of_any_length(void **state) {
    static uint8_t data[200000];
    static const size_t sizes[] = {200000, 0, 1, 4097};
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");

    (void)state;
    test_random_bytes(data, sizeof data);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_ok(file_write(path, data, sizes[i], ULP_COMMIT_REPLACE));
        assert_holds(path, data, sizes[i]);
        assert_int_equal(entries(directory), 1);
    }
    temp_directory_remove(directory);
}

static void test_a_bare_name_lands_in_the_working_directory(void **state) {
    char *directory = temp_directory_make();
    char before[4096];

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    assert_ok(file_write("bare", "x", 1, ULP_COMMIT_REPLACE));
    assert_int_equal(chdir(before), 0);
    assert_holds(path_in(directory, "bare"), "x", 1);
    temp_directory_remove(directory);
}

static void test_making_a_directory(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "new"), *file = path_in(directory, "file");
    struct stat info;

    (void)state;
    assert_ok(file_make_directory(path));
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_ok(file_make_directory(path));
    assert_ok(file_write(file, "x", 1, ULP_COMMIT_REPLACE));
    assert_fails(file_make_directory(file), ULP_E_FILE_KIND, "exists and is not a directory");
    assert_fails(file_make_directory(path_in(directory, "a/b")), ULP_E_NOT_FOUND,
                 "cannot make directory '");
    assert_int_equal(symlink("new", path_in(directory, "link")), 0);
    assert_ok(file_make_directory(path_in(directory, "link")));
    assert_int_equal(symlink("nothing", path_in(directory, "dangling")), 0);
    assert_fails(file_make_directory(path_in(directory, "dangling")), ULP_E_NOT_FOUND, "dangling'");
    temp_directory_remove(directory);
}

static void test_failed_allocations_leave_nothing(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    uint64_t fail_at = 0, asked;

    (void)state;
    do {
        enum ulp_status status;

        failing_allocator_start(fail_at, 0);
        status = file_write(path, "x", 1, ULP_COMMIT_REPLACE);
        asked = failing_allocator_stop();
        assert_int_equal(status, fail_at < asked ? ULP_E_NOMEM : ULP_OK);
        assert_int_equal(entries(directory), status ? 0 : 1);
    } while (fail_at++ < asked);
    assert_true(asked >= 1);
    temp_directory_remove(directory);
}

/* A commit that must not replace does not, whichever way the file got its name. */
static void test_a_new_file_replaces_nothing(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");

    (void)state;
    for (int named = 0; named < 2; named++) {
        file_writer_always_named(named);
        assert_ok(file_write(path, "first", 5, ULP_COMMIT_NEW));
        assert_fails(file_write(path, "second", 6, ULP_COMMIT_NEW), ULP_E_EXISTS, "target");
        assert_holds(path, "first", 5);
        assert_int_equal(entries(directory), 1);
        assert_int_equal(unlink(path), 0);
    }
    file_writer_always_named(false);
    temp_directory_remove(directory);
}

/* Everything above once more, as where files without a name do not exist. */
static void test_all_of_it_with_hidden_names(void **state) {
    file_writer_always_named(true);
    test_nothing_is_visible_before_the_commit(state);
    test_release_without_commit_leaves_nothing(state);
    test_a_commit_replaces_and_does_not_overwrite(state);
    test_bytes_never_written_are_zero(state);
    test_two_writers_of_one_name_do_not_mix(state);
    file_writer_always_named(false);
}

TEST_MAIN(test_a_new_file_replaces_nothing, test_all_of_it_with_hidden_names,
          test_nothing_is_visible_before_the_commit, test_release_without_commit_leaves_nothing,
          test_a_commit_replaces_and_does_not_overwrite, test_bytes_never_written_are_zero,
          test_two_writers_of_one_name_do_not_mix, test_a_directory_is_never_replaced,
          test_the_parent_must_be_a_directory, test_sizes_no_file_can_have_are_refused,
          test_a_link_is_replaced_and_not_followed, test_replace_takes_contents_of_any_length,
          test_a_bare_name_lands_in_the_working_directory, test_making_a_directory,
          test_failed_allocations_leave_nothing)
