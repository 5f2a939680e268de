// SPDX-License-Identifier: Apache-2.0
#include "tests/patch/disk.h"

#include "patch/journal.h"
#include "tensor/model.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct form forms[] = {
    {"embed", "BF16", {100, 64}, 2, 0}, {"head", "BF16", {64, 90}, 2, 0},
    {"layer.0", "F32", {40, 40}, 2, 0}, {"layer.1", "F32", {41, 40}, 2, 0},
    {"norm", "F8_E4M3", {3001}, 1, 0},  {"step", "I64", {0}, 0, 0}};

struct path path_of(const char *directory, const char *name) {
    struct path path;

    if (snprintf(path.text, sizeof path.text, "%s/%s", directory, name) >= (int)sizeof path.text)
        fail_msg("a path is too long");
    return path;
}

void write_file(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

struct bytes file_bytes(const char *path) {
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);
    FILE *file = fopen(path, "rb");
    char piece[65536];
    size_t got;

    assert_non_null(file);
    while ((got = fread(piece, 1, sizeof piece, file)))
        assert_ok(sink.write(sink.user, piece, got));
    fclose(file);
    return bytes;
}

struct bytes directory_bytes(const char *directory) {
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);
    struct dirent **names = NULL;
    int count = scandir(directory, &names, NULL, alphasort);

    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        struct path path = path_of(directory, names[i]->d_name);
        struct stat info;

        assert_int_equal(lstat(path.text, &info), 0);
        assert_ok(sink.write(sink.user, names[i]->d_name, strlen(names[i]->d_name) + 1));
        if (S_ISREG(info.st_mode)) {
            struct bytes file = file_bytes(path.text);

            if (file.used)
                assert_ok(sink.write(sink.user, file.data, file.used));
            bytes_free(&file);
        }
        free(names[i]);
    }
    free(names);
    return bytes;
}

struct path shard_path(const struct disk *disk, unsigned shard, unsigned shards) {
    char name[64];

    snprintf(name, sizeof name, "model-%05u-of-%05u.safetensors", shard, shards);
    return path_of(disk->model, shards == 1 ? "model.safetensors" : name);
}

void disk_reset(const struct disk *disk, unsigned shards) {
    for (unsigned i = 1; i <= shards; i++)
        unlink(shard_path(disk, i, shards).text);
    unlink(path_in(disk->model, "model.safetensors.index.json"));
    unlink(journal_of(disk).text);
    assert_ok(
        ulp_model_save(disk->model, disk->base.tensors, disk->base.count, NULL, 0, shards, NULL));
}

struct disk disk_make(unsigned shards, unsigned per_mille) {
    struct disk disk = {.top = temp_directory_make(), .base = state_make(forms, COUNT(forms), 0)};

    snprintf(disk.model, sizeof disk.model, "%s", path_in(disk.top, "model"));
    disk.next = state_copy(&disk.base);
    state_step(&disk.next, per_mille);
    disk.base_root = root_of(&disk.base);
    disk.next_root = root_of(&disk.next);
    disk.bytes = patch_between(&disk.base, &disk.next, NULL);
    disk.patch = open_bytes(&disk.bytes);
    assert_ok(ulp_directory_make(disk.model));
    disk_reset(&disk, shards);
    write_file(path_in(disk.model, "config.json"), "{}\n", 3);
    return disk;
}

void disk_free(struct disk *disk) {
    ulp_patch_free(disk->patch);
    bytes_free(&disk->bytes);
    state_free(&disk->base);
    state_free(&disk->next);
    temp_directory_remove(disk->top);
}

struct ulp_root root_at(const char *path) {
    struct ulp_model *model = NULL;
    struct ulp_root root;

    assert_ok(ulp_model_open(path, &model));
    assert_ok(ulp_state_digest(ulp_model_tensors(model), ulp_model_count(model), NULL, NULL, NULL,
                               &root));
    ulp_model_free(model);
    return root;
}

void assert_holds_root(const char *path, const struct ulp_root *root) {
    struct ulp_root found = root_at(path);

    assert_same_root(&found, root);
}

struct path journal_of(const struct disk *disk) {
    return path_of(disk->model, MODEL_JOURNAL_NAME);
}

void plant_journal(const struct disk *disk) {
    struct state live = state_copy(&disk->base);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_apply *apply = NULL;

    assert_ok(ulp_apply_prepare(weights, disk->patch, NULL, &apply));
    assert_ok(journal_write(journal_of(disk).text, apply));
    ulp_apply_free(apply);
    ulp_weights_free(weights);
    state_free(&live);
}
