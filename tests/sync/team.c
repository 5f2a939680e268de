// SPDX-License-Identifier: Apache-2.0
#include "tests/sync/team.h"

static const struct form forms[] = {{"embed", "BF16", {32, 24}, 2, 0},
                                    {"l0.down", "BF16", {20, 64}, 2, 0},
                                    {"l0.up", "F32", {16, 12}, 2, 0},
                                    {"norm", "F32", {31}, 1, 0},
                                    {"step", "I64", {0}, 0, 0}};

void rank_open(struct team *team, unsigned index) {
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
static void team_begin(struct team *team) {
    struct ulp_publisher *publisher = NULL;

    assert_ok(ulp_publisher_open(team->store, RUN, NULL, NULL, &publisher));
    assert_ok(ulp_publisher_publish(publisher, team->state.tensors, team->state.count, 0, NULL));
    ulp_publisher_close(publisher);
    team->versions = 1;
}

struct team team_make(bool in_memory, bool open) {
    struct team team = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};

    assert_ok(in_memory ? ulp_store_memory(&team.store)
                        : ulp_store_open(path_of(team.top, "store").text, &team.store));
    assert_ok(ulp_tiling_new(RULES, TILES, &team.tiling));
    team_begin(&team);
    for (unsigned i = 0; open && i < TILES; i++)
        rank_open(&team, i);
    return team;
}

void team_free(struct team *team) {
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

void contribute_state(struct team *team, unsigned index, const struct state *state, uint64_t step) {
    struct rank_writer *r = &team->ranks[index];
    struct state memory = tile_of(team, state, r->tile);
    struct ulp_run_report report = {0};

    assert_ok(ulp_tile_writer_contribute(r->writer, memory.tensors, memory.count, step,
                                         &r->contribution, &r->bytes, &report));
    assert_int_equal(report.fresh, 0);
    state_free(&memory);
}

void contribute_all(struct team *team, uint64_t step) {
    for (unsigned i = 0; i < TILES; i++)
        contribute_state(team, i, &team->state, step);
}

struct set set_of(const struct team *team) {
    struct set set = {.count = TILES};

    for (unsigned i = 0; i < TILES; i++) {
        set.contributions[i] = team->ranks[i].contribution;
        set.sizes[i] = team->ranks[i].bytes;
    }
    return set;
}

enum ulp_status commit_set(struct team *team, unsigned committer, const struct set *set,
                           uint64_t step) {
    return ulp_tile_writer_commit(team->ranks[committer].writer, set->contributions, set->sizes,
                                  set->count, step, NULL);
}

uint64_t team_records(const struct team *team) {
    struct ulp_run_record head;

    assert_ok(ulp_run_head(team->store, RUN, &head));
    return head.sequence;
}

uint64_t team_version(const struct team *team) {
    struct ulp_run_record head;

    assert_ok(ulp_run_head(team->store, RUN, &head));
    return head.version;
}

void assert_settles(struct team *team, unsigned index, int fresh) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_tile_writer_settle(team->ranks[index].writer, &report));
    assert_int_equal(report.fresh, fresh);
    assert_int_equal(report.version, team_version(team));
}

/* Whoever follows the whole run gets the state that the ranks made together. */
void assert_published(const struct team *team, const struct state *state) {
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
    assert_int_equal(report.version, team_version(team));
    assert_same_state(&memory, state);
    ulp_follower_close(follower);
    state_free(&memory);
}

void step_together(struct team *team, unsigned committer) {
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
