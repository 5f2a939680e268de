// SPDX-License-Identifier: Apache-2.0
/* Ranks that publish a tile each: one version of all of them, or none. */
#include "sync/contribution.h"
#include "tests/sync/team.h"

/* ---- together ---- */

static void test_steps(void **unused) {
    struct team team = team_make(true, true);

    (void)unused;
    for (unsigned i = 0; i < 10; i++)
        step_together(&team, i % TILES);
    assert_int_equal(team_version(&team), 10);
    assert_int_equal(team_records(&team), 11);
    ulp_tile_writer_close(team.ranks[2].writer); /* one that starts anew goes on */
    rank_open(&team, 2);
    step_together(&team, 2);
    team_free(&team);
}

/* A settled rank compares with its own copy: it fetched nothing to get there. */
static void test_nothing_is_fetched(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_run_report report = {0};
    struct set set;

    (void)unused;
    step_together(&team, 0);
    state_step(&team.state, 50);
    contribute_all(&team, 2);
    set = set_of(&team);
    assert_ok(ulp_tile_writer_commit(team.ranks[1].writer, set.contributions, set.sizes, set.count,
                                     2, &report));
    assert_true(report.fresh && report.fetched_bytes > 0); /* tables */
    for (unsigned i = 0; i < TILES; i++) {
        assert_ok(ulp_tile_writer_settle(team.ranks[i].writer, &report));
        assert_int_equal(report.fetched_bytes, 0);
        assert_int_equal(report.fresh, 1);
    }
    team_free(&team);
}

/* Who only changes the map is in nobody's way. */
static void test_a_map_that_changes_meanwhile(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_publisher *keeper = NULL;
    const struct ulp_run_options options = {.anchor_every = 1};
    struct ulp_run_report report = {0};
    struct set set;

    (void)unused;
    for (unsigned i = 0; i < 8; i++)
        step_together(&team, 0);
    state_step(&team.state, 50);
    for (unsigned i = 0; i < 2; i++)
        contribute_state(&team, i, &team.state, 9);
    assert_ok(ulp_publisher_open(team.store, RUN, NULL, &options, &keeper));
    assert_ok(ulp_publisher_anchor(keeper, &report));
    assert_true(report.fresh);
    ulp_publisher_close(keeper);
    for (unsigned i = 2; i < TILES; i++)
        contribute_state(&team, i, &team.state, 9);
    set = set_of(&team);
    assert_ok(commit_set(&team, 0, &set, 9));
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 1);
    assert_published(&team, &team.state);
    team_free(&team);
}

/* A deletion that may have hit the parts: they are contributed again. */
static void test_a_deletion_meanwhile(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_publisher *keeper = NULL;
    const struct ulp_run_options options = {.anchor_every = 1};
    const struct ulp_collect_options now = {.now = 1, .keep_anchors = 1};
    struct ulp_collect_report collected = {0};
    struct set set;

    (void)unused;
    for (unsigned i = 0; i < 8; i++)
        step_together(&team, 0);
    state_step(&team.state, 50);
    contribute_all(&team, 9);
    assert_ok(ulp_publisher_open(team.store, RUN, NULL, &options, &keeper));
    assert_ok(ulp_publisher_anchor(keeper, NULL));
    ulp_publisher_close(keeper);
    assert_ok(ulp_run_collect(team.store, RUN, &now, &collected));
    assert_true(collected.deleted > 0);
    set = set_of(&team);
    assert_fails(commit_set(&team, 0, &set, 9), ULP_E_PART_MISSING, "contribute again");
    assert_int_equal(team_version(&team), 8);
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 0);
    contribute_all(&team, 9);
    set = set_of(&team);
    assert_ok(commit_set(&team, 0, &set, 9));
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 1);
    assert_published(&team, &team.state);
    team_free(&team);
}

/* ---- none ---- */

static void refused(struct team *team, const struct set *set, uint64_t step,
                    enum ulp_status expected, const char *text) {
    const uint64_t before = team_records(team);

    for (unsigned i = 0; i < TILES; i += TILES - 1)
        assert_fails(commit_set(team, i, set, step), expected, text);
    assert_int_equal(team_records(team), before);
}

