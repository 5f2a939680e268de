// SPDX-License-Identifier: Apache-2.0
/* A patched copy of a model: complete, with all that lies beside the weights, and never over
 * something. */
#include "tests/patch/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_plain_file(const char *path) {
    struct stat info;

    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
}

/* From `path` to OUT; the model stays, and nothing else appears. */
static void copies(const struct disk *disk, const char *path, unsigned entries) {
    char *out_top = temp_directory_make();
    const struct path out_path = path_of(out_top, "out");
    const char *out = out_path.text;
    struct bytes before = directory_bytes(disk->model), after;
    struct ulp_apply_report report;

    assert_ok(ulp_model_patch(path, disk->patch, NULL, out, NULL, &report));
    assert_same_root(&report.child, &disk->next_root);
    assert_holds_root(out, &disk->next_root);
    if (entries)
        assert_int_equal(entries_in(out), entries);
    assert_int_equal(entries_in(out_top), 1);
    after = directory_bytes(disk->model);
    assert_same_bytes(&before, &after);
    bytes_free(&before);
    bytes_free(&after);
    temp_directory_remove(out_top);
}

static void test_every_kind_of_path(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= DISK_SHARDS; shards++) {
        struct disk disk = disk_make(shards, 30);

        copies(&disk, disk.model, shards == 1 ? 2 : shards + 2);
        if (shards == 1)
            copies(&disk, path_of(disk.model, "model.safetensors").text, 0);
        else
            copies(&disk, path_of(disk.model, "model.safetensors.index.json").text, shards + 2);
        disk_free(&disk);
    }
}

/* The copy of one file is that file with the changes, byte for byte, header and all. */
static void test_same_file_as_if_saved(void **unused) {
    struct disk disk = disk_make(1, 30);
    const struct path out_path = path_of(disk.top, "out.safetensors");
    const struct path saved_path = path_of(disk.top, "saved");
    const char *out = out_path.text, *saved = saved_path.text;
    struct bytes a, b;

    (void)unused;
    assert_ok(ulp_model_patch(shard_path(&disk, 1, 1).text, disk.patch, NULL, out, NULL, NULL));
    assert_ok(ulp_model_save(saved, disk.next.tensors, disk.next.count, NULL, 0, 1, NULL));
    a = file_bytes(out);
    b = file_bytes(path_of(saved, "model.safetensors").text);
    assert_same_bytes(&a, &b);
    bytes_free(&a);
    bytes_free(&b);
    disk_free(&disk);
}

static void test_what_lies_beside(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path out_path = path_of(disk.top, "out");
    const char *out = out_path.text;
    struct bytes copied;

    (void)unused;
    write_file(path_of(disk.model, "tokenizer.json").text, "words", 5);
    write_file(path_of(disk.model, ".hidden").text, "x", 1);
    write_file(path_of(disk.top, "elsewhere").text, "linked", 6);
    assert_int_equal(symlink("../elsewhere", path_of(disk.model, "link").text), 0);
    assert_int_equal(mkdir(path_of(disk.model, "folder").text, 0777), 0);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, out, NULL, NULL));
    assert_int_equal(entries_in(out), DISK_SHARDS + 1 + 3);
    copied = file_bytes(path_of(out, "link").text);
    assert_int_equal(copied.used, 6);
    assert_memory_equal(copied.data, "linked", 6);
    assert_plain_file(path_of(out, "link").text);
    assert_plain_file(path_of(out, "tokenizer.json").text);
    assert_holds_root(out, &disk.next_root);
    bytes_free(&copied);
    disk_free(&disk);
}

/* A cache of blobs with links to them, as downloads leave it. */
static void test_symlinked_inputs(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    char cache[4096];

    (void)unused;
    snprintf(cache, sizeof cache, "%s", path_of(disk.top, "cache").text);
    assert_int_equal(mkdir(cache, 0777), 0);
    for (unsigned i = 1; i <= DISK_SHARDS; i++) {
        const struct path link_path = shard_path(&disk, i, DISK_SHARDS);
        const char *shard = link_path.text;
        const struct path blob_path = path_of(cache, strrchr(shard, '/') + 1);
        const char *blob = blob_path.text;

        assert_int_equal(rename(shard, blob), 0);
        assert_int_equal(symlink(blob, shard), 0);
    }
    copies(&disk, disk.model, DISK_SHARDS + 2);
    assert_int_equal(symlink(disk.model, path_of(disk.top, "alias").text), 0);
    copies(&disk, path_of(disk.top, "alias").text, DISK_SHARDS + 2);
    assert_ok(
        ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "out").text, NULL, NULL));
    for (unsigned i = 1; i <= DISK_SHARDS; i++)
        assert_plain_file(path_of(path_of(disk.top, "out").text,
                                  strrchr(shard_path(&disk, i, DISK_SHARDS).text, '/') + 1)
                              .text);
    disk_free(&disk);
}

