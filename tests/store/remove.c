// SPDX-License-Identifier: Apache-2.0
/* Removing, again and again, and objects that are in use. */
#include "tests/store/stores.h"

static void removes(struct place *place) {
    assert_ok(ulp_store_remove(place->store, "never/was"));
    put_text(place->store, "a/b", "1");
    put_text(place->store, "a/c", "2");
    put_text(place->store, "a/d", "3");
    assert_ok(ulp_store_remove(place->store, "a/c"));
    assert_absent(place->store, "a/c");
    assert_ok(ulp_store_remove(place->store, "a/c"));
    assert_ok(ulp_store_remove(place->store, "a/b/c"));
    assert_string_equal(listed(place->store, "", "").text, "a/b a/d ");
    assert_object(place->store, "a/b", "1");
    assert_object(place->store, "a/d", "3");
    assert_ok(ulp_store_remove(place->store, "a/b"));
    assert_ok(ulp_store_remove(place->store, "a/d"));
    assert_string_equal(listed(place->store, "", "").text, "");
    put_text(place->store, "a/c", "again");
    assert_object(place->store, "a/c", "again");
}

TEST_EACH(removes)

/* A writer does not mind that what it replaces goes. */
static void while_writing(struct place *place) {
    struct ulp_store_writer *writer = NULL;

    put_text(place->store, "a/b", "old");
    assert_ok(ulp_store_put_begin(place->store, "a/b", &writer));
    assert_ok(ulp_store_put_write(writer, "new", 3));
    assert_ok(ulp_store_remove(place->store, "a/b"));
    assert_absent(place->store, "a/b");
    assert_ok(ulp_store_put_end(writer, 1));
    assert_object(place->store, "a/b", "new");
}

TEST_EACH(while_writing)

static void test_free_accepts_null(void **state) {
    (void)state;
    ulp_store_free(NULL);
}

TEST_MAIN(test_removes, test_while_writing, test_free_accepts_null)
