// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include "sync/rules.h"
#include "tests/sim/actors.h"
#include "tests/sim/turns.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TRAINERS_MAX 3u
#define EVENTS_MAX 200000u

enum rule broken_rule;

/* The library's random numbers come from the seed too. */
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)data)[i] = (uint8_t)chance_below(turns_chance(), 256);
    return (ssize_t)bytes;
}

/* ---- what happens ---- */

static void mix(struct world *world, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        world->trace = (world->trace ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

void world_event(struct world *world, const char *who, const char *what, const char *key,
                 enum ulp_status status) {
    const uint64_t now = turns_now();

    mix(world, who, strlen(who));
    mix(world, what, strlen(what));
    mix(world, key, strlen(key));
    mix(world, &status, sizeof status);
    mix(world, &now, sizeof now);
    if (world->verbose)
        printf("%6llu.%03llu %-12s %s %s %s\n", (unsigned long long)(now / 1000000000),
               (unsigned long long)(now / 1000000 % 1000), who, what, key,
               status ? ulp_status_name(status) : "");
    if (++world->events == EVENTS_MAX)
        violated(world, "I8: this does not end");
}

void violated(struct world *world, const char *format, ...) {
    va_list arguments;

    if (is_violated(world))
        return;
    va_start(arguments, format);
    vsnprintf(world->violation, sizeof world->violation, format, arguments);
    va_end(arguments);
    if (world->verbose)
        printf("violated: %s\n", world->violation);
}

/* ---- how it is made ---- */

static struct habits habits_make(struct chance *chance) {
    static const enum honesty often[] = {HONEST,   HONEST,   DELAYING, DELAYING,
                                         DELAYING, DELAYING, LOSING,   FORKING};
    struct habits h = {.honesty = often[chance_below(chance, sizeof often / sizeof often[0])]};
    const unsigned most = chance_percent(chance, 20) ? 15 : 4;

    if (h.honesty == HONEST)
        return h;
    h.before = (unsigned)chance_below(chance, most);
    h.after = (unsigned)chance_below(chance, most);
    h.old = (unsigned)chance_below(chance, most);
    h.flip = (unsigned)chance_below(chance, most);
    h.truncate = (unsigned)chance_below(chance, most);
    if (h.honesty == LOSING) {
        h.lose = (unsigned)chance_between(chance, 1, 20);
        h.cut = (unsigned)chance_below(chance, 5);
    }
    if (h.honesty == FORKING) {
        h.force = (unsigned)chance_below(chance, 50);
        h.invert = (unsigned)chance_below(chance, 20);
    }
    return h;
}

struct cast {
    struct world *world;
    struct trainer trainers[TRAINERS_MAX];
    struct watcher watchers[FOLLOWERS_MAX];
    struct carer collector, tender, villain;
    size_t trainer_count, watcher_count;
    bool collects, tends, is_bad;
};

static void cast_trainers(struct cast *cast, struct chance *chance) {
    static const char *const names[TRAINERS_MAX] = {"trainer-0", "trainer-1", "trainer-2"};

    cast->trainer_count = (size_t)chance_between(chance, 1, TRAINERS_MAX);
    for (size_t i = 0; i < cast->trainer_count; i++) {
        const bool zombie = i && chance_percent(chance, 50);

        trainer_open(&cast->trainers[i], cast->world, names[i], zombie, chance_percent(chance, 1));
    }
}

static void cast_watchers(struct cast *cast, struct chance *chance) {
    static const char *const names[FOLLOWERS_MAX] = {"watcher-0", "watcher-1", "watcher-2",
                                                     "watcher-3", "newcomer"};

    cast->watcher_count = (size_t)chance_between(chance, 1, FOLLOWERS_MAX - 1);
    for (size_t i = 0; i < cast->watcher_count; i++)
        watcher_open(&cast->watchers[i], cast->world, names[i], chance_percent(chance, 1));
    watcher_open(&cast->watchers[cast->watcher_count], cast->world, names[FOLLOWERS_MAX - 1],
                 false);
}

static void cast_carers(struct cast *cast, struct chance *chance) {
    const enum broken broken = cast->world->broken;

    cast->collects = chance_percent(chance, 50);
    cast->tends = chance_percent(chance, 3);
    cast->is_bad = broken == BROKEN_DELETED_RECORD || broken == BROKEN_COLLECT_WITHOUT_BOUNDARY;
    cast->world->collects = cast->collects || broken == BROKEN_COLLECT_WITHOUT_BOUNDARY;
    if (cast->collects)
        carer_open(&cast->collector, cast->world, "collector", false);
    if (cast->tends)
        carer_open(&cast->tender, cast->world, "tender", true);
    if (cast->is_bad)
        carer_open(&cast->villain, cast->world, "villain", false);
}

/* ---- how it goes ---- */

static void start(struct world *world, void (*run)(void *user), void *user) {
    world->active++;
    turns_start(run, user);
}

static void start_all(struct cast *cast) {
    struct world *world = cast->world;

    for (size_t i = 0; i < cast->trainer_count; i++)
        start(world, trainer_run, &cast->trainers[i]);
    for (size_t i = 0; i < cast->watcher_count; i++)
        start(world, watcher_run, &cast->watchers[i]);
    if (cast->collects)
        start(world, collector_run, &cast->collector);
    if (cast->tends)
        start(world, tender_run, &cast->tender);
    if (cast->is_bad)
        start(world,
              world->broken == BROKEN_DELETED_RECORD ? record_remover_run : reckless_collector_run,
              &cast->villain);
}

static void close_all(struct cast *cast) {
    for (size_t i = 0; i < cast->trainer_count; i++)
        trainer_close(&cast->trainers[i]);
    for (size_t i = 0; i <= cast->watcher_count; i++)
        watcher_close(&cast->watchers[i]);
    if (cast->collects)
        carer_close(&cast->collector);
    if (cast->tends)
        carer_close(&cast->tender);
    if (cast->is_bad)
        carer_close(&cast->villain);
}

/* When everybody is done the faults stop. One more version comes, and everybody gets there. */
static void direct(void *user) {
    struct cast *cast = user;
    struct world *world = cast->world;

    turns_wait_for(&world->all_done);
    world->calm = true;
    world_event(world, "director", "calms the world", "", ULP_OK);
    if (!is_violated(world))
        trainer_finish(&cast->trainers[0]);
    for (size_t i = 0; !is_violated(world) && i <= cast->watcher_count; i++)
        watcher_converge(&cast->watchers[i]);
    if (!is_violated(world))
        truth_check_end(world);
    close_all(cast);
}

static enum rule rule_of(enum broken broken) {
    return broken == BROKEN_BASE_BEFORE_COMMIT  ? RULE_BASE_MOVES_LAST
           : broken == BROKEN_XOR_APPLY         ? RULE_APPLY_ONCE
           : broken == BROKEN_UNALIGNED_HISTORY ? RULE_HISTORY_BEGINS_ANEW
           : broken == BROKEN_BOUNDARY_IGNORED  ? RULE_STORE_AGAIN
                                                : RULE_NONE;
}

void world_run(struct world *world, uint64_t seed, enum broken broken, bool verbose) {
    struct chance *chance = turns_chance();
    struct cast cast = {.world = world};

    *world = (struct world){
        .seed = seed, .broken = broken, .verbose = verbose, .trace = 0xcbf29ce484222325u};
    turns_begin(seed, (unsigned)(chance_of(~seed).state % 90));
    broken_rule = rule_of(broken);
    world->shape = shape_make(chance);
    world->habits = habits_make(chance);
    world->versions_wanted = (unsigned)(chance_percent(chance, 25) ? 24 : 8);
    if (broken && !is_strict(world)) /* there everything may happen anyway */
        world->habits = (struct habits){.honesty = HONEST};
    if (ulp_store_memory(&world->inner))
        abort();
    world->shared = lying_store(world);
    cast_trainers(&cast, chance);
    cast_watchers(&cast, chance);
    cast_carers(&cast, chance);
    start_all(&cast);
    turns_start(direct, &cast);
    turns_run();
    truth_free(&world->truth);
    ulp_store_free(world->shared);
    ulp_store_free(world->inner);
}
