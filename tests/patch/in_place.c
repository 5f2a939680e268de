// SPDX-License-Identifier: Apache-2.0
/* Changing the files of a model where they are. */
#include "tests/patch/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void becomes_next(const struct disk *disk, const char *path) {
    unsigned entries = entries_in(disk->model);
    struct ulp_apply_report report;

    assert_ok(ulp_model_patch_in_place(path, disk->patch, NULL, NULL, &report));
    assert_false(report.already);
    assert_holds_root(disk->model, &disk->next_root);
    assert_int_equal(entries_in(disk->model), entries);
    assert_ok(ulp_model_patch_in_place(path, disk->patch, NULL, NULL, &report));
    assert_true(report.already);
    assert_holds_root(disk->model, &disk->next_root);
    assert_int_equal(entries_in(disk->model), entries);
}

static void test_every_kind_of_path(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= DISK_SHARDS; shards++) {
        struct disk disk = disk_make(shards, 30);

        becomes_next(&disk, disk.model);
        disk_reset(&disk, shards);
        becomes_next(&disk, shards == 1 ? shard_path(&disk, 1, 1).text
                                        : path_of(disk.model, "model.safetensors.index.json").text);
        disk_free(&disk);
    }
}

static void refused(const struct disk *disk, const struct ulp_patch *patch,
                    enum ulp_status expected, const char *text) {
    struct bytes before = directory_bytes(disk->model), after;

    assert_fails(ulp_model_patch_in_place(disk->model, patch, NULL, NULL, NULL), expected, text);
    after = directory_bytes(disk->model);
    assert_same_bytes(&before, &after);
    bytes_free(&before);
    bytes_free(&after);
}

static void test_wrong_base(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct state third = state_copy(&disk.next);
    struct bytes bytes;
    struct ulp_patch *patch;

    (void)unused;
    state_step(&third, 10);
    bytes = patch_between(&disk.next, &third, NULL);
    patch = open_bytes(&bytes);
    refused(&disk, patch, ULP_E_WRONG_BASE, "starts from state");
    ulp_patch_free(patch);
    bytes_free(&bytes);
    state_free(&third);
    disk_free(&disk);
}

static void test_links_are_refused(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path second_path = shard_path(&disk, 2, DISK_SHARDS);
    const struct path blob_path = path_of(disk.top, "blob");
    const char *second = second_path.text, *blob = blob_path.text;

    (void)unused;
    assert_int_equal(rename(second, blob), 0);
    assert_int_equal(symlink(blob, second), 0);
    refused(&disk, disk.patch, ULP_E_FILE_KIND, "symbolic link");
    assert_holds_root(disk.model, &disk.base_root);
    disk_free(&disk);
}

/* A lock of another open file, as another process would have it. */
static void test_busy(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    int recovered = 7;

    (void)unused;
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        int file = open(shard_path(&disk, i, DISK_SHARDS).text, O_RDONLY | O_CLOEXEC);

        assert_true(file >= 0);
        assert_int_equal(flock(file, LOCK_EX), 0);
        refused(&disk, disk.patch, ULP_E_BUSY, "another process");
        assert_fails(ulp_model_recover(disk.model, &recovered), ULP_E_BUSY, "another process");
        assert_int_equal(recovered, 7);
        close(file);
    }
    becomes_next(&disk, disk.model);
    disk_free(&disk);
}

static void test_damaged_patch(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);

    (void)unused;
    disk.bytes.data[20] ^= 4; /* in the first chunk; the patch is open already */
    refused(&disk, disk.patch, ULP_E_CHECKSUM, "chunk 0");
    disk_free(&disk);
}

/* With history in the shape of the model before. */
static void test_history(void **unused) {
    static const struct ulp_diff_options options = {.history = 1};
    struct disk disk = disk_make(DISK_SHARDS, 300);
    struct state third = state_copy(&disk.next);
    struct ulp_weights *weights = weights_of(&disk.next);
    struct ulp_model *before = NULL;
    struct ulp_root root;
    struct bytes bytes;
    struct ulp_patch *patch;

    (void)unused;
    for (size_t i = 0; i < third.bytes; i++) /* goes on as it went */
        third.data[i] = (uint8_t)(third.data[i] + (disk.next.data[i] - disk.base.data[i]));
    root = root_of(&third);
    assert_ok(ulp_weights_remember(weights, disk.base.tensors, disk.base.count, NULL, NULL));
    bytes = patch_to(weights, &third, &options);
    patch = open_bytes(&bytes);
    assert_ok(
        ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "2").text, NULL, NULL));
    assert_fails(ulp_model_patch_in_place(path_of(disk.top, "2").text, patch, NULL, NULL, NULL),
                 ULP_E_NEEDS_HISTORY, "");
    assert_holds_root(path_of(disk.top, "2").text, &disk.next_root);
    assert_ok(ulp_model_open(disk.model, &before));
    assert_ok(ulp_model_patch(path_of(disk.top, "2").text, patch, before,
                              path_of(disk.top, "3").text, NULL, NULL));
    assert_ok(ulp_model_patch_in_place(path_of(disk.top, "2").text, patch, before, NULL, NULL));
    assert_holds_root(path_of(disk.top, "2").text, &root);
    assert_holds_root(path_of(disk.top, "3").text, &root);
    ulp_model_free(before);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    state_free(&third);
    disk_free(&disk);
}

TEST_MAIN(test_every_kind_of_path, test_wrong_base, test_links_are_refused, test_busy,
          test_damaged_patch, test_history)
