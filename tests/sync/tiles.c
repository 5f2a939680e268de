// SPDX-License-Identifier: Apache-2.0
/* A run that is published in tiles: who follows all of it, and who follows a tile in memory. */
#include "base/limits.h"
#include "chain/map.h"
#include "chain/plan.h"
#include "sync/run_log.h"
#include "tests/patch/disk.h"
#include "tests/patch/tile_state.h"

#define RUN "rl"
#define TILES 4u
#define RULES "*.down columns\nhead common\n"

static const struct form forms[] = {
    {"embed", "BF16", {64, 48}, 2, 0},   {"head", "BF16", {32, 8}, 2, 0},
    {"l0.down", "BF16", {40, 64}, 2, 0}, {"l0.up", "F32", {64, 24}, 2, 0},
    {"norm", "F32", {301}, 1, 0},        {"odd", "BF16", {7, 3}, 2, 0},
    {"step", "I64", {0}, 0, 0}};

struct tiled {
    char *top;
    struct ulp_store *store;
    struct ulp_tiling *tiling;
    struct state state;
    struct ulp_publisher *publisher;
    struct ulp_run_options options;
    uint64_t versions;
    uint64_t patch_bytes;           /* of the newest version's patches, all tiles */
    uint64_t tile_bytes[TILES + 1]; /* of each tile's patch */
};

static struct tiled tiled_make(const struct ulp_run_options *options) {
    struct tiled t = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};

    if (options)
        t.options = *options;
    assert_ok(ulp_tiling_new(RULES, TILES, &t.tiling));
    t.options.tiling = t.tiling;
    assert_ok(ulp_store_memory(&t.store));
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &t.options, &t.publisher));
    return t;
}

static void tiled_free(struct tiled *t) {
    ulp_publisher_close(t->publisher);
    ulp_store_free(t->store);
    ulp_tiling_free(t->tiling);
    state_free(&t->state);
    temp_directory_remove(t->top);
}

/* What the newest record says of the way to its version. */
static void look_at_way(struct tiled *t) {
    struct log_entry head = {0};
    struct log_view view = {.store = t->store, .run = RUN};
    const struct way *way;

    assert_ok(log_advance(&view, false, &head));
    way = map_way(&head.record, head.record.version - 1, head.record.version);
    assert_non_null(way);
    assert_int_equal(way->patch_count, TILES + 1);
    t->patch_bytes = way_bytes(way);
    for (size_t i = 0; i <= TILES; i++) {
        const struct way one = {.patches = &way->patches[i], .patch_count = 1};

        t->tile_bytes[i] = way_bytes(&one);
        assert_true(t->tile_bytes[i]);
    }
    log_entry_release(&head);
}

static void publish(struct tiled *t, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        struct ulp_run_report report = {0};

        if (t->versions)
            state_step(&t->state, 40);
        assert_ok(ulp_publisher_publish(t->publisher, t->state.tensors, t->state.count, t->versions,
                                        &report));
        assert_int_equal(report.version, t->versions);
        assert_int_equal(report.head.history, 0);
        if (t->versions++)
            look_at_way(t);
        assert_ok(ulp_publisher_anchor(t->publisher, NULL));
    }
}

/* ---- who holds a tile ---- */

struct rank_follower {
    unsigned tile;
    struct state memory; /* garbage where it holds nothing */
    struct state garbage;
    struct ulp_region *regions[2]; /* of the common part, and of the tile */
    size_t counts[2];
    struct ulp_run_options options;
    struct ulp_follower *follower;
};

static struct rank_follower rank_make(const struct tiled *t, unsigned tile) {
    struct rank_follower r = {.tile = tile, .memory = state_copy(&t->state)};

    test_random_bytes(r.memory.data, r.memory.bytes);
    r.garbage = state_copy(&r.memory);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(ulp_tiling_regions(t->tiling, r.memory.tensors, r.memory.count, i ? tile : 0,
                                     &r.regions[i], &r.counts[i]));
    r.options.tiling = t->tiling;
    r.options.tile = tile;
    return r;
}

