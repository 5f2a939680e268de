// SPDX-License-Identifier: Apache-2.0
/*
 * Slices on disk: `current` loads like the whole checkpoint, has the slice's bytes in place and
 * zeros elsewhere, and takes the room of the slice.
 */
#include "tests/patch/tile_state.h"
#include "tests/patch/tracer.h"
#include "tests/sync/trainer.h"

#include <sys/stat.h>
#include <unistd.h>

#define TILES 4u
#define RULES "*.down columns\n"

static const struct form forms[] = {{"embed", "BF16", {512, 512}, 2, 0},
                                    {"l0.down", "BF16", {16, 32768}, 2, 0},
                                    {"l0.up", "F32", {256, 512}, 2, 0},
                                    {"norm", "F32", {301}, 1, 0}};

static const struct form small_forms[] = {{"embed", "BF16", {16, 16}, 2, 0},
                                          {"l0.down", "BF16", {4, 64}, 2, 0},
                                          {"norm", "F32", {31}, 1, 0}};

/* The trainer of the other tests, with other tensors and a tiling. */
struct tiled {
    struct trainer trainer;
    struct ulp_tiling *tiling;
    struct ulp_run_options publishing;
    struct state past[TRAINER_STEPS_MAX]; /* by version */
};

static struct tiled tiled_make(const struct form *shapes, size_t count, unsigned shards) {
    struct tiled t = {.trainer = trainer_make(shards, false)};

    state_free(&t.trainer.state);
    t.trainer.state = state_make(shapes, count, 0);
    assert_ok(ulp_tiling_new(RULES, TILES, &t.tiling));
    t.publishing.tiling = t.tiling;
    return t;
}

static void tiled_free(struct tiled *t) {
    for (unsigned i = 0; i < t->trainer.count; i++)
        state_free(&t->past[i]);
    ulp_tiling_free(t->tiling);
    trainer_free(&t->trainer);
}

static void publish(struct tiled *t) {
    trainer_publish(&t->trainer, &t->publishing);
    t->past[t->trainer.count - 1] = state_copy(&t->trainer.state);
}

static struct ulp_run_options follow_options(const struct tiled *t, unsigned tile) {
    return (struct ulp_run_options){.tiling = t->tiling, .tile = tile};
}

static struct ulp_run_report follow(const struct tiled *t, unsigned tile, const char *name) {
    const struct ulp_run_options options = follow_options(t, tile);
    struct ulp_run_report report = {0};

    assert_ok(ulp_follow(t->trainer.store, RUN, below(&t->trainer, name).text, &options, &report));
    return report;
}

/* The slice of a state, and zeros around it. */
static struct state slice_of(const struct tiled *t, const struct state *state, unsigned tile) {
    struct state slice = state_copy(state);

    memset(slice.data, 0, slice.bytes);
    for (unsigned i = 0; i < 2; i++) {
        struct ulp_region *regions = NULL;
        size_t count = 0;

        assert_ok(ulp_tiling_regions(t->tiling, state->tensors, state->count, i ? tile : 0,
                                     &regions, &count));
        copy_regions(&slice, state, regions, count);
        ulp_regions_free(regions);
    }
    return slice;
}

static int current_version(const struct trainer *trainer, const char *name) {
    struct path current = path_of(below(trainer, name).text, "current");
    char target[64] = "";

    if (readlink(current.text, target, sizeof target - 1) < 0)
        return -1;
    return (int)strtoul(target + strlen("versions/"), NULL, 10);
}

/* All of a version, and nothing of the other tiles; what lies beside the weights is there. */
static void assert_slice_at(const struct tiled *t, unsigned tile, const char *name,
                            unsigned version) {
    struct path current = path_of(below(&t->trainer, name).text, "current");
    struct state expected = slice_of(t, &t->past[version], tile);
    struct ulp_model *model = NULL;
    struct ulp_root root = root_of(&expected), found;
    struct bytes config;

    assert_int_equal(current_version(&t->trainer, name), version);
    assert_ok(ulp_model_open(current.text, &model));
    assert_ok(ulp_state_digest(ulp_model_tensors(model), ulp_model_count(model), NULL, NULL, NULL,
                               &found));
    assert_same_root(&found, &root);
    ulp_model_free(model);
    config = file_bytes(path_of(current.text, "config.json").text);
    assert_int_equal(config.used, 3);
    bytes_free(&config);
    state_free(&expected);
}

