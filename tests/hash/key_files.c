// SPDX-License-Identifier: Apache-2.0
/* Keys as files: who may read them, what they may not replace, and that memory is wiped. */
#define _DEFAULT_SOURCE /* mkfifo */
#include "base/file.h"
#include "base/memory.h"
#include "hash/key.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ulp_key *new_key(void) {
    struct ulp_key *key = NULL;

    assert_ok(ulp_key_generate(&key));
    return key;
}

static unsigned mode_of(const char *path) {
    struct stat info;

    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 07777;
}

static size_t entries_in(const char *directory) {
    DIR *open_directory = opendir(directory);
    size_t count = 0;

    assert_non_null(open_directory);
    while (readdir(open_directory))
        count++;
    closedir(open_directory);
    return count - 2;
}

static void plant(const char *path, const void *data, size_t bytes, unsigned mode) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(file >= 0);
    assert_int_equal(write(file, data, bytes), bytes);
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
}

static void check_round_trip(const char *path, const char *comment) {
    struct ulp_key *key = new_key(), *again = NULL;

    assert_ok(ulp_key_save(key, path, comment));
    assert_int_equal(mode_of(path), 0600);
    assert_ok(ulp_key_load(path, &again));
    assert_memory_equal(key, again, sizeof *key);
    ulp_key_free(again);
    ulp_key_free(key);
}

/* Whatever the umask allows others, and on file systems of either kind. */
static void test_saved_keys_are_private_and_load_again(void **state) {
    char *directory = temp_directory_make();
    char longest[ULP_KEY_COMMENT_BYTES_MAX + 1] = "";
    mode_t before = umask(0);

    (void)state;
    memset(longest, 'c', ULP_KEY_COMMENT_BYTES_MAX);
    check_round_trip(path_in(directory, "a"), NULL);
    check_round_trip(path_in(directory, "b"), "trainer, 2026");
    check_round_trip(path_in(directory, "c"), longest);
    file_writer_always_named(true);
    check_round_trip(path_in(directory, "d"), NULL);
    file_writer_always_named(false);
    assert_int_equal(entries_in(directory), 4);
    umask(before);
    temp_directory_remove(directory);
}

static void test_no_two_keys_are_the_same(void **state) {
    struct ulp_key *one = new_key(), *other = new_key();

    (void)state;
    assert_memory_not_equal(one->seed, other->seed, sizeof one->seed);
    ulp_key_free(one);
    ulp_key_free(other);
}

static void test_an_existing_file_stays(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "key"), *link = path_in(directory, "link");
    struct ulp_key *key = new_key();
    struct ulp_public_key public_key;
    struct buffer text = BUFFER(100);

    (void)state;
    plant(path, "mine", 4, 0600);
    assert_int_equal(symlink("nowhere", link), 0);
    assert_ok(ulp_key_public(key, &public_key));
    for (size_t i = 0; i < 2; i++) {
        assert_fails(ulp_key_save(key, i ? link : path, NULL), ULP_E_EXISTS, "");
        assert_fails(ulp_public_key_save(&public_key, i ? link : path, NULL), ULP_E_EXISTS, "");
    }
    assert_ok(file_read(path, FILE_REFUSE_LINKS, &text));
    assert_string_equal(buffer_text(&text), "mine");
    assert_int_equal(entries_in(directory), 2);
    assert_fails(ulp_key_save(key, path_in(directory, "new"), "a\nb"), ULP_E_USAGE, "one line");
    assert_fails(ulp_key_save(key, path_in(directory, "no/such"), NULL), ULP_E_NOT_FOUND, "");
    assert_int_equal(entries_in(directory), 2);
    buffer_release(&text);
    ulp_key_free(key);
    temp_directory_remove(directory);
}

/* Every right of group and others, alone and together. */
static void test_a_key_that_others_have_rights_to_is_refused(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "key");
    struct ulp_key *key = new_key(), *loaded = NULL;

    (void)state;
    assert_ok(ulp_key_save(key, path, NULL));
    for (unsigned mode = 1; mode < 0100; mode++) {
        assert_int_equal(chmod(path, 0600 | mode), 0);
        assert_fails(ulp_key_load(path, &loaded), ULP_E_PERMISSION, "chmod 600");
        assert_null(loaded);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_ok(ulp_key_load(path, &loaded));
    ulp_key_free(loaded);
    ulp_key_free(key);
    temp_directory_remove(directory);
}

static void test_only_plain_files_are_private_keys(void **state) {
    char *directory = temp_directory_make();
    struct ulp_key *key = new_key(), *loaded = NULL;

    (void)state;
    assert_ok(ulp_key_save(key, path_in(directory, "key"), NULL));
    assert_int_equal(symlink("key", path_in(directory, "link")), 0);
    assert_int_equal(mkfifo(path_in(directory, "fifo"), 0600), 0);
    assert_fails(ulp_key_load(path_in(directory, "link"), &loaded), ULP_E_FILE_KIND, "link");
    assert_fails(ulp_key_load(path_in(directory, "fifo"), &loaded), ULP_E_FILE_KIND, "a FIFO");
    assert_fails(ulp_key_load(directory, &loaded), ULP_E_FILE_KIND, "a directory");
    assert_fails(ulp_key_load("/dev/null", &loaded), ULP_E_FILE_KIND, "a device");
    assert_fails(ulp_key_load(path_in(directory, "none"), &loaded), ULP_E_NOT_FOUND, "none");
    assert_null(loaded);
    ulp_key_free(key);
    temp_directory_remove(directory);
}

