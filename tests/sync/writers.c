// SPDX-License-Identifier: Apache-2.0
/* Ranks that publish a tile each: one version of all of them, or none. */
#include "chain/map.h"
#include "sync/contribution.h"
#include "sync/run_log.h"
#include "tests/patch/disk.h"
#include "tests/patch/tile_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN "rl"
#define TILES 4u
#define RULES "*.down columns\n"
#define STEPS 20u

static const struct form forms[] = {{"embed", "BF16", {32, 24}, 2, 0},
                                    {"l0.down", "BF16", {20, 64}, 2, 0},
                                    {"l0.up", "F32", {16, 12}, 2, 0},
                                    {"norm", "F32", {31}, 1, 0},
                                    {"step", "I64", {0}, 0, 0}};

struct rank_writer {
    unsigned tile;
    struct ulp_run_options options;
    struct ulp_tile_writer *writer;
    const void *contribution;
    size_t bytes;
};

struct team {
    char *top;
    struct ulp_store *store;
    struct ulp_tiling *tiling;
    struct state state;
    uint64_t versions;
    struct rank_writer ranks[TILES];
};

/* ---- the team ---- */

static void rank_open(struct team *team, unsigned index) {
    struct rank_writer *r = &team->ranks[index];
    struct state shapes = state_copy(&team->state);

    for (size_t i = 0; i < shapes.count; i++)
        shapes.tensors[i].data = NULL;
    *r = (struct rank_writer){.tile = index + 1,
                              .options = {.tiling = team->tiling, .tile = index + 1}};
    assert_ok(ulp_tile_writer_open(team->store, RUN, shapes.tensors, shapes.count, &r->options,
                                   &r->writer));
    state_free(&shapes);
}

/* The run begins with a whole state. */
static void begin(struct team *team) {
    struct ulp_publisher *publisher = NULL;

    assert_ok(ulp_publisher_open(team->store, RUN, NULL, NULL, &publisher));
    assert_ok(ulp_publisher_publish(publisher, team->state.tensors, team->state.count, 0, NULL));
    ulp_publisher_close(publisher);
    team->versions = 1;
}

static struct team team_make(bool in_memory) {
    struct team team = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};

    assert_ok(in_memory ? ulp_store_memory(&team.store)
                        : ulp_store_open(path_of(team.top, "store").text, &team.store));
    assert_ok(ulp_tiling_new(RULES, TILES, &team.tiling));
    begin(&team);
    for (unsigned i = 0; i < TILES; i++)
        rank_open(&team, i);
    return team;
}

static void team_free(struct team *team) {
    for (unsigned i = 0; i < TILES; i++)
        ulp_tile_writer_close(team->ranks[i].writer);
    ulp_store_free(team->store);
    ulp_tiling_free(team->tiling);
    state_free(&team->state);
    temp_directory_remove(team->top);
}

/* What a rank has of a state in its memory: its tile, garbage elsewhere. */
static struct state tile_of(const struct team *team, const struct state *state, unsigned tile) {
    struct state memory = state_copy(state);

    test_random_bytes(memory.data, memory.bytes);
    for (unsigned of = tile == 1 ? 0 : tile; of <= tile; of++) {
        struct ulp_region *regions = NULL;
        size_t count = 0;

        assert_ok(
            ulp_tiling_regions(team->tiling, state->tensors, state->count, of, &regions, &count));
        copy_regions(&memory, state, regions, count);
        ulp_regions_free(regions);
    }
    return memory;
}

static void contribute_state(struct team *team, unsigned index, const struct state *state,
                             uint64_t step) {
    struct rank_writer *r = &team->ranks[index];
    struct state memory = tile_of(team, state, r->tile);
    struct ulp_run_report report = {0};

    assert_ok(ulp_tile_writer_contribute(r->writer, memory.tensors, memory.count, step,
                                         &r->contribution, &r->bytes, &report));
    assert_int_equal(report.fresh, 0);
    state_free(&memory);
}

static void contribute_all(struct team *team, uint64_t step) {
    for (unsigned i = 0; i < TILES; i++)
        contribute_state(team, i, &team->state, step);
}

