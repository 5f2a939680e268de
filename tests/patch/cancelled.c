// SPDX-License-Identifier: Apache-2.0
/* A copy of a model can be stopped while it is digested, decoded and copied; nothing of it is
 * left. */
#include "tests/patch/disk.h"

/* A patch that counts how often it is read. */
struct counted {
    const struct bytes *bytes;
    unsigned reads;
};

static enum ulp_status counted_read(void *user, uint64_t offset, void *data, size_t bytes) {
    struct counted *counted = user;

    counted->reads++;
    memcpy(data, counted->bytes->data + offset, bytes);
    return ULP_OK;
}

/* Stops at report number `stop_at`, from 0, or at the first one in this unit. */
struct stop {
    unsigned reports, stop_at;
    uint64_t stop_total;
};

static int stop_there(void *user, uint64_t done, uint64_t total) {
    struct stop *stop = user;

    (void)done;
    return stop->reports++ == stop->stop_at || total == stop->stop_total;
}

static uint64_t size_of_files(const struct disk *disk, unsigned shards) {
    uint64_t total = 0;

    for (unsigned i = 1; i <= shards; i++) {
        struct bytes file = file_bytes(shard_path(disk, i, shards).text);

        total += file.used;
        bytes_free(&file);
    }
    return total;
}

static enum ulp_status copy(const struct disk *disk, const struct ulp_patch *patch,
                            struct stop *stop) {
    const struct ulp_progress progress = {stop_there, stop};
    const struct ulp_apply_options options = {.progress = &progress};

    return ulp_model_patch(disk->model, patch, NULL, path_of(disk->top, "out").text, &options,
                           NULL);
}

static void test_at_every_report(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= DISK_SHARDS; shards += DISK_SHARDS - 1) {
        struct disk disk = disk_make(shards, 30);
        struct stop stop = {0};
        enum ulp_status status;

        while (stop.reports = 0, (status = copy(&disk, disk.patch, &stop)) != ULP_OK) {
            assert_int_equal(status, ULP_E_CANCELLED);
            assert_int_equal(stop.reports, stop.stop_at + 1);
            assert_int_equal(entries_in(disk.top), 1);
            stop.stop_at++;
        }
        assert_int_equal(stop.reports, stop.stop_at);
        assert_holds_root(path_of(disk.top, "out").text, &disk.next_root);
        disk_free(&disk);
    }
}

/* Digesting comes first: then no chunk of the patch was asked for. */
static void test_while_digesting(void **unused) {
    struct disk disk = disk_make(1, 30);
    struct counted counted = {.bytes = &disk.bytes};
    const struct ulp_source source = {counted_read, &counted, disk.bytes.used};
    struct ulp_patch *patch = NULL;
    struct stop stop = {0};

    (void)unused;
    assert_ok(ulp_patch_open_source(&source, &patch));
    counted.reads = 0;
    assert_int_equal(copy(&disk, patch, &stop), ULP_E_CANCELLED);
    assert_int_equal(counted.reads, 0);
    assert_int_equal(entries_in(disk.top), 1);
    stop = (struct stop){.stop_at = UINT32_MAX};
    assert_ok(copy(&disk, patch, &stop));
    assert_true(counted.reads > 0);
    ulp_patch_free(patch);
    disk_free(&disk);
}

/* Copying reports in bytes of the files. */
static void test_while_copying(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct stop stop = {.stop_at = UINT32_MAX, .stop_total = size_of_files(&disk, DISK_SHARDS)};

    (void)unused;
    assert_int_equal(copy(&disk, disk.patch, &stop), ULP_E_CANCELLED);
    assert_non_null(strstr(ulp_last_error(), "while copying"));
    assert_int_equal(entries_in(disk.top), 1);
    disk_free(&disk);
}

/* In place too, as long as nothing is written; the last report is of a patch that is decoded. */
static void test_in_place_before_writing(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct stop stop = {0};
    const struct ulp_progress progress = {stop_there, &stop};
    const struct ulp_apply_options options = {.progress = &progress};
    struct bytes before = directory_bytes(disk.model), after;

    (void)unused;
    while (stop.reports = 0,
           ulp_model_patch_in_place(disk.model, disk.patch, NULL, &options, NULL) != ULP_OK) {
        assert_true(stop.reports == ++stop.stop_at);
        after = directory_bytes(disk.model);
        assert_same_bytes(&before, &after);
        bytes_free(&after);
    }
    assert_true(stop.stop_at > 1);
    assert_holds_root(disk.model, &disk.next_root);
    bytes_free(&before);
    disk_free(&disk);
}

TEST_MAIN(test_at_every_report, test_while_digesting, test_while_copying,
          test_in_place_before_writing)