static void test_files_that_hold_no_private_key(void **state) {
    static const char large[1000];
    char *directory = temp_directory_make();
    struct ulp_key *loaded = NULL;

    (void)state;
    plant(path_in(directory, "empty"), "", 0, 0600);
    plant(path_in(directory, "text"), "hello\n", 6, 0600);
    plant(path_in(directory, "zeros"), large, 200, 0600);
    plant(path_in(directory, "large"), large, sizeof large, 0600);
    assert_fails(ulp_key_load(path_in(directory, "empty"), &loaded), ULP_E_KEY, "is empty");
    assert_fails(ulp_key_load(path_in(directory, "text"), &loaded), ULP_E_KEY, "line 1");
    assert_fails(ulp_key_load(path_in(directory, "zeros"), &loaded), ULP_E_KEY, "line 1");
    assert_fails(ulp_key_load(path_in(directory, "large"), &loaded), ULP_E_LIMIT, "1000 bytes");
    assert_null(loaded);
    temp_directory_remove(directory);
}

static void test_public_keys_are_saved_and_trusted(void **state) {
    char *directory = temp_directory_make();
    static char large[65537];
    struct ulp_public_key public_key, keys[ULP_TRUSTED_KEYS_MAX];
    struct ulp_key *key = new_key();
    size_t count = 0;

    (void)state;
    assert_ok(ulp_key_public(key, &public_key));
    assert_ok(ulp_public_key_save(&public_key, path_in(directory, "pub"), "trainer"));
    assert_int_equal(symlink("pub", path_in(directory, "link")), 0);
    assert_ok(ulp_public_keys_load(path_in(directory, "link"), keys, ULP_TRUSTED_KEYS_MAX, &count));
    assert_int_equal(count, 1);
    assert_memory_equal(&keys[0], &public_key, sizeof public_key);
    assert_fails(ulp_public_keys_load(path_in(directory, "pub"), keys, 0, &count), ULP_E_LIMIT, "");
    assert_fails(ulp_public_keys_load(directory, keys, 1, &count), ULP_E_FILE_KIND, "");
    assert_ok(ulp_key_save(key, path_in(directory, "key"), NULL));
    assert_fails(ulp_public_keys_load(path_in(directory, "key"), keys, 1, &count), ULP_E_KEY,
                 "a private key");
    memset(large, '\n', sizeof large);
    plant(path_in(directory, "large"), large, sizeof large, 0644);
    assert_fails(ulp_public_keys_load(path_in(directory, "large"), keys, 1, &count), ULP_E_LIMIT,
                 "65537 bytes");
    ulp_key_free(key);
    temp_directory_remove(directory);
}

static void *watched_resize(void *user, void *old, size_t bytes) {
    (void)user;
    return realloc(old, bytes);
}

/* `user` counts blocks of a key's size that were given back, and bytes in them that were not 0. */
struct watch {
    size_t keys, dirty;
};

static struct ulp_key *watched;

static void watched_release(void *user, void *pointer) {
    struct watch *watch = user;

    if (pointer == watched) {
        watch->keys++;
        for (size_t i = 0; i < sizeof *watched; i++)
            watch->dirty += ((const uint8_t *)pointer)[i] != 0;
    }
    free(pointer);
}

static void test_a_freed_key_is_wiped(void **state) {
    struct watch watch = {0};
    const struct mem_hooks hooks = {watched_resize, watched_release, &watch};

    (void)state;
    mem_install(&hooks);
    watched = new_key();
    ulp_key_free(watched);
    ulp_key_free(NULL);
    mem_install(NULL);
    assert_int_equal(watch.keys, 1);
    assert_int_equal(watch.dirty, 0);
}

static void test_memory_that_runs_out(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "key"), *pub = path_in(directory, "pub");
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t at;

    (void)state;
    for (at = 0; status; at++) {
        struct ulp_public_key public_key, keys[1];
        struct ulp_key *key = NULL, *again = NULL;
        size_t count = 0;

        unlink(path);
        unlink(pub);
        failing_allocator_start(at, 0);
        status = ulp_key_generate(&key);
        if (!status)
            status = ulp_key_public(key, &public_key);
        if (!status)
            status = ulp_key_save(key, path, "c");
        if (!status)
            status = ulp_key_load(path, &again);
        if (!status)
            status = ulp_public_key_save(&public_key, pub, NULL);
        if (!status)
            status = ulp_public_keys_load(pub, keys, 1, &count);
        ulp_key_free(key);
        ulp_key_free(again);
        failing_allocator_stop();
        assert_true(!status || status == ULP_E_NOMEM);
    }
    assert_true(at > 6);
    temp_directory_remove(directory);
}

static void test_missing_arguments(void **state) {
    struct ulp_public_key public_key = {{0}};
    struct ulp_key *key = new_key();
    size_t count;

    (void)state;
    assert_fails(ulp_key_generate(NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_save(NULL, "x", NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_save(key, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_load(NULL, &key), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_load("x", NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_public(NULL, &public_key), ULP_E_USAGE, "NULL");
    assert_fails(ulp_key_public(key, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_public_key_save(NULL, "x", NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_public_key_save(&public_key, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_public_keys_load(NULL, &public_key, 1, &count), ULP_E_USAGE, "NULL");
    assert_fails(ulp_public_keys_load("x", NULL, 1, &count), ULP_E_USAGE, "NULL");
    assert_fails(ulp_public_keys_load("x", &public_key, 1, NULL), ULP_E_USAGE, "NULL");
    ulp_key_free(key);
}

TEST_MAIN(test_saved_keys_are_private_and_load_again, test_no_two_keys_are_the_same,
          test_an_existing_file_stays, test_a_key_that_others_have_rights_to_is_refused,
          test_only_plain_files_are_private_keys, test_files_that_hold_no_private_key,
          test_public_keys_are_saved_and_trusted, test_a_freed_key_is_wiped,
          test_memory_that_runs_out, test_missing_arguments)