struct set {
    const void *contributions[TILES + 2];
    size_t sizes[TILES + 2];
    size_t count;
};

static struct set set_of(const struct team *team) {
    struct set set = {.count = TILES};

    for (unsigned i = 0; i < TILES; i++) {
        set.contributions[i] = team->ranks[i].contribution;
        set.sizes[i] = team->ranks[i].bytes;
    }
    return set;
}

static enum ulp_status commit_set(struct team *team, unsigned committer, const struct set *set,
                                  uint64_t step) {
    return ulp_tile_writer_commit(team->ranks[committer].writer, set->contributions, set->sizes,
                                  set->count, step, NULL);
}

static uint64_t records(const struct team *team) {
    struct ulp_run_record head;

    assert_ok(ulp_run_head(team->store, RUN, &head));
    return head.sequence;
}

static uint64_t version_of(const struct team *team) {
    struct ulp_run_record head;

    assert_ok(ulp_run_head(team->store, RUN, &head));
    return head.version;
}

static void assert_settles(struct team *team, unsigned index, int fresh) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_tile_writer_settle(team->ranks[index].writer, &report));
    assert_int_equal(report.fresh, fresh);
    assert_int_equal(report.version, version_of(team));
}

/* Whoever follows the whole run gets the state that the ranks made together. */
static void assert_published(const struct team *team, const struct state *state) {
    struct state memory = state_copy(state);
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};

    memset(memory.data, 0, memory.bytes);
    assert_ok(
        ulp_follower_open_memory(team->store, RUN, memory.tensors, memory.count, NULL, &follower));
    do {
        assert_ok(ulp_follower_poll(follower, &report));
        if (report.ready)
            assert_ok(ulp_follower_apply(follower, &report));
    } while (report.apply_left);
    assert_int_equal(report.version, version_of(team));
    assert_same_state(&memory, state);
    ulp_follower_close(follower);
    state_free(&memory);
}

static void step_together(struct team *team, unsigned committer) {
    struct set set;

    state_step(&team->state, 50);
    contribute_all(team, team->versions);
    set = set_of(team);
    assert_ok(commit_set(team, committer, &set, team->versions));
    for (unsigned i = 0; i < TILES; i++)
        assert_settles(team, i, 1);
    team->versions++;
    assert_published(team, &team->state);
}

/* ---- together ---- */

static void test_steps(void **unused) {
    struct team team = team_make(true);

    (void)unused;
    for (unsigned i = 0; i < 10; i++)
        step_together(&team, i % TILES);
    assert_int_equal(version_of(&team), 10);
    assert_int_equal(records(&team), 11);
    ulp_tile_writer_close(team.ranks[2].writer); /* one that starts anew goes on */
    rank_open(&team, 2);
    step_together(&team, 2);
    team_free(&team);
}

/* A settled rank compares with its own copy: it fetched nothing to get there. */
static void test_nothing_is_fetched(void **unused) {
    struct team team = team_make(true);
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
    struct team team = team_make(true);
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
    struct team team = team_make(true);
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
    assert_int_equal(version_of(&team), 8);
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
    const uint64_t before = records(team);

    for (unsigned i = 0; i < TILES; i += TILES - 1)
        assert_fails(commit_set(team, i, set, step), expected, text);
    assert_int_equal(records(team), before);
}

