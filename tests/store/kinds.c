// SPDX-License-Identifier: Apache-2.0
/* What is neither a plain file nor a directory where one should be: clear failures, and no waiting.
 * */
#define _DEFAULT_SOURCE /* mknod, makedev */
#include "tests/store/stores.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_no_object(struct ulp_store *store, const char *key) {
    uint64_t total = 0;
    size_t got = 0;
    char byte;

    assert_fails(ulp_store_read(store, key, 0, &byte, 1, &got, &total), ULP_E_FILE_KIND, key);
    assert_fails(ulp_store_stat(store, key, &total), ULP_E_FILE_KIND, key);
    assert_fails(ulp_store_create(store, key, "x", 1), ULP_E_FILE_KIND, key);
    assert_int_equal(listed(store, "", "").count, 0);
}

/* It is put over, and can be removed. */
static void assert_gives_way(struct place *place, const char *key) {
    alarm(20); /* ends the test should one of these wait for ever */
    assert_no_object(place->store, key);
    put_text(place->store, key, "ours");
    assert_object(place->store, key, "ours");
    assert_ok(ulp_store_remove(place->store, key));
    alarm(0);
}

static void test_a_fifo(void **state) {
    struct place place = directory_place();

    (void)state;
    assert_int_equal(mkfifo(path_in(place.directory, "fifo"), 0666), 0);
    assert_gives_way(&place, "fifo");
    assert_int_equal(mkfifo(path_in(place.directory, "fifo"), 0666), 0);
    assert_ok(ulp_store_remove(place.store, "fifo"));
    assert_absent(place.store, "fifo");
    place_free(&place);
}

static void test_a_socket(void **state) {
    struct place place = directory_place();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int end = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_true(end >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", place.directory);
    assert_int_equal(bind(end, (const struct sockaddr *)&address, sizeof address), 0);
    assert_gives_way(&place, "socket");
    close(end);
    place_free(&place);
}

static void test_a_device(void **state) {
    struct place place = directory_place();

    (void)state;
    /* like /dev/zero, which has no end */
    if (mknod(path_in(place.directory, "device"), S_IFCHR | 0666, makedev(1, 5))) {
        place_free(&place);
        skip(); /* only a privileged user can make one */
    }
    assert_gives_way(&place, "device");
    place_free(&place);
}

static void test_a_directory_where_an_object_should_be(void **state) {
    struct place place = directory_place();

    (void)state;
    assert_int_equal(mkdir(path_in(place.directory, "a"), 0777), 0);
    assert_no_object(place.store, "a");
    assert_fails(ulp_store_put(place.store, "a", "x", 1), ULP_E_FILE_KIND, "/a'");
    assert_fails(ulp_store_remove(place.store, "a"), ULP_E_FILE_KIND, "/a'");
    assert_int_equal(entries_in(place.directory), 1); /* nothing hidden is left either */
    assert_int_equal(entries_in(path_in(place.directory, "a")), 0);
    put_text(place.store, "a/b", "x");
    assert_object(place.store, "a/b", "x");
    place_free(&place);
}

static void test_an_object_where_a_directory_should_be(void **state) {
    struct place place = directory_place();

    (void)state;
    put_text(place.store, "a/b", "x");
    assert_absent(place.store, "a/b/c");
    assert_absent(place.store, "a/b/c/d");
    assert_fails(ulp_store_create(place.store, "a/b/c", "x", 1), ULP_E_FILE_KIND, "a/b/c");
    assert_fails(ulp_store_put(place.store, "a/b/c/d", "x", 1), ULP_E_FILE_KIND, "a/b/c/d");
    assert_ok(ulp_store_remove(place.store, "a/b/c"));
    assert_object(place.store, "a/b", "x");
    place_free(&place);
}

TEST_MAIN(test_a_fifo, test_a_socket, test_a_device, test_a_directory_where_an_object_should_be,
          test_an_object_where_a_directory_should_be)