static void test_all_or_nothing(void **unused) {
    struct team team = team_make(true, true), other = team_make(true, true);
    struct set set, bad;
    unsigned char copy[4096];

    (void)unused;
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    set = set_of(&team);
    for (unsigned i = 0; i < TILES; i++) { /* one is missing */
        bad = set;
        bad.contributions[i] = bad.contributions[TILES - 1];
        bad.sizes[i] = bad.sizes[TILES - 1];
        bad.count--;
        refused(&team, &bad, 1, ULP_E_REGIONS, i ? "was not contributed" : "tile 0");
    }
    bad = set; /* one is there twice */
    bad.contributions[bad.count] = bad.contributions[1];
    bad.sizes[bad.count++] = bad.sizes[1];
    refused(&team, &bad, 1, ULP_E_DUPLICATE, "tile 2");
    bad.count = 0;
    refused(&team, &bad, 1, ULP_E_REGIONS, "tile 0");
    refused(&team, &set, 2, ULP_E_USAGE, "for step 1");
    contribute_all(&other, 1);
    bad = set;
    bad.contributions[2] = other.ranks[2].contribution;
    bad.sizes[2] = other.ranks[2].bytes;
    refused(&team, &bad, 1, ULP_E_OTHER_RUN, "another run");
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 0);
    assert_true(set.sizes[0] <= sizeof copy);
    memcpy(copy, set.contributions[0], set.sizes[0]);
    assert_ok(commit_set(&team, 3, &set, 1)); /* and all of them together are good */
    refused(&team, &set, 1, ULP_E_FENCED, "published meanwhile");
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 1);
    state_step(&team.state, 50);
    contribute_all(&team, 1); /* an old one among new ones */
    bad = set_of(&team);
    bad.contributions[0] = copy;
    refused(&team, &bad, 1, ULP_E_FENCED, "starts from version 0");
    assert_settles(&team, 0, 0);
    team_free(&other);
    team_free(&team);
}

/* Ranks with other rules, or another number of tiles. */
static void test_other_tilings(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_tiling *rows = NULL, *six = NULL;
    struct set set;

    (void)unused;
    assert_ok(ulp_tiling_new("*.down rows\n", TILES, &rows));
    assert_ok(ulp_tiling_new("* common\n", 6, &six));
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct ulp_run_options options = {.tiling = i ? six : rows, .tile = 1};
        struct ulp_tile_writer *writer = NULL;

        assert_ok(ulp_tile_writer_open(team.store, RUN, team.state.tensors, team.state.count,
                                       &options, &writer));
        set = set_of(&team);
        assert_ok(ulp_tile_writer_contribute(writer, team.state.tensors, team.state.count, 1,
                                             &set.contributions[0], &set.sizes[0], NULL));
        refused(&team, &set, 1, ULP_E_REGIONS, i ? "one of 6 tiles" : "covers other regions");
        ulp_tile_writer_close(writer);
    }
    ulp_tiling_free(rows);
    ulp_tiling_free(six);
    team_free(&team);
}

static void test_damaged_bits(void **unused) {
    struct team team = team_make(true, true);
    struct set set, bad;
    unsigned char copy[4096];
    const uint64_t before = team_records(&team);

    (void)unused;
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    bad = set = set_of(&team);
    assert_true(set.sizes[0] <= sizeof copy);
    bad.contributions[0] = copy;
    for (size_t bit = 0; bit < set.sizes[0] * 8; bit++) {
        enum ulp_status status;

        memcpy(copy, set.contributions[0], set.sizes[0]);
        copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
        status = commit_set(&team, 0, &bad, 1);
        assert_true(status == ULP_E_CHECKSUM || status == ULP_E_RECORD || status == ULP_E_VERSION);
    }
    memcpy(copy, set.contributions[0], set.sizes[0]);
    for (size_t bytes = 0; bytes < set.sizes[0]; bytes++) {
        bad.sizes[0] = bytes;
        assert_int_not_equal(commit_set(&team, 0, &bad, 1), ULP_OK);
    }
    assert_int_equal(team_records(&team), before);
    assert_ok(commit_set(&team, 0, &set, 1));
    team_free(&team);
}