static void test_all_or_nothing(void **unused) {
    struct team team = team_make(true), other = team_make(true);
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
    struct team team = team_make(true);
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
    struct team team = team_make(true);
    struct set set, bad;
    unsigned char copy[4096];
    const uint64_t before = records(&team);

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
    assert_int_equal(records(&team), before);
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
    struct team team = team_make(true);
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
    struct team team = team_make(true);
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
    struct team team = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};
    struct ulp_key *key = NULL;
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_options options = {0};
    struct ulp_run_record head;
    struct set set;

    (void)unused;
    assert_ok(ulp_key_generate(&key));
    options.sign = key;
    assert_ok(ulp_store_memory(&team.store));
    assert_ok(ulp_tiling_new(RULES, TILES, &team.tiling));
    assert_ok(ulp_publisher_open(team.store, RUN, NULL, &options, &publisher));
    assert_ok(ulp_publisher_publish(publisher, team.state.tensors, team.state.count, 0, NULL));
    ulp_publisher_close(publisher);
    for (unsigned i = 0; i < TILES; i++)
        rank_open(&team, i);
    ulp_tile_writer_close(team.ranks[3].writer);
    options.tiling = team.tiling;
    options.tile = 4;
    assert_ok(ulp_tile_writer_open(team.store, RUN, team.state.tensors, team.state.count, &options,
                                   &team.ranks[3].writer));
    state_step(&team.state, 50);
    contribute_all(&team, 1);
    set = set_of(&team);
    assert_fails(commit_set(&team, 0, &set, 1), ULP_E_UNSIGNED, "needs its key");
    assert_ok(commit_set(&team, 3, &set, 1));
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
        struct team team = team_make(false);
        struct state before = state_copy(&team.state);

        state_step(&team.state, 50);
        failing_allocator_start(at, at % 2);
        status = whole_life(&team, one, 1);
        calls = failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        assert_in_range(version_of(&team), !status, 1);
        assert_published(&team, version_of(&team) ? &team.state : &before);
        failures += status != ULP_OK;
        state_free(&before);
        team_free(&team);
    }
    assert_true(failures > 20);
    ulp_tiling_free(one);
}

/* ---- processes ---- */

/* The state of a step, the same in every process. */
static void step_to(struct state *state, unsigned step) {
    test_random_seed(1000 + step);
    state_step(state, 50);
}

static void nap(void) {
    const struct timespec a_bit = {.tv_nsec = 2000000};

    nanosleep(&a_bit, NULL);
}

static struct path blob_path(const struct team *team, unsigned step, unsigned tile) {
    char name[64];

    snprintf(name, sizeof name, "step-%u-tile-%u", step, tile);
    return path_of(team->top, name);
}

/* Appears complete. */
static void send_blob(const struct team *team, unsigned step, const struct rank_writer *r) {
    struct path to = blob_path(team, step, r->tile), unfinished = to;

    strcat(unfinished.text, ".tmp");
    write_file(unfinished.text, r->contribution, r->bytes);
    assert_int_equal(rename(unfinished.text, to.text), 0);
}

static bool blob_is_there(const struct team *team, unsigned step, unsigned tile) {
    return !access(blob_path(team, step, tile).text, R_OK);
}

static enum ulp_status commit_files(struct team *team, unsigned step, unsigned index) {
    struct bytes blobs[TILES];
    struct set set = {.count = 0};
    enum ulp_status status;

    for (unsigned tile = 1; tile <= TILES; tile++) {
        if (!blob_is_there(team, step, tile))
            continue;
        blobs[set.count] = file_bytes(blob_path(team, step, tile).text);
        set.contributions[set.count] = blobs[set.count].data;
        set.sizes[set.count] = blobs[set.count].used;
        set.count++;
    }
    status = commit_set(team, index, &set, step);
    for (size_t i = 0; i < set.count; i++)
        bytes_free(&blobs[i]);
    return status;
}

static void wait_for_blobs(const struct team *team, unsigned step) {
    for (unsigned tile = 1; tile <= TILES; tile++) {
        while (!blob_is_there(team, step, tile))
            nap();
    }
}

static void wait_until_settled(struct team *team, unsigned index) {
    struct ulp_run_report report = {0};

    for (;;) {
        assert_ok(ulp_tile_writer_settle(team->ranks[index].writer, &report));
        if (report.fresh)
            return;
        nap();
    }
}

/* What a rank's process does: all steps, the first rank commits. */
static void be_rank(struct team *team, unsigned index, unsigned steps) {
    struct state state = state_copy(&team->state);

    for (unsigned step = 1; step <= steps; step++) {
        step_to(&state, step);
        contribute_state(team, index, &state, step);
        send_blob(team, step, &team->ranks[index]);
        if (!index) {
            wait_for_blobs(team, step);
            assert_ok(commit_files(team, step, index));
        }
        wait_until_settled(team, index);
    }
    state_free(&state);
}

