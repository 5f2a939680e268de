// SPDX-License-Identifier: Apache-2.0
/* A journal that is complete is finished; one that is damaged or strayed here is refused,
 * untouched. */
#include "tests/patch/disk.h"

#include <sys/stat.h>
#include <unistd.h>

static void test_recover_finishes(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct ulp_model *model = NULL;
    int recovered = 7;

    (void)unused;
    assert_ok(ulp_model_recover(disk.model, &recovered));
    assert_int_equal(recovered, 0);
    plant_journal(&disk);
    assert_fails(ulp_model_open(disk.model, &model), ULP_E_INTERRUPTED, "ulpsync recover");
    for (unsigned i = 1; i <= DISK_SHARDS; i++)
        assert_fails(ulp_model_open(shard_path(&disk, i, DISK_SHARDS).text, &model),
                     ULP_E_INTERRUPTED, "");
    assert_null(model);
    assert_ok(ulp_model_recover(disk.model, &recovered));
    assert_int_equal(recovered, 1);
    assert_holds_root(disk.model, &disk.next_root);
    assert_int_equal(access(journal_of(&disk).text, F_OK), -1);
    assert_ok(ulp_model_recover(disk.model, &recovered));
    assert_int_equal(recovered, 0);
    disk_free(&disk);
}

/* The files are a mix of old and new: the state that the journal is for. */
static void test_recover_finishes_half_written_files(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path copy_path = path_of(disk.top, "copy");
    const char *copy = copy_path.text;
    int recovered = 0;

    (void)unused;
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, copy, NULL, NULL));
    plant_journal(&disk);
    assert_int_equal(rename(path_of(copy, "model-00002-of-00003.safetensors").text,
                            shard_path(&disk, 2, DISK_SHARDS).text),
                     0);
    assert_ok(ulp_model_recover(disk.model, &recovered));
    assert_int_equal(recovered, 1);
    assert_holds_root(disk.model, &disk.next_root);
    disk_free(&disk);
}

/* The next change finishes the one before by itself: here both are the same, and the second is a
 * new one. */
static void test_the_next_call_recovers(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct bytes bytes = patch_between(&disk.next, &disk.base, NULL);
    struct ulp_patch *back = open_bytes(&bytes);
    struct ulp_apply_report report;

    (void)unused;
    plant_journal(&disk);
    assert_ok(ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, &report));
    assert_true(report.already);
    assert_holds_root(disk.model, &disk.next_root);
    disk_reset(&disk, DISK_SHARDS);
    plant_journal(&disk);
    assert_ok(ulp_model_patch_in_place(disk.model, back, NULL, NULL, &report));
    assert_false(report.already);
    assert_holds_root(disk.model, &disk.base_root);
    ulp_patch_free(back);
    bytes_free(&bytes);
    disk_free(&disk);
}

/* Neither recovering nor changing writes a byte. */
static void refused(const struct disk *disk) {
    struct bytes before = directory_bytes(disk->model), after;
    int recovered = 7;

    assert_int_equal(ulp_model_recover(disk->model, &recovered), ULP_E_JOURNAL);
    assert_int_equal(recovered, 7);
    assert_int_equal(ulp_model_patch_in_place(disk->model, disk->patch, NULL, NULL, NULL),
                     ULP_E_JOURNAL);
    after = directory_bytes(disk->model);
    assert_same_bytes(&before, &after);
    bytes_free(&before);
    bytes_free(&after);
}

static void test_truncated_journals(void **unused) {
    struct disk disk = disk_make(1, 2);
    struct bytes journal;

    (void)unused;
    plant_journal(&disk);
    journal = file_bytes(journal_of(&disk).text);
    for (size_t bytes = 0; bytes < journal.used; bytes += bytes < 200 ? 1 : 7) {
        assert_int_equal(truncate(journal_of(&disk).text, (off_t)bytes), 0);
        refused(&disk);
        write_file(journal_of(&disk).text, journal.data, journal.used);
    }
    assert_int_equal(truncate(journal_of(&disk).text, (off_t)journal.used + 8), 0);
    refused(&disk); /* nor may there be more */
    bytes_free(&journal);
    disk_free(&disk);
}