static void rank_open(struct rank_follower *r, const struct tiled *t) {
    assert_ok(ulp_follower_open_tile(t->store, RUN, r->memory.tensors, r->memory.count, &r->options,
                                     &r->follower));
}

static void rank_free(struct rank_follower *r) {
    ulp_follower_close(r->follower);
    state_free(&r->memory);
    state_free(&r->garbage);
    ulp_regions_free(r->regions[0]);
    ulp_regions_free(r->regions[1]);
}

static void add_report(struct ulp_run_report *sum, const struct ulp_run_report *one) {
    sum->patch_bytes += one->patch_bytes;
    sum->anchor_bytes += one->anchor_bytes;
    sum->fetched_bytes += one->fetched_bytes;
    sum->fetched_anchors += one->fetched_anchors;
    sum->fetched_patches += one->fetched_patches;
    sum->fetched_records += one->fetched_records;
    sum->version = one->version;
}

/* Until nothing is left. */
static struct ulp_run_report catch_up(struct ulp_follower *follower) {
    struct ulp_run_report sum = {0}, report = {0};

    assert_ok(ulp_follower_poll(follower, &report));
    add_report(&sum, &report);
    while (report.ready) {
        assert_ok(ulp_follower_apply(follower, &report));
        add_report(&sum, &report);
        if (!report.apply_left)
            break;
        assert_ok(ulp_follower_poll(follower, &report));
        add_report(&sum, &report);
    }
    return sum;
}

/* The slice is the state's, bit by bit, and what lies around it is the garbage that was there. */
static void assert_slice(const struct rank_follower *r, const struct state *state) {
    struct state expected = state_copy(&r->garbage);

    for (unsigned i = 0; i < 2; i++)
        copy_regions(&expected, state, r->regions[i], r->counts[i]);
    assert_memory_equal(expected.data, r->memory.data, expected.bytes);
    state_free(&expected);
}

static void test_every_tile_at_every_version(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower ranks[TILES];

    (void)unused;
    for (unsigned i = 0; i < TILES; i++)
        ranks[i] = rank_make(&t, i + 1);
    publish(&t, 1);
    for (unsigned i = 0; i < TILES; i++)
        rank_open(&ranks[i], &t);
    for (unsigned version = 0; version < 12; version++) {
        for (unsigned i = 0; i < TILES; i++) {
            struct ulp_run_report report = catch_up(ranks[i].follower);

            assert_int_equal(report.version, version);
            assert_int_equal(report.fetched_anchors, version == 0);
            assert_slice(&ranks[i], &t.state);
            if (!version)
                continue;
            assert_int_equal(report.patch_bytes, t.tile_bytes[0] + t.tile_bytes[i + 1]);
            assert_int_equal(report.fetched_bytes, report.patch_bytes);
            assert_true(report.fetched_bytes < t.patch_bytes * 6 / 10);
        }
        publish(&t, 1);
    }
    for (unsigned i = 0; i < TILES; i++)
        rank_free(&ranks[i]);
    tiled_free(&t);
}

/* Far behind: each version on the way has its root from a record that was verified. */
static void test_far_behind(void **unused) {
    const struct ulp_run_options options = {.anchor_every = 1000, .anchor_share = 1000000};
    struct tiled t = tiled_make(&options);
    struct rank_follower r = rank_make(&t, 3);
    struct ulp_run_report report;

    (void)unused;
    publish(&t, 1);
    rank_open(&r, &t);
    catch_up(r.follower);
    publish(&t, 40);
    report = catch_up(r.follower);
    assert_int_equal(report.version, 40);
    assert_int_equal(report.fetched_patches, 40);
    assert_int_equal(report.fetched_anchors, 0);
    assert_in_range(report.fetched_records, 40, 60); /* one for each, and some to find the newest */
    assert_slice(&r, &t.state);
    rank_free(&r);
    tiled_free(&t);
}

