// SPDX-License-Identifier: Apache-2.0
/* Those who delete and those who tend; and, when a rule is to be broken, those who do it badly. */
#include "chain/map.h"
#include "tests/sim/actors.h"
#include "tests/sim/turns.h"
#include "tests/test.h"

#include <string.h>

#define SECOND_NS ((uint64_t)1000000000)

static void rest(void) {
    turns_sleep(chance_below(turns_chance(), SECOND_NS));
}

static bool goes_on(struct carer *c) {
    if (!c->rounds-- || is_violated(c->station.world))
        return false;
    station_revive(&c->station);
    plan_death(&c->station, 30);
    return true;
}

/* With nothing but crashes nobody who takes care fails. Others may be faster. */
static void check_status(const struct carer *c, enum ulp_status status) {
    const struct world *world = c->station.world;

    if (world->habits.honesty == HONEST && !c->station.dead && status && status != ULP_E_NO_RUN &&
        status != ULP_E_FENCED && status != ULP_E_PART_MISSING)
        violated(c->station.world, "%s fails: %s: %s", c->station.who, ulp_status_name(status),
                 ulp_last_error());
}

void collector_run(void *user) {
    struct carer *c = user;
    struct chance *chance = turns_chance();

    while (goes_on(c)) {
        const struct ulp_collect_options options = {.grace_ms = chance_between(chance, 1, 3000),
                                                    .now = chance_percent(chance, 20),
                                                    .keep_anchors =
                                                        (unsigned)chance_below(chance, 3)};
        struct ulp_collect_report report = {0};
        enum ulp_status status = ulp_run_collect(c->station.store, RUN, &options, &report);

        world_event(c->station.world, c->station.who, "collected", "", status);
        check_status(c, status);
        rest();
    }
    actor_done(c->station.world);
}

void tender_run(void *user) {
    struct carer *c = user;

    while (goes_on(c)) {
        struct ulp_run_report report = {0};
        enum ulp_status status = ulp_run_tend(c->station.store, RUN, c->directory, NULL, &report);

        world_event(c->station.world, c->station.who, "tended", "", status);
        check_status(c, status);
        rest();
    }
    actor_done(c->station.world);
}

/* ---- how not to do it ---- */

struct unnamed {
    const struct world *world;
    char key[ULP_KEY_BYTES_MAX + 1];
};

static enum ulp_status is_it(void *user, const struct part *part) {
    char key[ULP_KEY_BYTES_MAX + 1];

    part_key(RUN, part, key);
    return strcmp(key, user) ? ULP_OK : ULP_E_EXISTS;
}

static int note_unnamed(void *user, const char *key, uint64_t bytes) {
    struct unnamed *unnamed = user;
    char wanted[ULP_KEY_BYTES_MAX + 1];

    (void)bytes;
    snprintf(wanted, sizeof wanted, "%s", key);
    if (map_each_part(&unnamed->world->truth.head.record, is_it, wanted))
        return 0;
    memcpy(unnamed->key, wanted, sizeof wanted);
    return 1;
}

/* Whatever the newest record does not name goes at once. */
void reckless_collector_run(void *user) {
    struct carer *c = user;
    struct world *world = c->station.world;

    for (c->rounds = 40; c->rounds-- && !is_violated(world);) {
        struct unnamed unnamed = {.world = world};

        ulp_store_list(world->inner, RUN "/part/", "", note_unnamed, &unnamed);
        if (*unnamed.key)
            ulp_store_remove(c->station.store, unnamed.key);
        turns_sleep(chance_below(turns_chance(), SECOND_NS / 4));
    }
    actor_done(world);
}

/* A record goes, behind everybody's back. */
void record_remover_run(void *user) {
    struct carer *c = user;
    struct world *world = c->station.world;

    turns_sleep(chance_below(turns_chance(), 3 * SECOND_NS));
    if (world->truth.head.record.sequence) {
        char key[ULP_KEY_BYTES_MAX + 1];

        record_key(RUN, chance_between(turns_chance(), 1, world->truth.head.record.sequence), key);
        ulp_store_remove(world->inner, key);
        world_event(world, c->station.who, "removed", key, ULP_OK);
    }
    actor_done(world);
}

/* ---- life ---- */

void carer_open(struct carer *c, struct world *world, const char *who, bool on_disk) {
    *c = (struct carer){.rounds = (unsigned)chance_between(turns_chance(), 2, 16)};
    station_open(&c->station, world, who);
    if (on_disk)
        c->directory = temp_directory_make();
    if (chance_percent(turns_chance(), 20)) {
        c->station.stalls_in = chance_between(turns_chance(), 1, 30);
        c->station.stall_ns = chance_between(turns_chance(), 10, 100000) * SECOND_NS;
    }
}

void carer_close(struct carer *c) {
    station_close(&c->station);
    if (c->directory)
        temp_directory_remove(c->directory);
}