/* Any bit, but for those that nobody reads: the parent in the header, and filling. */
static void test_damaged_journals(void **unused) {
    struct disk disk = disk_make(1, 1);
    struct bytes journal, model = file_bytes(shard_path(&disk, 1, 1).text);
    size_t finished = 0;

    (void)unused;
    plant_journal(&disk);
    journal = file_bytes(journal_of(&disk).text);
    for (size_t bit = 0; bit < 8 * journal.used; bit++) {
        struct bytes before = directory_bytes(disk.model), after;
        int recovered = 0;
        enum ulp_status status;

        journal.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_file(journal_of(&disk).text, journal.data, journal.used);
        journal.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        status = ulp_model_recover(disk.model, &recovered);
        if (!status) { /* then it must be right */
            assert_holds_root(disk.model, &disk.next_root);
            assert_true(journal.data[bit / 8] == 0 || (bit / 8 >= 8 && bit / 8 < 40));
            finished++;
            write_file(shard_path(&disk, 1, 1).text, model.data, model.used);
        } else {
            assert_int_equal(status, ULP_E_JOURNAL);
            write_file(journal_of(&disk).text, journal.data, journal.used);
            after = directory_bytes(disk.model);
            assert_same_bytes(&before, &after);
            bytes_free(&after);
        }
        bytes_free(&before);
        write_file(journal_of(&disk).text, journal.data, journal.used);
    }
    assert_in_range(finished, 8 * ULP_ROOT_BYTES, 2 * journal.used);
    bytes_free(&journal);
    bytes_free(&model);
    disk_free(&disk);
}

/* A journal of another model, or of another state of this one. */
static void test_foreign_journals(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30), other = disk_make(2, 40);
    struct bytes journal;

    (void)unused;
    plant_journal(&other);
    journal = file_bytes(journal_of(&other).text);
    write_file(journal_of(&disk).text, journal.data, journal.used);
    refused(&disk);
    write_file(journal_of(&disk).text, "something else", 14);
    refused(&disk);
    bytes_free(&journal);
    disk_free(&other);
    disk_free(&disk);
}

static void test_a_journal_that_is_a_link(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path away_path = path_of(disk.top, "away");
    const char *away = away_path.text;
    struct bytes before, after;
    int recovered;

    (void)unused;
    plant_journal(&disk);
    assert_int_equal(rename(journal_of(&disk).text, away), 0);
    assert_int_equal(symlink(away, journal_of(&disk).text), 0);
    before = directory_bytes(disk.model);
    assert_int_equal(ulp_model_recover(disk.model, &recovered), ULP_E_FILE_KIND);
    after = directory_bytes(disk.model);
    assert_same_bytes(&before, &after);
    bytes_free(&before);
    bytes_free(&after);
    disk_free(&disk);
}

/* The journal of a directory also stands for each of its files, and the other way around: whoever
 * comes by the other way must not change anything, nor say that all is well. */
static void test_the_other_way_to_the_same_files(void **unused) {
    struct disk disk = disk_make(1, 30);
    const struct path file_path = shard_path(&disk, 1, 1);
    const char *file = file_path.text;
    const struct path of_file_path = path_of(disk.model, ".model.safetensors.ulpsync-journal");
    const char *of_file = of_file_path.text;
    int recovered = 7;

    (void)unused;
    plant_journal(&disk);
    assert_fails(ulp_model_patch_in_place(file, disk.patch, NULL, NULL, NULL), ULP_E_INTERRUPTED,
                 "ulpsync-journal");
    assert_fails(ulp_model_recover(file, &recovered), ULP_E_INTERRUPTED, "ulpsync-journal");
    assert_fails(ulp_model_recover(file, &recovered), ULP_E_INTERRUPTED,
                 "/model'"); /* to be given */
    assert_int_equal(rename(journal_of(&disk).text, of_file), 0);
    assert_fails(ulp_model_patch_in_place(disk.model, disk.patch, NULL, NULL, NULL),
                 ULP_E_INTERRUPTED, "ulpsync-journal");
    assert_fails(ulp_model_recover(disk.model, &recovered), ULP_E_INTERRUPTED, "ulpsync-journal");
    assert_fails(ulp_model_recover(disk.model, &recovered), ULP_E_INTERRUPTED,
                 "/model/model.safetensors'");
    assert_int_equal(recovered, 7);
    assert_ok(ulp_model_recover(file, &recovered));
    assert_int_equal(recovered, 1);
    assert_holds_root(disk.model, &disk.next_root);
    disk_free(&disk);
}

TEST_MAIN(test_recover_finishes, test_recover_finishes_half_written_files,
          test_the_next_call_recovers, test_truncated_journals, test_damaged_journals,
          test_foreign_journals, test_a_journal_that_is_a_link,
          test_the_other_way_to_the_same_files)
