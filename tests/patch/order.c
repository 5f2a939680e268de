// SPDX-License-Identifier: Apache-2.0
/*
 * A killed process is not a power cut, after which only what was synced is sure to be there. So the
 * system calls are watched: the journal is synced and has its name before the first write to the
 * model, and every file of the model is synced before the journal goes.
 */
#define _GNU_SOURCE /* syscall numbers */
#include "tests/patch/disk.h"
#include "tests/patch/tracer.h"

#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_MAX 1024

enum act { WRITE, SYNC, NAME, REMOVE };

/* `file` is a shard's number, or one of these. */
enum { DIRECTORY = 100, UNNAMED };

struct event {
    enum act act;
    unsigned file;
};

struct record {
    const struct disk *disk;
    struct path directory; /* that counts as DIRECTORY */
    struct event events[EVENTS_MAX];
    size_t count;
};

/* Which file the child has open under that number. */
static unsigned file_of(const struct record *record, pid_t child, uint64_t descriptor) {
    char link[64], target[4096];
    const char *name;
    ssize_t length;
    unsigned shard = 0;

    snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)child, (int)descriptor);
    length = readlink(link, target, sizeof target - 1);
    assert_true(length > 0);
    target[length] = 0;
    if (!strcmp(target, record->directory.text))
        return DIRECTORY;
    name = strrchr(target, '/');
    if (name && sscanf(name, "/model-%u-of-", &shard) == 1)
        return shard;
    return UNNAMED;
}

static void note(struct record *record, enum act act, unsigned file) {
    assert_true(record->count < EVENTS_MAX);
    record->events[record->count++] = (struct event){act, file};
}

static void watch(void *user, pid_t child, const struct traced_call *call) {
    struct record *record = user;

    switch ((long)call->number) {
    case SYS_write:
    case SYS_pwrite64:
        if (call->arguments[0] > 2)
            note(record, WRITE, file_of(record, child, call->arguments[0]));
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        note(record, SYNC, file_of(record, child, call->arguments[0]));
        break;
    case SYS_linkat:
    case SYS_renameat2:
        note(record, NAME, UNNAMED);
        break;
#ifdef SYS_unlink
    case SYS_unlink:
#endif
    case SYS_unlinkat:
        note(record, REMOVE, UNNAMED);
        break;
    default:
        break;
    }
}

#define NEVER SIZE_MAX

static size_t first(const struct record *record, enum act act, unsigned file) {
    for (size_t i = 0; i < record->count; i++) {
        if (record->events[i].act == act && record->events[i].file == file)
            return i;
    }
    return NEVER;
}

static size_t last(const struct record *record, enum act act, unsigned file) {
    for (size_t i = record->count; i-- > 0;) {
        if (record->events[i].act == act && record->events[i].file == file)
            return i;
    }
    return NEVER;
}

/* Of this kind, between two places. */
static bool between(const struct record *record, size_t from, size_t to, enum act act,
                    unsigned file) {
    for (size_t i = from + 1; i < to; i++) {
        if (record->events[i].act == act && record->events[i].file == file)
            return true;
    }
    return false;
}

static int change_in_place(const void *user) {
    const struct disk *disk = user;

    return ulp_model_patch_in_place(disk->model, disk->patch, NULL, NULL, NULL) != 0;
}

static int finish_change(const void *user) {
    const struct disk *disk = user;
    int recovered = 0;

    return ulp_model_recover(disk->model, &recovered) || !recovered;
}

static int copy_directory(const void *user) {
    const struct disk *disk = user;

    return ulp_model_patch(disk->model, disk->patch, NULL, path_of(disk->top, "out").text, NULL,
                           NULL) != 0;
}

/* Every file is written, then synced; the journal goes, and that lasts. */
static void check_end(const struct record *record) {
    size_t removed = first(record, REMOVE, UNNAMED);

    assert_int_not_equal(removed, NEVER);
    assert_int_equal(last(record, REMOVE, UNNAMED), removed);
    for (unsigned shard = 1; shard <= DISK_SHARDS; shard++) {
        size_t written = last(record, WRITE, shard), synced = last(record, SYNC, shard);

        assert_int_not_equal(written, NEVER); /* or the sample is a bad one */
        assert_int_not_equal(synced, NEVER);
        assert_true(written < synced && synced < removed);
    }
    assert_true(between(record, removed, record->count, SYNC, DIRECTORY));
}

static size_t first_write_to_model(const struct record *record) {
    size_t at = NEVER;

    for (unsigned shard = 1; shard <= DISK_SHARDS; shard++) {
        size_t here = first(record, WRITE, shard);

        at = here < at ? here : at;
    }
    return at;
}

static void test_change_in_place(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    static struct record record;
    size_t written, synced, named;

    (void)unused;
    record = (struct record){.disk = &disk, .directory = path_of(disk.top, "model")};
    watch_calls(change_in_place, &disk, watch, &record);
    assert_holds_root(disk.model, &disk.next_root);
    written = last(&record, WRITE, UNNAMED);
    synced = first(&record, SYNC, UNNAMED);
    named = first(&record, NAME, UNNAMED);
    assert_true(written < synced && synced < named);
    assert_true(named < first_write_to_model(&record));
    assert_true(between(&record, named, first_write_to_model(&record), SYNC, DIRECTORY));
    check_end(&record);
    disk_free(&disk);
}

static void test_recovery(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    static struct record record;

    (void)unused;
    plant_journal(&disk);
    record = (struct record){.disk = &disk, .directory = path_of(disk.top, "model")};
    watch_calls(finish_change, &disk, watch, &record);
    assert_holds_root(disk.model, &disk.next_root);
    assert_int_equal(first(&record, WRITE, UNNAMED), NEVER);
    check_end(&record);
    disk_free(&disk);
}

/* Each file is synced before it has its name, its directory behind that, and the parent at the end.
 * */
static void test_copy(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    static struct record record;
    size_t synced = 0, named = 0;
    bool since_write = true;

    (void)unused;
    record = (struct record){.disk = &disk, .directory = path_of(disk.top, "")};
    record.directory.text[strlen(record.directory.text) - 1] = 0;
    watch_calls(copy_directory, &disk, watch, &record);
    assert_holds_root(path_of(disk.top, "out").text, &disk.next_root);
    for (size_t i = 0; i < record.count; i++) {
        const struct event *event = &record.events[i];

        if (event->act == WRITE)
            since_write = false;
        else if (event->act == SYNC)
            since_write = true;
        else if (event->act == NAME)
            assert_true(since_write);
        synced += event->act == SYNC;
        named += event->act == NAME;
    }
    assert_int_equal(named, DISK_SHARDS + 3); /* shards, index, configuration, the directory */
    assert_true(synced >= 2 * (DISK_SHARDS + 2) + 1);
    assert_true(between(&record, last(&record, NAME, UNNAMED), record.count, SYNC, DIRECTORY));
    disk_free(&disk);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_change_in_place, test_recovery, test_copy};

    if (!tracer_works()) {
        fprintf(stderr, "skipped: processes may not be traced here\n");
        return 77;
    }
    return test_run(tests, COUNT(tests), "test_change_in_place, test_recovery, test_copy");
}