/* A contribution that was made by somebody else, with a hash that is right. */
struct forgery {
    enum ulp_status expected;
    const char *text;
    void (*forge)(struct contribution *c, struct part *part);
};

static void forge_hash(struct contribution *c, struct part *part) {
    (void)c;
    part->hash.bytes[4] ^= 1;
}
static void forge_folder(struct contribution *c, struct part *part) {
    (void)c;
    part->folder++;
}
static void forge_bytes(struct contribution *c, struct part *part) {
    (void)c;
    part->bytes++;
}
static void forge_long(struct contribution *c, struct part *part) {
    (void)c;
    part->bytes = UINT64_MAX;
}
static void forge_seal(struct contribution *c, struct part *part) {
    (void)part;
    c->patches[0].seal.bytes[31] ^= 128;
}
static void forge_changes(struct contribution *c, struct part *part) {
    (void)part;
    c->patches[0].changes++;
}
static void forge_version(struct contribution *c, struct part *part) {
    (void)part;
    c->version++;
}
static void forge_root(struct contribution *c, struct part *part) {
    (void)part;
    c->root.bytes[0] ^= 1;
}
static void forge_tile(struct contribution *c, struct part *part) {
    (void)part;
    c->patches[0].tile = 1;
}
static void forge_step(struct contribution *c, struct part *part) {
    (void)part;
    c->step = 7;
}

static const struct forgery forgeries[] = {
    {ULP_E_PART_MISSING, "missing", forge_hash},
    {ULP_E_PART_MISSING, "missing", forge_folder},
    {ULP_E_PART, "length", forge_bytes},
    {ULP_E_PART, "length", forge_long},
    {ULP_E_PART, "table", forge_seal},
    {ULP_E_PART, "other changes", forge_changes},
    {ULP_E_WRONG_BASE, "another version", forge_version},
    {ULP_E_WRONG_BASE, "another version", forge_root},
    {ULP_E_DUPLICATE, "tile 1", forge_tile},
    {ULP_E_USAGE, "step 7", forge_step},
};

static void test_forged(void **unused) {
    struct team team = team_make(true, true);
    struct set set;

    (void)unused;
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    for (size_t i = 0; i < COUNT(forgeries); i++) {
        struct buffer bytes = BUFFER(4096);
        struct arena arena = {0};
        struct contribution c;
        struct part part;

        set = set_of(&team);
        assert_ok(contribution_read(set.contributions[2], set.sizes[2], &arena, &c));
        assert_int_equal(c.count, 1);
        part = c.patches[0].stored.parts[0];
        c.patches[0].stored.parts = &part;
        forgeries[i].forge(&c, &part);
        assert_ok(contribution_write(&c, &bytes));
        set.contributions[2] = bytes.data;
        set.sizes[2] = bytes.used;
        refused(&team, &set, 1, forgeries[i].expected, forgeries[i].text);
        buffer_release(&bytes);
        arena_release(&arena);
    }
    set = set_of(&team);
    assert_ok(commit_set(&team, 0, &set, 1));
    team_free(&team);
}

/* Somebody publishes the whole state in between. */
static void test_somebody_else_publishes(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_publisher *publisher = NULL;
    const struct ulp_run_options options = {.tiling = team.tiling};
    struct ulp_run_report report = {0};
    struct set set;

    (void)unused;
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    set = set_of(&team);
    state_step(&team.state, 50);
    assert_ok(ulp_publisher_open(team.store, RUN, NULL, &options, &publisher));
    assert_ok(ulp_publisher_publish(publisher, team.state.tensors, team.state.count, 1, NULL));
    ulp_publisher_close(publisher);
    refused(&team, &set, 1, ULP_E_FENCED, "published meanwhile");
    for (unsigned i = 0; i < TILES; i++) {
        assert_fails(ulp_tile_writer_settle(team.ranks[i].writer, &report), ULP_E_FENCED,
                     "somebody else");
        assert_settles(&team, i, 0); /* once it was said, it is over */
    }
    team.versions = 2;
    step_together(&team, 1); /* and they go on from there */
    team_free(&team);
}

