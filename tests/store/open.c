// SPDX-License-Identifier: Apache-2.0
/* Where a store is: paths and URLs. */
#define _GNU_SOURCE /* O_DIRECTORY, setresuid */
#include "tests/store/stores.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_opens(const char *url, const char *directory) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_open(url, &store));
    assert_non_null(strstr(url, ulp_store_name(store)));
    put_text(store, "a/b", url);
    assert_file(path_in(directory, "a/b"), url);
    assert_ok(ulp_store_remove(store, "a/b"));
    ulp_store_free(store);
}

static void test_spellings_of_one_directory(void **state) {
    char *directory = temp_directory_make(), below[4096], url[4200];

    (void)state;
    snprintf(below, sizeof below, "%s", path_in(directory, "store"));
    assert_opens(below, below); /* it is made */
    assert_opens(below, below);
    snprintf(url, sizeof url, "%s/", below);
    assert_opens(url, below);
    snprintf(url, sizeof url, "%s///", below);
    assert_opens(url, below);
    snprintf(url, sizeof url, "%s/../store/.", below);
    assert_opens(url, below);
    snprintf(url, sizeof url, "file://%s", below);
    assert_opens(url, below);
    snprintf(url, sizeof url, "file://%s/", below);
    assert_opens(url, below);
    snprintf(url, sizeof url, "file://%s/new/", below);
    assert_opens(url, path_in(below, "new"));
    temp_directory_remove(directory);
}

/* The way is found once: the store stays where it was when the process goes elsewhere. */
static void test_relative_paths(void **state) {
    char *directory = temp_directory_make();
    int before = open(".", O_RDONLY | O_DIRECTORY);
    struct ulp_store *store = NULL, *here = NULL;

    (void)state;
    assert_true(before >= 0);
    assert_int_equal(chdir(directory), 0);
    assert_ok(ulp_store_open("store", &store));
    assert_ok(ulp_store_open(".", &here));
    assert_int_equal(fchdir(before), 0);
    close(before);
    put_text(store, "a/b", "x");
    assert_object(here, "store/a/b", "x");
    assert_file(path_in(directory, "store/a/b"), "x");
    ulp_store_free(store);
    ulp_store_free(here);
    temp_directory_remove(directory);
}

/* "://" is a scheme's only behind a scheme. */
static void test_paths_that_look_like_urls(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_int_equal(mkdir(path_in(directory, "http:"), 0777), 0);
    assert_opens(path_in(directory, "http://x"), path_in(directory, "http:/x"));
    temp_directory_remove(directory);
}

static void assert_no_store(const char *url, enum ulp_status expected, const char *text) {
    struct ulp_store *store = NULL;

    assert_fails(ulp_store_open(url, &store), expected, text);
    assert_null(store);
}

static void test_what_is_no_store(void **state) {
    char *directory = temp_directory_make();
    struct ulp_store *store = NULL;

    (void)state;
    plant_file(path_in(directory, "file"), "x");
    assert_int_equal(symlink("nowhere", path_in(directory, "dangling")), 0);
    assert_no_store("S3://bucket/x", ULP_E_UNSUPPORTED, "S3://bucket/x");
    assert_no_store("ftp://host/x", ULP_E_UNSUPPORTED, "s3://, https://");
    assert_no_store("a+b-c.9://x", ULP_E_UNSUPPORTED, "a+b-c.9://x");
    assert_no_store("memory://", ULP_E_UNSUPPORTED, "memory://");
    assert_no_store("file://relative", ULP_E_USAGE, "file://relative");
    assert_no_store("file://", ULP_E_USAGE, "file://");
    assert_no_store("", ULP_E_NOT_FOUND, "''");
    assert_no_store(path_in(directory, "file"), ULP_E_FILE_KIND, "/file'");
    assert_no_store(path_in(directory, "file/x"), ULP_E_NOT_FOUND, "/file/x'");
    assert_no_store(path_in(directory, "missing/x"), ULP_E_NOT_FOUND, "/missing/x'");
    assert_no_store(path_in(directory, "dangling"), ULP_E_NOT_FOUND, "/dangling'");
    assert_no_store(NULL, ULP_E_USAGE, "NULL");
    assert_fails(ulp_store_open(directory, NULL), ULP_E_USAGE, "NULL");
    assert_int_equal(entries_in(directory), 2);
    ulp_store_free(store); /* NULL is none */
    temp_directory_remove(directory);
}

static int ignore(void *user, const char *key, uint64_t bytes) {
    (void)user;
    (void)key;
    (void)bytes;
    return 0;
}

/* In a child, since for a privileged user nothing is read-only; its answer is its exit status. */
static int try_as_guest(const char *directory) {
    struct ulp_store *store = NULL, *below = NULL;
    char byte;
    size_t got = 0;
    uint64_t total = 0;

    if (!geteuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        return 77;
    if (ulp_store_open(directory, &store))
        return 1;
    if (ulp_store_read(store, "a/b", 0, &byte, 1, &got, &total) || got != 1)
        return 2;
    if (ulp_store_create(store, "a/c", "x", 1) != ULP_E_PERMISSION ||
        !strstr(ulp_last_error(), "a/c"))
        return 3;
    if (ulp_store_put(store, "new/c", "x", 1) != ULP_E_PERMISSION ||
        !strstr(ulp_last_error(), "new/c"))
        return 4;
    if (ulp_store_remove(store, "a/b") != ULP_E_PERMISSION || !strstr(ulp_last_error(), "a/b"))
        return 5;
    if (ulp_store_open(path_in(directory, "below"), &below) != ULP_E_PERMISSION)
        return 6;
    if (ulp_store_read(store, "closed/x", 0, &byte, 1, &got, &total) != ULP_E_PERMISSION)
        return 7;
    if (ulp_store_list(store, "", "", ignore, NULL) != ULP_E_PERMISSION ||
        !strstr(ulp_last_error(), "closed"))
        return 8;
    if (ulp_store_list(store, "a/", "", ignore, NULL))
        return 9;
    ulp_store_free(store);
    return 0;
}

static void test_read_only(void **state) {
    struct place place = directory_place();
    int result = 0;
    pid_t child;

    (void)state;
    put_text(place.store, "a/b", "x");
    put_text(place.store, "closed/x", "x");
    assert_int_equal(chmod(path_in(place.directory, "closed"), 0), 0);
    assert_int_equal(mkdir(path_in(place.directory, "lost+found"), 0), 0); /* not ours */
    assert_int_equal(chmod(path_in(place.directory, "a"), 0555), 0);
    assert_int_equal(chmod(place.directory, 0555), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(try_as_guest(place.directory));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(chmod(place.directory, 0755), 0);
    assert_int_equal(chmod(path_in(place.directory, "a"), 0755), 0);
    assert_int_equal(chmod(path_in(place.directory, "closed"), 0755), 0);
    assert_object(place.store, "a/b", "x");
    place_free(&place);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77)
        skip(); /* users cannot be changed here */
    assert_int_equal(WEXITSTATUS(result), 0);
}

TEST_MAIN(test_spellings_of_one_directory, test_relative_paths, test_paths_that_look_like_urls,
          test_what_is_no_store, test_read_only)
