// SPDX-License-Identifier: Apache-2.0
/*
 * Partial patches and files: a copy takes those that tile all tensors together, whatever they are
 * cut into; a change in place takes whole patches only, because its journal speaks of whole tensors.
 */
#include "patch/model_files.h"
#include "tests/patch/disk.h"

#define PARTS_MAX 4

/* Bands of rows, bands of columns, a checkerboard, and whole tensors; each list sorted. */
static const struct ulp_region left[] = {{"embed", 0, 100, 0, 32},
                                         {"head", 0, 32, 0, 90},
                                         {"layer.1", 0, 41, 0, 8},
                                         {"norm", 0, 1, 0, 3001}};
static const struct ulp_region right[] = {{"embed", 0, 50, 32, 32},  {"embed", 50, 50, 32, 16},
                                          {"embed", 50, 50, 48, 16}, {"head", 32, 32, 0, 90},
                                          {"layer.0", 0, 40, 0, 40}, {"layer.1", 0, 41, 8, 24}};
static const struct ulp_region rest[] = {{"layer.1", 0, 41, 32, 8}, {"step", 0, 1, 0, 1}};

struct parts {
    struct bytes bytes[PARTS_MAX];
    struct ulp_patch *patches[PARTS_MAX];
    size_t count;
};

static void add_part(struct parts *parts, const struct disk *disk, const struct ulp_region *regions,
                     size_t count) {
    const struct ulp_diff_options options = {.regions = regions, .region_count = count};

    parts->bytes[parts->count] = patch_between(&disk->base, &disk->next, &options);
    parts->patches[parts->count] = open_bytes(&parts->bytes[parts->count]);
    parts->count++;
}

static struct parts three_parts(const struct disk *disk) {
    struct parts parts = {0};

    add_part(&parts, disk, left, COUNT(left));
    add_part(&parts, disk, right, COUNT(right));
    add_part(&parts, disk, rest, COUNT(rest));
    return parts;
}

static void parts_free(struct parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        ulp_patch_free(parts->patches[i]);
        bytes_free(&parts->bytes[i]);
    }
}

static void assert_copy(const char *path, const struct parts *parts, const char *out,
                        const struct ulp_root *root) {
    assert_ok(model_patch(path, (const struct ulp_patch *const *)parts->patches, parts->count, NULL,
                          out, NULL, NULL));
    assert_holds_root(out, root);
}

static void test_copies(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= DISK_SHARDS; shards++) {
        struct disk disk = disk_make(shards, 30);
        struct parts parts = three_parts(&disk);
        struct bytes before = directory_bytes(disk.model), after;

        assert_copy(disk.model, &parts, path_of(disk.top, "out").text, &disk.next_root);
        if (shards == 1)
            assert_copy(shard_path(&disk, 1, 1).text, &parts,
                        path_of(disk.top, "out.safetensors").text, &disk.next_root);
        after = directory_bytes(disk.model);
        assert_same_bytes(&before, &after);
        bytes_free(&before);
        bytes_free(&after);
        parts_free(&parts);
        disk_free(&disk);
    }
}

/* The same bytes as those of the copy that a whole patch gives. */
static void test_same_as_whole(void **unused) {
    struct disk disk = disk_make(2, 400);
    struct parts parts = three_parts(&disk);
    struct path by_parts = path_of(disk.top, "parts"), whole = path_of(disk.top, "whole");
    struct bytes a, b;

    (void)unused;
    assert_copy(disk.model, &parts, by_parts.text, &disk.next_root);
    assert_ok(ulp_model_patch(disk.model, disk.patch, NULL, whole.text, NULL, NULL));
    a = directory_bytes(by_parts.text);
    b = directory_bytes(whole.text);
    assert_same_bytes(&a, &b);
    bytes_free(&a);
    bytes_free(&b);
    parts_free(&parts);
    disk_free(&disk);
}

static void refused(const struct disk *disk, const struct parts *parts, enum ulp_status status,
                    const char *text) {
    struct path out = path_of(disk->top, "out");

    assert_fails(model_patch(disk->model, (const struct ulp_patch *const *)parts->patches,
                             parts->count, NULL, out.text, NULL, NULL),
                 status, text);
    assert_int_equal(entries_in(disk->top), 1);
}

static void test_refusals(void **unused) {
    struct disk disk = disk_make(2, 30);
    struct parts parts = three_parts(&disk);

    (void)unused;
    parts.count = 2;
    refused(&disk, &parts, ULP_E_REGIONS, "cover");
    parts.count = 3;
    add_part(&parts, &disk, rest, COUNT(rest));
    refused(&disk, &parts, ULP_E_REGIONS, "overlap");
    parts_free(&parts);
    disk_free(&disk);
}

/* In place one patch is taken, and it is whole, even where the regions of another are all. */
static void test_in_place(void **unused) {
    static const struct ulp_region all[] = {{"embed", 0, 100, 0, 32},  {"embed", 0, 100, 32, 32},
                                            {"head", 0, 64, 0, 90},    {"layer.0", 0, 40, 0, 40},
                                            {"layer.1", 0, 41, 0, 40}, {"norm", 0, 1, 0, 3001},
                                            {"step", 0, 1, 0, 1}};
    struct disk disk = disk_make(2, 30);
    struct parts parts = {0};
    struct bytes before = directory_bytes(disk.model), after;

    (void)unused;
    add_part(&parts, &disk, all, COUNT(all));
    assert_fails(ulp_model_patch_in_place(disk.model, parts.patches[0], NULL, NULL, NULL),
                 ULP_E_REGIONS, "covers only regions");
    after = directory_bytes(disk.model); /* with the names, so there is no journal either */
    assert_same_bytes(&before, &after);
    assert_copy(disk.model, &parts, path_of(disk.top, "out").text, &disk.next_root);
    bytes_free(&before);
    bytes_free(&after);
    parts_free(&parts);
    disk_free(&disk);
}

TEST_MAIN(test_copies, test_same_as_whole, test_refusals, test_in_place)