static void test_every_tile(void **unused) {
    (void)unused;
    for (unsigned shards = 1; shards <= 3; shards++) {
        struct tiled t = tiled_make(forms, COUNT(forms), shards);

        for (unsigned version = 0; version < 4; version++) {
            publish(&t);
            for (unsigned tile = 1; tile <= TILES; tile++) {
                char name[16];
                struct ulp_run_report report;

                snprintf(name, sizeof name, "rank%u", tile);
                report = follow(&t, tile, name);
                assert_int_equal(report.version, version);
                assert_int_equal(report.fetched_anchors, version == 0);
                assert_slice_at(&t, tile, name, version);
            }
        }
        tiled_free(&t);
    }
}

/* Several versions in one go, and to one of the past. */
static void test_far_behind(void **unused) {
    struct tiled t = tiled_make(small_forms, COUNT(small_forms), 1);
    struct ulp_run_options options = follow_options(&t, 2);

    (void)unused;
    publish(&t);
    follow(&t, 2, "f");
    for (unsigned i = 0; i < 9; i++)
        publish(&t);
    options.stop_at_version = 1;
    options.version = 5;
    assert_ok(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "f").text, &options, NULL));
    assert_slice_at(&t, 2, "f", 5);
    assert_int_equal(follow(&t, 2, "f").fetched_patches, 4);
    assert_slice_at(&t, 2, "f", 9);
    assert_int_equal(follow(&t, 2, "f").fetched_bytes, 0);
    tiled_free(&t);
}

static uint64_t bytes_on_disk(const char *path) {
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_blocks * 512;
}

/* About a quarter, and what is common; a file system without holes is no matter of ours. */
static void test_room_on_disk(void **unused) {
    struct tiled t = tiled_make(forms, COUNT(forms), 1);
    struct path whole = path_of(model_of(&t.trainer).text, "model.safetensors");
    struct path slice = path_of(below(&t.trainer, "f").text, "current/model.safetensors");
    struct stat a, b;

    (void)unused;
    publish(&t);
    for (unsigned i = 0; i < 2; i++) {
        follow(&t, 3, "f");
        assert_int_equal(stat(whole.text, &a), 0);
        assert_int_equal(stat(slice.text, &b), 0);
        assert_int_equal(a.st_size, b.st_size);
        print_message("whole %llu, slice %llu bytes on disk\n",
                      (unsigned long long)bytes_on_disk(whole.text),
                      (unsigned long long)bytes_on_disk(slice.text));
        assert_true(bytes_on_disk(slice.text) < bytes_on_disk(whole.text) * 35 / 100);
        publish(&t);
    }
    tiled_free(&t);
}

/* A model that somebody has already. */
static void test_from_a_base(void **unused) {
    struct tiled t = tiled_make(forms, COUNT(forms), 2);
    struct ulp_run_options options = follow_options(&t, 1);
    struct ulp_run_report report = {0};
    struct path base = below(&t.trainer, "base");

    (void)unused;
    publish(&t);
    tree_copy(model_of(&t.trainer).text, base.text);
    publish(&t);
    options.base = base.text;
    assert_ok(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "f").text, &options, &report));
    assert_int_equal(report.anchor_bytes, 0);
    assert_slice_at(&t, 1, "f", 1);
    tiled_free(&t);
}

static void test_directories_are_not_mixed(void **unused) {
    struct tiled t = tiled_make(small_forms, COUNT(small_forms), 1);
    struct ulp_run_options options = follow_options(&t, 2);
    struct ulp_tiling *rows = NULL;

    (void)unused;
    publish(&t);
    follow(&t, 1, "slice");
    assert_follows(&t.trainer, "whole");
    assert_fails(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "slice").text, &options, NULL),
                 ULP_E_OTHER_RUN, "another tile");
    assert_fails(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "whole").text, &options, NULL),
                 ULP_E_OTHER_RUN, "a whole model");
    assert_fails(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "slice").text, NULL, NULL),
                 ULP_E_OTHER_RUN, "holds a slice");
    assert_ok(ulp_tiling_new("* rows\nnorm common\n", TILES, &rows));
    options.tiling = rows;
    assert_fails(ulp_follow(t.trainer.store, RUN, below(&t.trainer, "new").text, &options, NULL),
                 ULP_E_REGIONS, "norm");
    ulp_tiling_free(rows);
    assert_slice_at(&t, 1, "slice", 0);
    tiled_free(&t);
}

