// SPDX-License-Identifier: Apache-2.0
#include "chain/map.h"
#include "tests/sim/actors.h"
#include "tests/sim/turns.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS ((uint64_t)1000000000)

/* ---- what it shows ---- */

/* The weights that anybody sees: the memory, or what `current` leads to. */
static bool shown(const struct watcher *w, uint8_t *bits) {
    const struct shape *shape = &w->station.world->shape;
    struct ulp_model *model = NULL;
    char path[96];
    uint8_t *at = bits;

    if (!w->directory) {
        memcpy(bits, w->state.bits, shape->bytes);
        return true;
    }
    snprintf(path, sizeof path, "%s/current", w->directory);
    if (ulp_model_open(path, &model))
        return false;
    for (size_t i = 0; i < shape->count; i++) {
        const struct ulp_tensor *tensor = ulp_model_find(model, shape->tensors[i].name);

        if (tensor && tensor->bytes == shape->tensors[i].bytes)
            memcpy(at, tensor->data, (size_t)tensor->bytes);
        at += shape->tensors[i].bytes;
    }
    ulp_model_free(model);
    return true;
}

/* I2: what is held stays as it is until something else is applied. */
static void check_unchanged(void *user) {
    const struct watcher *w = user;
    struct world *world = w->station.world;
    uint8_t bits[4096];

    if (!w->holds)
        return;
    if (!shown(w, bits))
        violated(world, "I2: %s shows nothing any more", w->station.who);
    else if (memcmp(bits, w->bits, world->shape.bytes) != 0)
        violated(world, "I2: %s holds version %llu, and its weights have changed", w->station.who,
                 (unsigned long long)w->version);
}

/* I4: the record that says what is held was kept before. */
static void check_kept(const struct watcher *w, uint64_t version) {
    struct log_entry entry = {0};

    if (w->directory)
        return;
    if (!w->kept.bytes || log_entry_parse(w->kept.record, w->kept.bytes, &entry) ||
        entry.record.version < version)
        violated(w->station.world, "I4: %s holds version %llu, and would not know after a crash",
                 w->station.who, (unsigned long long)version);
    log_entry_release(&entry);
}

/* I1, and I4: what is held now. */
static void check_held(struct watcher *w) {
    struct world *world = w->station.world;
    const struct held *held = &w->follower->holder->held;
    uint8_t bits[4096];

    if (!held->any)
        return;
    if (!shown(w, bits))
        violated(world, "I2: %s shows nothing, and says that it has version %llu", w->station.who,
                 (unsigned long long)held->version);
    else if (!truth_is_published(world, held->version, bits))
        violated(world, "I1: %s says that it holds version %llu, but these are not its weights",
                 w->station.who, (unsigned long long)held->version);
    if (w->holds && held->version < w->version)
        violated(world, "I4: %s went from version %llu back to %llu", w->station.who,
                 (unsigned long long)w->version, (unsigned long long)held->version);
    check_kept(w, held->version);
    memcpy(w->bits, bits, world->shape.bytes);
    w->holds = true;
    w->version = held->version;
}

/* What was seen once is not gone below again, as soon as the end is reached. */
static void check_highest(struct watcher *w) {
    if (w->version < w->highest)
        violated(w->station.world, "I4: %s had seen version %llu, and is content with %llu",
                 w->station.who, (unsigned long long)w->highest, (unsigned long long)w->version);
    w->highest = w->version;
}

/* Where records are neither lost nor replaced, nothing looks like an attack. */
static void check_status(const struct watcher *w, enum ulp_status status) {
    const struct world *world = w->station.world;
    const enum honesty honesty = world->habits.honesty;
    const bool fine =
        !status || status == ULP_E_NO_RUN || (status == ULP_E_PART_MISSING && world->collects);
    const bool attack =
        status == ULP_E_FORK || status == ULP_E_WRONG_RESULT || status == ULP_E_OTHER_RUN ||
        status == ULP_E_JUMP || status == ULP_E_WRONG_BASE || status == ULP_E_NEEDS_HISTORY ||
        status == ULP_E_UNREACHABLE || status == ULP_E_USAGE || status == ULP_E_INTERNAL;

    if (w->station.dead)
        return;
    if ((honesty == HONEST && !fine) || (honesty == DELAYING && attack))
        violated(w->station.world, "%s fails: %s: %s", w->station.who, ulp_status_name(status),
                 ulp_last_error());
}

/* ---- a life ---- */

static void watcher_dies(struct watcher *w) {
    struct chance *chance = turns_chance();

    ulp_follower_close(w->follower);
    w->follower = NULL;
    w->holds = w->directory && w->holds; /* a directory survives */
    if (w->directory)
        return;
    if (chance_percent(chance, 20)) {
        kept_lose(&w->kept);
        w->highest = 0;
    }
    if (chance_percent(chance, 70)) /* memory of another process */
        state_move(&w->station.world->shape, &w->state, chance);
}

