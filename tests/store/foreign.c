// SPDX-License-Identifier: Apache-2.0
/* Others may keep files in a store's directory: what cannot be a key is not listed. */
#define _GNU_SOURCE /* O_DIRECTORY, fchdir */
#include "tests/store/stores.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void plant(const struct place *place, const char *name) {
    plant_file(path_in(place->directory, name), "foreign");
}

static void make_directory(const struct place *place, const char *name) {
    assert_int_equal(mkdir(path_in(place->directory, name), 0777), 0);
}

static void test_foreign_names_are_not_listed(void **state) {
    static const char *const names[] = {
        ".hidden", "..double",    "a b",    "a~",     "#a#",       "\xc3\xa9", "a\nb",
        ".dir/x",  "run/.hidden", "run/a*", "b c/ok", "b c/d/e/f", "run/x\x7f"};
    struct place place = directory_place();
    char name[256];

    (void)state;
    put_text(place.store, "run/log/1", "ours");
    make_directory(&place, ".dir");
    make_directory(&place, "b c");
    make_directory(&place, "b c/d");
    make_directory(&place, "b c/d/e");
    make_directory(&place, "empty");
    for (size_t i = 0; i < COUNT(names); i++)
        plant(&place, names[i]);
    memset(name, 'n', 201);
    name[201] = 0;
    plant(&place, name);
    assert_string_equal(listed(place.store, "", "").text, "run/log/1 ");
    assert_string_equal(listed(place.store, "b c/", "").text, "");
    assert_string_equal(listed(place.store, ".", "").text, "");
    assert_string_equal(listed(place.store, ".dir/", "").text, "");
    name[200] = 0;
    plant(&place, name);
    assert_int_equal(listed(place.store, "n", "").count, 1);
    place_free(&place);
}

/* Files that happen to have the name of a key are objects. */
static void test_a_planted_file_is_an_object(void **state) {
    struct place place = directory_place();

    (void)state;
    make_directory(&place, "run");
    plant(&place, "run/1");
    assert_object(place.store, "run/1", "foreign");
    assert_string_equal(listed(place.store, "", "").text, "run/1 ");
    place_free(&place);
}

/* Directories so deep that no key leads to their end. */
static void test_directories_without_end(void **state) {
    struct place place = directory_place();
    char name[2048] = "";
    int before = open(".", O_RDONLY | O_DIRECTORY), made = 0;

    (void)state;
    assert_true(before >= 0);
    assert_int_equal(chdir(place.directory), 0);
    while (made < 470 && !mkdir("d", 0777) && !chdir("d")) {
        if (++made == 449)
            plant_file("xx", "deep"); /* the longest key there is */
    }
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_int_equal(made, 470);
    for (int i = 0; i < 449; i++)
        strcat(name, "d/");
    strcat(name, "xx");
    assert_int_equal(strlen(name), 900);
    assert_object(place.store, name, "deep");
    assert_int_equal(listed(place.store, "", "").count, 1);
    name[899] = 0;
    assert_int_equal(listed(place.store, name, "").count, 1);
    place_free(&place);
}

/* What is made or removed while a listing runs does no harm. */
static int remove_the_rest(void *user, const char *key, uint64_t bytes) {
    struct place *place = user;

    (void)key;
    (void)bytes;
    return ulp_store_remove(place->store, "a/2") || ulp_store_remove(place->store, "b/c/3") ||
           rmdir(path_in(place->directory, "b/c")) || rmdir(path_in(place->directory, "b")) ||
           symlink("a", path_in(place->directory, "b"));
}

static void test_changes_while_listing(void **state) {
    struct place place = directory_place();

    (void)state;
    put_text(place.store, "a/1", "");
    put_text(place.store, "a/2", "");
    put_text(place.store, "b/c/3", "");
    assert_ok(ulp_store_list(place.store, "", "", remove_the_rest, &place));
    place_free(&place);
}

TEST_MAIN(test_foreign_names_are_not_listed, test_a_planted_file_is_an_object,
          test_directories_without_end, test_changes_while_listing)
