// SPDX-License-Identifier: Apache-2.0
/* Plain files are mapped or read whole; everything else is refused at once. */
#include "tests/test.h"

#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Both ways to read refuse `path`, and leave their outputs alone. */
static void assert_refused(const char *path, enum file_links links, enum ulp_status status,
                           const char *text) {
    struct file_map map = {.bytes = 77};
    struct buffer buffer = BUFFER(1000);

    assert_fails(file_map_open(path, links, &map), status, text);
    assert_null(map.data);
    assert_int_equal(map.bytes, 77);
    assert_ok(buffer_append_text(&buffer, "kept"));
    assert_fails(file_read(path, links, &buffer), status, text);
    assert_string_equal(buffer_text(&buffer), "kept");
    buffer_release(&buffer);
}

static void assert_holds(const char *path, enum file_links links, const void *data, size_t bytes) {
    struct file_map map = {0};
    struct buffer buffer = BUFFER(bytes + 1);

    assert_ok(file_map_open(path, links, &map));
    assert_int_equal(map.bytes, bytes);
    if (bytes)
        assert_memory_equal(map.data, data, bytes);
    else
        assert_null(map.data);
    file_map_release(&map);
    assert_null(map.data);
    assert_int_equal(map.bytes, 0);
    file_map_release(&map);
    assert_ok(file_read(path, links, &buffer));
    assert_int_equal(buffer.used, bytes);
    if (bytes)
        assert_memory_equal(buffer.data, data, bytes);
    buffer_release(&buffer);
}

/* Sizes around a page, and around the piece that file_read takes at a time. */
static void test_files_of_every_size_come_back_whole(void **state) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 300000};
    static uint8_t data[300000];
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "file");

    (void)state;
    test_random_bytes(data, sizeof data);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        write_file(path, data, sizes[i]);
        assert_holds(path, FILE_FOLLOW_LINKS, data, sizes[i]);
        assert_holds(path, FILE_REFUSE_LINKS, data, sizes[i]);
    }
    temp_directory_remove(directory);
}

static void test_what_is_missing_is_not_found(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    write_file(path_in(directory, "file"), "x", 1);
    assert_refused(path_in(directory, "none"), FILE_FOLLOW_LINKS, ULP_E_NOT_FOUND, "cannot open '");
    assert_refused(path_in(directory, "none/file"), FILE_FOLLOW_LINKS, ULP_E_NOT_FOUND,
                   "none/file'");
    assert_refused(path_in(directory, "file/below"), FILE_FOLLOW_LINKS, ULP_E_NOT_FOUND, "below'");
    assert_refused("", FILE_FOLLOW_LINKS, ULP_E_NOT_FOUND, "cannot open ''");
    temp_directory_remove(directory);
}

static void test_a_name_too_long_is_a_limit(void **state) {
    char name[300];
    char *directory = temp_directory_make();

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_refused(path_in(directory, name), FILE_FOLLOW_LINKS, ULP_E_NAME, "too long");
    temp_directory_remove(directory);
}

static void test_directories_and_devices_are_refused(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_refused(directory, FILE_FOLLOW_LINKS, ULP_E_FILE_KIND, "not a plain file");
    assert_refused("/dev/null", FILE_FOLLOW_LINKS, ULP_E_FILE_KIND,
                   "'/dev/null' is a device, not a plain file");
    assert_refused("/dev/zero", FILE_REFUSE_LINKS, ULP_E_FILE_KIND, "not a plain file");
    temp_directory_remove(directory);
}

/* Nobody writes to it: an ordinary open would wait for ever. The alarm ends the test then. */
static void test_a_fifo_is_refused_without_waiting(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "fifo");

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_refused(path, FILE_FOLLOW_LINKS, ULP_E_FILE_KIND, "fifo' is a FIFO, not a plain file");
    assert_refused(path, FILE_REFUSE_LINKS, ULP_E_FILE_KIND, "fifo' is a FIFO, not a plain file");
    alarm(0);
    temp_directory_remove(directory);
}

