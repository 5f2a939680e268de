// SPDX-License-Identifier: Apache-2.0
/*
 * Every allocation fails in turn while files are patched: they hold the old state, or the new one,
 * or recovery leads to the new one; a copy is there complete or not at all.
 */
#include "tests/patch/disk.h"

#include <unistd.h>

#define FILES (DISK_SHARDS + 1)

static struct disk disk;
static struct path paths[FILES];
static struct bytes files[FILES], journal;

static void begin(void) {
    disk = disk_make(DISK_SHARDS, 30);
    for (unsigned i = 0; i < DISK_SHARDS; i++)
        paths[i] = shard_path(&disk, i + 1, DISK_SHARDS);
    paths[DISK_SHARDS] = path_of(disk.model, "model.safetensors.index.json");
    for (unsigned i = 0; i < FILES; i++)
        files[i] = file_bytes(paths[i].text);
    plant_journal(&disk);
    journal = file_bytes(journal_of(&disk).text);
    assert_int_equal(unlink(journal_of(&disk).text), 0);
}

static void end(void) {
    for (unsigned i = 0; i < FILES; i++)
        bytes_free(&files[i]);
    bytes_free(&journal);
    disk_free(&disk);
}

static void put_back(void) {
    for (unsigned i = 0; i < FILES; i++)
        write_file(paths[i].text, files[i].data, files[i].used);
}

static enum ulp_status change_in_place(void) {
    return ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, NULL);
}

static enum ulp_status recover(void) {
    int recovered;

    return ulp_model_recover(disk.model, &recovered);
}

static enum ulp_status copy(void) {
    return ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "out").text, NULL, NULL);
}

/* Returns how many different ends there were besides success: untouched 1, interrupted 2, done 4.
 * */
static unsigned check_model(enum ulp_status status, int planted) {
    struct ulp_model *model = NULL;
    enum ulp_status opened = ulp_model_open(disk.model, &model);
    unsigned end = 4;

    ulp_model_free(model);
    if (opened) {
        assert_int_equal(opened, ULP_E_INTERRUPTED);
        assert_ok(recover());
        end = 2;
    } else if (status && !planted && !access(paths[0].text, F_OK)) {
        struct ulp_root root = root_at(disk.model);

        if (!memcmp(root.bytes, disk.base_root.bytes, ULP_ROOT_BYTES))
            return 1;
    }
    assert_holds_root(disk.model, &disk.next_root);
    return end;
}

static void fail_in_turn(enum ulp_status (*call)(void), int planted, int persistent,
                         unsigned expected) {
    enum ulp_status status = ULP_E_NOMEM;
    unsigned ends = 0;

    for (uint64_t fail_at = 0; status; fail_at++) {
        put_back();
        if (planted)
            write_file(journal_of(&disk).text, journal.data, journal.used);
        failing_allocator_start(fail_at, persistent);
        status = call();
        failing_allocator_stop();
        if (status)
            assert_int_equal(status, ULP_E_NOMEM);
        ends |= status ? check_model(status, planted) : 0;
    }
    assert_holds_root(disk.model, &disk.next_root);
    assert_int_equal(ends & expected, expected);
}

static void test_change_in_place(void **unused) {
    (void)unused;
    begin();
    fail_in_turn(change_in_place, 0, 0, 1);
    fail_in_turn(change_in_place, 0, 1, 1);
    end();
}

static void test_recovery(void **unused) {
    (void)unused;
    begin();
    fail_in_turn(recover, 1, 0, 2);
    fail_in_turn(recover, 1, 1, 2);
    end();
}

static void copy_in_turn(int persistent) {
    const struct path out = path_of(disk.top, "out"), old = path_of(disk.top, "old");
    enum ulp_status status = ULP_E_NOMEM;
    unsigned absent = 0;

    for (uint64_t fail_at = 0; status; fail_at++) {
        failing_allocator_start(fail_at, persistent);
        status = copy();
        failing_allocator_stop();
        if (status)
            assert_int_equal(status, ULP_E_NOMEM);
        assert_holds_root(disk.model, &disk.base_root);
        if (access(out.text, F_OK)) {
            assert_int_equal(entries_in(disk.top), 1); /* nothing is left of it */
            absent++;
            continue;
        }
        assert_holds_root(out.text, &disk.next_root);
        assert_int_equal(entries_in(out.text), DISK_SHARDS + 2);
        assert_int_equal(rename(out.text, old.text), 0);
        temp_directory_remove(strdup(old.text));
    }
    assert_true(absent > 20);
}

static void test_copy(void **unused) {
    (void)unused;
    begin();
    copy_in_turn(0);
    copy_in_turn(1);
    end();
}

TEST_MAIN(test_change_in_place, test_recovery, test_copy)