typedef void (*rank_work)(struct team *team, unsigned index, unsigned steps);

/* A process of its own, with a handle of its own on the store. */
static pid_t start_rank(struct team *team, unsigned index, unsigned steps, rank_work work) {
    pid_t child = fork();

    assert_true(child >= 0);
    if (child)
        return child;
    assert_ok(ulp_store_open(path_of(team->top, "store").text, &team->store));
    rank_open(team, index);
    work(team, index, steps);
    ulp_tile_writer_close(team->ranks[index].writer);
    _exit(0);
}

static int end_of(pid_t child) {
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* One who follows while the ranks publish; `tile` 0: everything. */
struct watcher {
    unsigned tile;
    struct state memory;
    struct ulp_run_options options;
    struct ulp_follower *follower;
    uint64_t version;
};

static struct watcher watcher_make(const struct team *team, unsigned tile) {
    struct watcher w = {.tile = tile, .memory = state_copy(&team->state)};

    memset(w.memory.data, 0, w.memory.bytes);
    w.options = (struct ulp_run_options){.tiling = tile ? team->tiling : NULL, .tile = tile};
    return w;
}

static void watcher_open(struct watcher *w, const struct team *team) {
    assert_ok(w->tile ? ulp_follower_open_tile(team->store, RUN, w->memory.tensors, w->memory.count,
                                               &w->options, &w->follower)
                      : ulp_follower_open_memory(team->store, RUN, w->memory.tensors,
                                                 w->memory.count, &w->options, &w->follower));
}

static void watch(struct watcher *w, const struct team *team, const struct state *past) {
    struct ulp_run_report report = {0};
    struct state expected;

    assert_ok(ulp_follower_poll(w->follower, &report));
    if (!report.ready)
        return;
    assert_ok(ulp_follower_apply(w->follower, &report));
    w->version = report.version;
    if (!w->tile) {
        assert_same_state(&w->memory, &past[w->version]);
        return;
    }
    expected = state_copy(&team->state);
    memset(expected.data, 0, expected.bytes);
    for (unsigned i = 0; i < 2; i++) {
        struct ulp_region *regions = NULL;
        size_t count = 0;

        assert_ok(ulp_tiling_regions(team->tiling, expected.tensors, expected.count,
                                     i ? w->tile : 0, &regions, &count));
        copy_regions(&expected, &past[w->version], regions, count);
        ulp_regions_free(regions);
    }
    assert_same_state(&w->memory, &expected);
    state_free(&expected);
}

static struct team processes_make(void) {
    struct team team = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};

    assert_ok(ulp_store_open(path_of(team.top, "store").text, &team.store));
    assert_ok(ulp_tiling_new(RULES, TILES, &team.tiling));
    begin(&team);
    return team;
}

static void test_processes(void **unused) {
    struct team team = processes_make();
    struct state past[STEPS + 1];
    struct watcher watchers[] = {watcher_make(&team, 2), watcher_make(&team, 4),
                                 watcher_make(&team, 0)};
    pid_t children[TILES];

    (void)unused;
    past[0] = state_copy(&team.state);
    for (unsigned step = 1; step <= STEPS; step++) {
        past[step] = state_copy(&past[step - 1]);
        step_to(&past[step], step);
    }
    for (unsigned i = 0; i < TILES; i++)
        children[i] = start_rank(&team, i, STEPS, be_rank);
    for (size_t i = 0; i < COUNT(watchers); i++)
        watcher_open(&watchers[i], &team);
    for (size_t i = 0; i < COUNT(watchers); i++) {
        while (watchers[i].version < STEPS) {
            for (size_t k = 0; k < COUNT(watchers); k++)
                watch(&watchers[k], &team, past);
            nap();
        }
    }
    for (unsigned i = 0; i < TILES; i++)
        assert_int_equal(end_of(children[i]), 0);
    assert_int_equal(version_of(&team), STEPS);
    assert_int_equal(records(&team), STEPS + 1);
    for (size_t i = 0; i < COUNT(watchers); i++) {
        ulp_follower_close(watchers[i].follower);
        state_free(&watchers[i].memory);
    }
    for (unsigned step = 0; step <= STEPS; step++)
        state_free(&past[step]);
    team_free(&team);
}