/* Only who commits signs. */
static void test_signed(void **unused) {
    struct team team = team_make(true, true);
    struct ulp_key *key = NULL;
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_options options = {.tiling = team.tiling, .tile = 4};
    struct ulp_run_record head;
    struct set set;

    (void)unused;
    if (ulp_key_generate(&key)) { /* a build without signatures */
        team_free(&team);
        skip();
    }
    options.sign = key;
    assert_ok(ulp_publisher_open(team.store, RUN, NULL, &options, &publisher));
    assert_ok(ulp_publisher_publish(publisher, team.state.tensors, team.state.count, 9, NULL));
    ulp_publisher_close(publisher);
    ulp_tile_writer_close(team.ranks[3].writer);
    assert_ok(ulp_tile_writer_open(team.store, RUN, team.state.tensors, team.state.count, &options,
                                   &team.ranks[3].writer));
    state_step(&team.state, 50);
    contribute_all(&team, 10);
    set = set_of(&team);
    assert_fails(commit_set(&team, 0, &set, 10), ULP_E_UNSIGNED, "needs its key");
    assert_ok(commit_set(&team, 3, &set, 10));
    assert_ok(ulp_run_head(team.store, RUN, &head));
    assert_true(head.is_signed);
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(&team, i, 1);
    assert_published(&team, &team.state);
    ulp_key_free(key);
    team_free(&team);
}

/* ---- out of memory ---- */

/* One rank is the whole team: a tile of one, contributed, committed and settled. */
static enum ulp_status whole_life(const struct team *team, const struct ulp_tiling *one,
                                  uint64_t step) {
    const struct ulp_run_options options = {.tiling = one, .tile = 1};
    struct ulp_tile_writer *writer = NULL;
    const void *contribution = NULL;
    size_t bytes = 0;
    enum ulp_status status = ulp_tile_writer_open(team->store, RUN, team->state.tensors,
                                                  team->state.count, &options, &writer);

    if (!status)
        status = ulp_tile_writer_contribute(writer, team->state.tensors, team->state.count, step,
                                            &contribution, &bytes, NULL);
    if (!status)
        status = ulp_tile_writer_commit(writer, &contribution, &bytes, 1, step, NULL);
    if (!status)
        status = ulp_tile_writer_settle(writer, NULL);
    ulp_tile_writer_close(writer);
    return status;
}

/* Whichever allocation fails: it is said, nothing leaks, and the version is there or is not. */
static void test_out_of_memory(void **unused) {
    struct ulp_tiling *one = NULL;
    uint64_t calls = UINT64_MAX;
    unsigned failures = 0;
    enum ulp_status status = ULP_E_NOMEM;

    (void)unused;
    assert_ok(ulp_tiling_new(RULES, 1, &one));
    for (uint64_t at = 0; status || at < calls; at += 7) {
        struct team team = team_make(false, true);
        struct state before = state_copy(&team.state);

        state_step(&team.state, 50);
        failing_allocator_start(at, at % 2);
        status = whole_life(&team, one, 1);
        calls = failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        assert_in_range(team_version(&team), !status, 1);
        assert_published(&team, team_version(&team) ? &team.state : &before);
        failures += status != ULP_OK;
        state_free(&before);
        team_free(&team);
    }
    assert_true(failures > 20);
    ulp_tiling_free(one);
}

TEST_MAIN(test_steps, test_nothing_is_fetched, test_a_map_that_changes_meanwhile,
          test_a_deletion_meanwhile, test_all_or_nothing, test_other_tilings, test_damaged_bits,
          test_forged, test_somebody_else_publishes, test_signed, test_out_of_memory)
