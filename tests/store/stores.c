// SPDX-License-Identifier: Apache-2.0
#include "tests/store/stores.h"

#include "base/file.h"

#include <dirent.h>

size_t entries_in(const char *directory) {
    DIR *stream = opendir(directory);
    size_t count = 0;

    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2;
}

struct place directory_place(void) {
    struct place place = {.directory = temp_directory_make()};

    assert_ok(ulp_store_open(place.directory, &place.store));
    return place;
}

static struct place memory_place(void) {
    struct place place = {0};

    assert_ok(ulp_store_memory(&place.store));
    return place;
}

void place_free(struct place *place) {
    ulp_store_free(place->store);
    if (place->directory)
        temp_directory_remove(place->directory);
}

static void run(struct place place, void (*test)(struct place *place)) {
    test(&place);
    place_free(&place);
}

void for_each_store(void (*test)(struct place *place)) {
    size_t open_before = entries_in("/proc/self/fd");

    run(memory_place(), test);
    run(directory_place(), test);
    file_writer_always_named(true); /* a file system where files begin with a hidden name */
    run(directory_place(), test);
    file_writer_always_named(false);
    assert_int_equal(entries_in("/proc/self/fd"), open_before);
}

void put_text(struct ulp_store *store, const char *key, const char *text) {
    assert_ok(ulp_store_put(store, key, text, strlen(text)));
}

enum ulp_status read_whole(struct ulp_store *store, const char *key, void *data, size_t room,
                           size_t *ret_bytes) {
    uint64_t total = 0;
    size_t got = 0;
    enum ulp_status status = ulp_store_read(store, key, 0, data, room, &got, &total);

    if (status)
        return status;
    if (got != total)
        return ulp_fail(ULP_E_INTERNAL, "%zu bytes of %llu", got, (unsigned long long)total);
    *ret_bytes = got;
    return ULP_OK;
}

void assert_object(struct ulp_store *store, const char *key, const char *text) {
    char found[4096];
    uint64_t bytes = 0;
    size_t got = 0;

    assert_ok(read_whole(store, key, found, sizeof found - 1, &got));
    found[got] = 0;
    assert_string_equal(found, text);
    assert_ok(ulp_store_stat(store, key, &bytes));
    assert_int_equal(bytes, strlen(text));
}

void assert_absent(struct ulp_store *store, const char *key) {
    uint64_t total = 77;
    size_t got = 77;
    char byte = 'x';

    assert_fails(ulp_store_read(store, key, 0, &byte, 1, &got, &total), ULP_E_NOT_FOUND, "");
    assert_true(got == 77 && total == 77 && byte == 'x');
    assert_fails(ulp_store_stat(store, key, &total), ULP_E_NOT_FOUND, "");
    assert_int_equal(total, 77);
}

static int add_to_list(void *user, const char *key, uint64_t bytes) {
    struct listed *list = user;
    size_t used = strlen(list->text);

    (void)bytes;
    snprintf(list->text + used, sizeof list->text - used, "%s ", key);
    list->count++;
    return 0;
}

struct listed listed(struct ulp_store *store, const char *prefix, const char *after) {
    struct listed list = {0};

    assert_ok(ulp_store_list(store, prefix, after, add_to_list, &list));
    return list;
}

void plant_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void assert_file(const char *path, const char *text) {
    struct buffer buffer = BUFFER(1000000);

    assert_ok(file_read(path, FILE_REFUSE_LINKS, &buffer));
    assert_string_equal(buffer_text(&buffer), text);
    buffer_release(&buffer);
}