/* An anchor in between, and one that is nearer than all patches together. */
static void test_from_a_later_anchor(void **unused) {
    const struct ulp_run_options options = {.anchor_every = 8, .keep_anchors = 1};
    struct tiled t = tiled_make(&options);
    struct rank_follower r = rank_make(&t, 1);
    struct ulp_run_report report = {0};
    struct state before;

    (void)unused;
    publish(&t, 1);
    rank_open(&r, &t);
    catch_up(r.follower);
    before = state_copy(&t.state);
    publish(&t, 20);
    assert_ok(ulp_follower_poll(r.follower, &report)); /* nothing is seen of it yet */
    assert_true(report.ready);
    assert_int_equal(report.fetched_anchors, 1);
    assert_slice(&r, &before);
    assert_ok(ulp_follower_apply(r.follower, &report));
    catch_up(r.follower);
    assert_slice(&r, &t.state);
    state_free(&before);
    publish(&t, 1);
    assert_int_equal(catch_up(r.follower).fetched_anchors, 0);
    assert_slice(&r, &t.state);
    rank_free(&r);
    tiled_free(&t);
}

/* A version of the past. */
static void test_stops_where_it_is_told(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower r = rank_make(&t, 2);
    struct state then;

    (void)unused;
    publish(&t, 4);
    then = state_copy(&t.state);
    publish(&t, 3);
    r.options.stop_at_version = 1;
    r.options.version = 3;
    rank_open(&r, &t);
    assert_int_equal(catch_up(r.follower).version, 3);
    assert_slice(&r, &then);
    state_free(&then);
    rank_free(&r);
    tiled_free(&t);
}

/* Another record in the place of one that no reader of the newest ones looks at. */
static void forge_record(const struct tiled *t, uint64_t sequence) {
    struct log_entry entry = {0};
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
    char key[ULP_KEY_BYTES_MAX + 1];

    assert_ok(log_read(t->store, RUN, sequence, &entry));
    entry.record.root.bytes[7] ^= 1;
    assert_ok(record_write(&entry.record, NULL, &bytes));
    record_key(RUN, sequence, key);
    assert_ok(ulp_store_put(t->store, key, bytes.data, bytes.used));
    buffer_release(&bytes);
    log_entry_release(&entry);
}

/* The root of a version of the past is that of a record from which the newest one descends. */
static void test_a_forged_past(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower r = rank_make(&t, 1);
    const struct ulp_run_options past = {.stop_at_version = 1, .version = 5};
    struct ulp_run_report report = {0};

    (void)unused;
    publish(&t, 8);
    forge_record(&t, 6); /* from 8 back to 1 the way is 4, 2, 1 */
    r.options.stop_at_version = 1;
    r.options.version = 5;
    rank_open(&r, &t);
    assert_fails(ulp_follower_poll(r.follower, &report), ULP_E_CHAIN, "does not descend");
    assert_fails(ulp_follow(t.store, RUN, path_of(t.top, "f").text, &past, NULL), ULP_E_CHAIN,
                 "does not descend");
    ulp_follower_close(r.follower);
    r.options.stop_at_version = 0; /* on the way to the newest it is looked at, too */
    rank_open(&r, &t);
    assert_fails(ulp_follower_poll(r.follower, &report), ULP_E_CHAIN, "does not descend");
    assert_ok(ulp_follow(t.store, RUN, path_of(t.top, "f").text, NULL, NULL));
    rank_free(&r);
    tiled_free(&t);
}

/* ---- who holds all ---- */