static void exists_already(const struct disk *disk, const char *path, const char *out) {
    unsigned before = entries_in(disk->top);

    assert_fails(ulp_model_patch(path, disk->patch, NULL, out, NULL, NULL), ULP_E_EXISTS,
                 "exists already");
    assert_int_equal(entries_in(disk->top), before);
}

static void test_the_target_is_there(void **unused) {
    struct disk disk = disk_make(1, 30);
    const struct path file_path = shard_path(&disk, 1, 1);
    const struct path out_path = path_of(disk.top, "out");
    const char *file = file_path.text, *out = out_path.text;

    (void)unused;
    assert_int_equal(symlink("nowhere", out), 0);
    exists_already(&disk, disk.model, out);
    exists_already(&disk, file, out);
    assert_int_equal(unlink(out), 0);
    assert_int_equal(mkdir(out, 0777), 0);
    exists_already(&disk, disk.model, out);
    assert_int_equal(entries_in(out), 0);
    assert_int_equal(rmdir(out), 0);
    write_file(out, "mine", 4);
    exists_already(&disk, file, out);
    exists_already(&disk, disk.model, disk.model);
    assert_int_equal(unlink(out), 0);
    assert_ok(
        ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "out//").text, NULL, NULL));
    assert_holds_root(out, &disk.next_root);
    disk_free(&disk);
}

/* What a killed copy left under its hidden name does not end up in the next one. */
static void test_leftovers_of_a_killed_copy(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path left_path = path_of(disk.top, ".out.ulpsync-unfinished");
    const struct path out_path = path_of(disk.top, "out");
    const char *left = left_path.text, *out = out_path.text;

    (void)unused;
    assert_int_equal(mkdir(left, 0777), 0);
    write_file(path_of(left, "garbage").text, "x", 1);
    write_file(path_of(left, "config.json").text, "x", 1);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, out, NULL, NULL));
    assert_int_equal(entries_in(out), DISK_SHARDS + 2);
    assert_int_equal(access(left, F_OK), -1);
    assert_holds_root(out, &disk.next_root);
    disk_free(&disk);
}

/* A link planted under that name must not lead to the removal of somebody's files. */
static void test_a_link_under_the_hidden_name(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path mine_path = path_of(disk.top, "mine");
    const struct path out_path = path_of(disk.top, "out");
    const char *mine = mine_path.text, *out = out_path.text;
    enum ulp_status status;

    (void)unused;
    assert_int_equal(mkdir(mine, 0777), 0);
    write_file(path_of(mine, "precious").text, "x", 1);
    assert_int_equal(symlink("mine", path_of(disk.top, ".out.ulpsync-unfinished").text), 0);
    status = ulp_model_patch(disk.model, disk.patch, NULL, out, NULL, NULL);
    assert_int_equal(access(path_of(mine, "precious").text, F_OK), 0);
    assert_int_equal(entries_in(mine), 1);
    assert_int_equal(status, ULP_E_FILE_KIND);
    disk_free(&disk);
}

/* Another process is filling it. */
static void test_two_copies_to_one_place(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path hidden = path_of(disk.top, ".out.ulpsync-unfinished");
    const struct path out = path_of(disk.top, "out");
    int other;

    (void)unused;
    assert_int_equal(mkdir(hidden.text, 0777), 0);
    write_file(path_of(hidden.text, "config.json").text, "x", 1);
    other = open(hidden.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(other >= 0);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_fails(ulp_model_patch(disk.model, disk.patch, NULL, out.text, NULL, NULL), ULP_E_BUSY,
                 "another process");
    assert_int_equal(entries_in(hidden.text), 1);
    close(other);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, out.text, NULL, NULL));
    assert_holds_root(out.text, &disk.next_root);
    disk_free(&disk);
}

