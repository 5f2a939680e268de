// SPDX-License-Identifier: Apache-2.0
/* Who reads a model and who changes it keep out of each other's way. */
#include "tests/patch/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_not_while_it_is_read(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct ulp_model *model = NULL, *again = NULL;
    struct bytes before = directory_bytes(disk.model), after;
    int recovered = 7;

    (void)unused;
    assert_ok(ulp_model_open(disk.model, &model));
    assert_ok(ulp_model_open(disk.model, &again)); /* readers do not mind each other */
    ulp_model_free(again);
    assert_fails(ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, NULL), ULP_E_BUSY,
                 "is being read");
    assert_fails(ulp_model_recover(disk.model, &recovered), ULP_E_BUSY, "is being read");
    after = directory_bytes(disk.model);
    assert_same_bytes(&before, &after);
    ulp_model_free(model);
    assert_ok(ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, NULL));
    assert_holds_root(disk.model, &disk.next_root);
    bytes_free(&before);
    bytes_free(&after);
    disk_free(&disk);
}

static void test_one_shard_that_is_read_is_enough(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);

    (void)unused;
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        struct ulp_model *model = NULL;

        assert_ok(ulp_model_open(shard_path(&disk, i, DISK_SHARDS).text, &model));
        assert_fails(ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, NULL), ULP_E_BUSY,
                     "is being read");
        ulp_model_free(model);
    }
    assert_holds_root(disk.model, &disk.base_root);
    disk_free(&disk);
}

static void test_not_read_while_it_is_changed(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct ulp_model *model = NULL;

    (void)unused;
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        int file = open(shard_path(&disk, i, DISK_SHARDS).text, O_RDONLY | O_CLOEXEC);

        assert_true(file >= 0);
        assert_int_equal(flock(file, LOCK_EX), 0);
        assert_fails(ulp_model_open(disk.model, &model), ULP_E_BUSY, "is being changed");
        assert_null(model);
        assert_fails(ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "out").text,
                                     NULL, NULL),
                     ULP_E_BUSY, "is being changed");
        close(file);
    }
    assert_int_equal(entries_in(disk.top), 1);
    assert_holds_root(disk.model, &disk.base_root);
    disk_free(&disk);
}

/* ---- a change of the source while it is copied ---- */

struct rival {
    const struct disk *disk;
    struct ulp_patch *patch;
    unsigned tries;
};

static int change_the_source(void *user, uint64_t done, uint64_t total) {
    struct rival *rival = user;

    (void)done;
    (void)total;
    rival->tries++;
    assert_int_equal(ulp_model_patch_in_place(rival->disk->model, rival->patch, NULL, NULL, NULL),
                     ULP_E_BUSY);
    return 0;
}

static void test_a_copy_is_of_one_state(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct state other = state_copy(&disk.base);
    struct rival rival = {.disk = &disk};
    const struct ulp_progress progress = {change_the_source, &rival};
    const struct ulp_apply_options options = {.progress = &progress};
    const struct path out = path_of(disk.top, "out");
    struct bytes bytes;

    (void)unused;
    state_step(&other, 100);
    bytes = patch_between(&disk.base, &other, NULL);
    rival.patch = open_bytes(&bytes);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, out.text, &options, NULL));
    assert_true(rival.tries > DISK_SHARDS); /* while it was digested, decoded and copied */
    assert_holds_root(out.text, &disk.next_root);
    assert_holds_root(disk.model, &disk.base_root);
    ulp_patch_free(rival.patch);
    bytes_free(&bytes);
    state_free(&other);
    disk_free(&disk);
}

/* ---- another file under the same name ---- */

static struct {
    struct path from, to;
    int done;
} swap;

static void swap_files(void) {
    if (!swap.done++)
        assert_int_equal(rename(swap.from.text, swap.to.text), 0);
}

static void swap_when_opened(void *user, enum ulp_log_level level, const char *message) {
    (void)user;
    (void)level;
    if (!strncmp(message, "opened", 6))
        swap_files();
}

static int swap_when_digested(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
    swap_files();
    return 0;
}

/* A file that holds the next state is renamed over shard `shard` at some moment of the change. */
static enum ulp_status change_while_swapped(const struct disk *disk, unsigned shard,
                                            const struct ulp_apply_options *options) {
    struct bytes before, after;
    enum ulp_status status;

    swap.done = 0;
    swap.to = shard_path(disk, shard, DISK_SHARDS);
    swap.from = path_of(disk->top, "newer");
    before = file_bytes(swap.to.text);
    before.data[before.used - 1] ^= 1;
    write_file(swap.from.text, before.data, before.used);
    status = ulp_model_patch_in_place(disk->model, disk->patch, NULL, options, NULL);
    assert_true(swap.done);
    after = file_bytes(swap.to.text);
    assert_same_bytes(&before, &after);
    assert_int_equal(access(journal_of(disk).text, F_OK), -1);
    bytes_free(&before);
    bytes_free(&after);
    return status;
}

static void test_replaced_before_it_is_locked(void **unused) {
    (void)unused;
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        struct disk disk = disk_make(DISK_SHARDS, 30);
        enum ulp_status status;

        ulp_log_set(swap_when_opened, NULL, ULP_LOG_INFO);
        status = change_while_swapped(&disk, i, NULL);
        ulp_log_set(NULL, NULL, ULP_LOG_INFO);
        assert_int_equal(status, ULP_E_FILE_CHANGED);
        disk_free(&disk);
    }
}

/* The one that was verified has no name any more, so nobody would see what is written to it. */
static void test_replaced_after_it_is_locked(void **unused) {
    static const struct ulp_progress progress = {swap_when_digested, NULL};
    static const struct ulp_apply_options options = {.progress = &progress};

    (void)unused;
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        struct disk disk = disk_make(DISK_SHARDS, 30);

        assert_int_equal(change_while_swapped(&disk, i, &options), ULP_E_FILE_CHANGED);
        disk_free(&disk);
    }
}

TEST_MAIN(test_not_while_it_is_read, test_one_shard_that_is_read_is_enough,
          test_not_read_while_it_is_changed, test_a_copy_is_of_one_state,
          test_replaced_before_it_is_locked, test_replaced_after_it_is_locked)