static void test_whole_followers(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct state memory = state_copy(&t.state);
    struct ulp_follower *follower = NULL;
    struct path directory = path_of(t.top, "replica");

    (void)unused;
    publish(&t, 1);
    assert_ok(
        ulp_follower_open_memory(t.store, RUN, memory.tensors, memory.count, NULL, &follower));
    for (unsigned version = 0; version < 10; version++) {
        struct ulp_run_report report = {0};
        struct ulp_root root = root_of(&t.state);

        report = catch_up(follower);
        assert_int_equal(report.version, version);
        assert_same_state(&memory, &t.state);
        assert_ok(ulp_follow(t.store, RUN, directory.text, NULL, &report));
        assert_holds_root(path_of(directory.text, "current").text, &root);
        if (version)
            assert_int_equal(report.patch_bytes, t.patch_bytes);
        publish(&t, 1);
    }
    ulp_follower_close(follower);
    state_free(&memory);
    tiled_free(&t);
}

static void publish_with(struct tiled *t, struct ulp_publisher *publisher) {
    struct ulp_run_report report = {0};

    state_step(&t->state, 40);
    assert_ok(
        ulp_publisher_publish(publisher, t->state.tensors, t->state.count, t->versions++, &report));
}

/* Publishers with and without a tiling, on disk and in memory, take turns: nobody is promised
 * history that a follower in memory does not have. */
static void test_tiled_and_whole_in_turn(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct state memory = state_copy(&t.state);
    struct ulp_follower *follower = NULL;
    struct path directory = path_of(t.top, "state");

    (void)unused;
    publish(&t, 2);
    assert_ok(
        ulp_follower_open_memory(t.store, RUN, memory.tensors, memory.count, NULL, &follower));
    for (unsigned i = 0; i < 12; i++) {
        const struct ulp_run_options tiled = {.tiling = t.tiling}, whole = {0};
        struct ulp_publisher *publisher = NULL;

        assert_ok(ulp_publisher_open(t.store, RUN, i % 4 < 2 ? directory.text : NULL,
                                     i % 3 ? &whole : &tiled, &publisher));
        publish_with(&t, publisher);
        publish_with(&t, publisher);
        ulp_publisher_close(publisher);
        catch_up(follower);
        assert_same_state(&memory, &t.state);
        assert_ok(ulp_follow(t.store, RUN, path_of(t.top, "f").text, NULL, NULL));
    }
    ulp_follower_close(follower);
    state_free(&memory);
    tiled_free(&t);
}

/* Should a publisher promise it all the same, the plan leads around it. */
static void test_no_history_behind_tiles(void **unused) {
    static const struct part part = {.folder = 1, .bytes = 10};
    static const struct stored_patch patches[] = {{&part, 1}, {&part, 1}};
    struct way ways[] = {
        {.from = 0, .to = 1, .patches = patches, .patch_count = 2},
        {.from = 1, .to = 2, .history = true, .patches = patches, .patch_count = 1}};
    const struct anchor anchor = {.reference = ""};
    const struct record record = {
        .version = 2, .anchors = &anchor, .anchor_count = 1, .ways = ways, .way_count = 2};
    const struct held none = {0};
    struct arena arena = {0};
    struct plan plan = {0};

    (void)unused;
    assert_fails(plan_make(&record, &none, 2, &arena, &plan), ULP_E_UNREACHABLE, "");
    ways[0].patch_count = 1;
    assert_ok(plan_make(&record, &none, 2, &arena, &plan));
    assert_int_equal(plan.way_count, 2);
    arena_release(&arena);
}

