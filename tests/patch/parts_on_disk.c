// SPDX-License-Identifier: Apache-2.0
/* Files are patched by whole patches: one of regions is refused even when they tile all tensors. */
#include "tests/patch/disk.h"

static const struct ulp_region tiles[] = {{"embed", 0, 100, 0, 32},  {"embed", 0, 100, 32, 32},
                                          {"head", 0, 64, 0, 90},    {"layer.0", 0, 40, 0, 40},
                                          {"layer.1", 0, 41, 0, 40}, {"norm", 0, 1, 0, 3001},
                                          {"step", 0, 1, 0, 1}};

static struct bytes tiled_patch(const struct disk *disk) {
    static const struct ulp_diff_options options = {.regions = tiles, .region_count = COUNT(tiles)};

    return patch_between(&disk->base, &disk->next, &options);
}

static void refused(const struct disk *disk, const char *path, const struct ulp_patch *patch) {
    struct bytes before = directory_bytes(disk->model), after;

    assert_fails(ulp_model_patch_in_place(path, patch, NULL, NULL, NULL), ULP_E_REGIONS,
                 "covers only regions");
    assert_fails(ulp_model_patch(path, patch, NULL, path_of(disk->top, "out").text, NULL, NULL),
                 ULP_E_REGIONS, "covers only regions");
    after = directory_bytes(disk->model); /* with the names, so there is no journal either */
    assert_same_bytes(&before, &after);
    assert_int_equal(entries_in(disk->top), 1);
    bytes_free(&before);
    bytes_free(&after);
}

static void test_tiles_do_not_reach_files(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= DISK_SHARDS; shards++) {
        struct disk disk = disk_make(shards, 30);
        struct bytes bytes = tiled_patch(&disk);
        struct ulp_patch *patch = open_bytes(&bytes);

        refused(&disk, disk.model, patch);
        refused(&disk,
                shards == 1 ? shard_path(&disk, 1, 1).text
                            : path_of(disk.model, "model.safetensors.index.json").text,
                patch);
        ulp_patch_free(patch);
        bytes_free(&bytes);
        disk_free(&disk);
    }
}

/* In memory the same patch is a good one. */
static void test_tiles_are_for_memory(void **unused) {
    struct disk disk = disk_make(1, 30);
    struct bytes bytes = tiled_patch(&disk);
    struct ulp_patch *patch = open_bytes(&bytes);
    struct state live = state_copy(&disk.base);
    struct ulp_weights *weights = weights_of(&live);

    (void)unused;
    assert_ok(ulp_apply(weights, patch, NULL, NULL));
    assert_same_state(&live, &disk.next);
    ulp_weights_free(weights);
    state_free(&live);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    disk_free(&disk);
}

TEST_MAIN(test_tiles_do_not_reach_files, test_tiles_are_for_memory)