static void test_links_are_followed_only_when_allowed(void **state) {
    char *directory = temp_directory_make();
    const char *link = path_in(directory, "link"), *loop = path_in(directory, "loop");
    const char *dangling = path_in(directory, "dangling");

    (void)state;
    write_file(path_in(directory, "file"), "data", 4);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(symlink("nothing", dangling), 0);
    assert_holds(link, FILE_FOLLOW_LINKS, "data", 4);
    assert_refused(link, FILE_REFUSE_LINKS, ULP_E_FILE_KIND, "cannot open '");
    assert_refused(loop, FILE_FOLLOW_LINKS, ULP_E_FILE_KIND, "loop'");
    assert_refused(dangling, FILE_FOLLOW_LINKS, ULP_E_NOT_FOUND, "dangling'");
    assert_refused(dangling, FILE_REFUSE_LINKS, ULP_E_FILE_KIND, "dangling'");
    temp_directory_remove(directory);
}

/* Only the last part counts: a store may itself live behind a link. */
static void test_links_in_the_middle_of_a_path_are_followed(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_int_equal(symlink(".", path_in(directory, "here")), 0);
    write_file(path_in(directory, "file"), "data", 4);
    assert_holds(path_in(directory, "here/file"), FILE_REFUSE_LINKS, "data", 4);
    temp_directory_remove(directory);
}

static void test_the_limit_of_file_read_is_exact(void **state) {
    static char data[70000];
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "file");
    struct buffer exact = BUFFER(sizeof data), less = BUFFER(sizeof data - 1);

    (void)state;
    memset(data, 'd', sizeof data);
    write_file(path, data, sizeof data);
    assert_ok(file_read(path, FILE_FOLLOW_LINKS, &exact));
    assert_int_equal(exact.used, sizeof data);
    assert_fails(file_read(path, FILE_FOLLOW_LINKS, &less), ULP_E_LIMIT,
                 "has 70000 bytes; the limit is 69999");
    assert_int_equal(less.used, 0);
    buffer_release(&exact);
    buffer_release(&less);
    temp_directory_remove(directory);
}

static void test_file_read_appends_within_what_is_left(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "file");
    struct buffer buffer = BUFFER(9);

    (void)state;
    write_file(path, "1234", 4);
    assert_ok(buffer_append_text(&buffer, "a"));
    assert_ok(file_read(path, FILE_FOLLOW_LINKS, &buffer));
    assert_ok(file_read(path, FILE_FOLLOW_LINKS, &buffer));
    assert_string_equal(buffer_text(&buffer), "a12341234");
    assert_fails(file_read(path, FILE_FOLLOW_LINKS, &buffer), ULP_E_LIMIT, "the limit is 0");
    assert_string_equal(buffer_text(&buffer), "a12341234");
    buffer_release(&buffer);
    temp_directory_remove(directory);
}

static int open_descriptors(void) {
    int count = 0;

    for (int file = 0; file < 256; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

static void test_no_descriptor_is_left_open(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "file");
    struct buffer small = BUFFER(1);
    int before = open_descriptors();
    struct file_map map = {0};

    (void)state;
    write_file(path, "1234", 4);
    assert_ok(file_map_open(path, FILE_FOLLOW_LINKS, &map));
    assert_int_equal(open_descriptors(), before); /* the mapping alone remains */
    file_map_release(&map);
    assert_refused(directory, FILE_FOLLOW_LINKS, ULP_E_FILE_KIND, "plain file");
    assert_fails(file_read(path, FILE_FOLLOW_LINKS, &small), ULP_E_LIMIT, "the limit is 1");
    assert_int_equal(open_descriptors(), before);
    temp_directory_remove(directory);
}

TEST_MAIN(test_files_of_every_size_come_back_whole, test_what_is_missing_is_not_found,
          test_a_name_too_long_is_a_limit, test_directories_and_devices_are_refused,
          test_a_fifo_is_refused_without_waiting, test_links_are_followed_only_when_allowed,
          test_links_in_the_middle_of_a_path_are_followed, test_the_limit_of_file_read_is_exact,
          test_file_read_appends_within_what_is_left, test_no_descriptor_is_left_open)
