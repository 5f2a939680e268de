// SPDX-License-Identifier: Apache-2.0
/* A failure names the store and the whole key. */
#include "tests/store/stores.h"

static int stop(void *user, const char *key, uint64_t bytes) {
    (void)user;
    (void)key;
    (void)bytes;
    return 1;
}

static void name_store_and_key(struct place *place) {
    const char *name = place->directory ? place->directory : "memory";
    uint64_t bytes;
    size_t got;
    char byte;

    assert_string_equal(ulp_store_name(place->store), name);
    put_text(place->store, "run/log/1", "x");
    assert_fails(ulp_store_stat(place->store, "run/log/2", &bytes), ULP_E_NOT_FOUND, name);
    assert_non_null(strstr(ulp_last_error(), "run/log/2"));
    assert_fails(ulp_store_read(place->store, "no/such/run", 0, &byte, 1, &got, &bytes),
                 ULP_E_NOT_FOUND, name);
    assert_non_null(strstr(ulp_last_error(), "no/such/run"));
    assert_fails(ulp_store_create(place->store, "run/log/1", "y", 1), ULP_E_EXISTS, name);
    assert_non_null(strstr(ulp_last_error(), "run/log/1"));
    assert_fails(ulp_store_stat(place->store, "run/../1", &bytes), ULP_E_NAME, name);
    assert_non_null(strstr(ulp_last_error(), "run/../1"));
    assert_fails(ulp_store_list(place->store, "", "", stop, NULL), ULP_E_CANCELLED, name);
    assert_non_null(strstr(ulp_last_error(), "run/log/1"));
}

TEST_EACH(name_store_and_key)

/* Of what cannot be read or written, too. */
static void test_directories_where_objects_should_be(void **state) {
    struct place place = directory_place();
    const char *where = path_in(place.directory, "a/b");
    uint64_t bytes;

    (void)state;
    put_text(place.store, "a/b/c", "x");
    assert_fails(ulp_store_stat(place.store, "a/b", &bytes), ULP_E_FILE_KIND, where);
    assert_fails(ulp_store_put(place.store, "a/b", "x", 1), ULP_E_FILE_KIND, where);
    assert_fails(ulp_store_remove(place.store, "a/b"), ULP_E_FILE_KIND, where);
    place_free(&place);
}

/* However the path of the store ends, there is one slash before the key. */
static void test_slashes(void **state) {
    struct place place = {.directory = temp_directory_make()};
    uint64_t bytes;

    (void)state;
    assert_ok(ulp_store_open(path_in(place.directory, "//"), &place.store));
    assert_fails(ulp_store_stat(place.store, "a/b", &bytes), ULP_E_NOT_FOUND,
                 path_in(place.directory, "a/b"));
    place_free(&place);
}

TEST_MAIN(test_name_store_and_key, test_directories_where_objects_should_be, test_slashes)