static void die_before(struct team *team, unsigned index, unsigned steps) {
    (void)team;
    (void)index;
    (void)steps;
    raise(SIGKILL);
}

static void contribute_and_die(struct team *team, unsigned index, unsigned step) {
    struct state state = state_copy(&team->state);

    step_to(&state, step);
    contribute_state(team, index, &state, step);
    send_blob(team, step, &team->ranks[index]);
    raise(SIGKILL);
}

static void run_step(struct team *team, unsigned step, unsigned dying, rank_work death) {
    for (unsigned i = 0; i < TILES; i++)
        end_of(start_rank(team, i, step, i == dying ? death : contribute_and_die));
}

/* One that dies before it contributes: nothing is published, whoever tries. One that dies
 * afterwards has done its part. */
static void test_ranks_that_die(void **unused) {
    struct team team = processes_make();
    struct state next = state_copy(&team.state);

    (void)unused;
    step_to(&next, 1);
    run_step(&team, 1, 2, die_before);
    rank_open(&team, 0);
    assert_fails(commit_files(&team, 1, 0), ULP_E_REGIONS, "tile 3 was not contributed");
    assert_int_equal(version_of(&team), 0);
    assert_int_equal(records(&team), 1);
    assert_published(&team, &team.state);
    run_step(&team, 1, TILES, die_before); /* all of them anew; all die, but afterwards */
    assert_int_equal(version_of(&team), 0);
    assert_ok(commit_files(&team, 1, 0));
    assert_int_equal(version_of(&team), 1);
    assert_published(&team, &next);
    state_free(&next);
    team_free(&team);
}

/* Two who commit different sets at once: one of them is first. */
static void commit_one_of_two(struct team *team, unsigned index, unsigned steps) {
    enum ulp_status status;

    (void)steps;
    while (access(path_of(team->top, "go").text, R_OK))
        ;
    status = commit_files(team, index ? 2 : 1, index);
    _exit(status == ULP_OK ? 0 : status == ULP_E_FENCED ? 1 : 2);
}

static void test_two_committers(void **unused) {
    (void)unused;
    for (unsigned round = 0; round < 8; round++) {
        struct team team = processes_make();
        struct state next = state_copy(&team.state), other;
        pid_t children[2];
        int first, second;

        for (unsigned i = 0; i < TILES; i++)
            rank_open(&team, i);
        step_to(&next, 1);
        other = state_copy(&next);
        step_to(&other, 2);
        for (unsigned i = 0; i < TILES; i++) {
            contribute_state(&team, i, &other, 2);
            send_blob(&team, 2, &team.ranks[i]);
            contribute_state(&team, i, &next, 1);
            send_blob(&team, 1, &team.ranks[i]);
        }
        for (unsigned i = 0; i < 2; i++)
            children[i] = start_rank(&team, i, 0, commit_one_of_two);
        write_file(path_of(team.top, "go").text, "", 0);
        first = end_of(children[0]);
        second = end_of(children[1]);
        assert_true(WIFEXITED(first) && WIFEXITED(second));
        assert_int_equal(WEXITSTATUS(first) + WEXITSTATUS(second), 1);
        assert_int_equal(version_of(&team), 1);
        assert_int_equal(records(&team), 2);
        assert_published(&team, WEXITSTATUS(first) ? &other : &next);
        for (unsigned i = 0; i < TILES; i++) {
            struct ulp_run_report report = {0};
            enum ulp_status status = ulp_tile_writer_settle(team.ranks[i].writer, &report);

            assert_int_equal(status, WEXITSTATUS(first) ? ULP_E_FENCED : ULP_OK);
        }
        state_free(&next);
        state_free(&other);
        team_free(&team);
    }
}

TEST_MAIN(test_steps, test_nothing_is_fetched, test_a_map_that_changes_meanwhile,
          test_a_deletion_meanwhile, test_all_or_nothing, test_other_tilings, test_damaged_bits,
          test_forged, test_somebody_else_publishes, test_signed, test_out_of_memory,
          test_processes, test_ranks_that_die, test_two_committers)
