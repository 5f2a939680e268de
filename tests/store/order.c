// SPDX-License-Identifier: Apache-2.0
/*
 * What must last through a power cut is synced in the right order: the file before it gets its
 * name, the directory behind that, and each directory on the way, for whoever made it may have been
 * killed before syncing; but those only once for each handle.
 */
#define _GNU_SOURCE /* syscall numbers */
#include "tests/store/stores.h"

#include "base/file.h"
#include "tests/patch/tracer.h"

#include <sys/syscall.h>
#include <unistd.h>

struct record {
    char *directory; /* as the system spells it */
    char text[2048];
};

static void note(struct record *record, const char *act, const char *what) {
    size_t used = strlen(record->text);

    snprintf(record->text + used, sizeof record->text - used, "%s%s ", act, what);
}

/* "/a" is a directory within the store; files under construction are just that. */
static void note_sync(struct record *record, pid_t child, uint64_t descriptor) {
    char link[64], target[4096];
    size_t length = strlen(record->directory);
    ssize_t got;

    snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)child, (int)descriptor);
    got = readlink(link, target, sizeof target - 1);
    assert_true(got > 0);
    target[got] = 0;
    if (strstr(target, "deleted") || strstr(target, "/.ulpsync-tmp"))
        note(record, "sync:", "file");
    else if (!strncmp(target, record->directory, length))
        note(record, "sync:", target[length] ? target + length : "/");
    else
        note(record, "sync:", "elsewhere");
}

static void watch(void *user, pid_t child, const struct traced_call *call) {
    struct record *record = user;

    switch ((long)call->number) {
    case SYS_pwrite64:
        note(record, "write", "");
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        note_sync(record, child, call->arguments[0]);
        break;
    case SYS_mkdirat:
        note(record, "make", "");
        break;
    case SYS_linkat:
        note(record, "link", "");
        break;
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        note(record, "rename", "");
        break;
    case SYS_unlinkat:
        note(record, "unlink", "");
        break;
    default:
        break;
    }
}

static int create(const void *user) {
    const struct place *place = user;

    return ulp_store_create(place->store, "a/b/c", "new", 3) != ULP_OK;
}

static int put(const void *user) {
    const struct place *place = user;

    return ulp_store_put(place->store, "a/b/c", "new", 3) != ULP_OK;
}

static int take_away(const void *user) {
    const struct place *place = user;

    return ulp_store_remove(place->store, "a/b/c") != ULP_OK;
}

static void assert_order(const struct place *place, traced_work work, const char *expected) {
    struct record record = {.directory = realpath(place->directory, NULL)};

    assert_non_null(record.directory);
    watch_calls(work, place, watch, &record);
    free(record.directory);
    assert_string_equal(record.text, expected);
}

static bool files_can_be_nameless(const struct place *place) {
    struct file_writer writer = {0};
    bool nameless;

    assert_ok(file_writer_open(path_in(place->directory, "try"), 0, &writer));
    nameless = !writer.temporary[0];
    file_writer_release(&writer);
    return nameless;
}

static void test_without_names(void **state) {
    struct place place = directory_place();

    (void)state;
    if (!files_can_be_nameless(&place)) {
        place_free(&place);
        skip();
    }
    assert_order(&place, create, "make sync:/ make sync:/a write sync:file link sync:/a/b ");
    assert_order(&place, put, "sync:/ sync:/a write sync:file link rename sync:/a/b ");
    assert_order(&place, take_away, "unlink sync:/a/b ");
    assert_order(&place, create, "sync:/ sync:/a write sync:file link sync:/a/b ");
    place_free(&place);
}

static void test_with_hidden_names(void **state) {
    struct place place = directory_place();

    (void)state;
    file_writer_always_named(true);
    assert_order(&place, create, "make sync:/ make sync:/a write sync:file rename sync:/a/b ");
    assert_order(&place, put, "sync:/ sync:/a write sync:file rename sync:/a/b ");
    file_writer_always_named(false);
    place_free(&place);
}

static int create_three(const void *user) {
    struct ulp_store *store = ((const struct place *)user)->store;

    return ulp_store_create(store, "a/b/1", "", 0) || ulp_store_create(store, "a/b/2", "", 0) ||
           ulp_store_create(store, "a/c/d/1", "", 0);
}

static int create_after_others(const void *user) {
    struct ulp_store *store = ((const struct place *)user)->store;
    char key[32];

    for (int i = 0; i < 16; i++) {
        snprintf(key, sizeof key, "p%d/1", i);
        if (ulp_store_create(store, key, "", 0))
            return 1;
    }
    return ulp_store_create(store, "a/b/3", "", 0) || ulp_store_remove(store, "p15/1") ||
           rmdir(path_in(((const struct place *)user)->directory, "p15")) ||
           ulp_store_create(store, "p15/1", "", 0);
}

/* What a handle has synced it need not sync again, as far as the ways agree. One that it has
 * forgotten, or made once more, is synced. */
static void test_once_for_each_handle(void **state) {
    struct place place = directory_place();
    struct record record = {.directory = realpath(place.directory, NULL)};

    (void)state;
    file_writer_always_named(true);
    assert_order(&place, create_three,
                 "make sync:/ make sync:/a sync:file rename sync:/a/b " /* 1 */
                 "sync:file rename sync:/a/b "                          /* 2 */
                 "make sync:/a make sync:/a/c sync:file rename sync:/a/c/d ");
    put_text(place.store, "a/b/0", "");
    watch_calls(create_after_others, &place, watch, &record);
    assert_non_null(
        strstr(record.text, "sync:/p15 sync:/ sync:/a sync:file rename sync:/a/b unlink "));
    assert_non_null(
        strstr(strstr(record.text, "unlink "), "make sync:/ sync:file rename sync:/p15 "));
    file_writer_always_named(false);
    free(record.directory);
    place_free(&place);
}

static int open_store(const void *user) {
    struct ulp_store *store = NULL;
    enum ulp_status status = ulp_store_open(user, &store);

    ulp_store_free(store);
    return status != ULP_OK;
}

/* The store's own directory, too, whether it was there or not. */
static void test_opening(void **state) {
    char *directory = temp_directory_make(), path[4096];
    struct record record = {.directory = realpath(directory, NULL)};

    (void)state;
    assert_non_null(record.directory);
    snprintf(path, sizeof path, "%s", path_in(directory, "store"));
    watch_calls(open_store, path, watch, &record);
    assert_non_null(strstr(record.text, "sync:/ "));
    record.text[0] = 0;
    watch_calls(open_store, path, watch, &record);
    assert_non_null(strstr(record.text, "sync:/ "));
    free(record.directory);
    temp_directory_remove(directory);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_without_names, test_with_hidden_names,
                                               test_once_for_each_handle, test_opening};

    if (!tracer_works()) {
        fprintf(stderr, "skipped: processes may not be traced here\n");
        return 77;
    }
    return test_run(tests, COUNT(tests),
                    "test_without_names, test_with_hidden_names, test_once_for_each_handle, "
                    "test_opening");
}
