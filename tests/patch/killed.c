// SPDX-License-Identifier: Apache-2.0
/*
 * kill -9 on entry to and on exit from every system call of a change in place, of recovery, and of
 * a copy: what is there opens as the old or the new state or is refused as interrupted, never as a
 * mix, and recovery leads to just one of the two.
 */
#include "tests/patch/disk.h"
#include "tests/patch/tracer.h"

#include <unistd.h>

#define FILES (DISK_SHARDS + 1)

/* The model's files as they were, put back without syncing, which is what takes time. */
struct kept {
    struct disk disk;
    struct path paths[FILES];
    struct bytes files[FILES], journal;
};

static struct kept kept_make(void) {
    struct kept kept = {.disk = disk_make(DISK_SHARDS, 30)};

    for (unsigned i = 0; i < DISK_SHARDS; i++)
        kept.paths[i] = shard_path(&kept.disk, i + 1, DISK_SHARDS);
    kept.paths[DISK_SHARDS] = path_of(kept.disk.model, "model.safetensors.index.json");
    for (unsigned i = 0; i < FILES; i++)
        kept.files[i] = file_bytes(kept.paths[i].text);
    plant_journal(&kept.disk);
    kept.journal = file_bytes(journal_of(&kept.disk).text);
    assert_int_equal(unlink(journal_of(&kept.disk).text), 0);
    return kept;
}

static void kept_free(struct kept *kept) {
    for (unsigned i = 0; i < FILES; i++)
        bytes_free(&kept->files[i]);
    bytes_free(&kept->journal);
    disk_free(&kept->disk);
}

static void put_back(const struct kept *kept) {
    for (unsigned i = 0; i < FILES; i++)
        write_file(kept->paths[i].text, kept->files[i].data, kept->files[i].used);
}

static bool is_root(const struct ulp_root *a, const struct ulp_root *b) {
    return !memcmp(a->bytes, b->bytes, ULP_ROOT_BYTES);
}

struct outcomes {
    unsigned long old, new, interrupted, recovered;
};

/* As somebody sees it who only opens the model. */
static void look(const struct disk *disk, struct outcomes *seen) {
    struct ulp_model *model = NULL;
    enum ulp_status status = ulp_model_open(disk->model, &model);
    struct ulp_root root;

    if (status) {
        assert_int_equal(status, ULP_E_INTERRUPTED);
        seen->interrupted++;
        return;
    }
    ulp_model_free(model);
    root = root_at(disk->model);
    if (is_root(&root, &disk->next_root)) {
        seen->new ++;
    } else {
        assert_same_root(&root, &disk->base_root);
        seen->old++;
    }
}

static void recover(const struct disk *disk, struct outcomes *seen) {
    struct outcomes after = {0};
    int recovered = 0;

    assert_ok(ulp_model_recover(disk->model, &recovered));
    seen->recovered += (unsigned long)recovered;
    look(disk, &after);
    assert_int_equal(after.interrupted, 0);
    if (recovered)
        assert_int_equal(after.new, 1);
    assert_int_equal(entries_in(disk->model), DISK_SHARDS + 2);
}

static int change_in_place(const void *user) {
    const struct kept *kept = user;

    return ulp_model_patch_in_place(kept->disk.model, kept->disk.patch, NULL, NULL, NULL) != 0;
}

static void test_change_in_place(void **unused) {
    struct kept kept = kept_make();
    struct outcomes seen = {0};
    unsigned long at;

    (void)unused;
    for (at = 1;; at++) {
        put_back(&kept);
        if (!killed_at(at, change_in_place, &kept))
            break;
        look(&kept.disk, &seen);
        recover(&kept.disk, &seen);
    }
    assert_holds_root(kept.disk.model, &kept.disk.next_root);
    print_message("%lu stops: %lu old, %lu new, %lu interrupted\n", at - 1, seen.old, seen.new,
                  seen.interrupted);
    assert_true(seen.old > 10 && seen.new > 2 && seen.interrupted > 10);
    assert_int_equal(seen.recovered, seen.interrupted);
    kept_free(&kept);
}

static int finish_change(const void *user) {
    const struct kept *kept = user;
    int recovered = 0;

    return ulp_model_recover(kept->disk.model, &recovered) || !recovered;
}

static void test_recovery(void **unused) {
    struct kept kept = kept_make();
    struct outcomes seen = {0};

    (void)unused;
    for (unsigned long at = 1;; at++) {
        put_back(&kept);
        write_file(journal_of(&kept.disk).text, kept.journal.data, kept.journal.used);
        if (!killed_at(at, finish_change, &kept))
            break;
        look(&kept.disk, &seen);
        assert_int_equal(seen.old, 0); /* the journal was there: there is no way back */
        recover(&kept.disk, &seen);
        assert_holds_root(kept.disk.model, &kept.disk.next_root);
    }
    assert_holds_root(kept.disk.model, &kept.disk.next_root);
    assert_true(seen.new > 2 && seen.interrupted > 10);
    assert_int_equal(seen.recovered, seen.interrupted);
    kept_free(&kept);
}

static int copy_directory(const void *user) {
    const struct kept *kept = user;

    return ulp_model_patch(kept->disk.model, kept->disk.patch, NULL,
                           path_of(kept->disk.top, "out").text, NULL, NULL) != 0;
}

/* The model is never touched; OUT is not there or complete, and what else is left does not stand in
 * the way of the next try. */
static void test_copy(void **unused) {
    struct kept kept = kept_make();
    struct path out = path_of(kept.disk.top, "out");
    unsigned long absent = 0, complete = 0;

    (void)unused;
    for (unsigned long at = 1; killed_at(at, copy_directory, &kept); at++) {
        assert_holds_root(kept.disk.model, &kept.disk.base_root);
        if (access(out.text, F_OK)) {
            absent++;
            if (at % 16)
                continue;
            assert_int_equal(copy_directory(&kept), 0);
        } else {
            complete++;
        }
        assert_holds_root(out.text, &kept.disk.next_root);
        assert_int_equal(entries_in(out.text), DISK_SHARDS + 2);
        assert_int_equal(entries_in(kept.disk.top), 2);
        assert_int_equal(rename(out.text, path_of(kept.disk.top, "old").text), 0);
        temp_directory_remove(strdup(path_of(kept.disk.top, "old").text));
    }
    print_message("%lu absent, %lu complete\n", absent, complete);
    assert_true(absent > 50 && complete > 2);
    assert_holds_root(out.text, &kept.disk.next_root);
    kept_free(&kept);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_change_in_place, test_recovery, test_copy};

    if (!tracer_works()) {
        fprintf(stderr, "skipped: processes may not be traced here\n");
        return 77;
    }
    return test_run(tests, COUNT(tests), "test_change_in_place, test_recovery, test_copy");
}