/* A bit of the slice that has rotted on disk is found by the next step; others do not matter. */
static void test_rot(void **unused) {
    struct tiled t = tiled_make(small_forms, COUNT(small_forms), 1);
    const struct ulp_run_options options = follow_options(&t, 2);
    struct path file = path_of(below(&t.trainer, "f").text, "current/model.safetensors");
    struct path kept = below(&t.trainer, "kept");
    struct bytes bytes;
    unsigned refused = 0, fine = 0;

    (void)unused;
    publish(&t);
    follow(&t, 2, "f");
    tree_copy(below(&t.trainer, "f").text, kept.text);
    publish(&t);
    bytes = file_bytes(file.text);
    for (size_t at = bytes.used - (16 * 16 + 4 * 64) * 2 - 31 * 4; at < bytes.used; at += 5) {
        enum ulp_status status;

        tree_copy(kept.text, below(&t.trainer, "f").text);
        bytes.data[at] ^= 16;
        write_file(file.text, bytes.data, bytes.used);
        bytes.data[at] ^= 16;
        status = ulp_follow(t.trainer.store, RUN, below(&t.trainer, "f").text, &options, NULL);
        if (status)
            assert_int_equal(status, ULP_E_WRONG_RESULT);
        assert_int_equal(current_version(&t.trainer, "f"), !status);
        if (!status)
            assert_slice_at(&t, 2, "f", 1);
        refused += status != ULP_OK;
        fine += status == ULP_OK;
    }
    assert_true(refused > 40 && fine > 40);
    bytes_free(&bytes);
    tiled_free(&t);
}

/* ---- killed ---- */

#ifdef __SANITIZE_ADDRESS__
#define STRIDE 41u
#else
#define STRIDE 3u
#endif

static int do_follow(const void *user) {
    const struct tiled *t = user;
    const struct ulp_run_options options = follow_options(t, 2);
    struct ulp_store *store = NULL;
    int failed = ulp_store_open(below(&t->trainer, "store").text, &store) ||
                 ulp_follow(store, RUN, below(&t->trainer, "f").text, &options, NULL);

    ulp_store_free(store);
    return failed;
}

/* kill -9 wherever it is: nothing, the old version or the new one is shown, complete, and the next
 * call goes on from there. */
static void kill_everywhere(struct tiled *t, const char *before) {
    bool killed = true;
    unsigned long stops = 0;

    for (; killed; stops++) {
        int version;

        tree_remove(below(&t->trainer, "f").text);
        if (before)
            tree_copy(below(&t->trainer, before).text, below(&t->trainer, "f").text);
        killed = killed_at(1 + STRIDE * stops, do_follow, t);
        version = current_version(&t->trainer, "f");
        assert_true(version >= (before ? 0 : -1));
        if (version >= 0)
            assert_slice_at(t, 2, "f", (unsigned)version);
        assert_int_equal(do_follow(t), 0);
        assert_slice_at(t, 2, "f", t->trainer.count - 1);
    }
    print_message("%lu stops\n", stops - 1);
    assert_true(stops > 10);
}

static void test_killed(void **unused) {
    struct tiled t = tiled_make(small_forms, COUNT(small_forms), 2);

    (void)unused;
    if (!tracer_works()) {
        tiled_free(&t);
        skip();
    }
    publish(&t);
    kill_everywhere(&t, NULL);
    follow(&t, 2, "old");
    publish(&t);
    kill_everywhere(&t, "old");
    tiled_free(&t);
}

TEST_MAIN(test_every_tile, test_far_behind, test_room_on_disk, test_from_a_base,
          test_directories_are_not_mixed, test_rot, test_killed)
