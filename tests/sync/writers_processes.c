// SPDX-License-Identifier: Apache-2.0
/* Ranks in processes of their own, which publish beside followers, die, and race. */
#include "tests/sync/team.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS 20u

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

static void test_processes(void **unused) {
    struct team team = team_make(false, false);
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
    assert_int_equal(team_version(&team), STEPS);
    assert_int_equal(team_records(&team), STEPS + 1);
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
    struct team team = team_make(false, false);
    struct state next = state_copy(&team.state);

    (void)unused;
    step_to(&next, 1);
    run_step(&team, 1, 2, die_before);
    rank_open(&team, 0);
    assert_fails(commit_files(&team, 1, 0), ULP_E_REGIONS, "tile 3 was not contributed");
    assert_int_equal(team_version(&team), 0);
    assert_int_equal(team_records(&team), 1);
    assert_published(&team, &team.state);
    run_step(&team, 1, TILES, die_before); /* all of them anew; all die, but afterwards */
    assert_int_equal(team_version(&team), 0);
    assert_ok(commit_files(&team, 1, 0));
    assert_int_equal(team_version(&team), 1);
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
        struct team team = team_make(false, false);
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
        assert_int_equal(team_version(&team), 1);
        assert_int_equal(team_records(&team), 2);
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

TEST_MAIN(test_processes, test_ranks_that_die, test_two_committers)
