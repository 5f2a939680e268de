// SPDX-License-Identifier: Apache-2.0
/* Symlinks in a directory that serves as a store are never followed, wherever they stand and lead.
 * */
#include "tests/store/stores.h"

#include <unistd.h>

struct trap {
    struct place place;
    char *outside;
};

/* A store, and a directory beside it that holds one file. */
static struct trap trap_make(void) {
    struct trap trap = {directory_place(), temp_directory_make()};

    plant_file(path_in(trap.outside, "secret"), "untouched");
    return trap;
}

/* Whatever was tried: beside the store all is as it was. */
static void trap_free(struct trap *trap) {
    assert_int_equal(entries_in(trap->outside), 1);
    assert_file(path_in(trap->outside, "secret"), "untouched");
    temp_directory_remove(trap->outside);
    place_free(&trap->place);
}

static void plant_link(const struct trap *trap, const char *name, const char *target) {
    assert_int_equal(symlink(target, path_in(trap->place.directory, name)), 0);
}

static void assert_no_reading(struct ulp_store *store, const char *key) {
    uint64_t total = 0;
    size_t got = 0;
    char byte = '~';
    enum ulp_status status = ulp_store_read(store, key, 0, &byte, 1, &got, &total);

    assert_true(status == ULP_E_FILE_KIND || status == ULP_E_NOT_FOUND);
    assert_int_equal(byte, '~');
    assert_int_equal(ulp_store_stat(store, key, &total), status);
}

static void test_a_link_as_an_object(void **state) {
    static const char *const keys[] = {"file", "dangling", "loop", "self", "directory"};
    struct trap trap = trap_make();
    struct ulp_store *store = trap.place.store;

    (void)state;
    for (int round = 0; round < 3; round++) {
        plant_link(&trap, "file", path_in(trap.outside, "secret"));
        plant_link(&trap, "dangling", path_in(trap.outside, "new"));
        plant_link(&trap, "loop", "self");
        plant_link(&trap, "self", "loop");
        plant_link(&trap, "directory", trap.outside);
        for (size_t i = 0; i < COUNT(keys); i++) {
            assert_no_reading(store, keys[i]);
            assert_fails(ulp_store_create(store, keys[i], "x", 1), ULP_E_FILE_KIND, keys[i]);
            assert_int_equal(listed(store, "", "").count, 0);
            if (round == 1)
                assert_ok(ulp_store_remove(store, keys[i])); /* the link goes, not its target */
        }
        for (size_t i = 0; i < COUNT(keys) && round != 1; i++) {
            put_text(store, keys[i], "ours"); /* takes the place of the link */
            assert_object(store, keys[i], "ours");
            assert_ok(ulp_store_remove(store, keys[i]));
        }
    }
    trap_free(&trap);
}

static void assert_no_way(struct ulp_store *store, const char *key) {
    struct ulp_store_writer *writer = NULL;

    assert_no_reading(store, key);
    assert_fails(ulp_store_create(store, key, "x", 1), ULP_E_FILE_KIND, key);
    assert_fails(ulp_store_put(store, key, "x", 1), ULP_E_FILE_KIND, key);
    assert_fails(ulp_store_put_begin(store, key, &writer), ULP_E_FILE_KIND, key);
    assert_ok(ulp_store_remove(store, key)); /* nothing of ours is there */
}

static void test_a_link_on_the_way(void **state) {
    struct trap trap = trap_make();
    struct ulp_store *store = trap.place.store;

    (void)state;
    put_text(store, "run/log/1", "ours");
    plant_link(&trap, "out", trap.outside);
    plant_link(&trap, "run/out", trap.outside);
    plant_link(&trap, "run/up", "..");
    plant_link(&trap, "run/within", "log");
    plant_link(&trap, "run/loop", "loop");
    plant_link(&trap, "run/dangling", "/nowhere/at/all");
    assert_no_way(store, "out/secret");
    assert_no_way(store, "out/new");
    assert_no_way(store, "out/deeper/new");
    assert_no_way(store, "run/out/secret");
    assert_no_way(store, "run/out/new");
    assert_no_way(store, "run/up/run/log/1");
    assert_no_way(store, "run/within/1"); /* not even where it would stay within */
    assert_no_way(store, "run/loop/1");
    assert_no_way(store, "run/dangling/1");
    assert_string_equal(listed(store, "", "").text, "run/log/1 ");
    assert_string_equal(listed(store, "out/", "").text, "");
    assert_object(store, "run/log/1", "ours");
    trap_free(&trap);
}

/* A directory that turns into a link while a writer is open: the object goes where it was begun. */
static void test_a_link_put_in_place_later(void **state) {
    struct trap trap = trap_make();
    struct ulp_store_writer *writer = NULL;

    (void)state;
    assert_ok(ulp_store_put_begin(trap.place.store, "run/secret", &writer));
    assert_ok(ulp_store_put_write(writer, "new", 3));
    assert_int_equal(
        rename(path_in(trap.place.directory, "run"), path_in(trap.place.directory, "moved")), 0);
    plant_link(&trap, "run", trap.outside);
    assert_ok(ulp_store_put_end(writer, 1));
    assert_object(trap.place.store, "moved/secret", "new");
    trap_free(&trap);
}

/* Who names the store may name it by a link. */
static void test_the_store_itself_may_be_a_link(void **state) {
    struct place place = directory_place();
    struct ulp_store *store = NULL;

    (void)state;
    put_text(place.store, "real/a", "x");
    assert_int_equal(symlink("real", path_in(place.directory, "link")), 0);
    assert_ok(ulp_store_open(path_in(place.directory, "link"), &store));
    assert_object(store, "a", "x");
    put_text(store, "b", "y");
    assert_object(place.store, "real/b", "y");
    ulp_store_free(store);
    place_free(&place);
}

TEST_MAIN(test_a_link_as_an_object, test_a_link_on_the_way, test_a_link_put_in_place_later,
          test_the_store_itself_may_be_a_link)