/* Refused before anything is made. */
static void test_refusals_leave_nothing(void **unused) {
    struct disk disk = disk_make(DISK_SHARDS, 30);
    struct bytes other = patch_between(&disk.next, &disk.base, NULL);
    struct ulp_patch *wrong = open_bytes(&other);
    const struct path out_path = path_of(disk.top, "out");
    const char *out = out_path.text;

    (void)unused;
    assert_fails(ulp_model_patch(path_of(disk.top, "no").text, disk.patch, NULL, out, NULL, NULL),
                 ULP_E_NOT_FOUND, "");
    assert_fails(
        ulp_model_patch(disk.model, disk.patch, NULL, path_of(disk.top, "no/out").text, NULL, NULL),
        ULP_E_NOT_FOUND, "");
    write_file(journal_of(&disk).text, "x", 1);
    assert_fails(ulp_model_patch(disk.model, disk.patch, NULL, out, NULL, NULL), ULP_E_INTERRUPTED,
                 "");
    assert_int_equal(unlink(journal_of(&disk).text), 0);
    assert_int_equal(entries_in(disk.top), 1);
    ulp_patch_free(wrong);
    wrong = open_bytes(&other);
    assert_ok(ulp_model_patch(disk.model, wrong, NULL, out, NULL, NULL)); /* already the child */
    assert_holds_root(out, &disk.base_root);
    ulp_patch_free(wrong);
    bytes_free(&other);
    disk_free(&disk);
}

static unsigned mode_of(const char *path) {
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return (unsigned)info.st_mode & 07777u;
}

/* Weights that only their owner may read stay so, and scripts beside them can still be run. */
static void test_permissions(void **unused) {
    static const unsigned modes[] = {0600, 0640, 0444};
    struct disk disk = disk_make(DISK_SHARDS, 30);
    const struct path out = path_of(disk.top, "out"), tool = path_of(disk.model, "tool.py");

    (void)unused;
    write_file(tool.text, "x", 1);
    assert_int_equal(chmod(tool.text, 0755), 0);
    assert_int_equal(chmod(path_of(disk.model, "config.json").text, 0600), 0);
    for (unsigned i = 0; i < DISK_SHARDS; i++)
        assert_int_equal(chmod(shard_path(&disk, i + 1, DISK_SHARDS).text, modes[i]), 0);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, out.text, NULL, NULL));
    assert_int_equal(mode_of(path_of(out.text, "tool.py").text), 0755);
    assert_int_equal(mode_of(path_of(out.text, "config.json").text), 0600);
    for (unsigned i = 0; i < DISK_SHARDS; i++)
        assert_int_equal(
            mode_of(path_of(out.text, strrchr(shard_path(&disk, i + 1, DISK_SHARDS).text, '/') + 1)
                        .text),
            modes[i]);
    assert_holds_root(out.text, &disk.next_root);
    disk_free(&disk);
}

static void test_permissions_of_a_file(void **unused) {
    struct disk disk = disk_make(1, 30);
    const struct path file = shard_path(&disk, 1, 1), out = path_of(disk.top, "out");

    (void)unused;
    assert_int_equal(chmod(file.text, 0600), 0);
    assert_ok(ulp_model_patch(file.text, disk.patch, NULL, out.text, NULL, NULL));
    assert_int_equal(mode_of(out.text), 0600);
    disk_free(&disk);
}

/* The hidden name of an unfinished directory is longer than its own, which a file system may not
 * bear. */
static void test_long_names(void **unused) {
    (void)unused;
    for (size_t length = 200; length <= 260; length += 5) {
        struct disk disk = disk_make(DISK_SHARDS, 30);
        char name[300] = {0};
        struct path out;
        enum ulp_status status;

        memset(name, 'n', length);
        out = path_of(disk.top, name);
        status = ulp_model_patch(disk.model, disk.patch, NULL, out.text, NULL, NULL);
        if (!status)
            assert_holds_root(out.text, &disk.next_root);
        else if (status == ULP_E_INTERNAL || !strstr(ulp_last_error(), "too long"))
            fail_msg("%zu bytes: %s: %s", length, ulp_status_name(status), ulp_last_error());
        assert_int_equal(entries_in(disk.top), status ? 1 : 2);
        assert_true(!status || length > 230);
        disk_free(&disk);
    }
}

TEST_MAIN(test_every_kind_of_path, test_same_file_as_if_saved, test_what_lies_beside,
          test_symlinked_inputs, test_the_target_is_there, test_leftovers_of_a_killed_copy,
          test_a_link_under_the_hidden_name, test_two_copies_to_one_place,
          test_refusals_leave_nothing, test_permissions, test_permissions_of_a_file,
          test_long_names)