static void watcher_starts(struct watcher *w) {
    struct world *world = w->station.world;
    const struct ulp_run_options options = {.keep_seen = kept_write,
                                            .keep_user = &w->kept,
                                            .seen = w->kept.record,
                                            .seen_bytes = w->kept.bytes,
                                            .ahead_bytes = chance_percent(turns_chance(), 50)};
    enum ulp_status status;

    station_revive(&w->station);
    if (w->deaths) {
        w->deaths--;
        plan_death(&w->station, 60);
    }
    status = w->directory
                 ? ulp_follower_open(w->station.store, RUN, w->directory, &options, &w->follower)
                 : ulp_follower_open_memory(w->station.store, RUN, w->state.tensors,
                                            world->shape.count, &options, &w->follower);
    if (status) {
        violated(world, "%s cannot start: %s", w->station.who, ulp_last_error());
        w->follower = NULL;
    }
}

/* One poll and, if there is something, one apply. */
static enum ulp_status go_on(struct watcher *w, struct ulp_run_report *report) {
    struct world *world = w->station.world;
    enum ulp_status status = ulp_follower_poll(w->follower, report);

    world_event(world, w->station.who, report->ready ? "polled, and is ready" : "polled", "",
                status);
    check_unchanged(w);
    check_status(w, status);
    if (!status && report->ready) {
        turns_point();
        check_unchanged(w);
        status = ulp_follower_apply(w->follower, report);
        world_event(world, w->station.who, "applied", "", status);
        check_status(w, status);
    }
    check_held(w);
    if (!status && !report->ready && !report->apply_left && w->holds)
        check_highest(w);
    return status;
}

static void watcher_round(struct watcher *w) {
    struct ulp_run_report report = {0};

    if (!w->follower)
        watcher_starts(w);
    if (!w->follower)
        return;
    go_on(w, &report);
    if (w->station.dead || chance_percent(turns_chance(), 2))
        watcher_dies(w);
}

void watcher_run(void *user) {
    struct watcher *w = user;

    while (w->rounds-- && !is_violated(w->station.world)) {
        watcher_round(w);
        turns_sleep(chance_below(
            turns_chance(), chance_percent(turns_chance(), 10) ? 5 * SECOND_NS : SECOND_NS / 2));
    }
    actor_done(w->station.world);
}

/* The plan that it follows comes to its end first; then one poll for each way of the map, one for an
 * anchor, and a few for what is left from before. */
static size_t polls_needed(const struct watcher *w) {
    const struct ulp_follower *f = w->follower;
    const size_t left = f && f->travelling ? f->plan.way_count - f->next + 1 : 0;

    return left + w->station.world->truth.head.record.way_count + 4;
}

void watcher_converge(struct watcher *w) {
    struct world *world = w->station.world;
    const struct record *head = &world->truth.head.record;
    const size_t polls_max = polls_needed(w);
    struct ulp_run_report report = {0};
    bool arrived = false;

    if (w->station.dead)
        watcher_dies(w);
    if (!w->follower)
        watcher_starts(w);
    for (size_t i = 0; w->follower && !arrived && i < polls_max; i++) {
        report = (struct ulp_run_report){0};
        arrived = !go_on(w, &report) && w->holds && w->version == head->version && !report.ready;
    }
    if (is_strict(world) && head->sequence && !arrived)
        violated(world, "I8: %s is at version %llu of %llu after %zu polls: %s", w->station.who,
                 (unsigned long long)w->version, (unsigned long long)head->version, polls_max,
                 ulp_last_error());
}

void watcher_open(struct watcher *w, struct world *world, const char *who, bool on_disk) {
    struct chance *chance = turns_chance();

    *w = (struct watcher){.state = state_make(&world->shape),
                          .kept = {.world = world},
                          .rounds = (unsigned)chance_between(chance, 2, 2 * world->versions_wanted),
                          .deaths = (unsigned)chance_below(chance, 4),
                          .bits = calloc(1, world->shape.bytes)};
    if (!w->bits)
        abort();
    station_open(&w->station, world, who);
    w->station.look = check_unchanged;
    w->station.user = w;
    if (on_disk)
        w->directory = temp_directory_make();
}

void watcher_close(struct watcher *w) {
    ulp_follower_close(w->follower);
    kept_lose(&w->kept);
    state_free(&w->state);
    free(w->bits);
    station_close(&w->station);
    if (w->directory)
        temp_directory_remove(w->directory);
}