/* Care of a run in tiles: no long ways are made of them, and nothing that is needed is deleted. */
static void test_care(void **unused) {
    const struct ulp_run_options options = {.anchor_every = 8, .keep_anchors = 1};
    const struct ulp_collect_options now = {.now = 1};
    struct tiled t = tiled_make(&options);
    struct rank_follower r = rank_make(&t, 3);
    struct ulp_collect_report collected = {0};
    struct ulp_run_report report = {0};
    struct ulp_run_health health = {0};

    (void)unused;
    publish(&t, 20);
    assert_ok(ulp_run_tend(t.store, RUN, path_of(t.top, "tender").text, NULL, &report));
    assert_int_equal(report.fresh, 0);
    assert_ok(ulp_run_collect(t.store, RUN, &now, &collected));
    assert_true(collected.deleted > 8 * TILES);
    assert_ok(ulp_run_check(t.store, RUN, NULL, NULL, &health));
    assert_true(health.reachable && !health.damaged);
    rank_open(&r, &t);
    assert_int_equal(catch_up(r.follower).version, 19);
    assert_slice(&r, &t.state);
    publish(&t, 3);
    catch_up(r.follower);
    assert_slice(&r, &t.state);
    rank_free(&r);
    tiled_free(&t);
}

/* ---- out of memory ---- */

/* From nothing to the newest version, without asserting anything. */
static enum ulp_status whole_life(const struct tiled *t, const struct rank_follower *r) {
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_follower_open_tile(t->store, RUN, r->memory.tensors,
                                                    r->memory.count, &r->options, &follower);

    if (!status)
        status = ulp_follower_poll(follower, &report);
    while (!status && report.ready) {
        status = ulp_follower_apply(follower, &report);
        if (!status && report.apply_left)
            status = ulp_follower_poll(follower, &report);
    }
    ulp_follower_close(follower);
    return status;
}

/* Whichever allocation fails: it is said, nothing leaks, and the next one arrives. */
static void test_out_of_memory(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower r = rank_make(&t, 2);
    uint64_t calls = UINT64_MAX;
    unsigned failures = 0;
    enum ulp_status status = ULP_E_NOMEM;

    (void)unused;
    publish(&t, 3);
    for (uint64_t at = 0; status || at < calls; at += 5) {
        failing_allocator_start(at, at % 2);
        status = whole_life(&t, &r);
        calls = failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        failures += status != ULP_OK;
    }
    assert_true(failures > 20);
    assert_ok(whole_life(&t, &r));
    assert_slice(&r, &t.state);
    rank_free(&r);
    tiled_free(&t);
}

/* ---- refusals ---- */

static void refuse(const struct tiled *t, const struct ulp_run_options *options,
                   enum ulp_status expected, const char *text) {
    struct state memory = state_copy(&t->state);
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status =
        ulp_follower_open_tile(t->store, RUN, memory.tensors, memory.count, options, &follower);

    for (unsigned i = 0; !status && i < 10; i++) {
        status = ulp_follower_poll(follower, &report);
        if (!status && report.ready)
            status = ulp_follower_apply(follower, &report);
    }
    assert_fails(status, expected, text);
    ulp_follower_close(follower);
    state_free(&memory);
}

static void test_refusals(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct ulp_tiling *fewer = NULL, *other = NULL, *common = NULL;
    struct ulp_run_options options = {.tiling = t.tiling};

    (void)unused;
    publish(&t, 3);
    refuse(&t, &options, ULP_E_USAGE, "numbered from 1");
    options.tile = TILES + 1;
    refuse(&t, &options, ULP_E_USAGE, "numbered from 1");
    assert_ok(ulp_tiling_new(RULES, 2, &fewer));
    assert_ok(ulp_tiling_new("*.down rows\n", TILES, &other));
    assert_ok(ulp_tiling_new("* common\n", TILES, &common));
    options = (struct ulp_run_options){.tiling = fewer, .tile = 1};
    refuse(&t, &options, ULP_E_UNREACHABLE, "0 of 2 ways of run 'rl' are cut into 2 tiles");
    options.tiling = other;
    refuse(&t, &options, ULP_E_REGIONS, "");
    options.tiling = common; /* everything is common: it holds all, but not by these patches */
    refuse(&t, &options, ULP_E_REGIONS, "");
    options.tiling = NULL;
    refuse(&t, &options, ULP_E_USAGE, "tiling");
    ulp_tiling_free(fewer);
    ulp_tiling_free(other);
    ulp_tiling_free(common);
    tiled_free(&t);
}

/* A whole patch in between is no way for who holds a tile; an anchor behind it is. */
static void test_a_whole_step_in_between(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower r = rank_make(&t, 4);
    struct ulp_publisher *whole = NULL;
    struct ulp_run_report report = {0};
    const struct ulp_run_options every = {.anchor_every = 1};

    (void)unused;
    publish(&t, 3);
    rank_open(&r, &t);
    catch_up(r.follower);
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &every, &whole));
    publish_with(&t, whole);
    assert_fails(ulp_follower_poll(r.follower, &report), ULP_E_UNREACHABLE, "2 of 3 ways");
    while (t.versions <= 8)
        publish_with(&t, whole);
    assert_ok(ulp_publisher_anchor(whole, &report));
    assert_true(report.fresh);
    assert_int_equal(catch_up(r.follower).fetched_anchors, 1);
    assert_slice(&r, &t.state);
    ulp_publisher_close(whole);
    rank_free(&r);
    tiled_free(&t);
}

/* What memory holds of a tile cannot be recognised: whoever starts anew loads an anchor, and is not
 * fooled by weights that somebody wrote to. */
static void test_disturbed_memory(void **unused) {
    struct tiled t = tiled_make(NULL);
    struct rank_follower r = rank_make(&t, 2);
    const struct ulp_region *region;

    (void)unused;
    publish(&t, 2);
    rank_open(&r, &t);
    catch_up(r.follower);
    publish(&t, 1);
    region = &r.regions[1][0];
    for (size_t i = 0; i < r.memory.count; i++) {
        if (!strcmp(r.memory.tensors[i].name, region->tensor))
            ((uint8_t *)r.memory.tensors[i].data)[region->row * 48 * 2 + 5] ^= 4;
    }
    ulp_follower_close(r.follower);
    rank_open(&r, &t);
    assert_int_equal(catch_up(r.follower).fetched_anchors, 1);
    assert_slice(&r, &t.state);
    rank_free(&r);
    tiled_free(&t);
}

/* A tile that has nothing has no patch, and its parts are none: everything is common but one. */
static void test_empty_tiles(void **unused) {
    struct ulp_tiling *tiling = NULL;
    struct ulp_store *store = NULL;
    struct ulp_publisher *publisher = NULL;
    struct ulp_follower *follower = NULL;
    struct state state = state_make(forms, COUNT(forms), 0), memory = state_copy(&state);
    struct ulp_run_options options = {.tile = 2};

    (void)unused;
    assert_ok(ulp_tiling_new("* common\n", 3, &tiling));
    options.tiling = tiling;
    assert_ok(ulp_store_memory(&store));
    assert_ok(ulp_publisher_open(store, RUN, NULL, &options, &publisher));
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(ulp_publisher_publish(publisher, state.tensors, state.count, i, NULL));
        state_step(&state, 10);
    }
    assert_ok(ulp_publisher_publish(publisher, state.tensors, state.count, 3, NULL));
    assert_ok(
        ulp_follower_open_tile(store, RUN, memory.tensors, memory.count, &options, &follower));
    assert_int_equal(catch_up(follower).version, 3);
    assert_same_state(&memory, &state); /* the common part is all */
    ulp_follower_close(follower);
    ulp_publisher_close(publisher);
    ulp_store_free(store);
    ulp_tiling_free(tiling);
    state_free(&memory);
    state_free(&state);
}

TEST_MAIN(test_every_tile_at_every_version, test_far_behind, test_from_a_later_anchor,
          test_stops_where_it_is_told, test_a_forged_past, test_whole_followers,
          test_tiled_and_whole_in_turn, test_no_history_behind_tiles, test_care, test_out_of_memory,
          test_refusals, test_a_whole_step_in_between, test_disturbed_memory, test_empty_tiles)
