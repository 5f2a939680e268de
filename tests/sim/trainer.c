// SPDX-License-Identifier: Apache-2.0
#include "digest/root.h"
#include "patch/fit.h"
#include "patch/weights.h"
#include "sync/publisher.h"
#include "tests/sim/actors.h"
#include "tests/sim/turns.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS ((uint64_t)1000000000)

enum ulp_status kept_write(void *user, const void *record, size_t bytes) {
    struct kept *kept = user;
    const struct habits *habits = &kept->world->habits;
    uint8_t *copy;

    if (!kept->world->calm && chance_percent(turns_chance(), habits->before))
        return ulp_fail(ULP_E_IO, "the disk is full");
    copy = realloc(kept->record, bytes);
    if (!copy)
        abort();
    memcpy(copy, record, bytes);
    kept->record = copy;
    kept->bytes = bytes;
    return ULP_OK;
}

void kept_lose(struct kept *kept) {
    free(kept->record);
    kept->record = NULL;
    kept->bytes = 0;
}

void plan_death(struct station *station, unsigned percent) {
    struct chance *chance = turns_chance();

    if (station->world->calm || !chance_percent(chance, percent))
        return;
    station->dies_in = chance_between(chance, 1, 20);
    station->dies_after = chance_percent(chance, 50);
}

void actor_done(struct world *world) {
    if (!--world->active)
        turns_raise(&world->all_done);
}

/* ---- what must hold ---- */

static const struct known_record *published(const struct world *world, uint64_t version) {
    for (size_t i = 0; i < world->truth.record_count; i++) {
        if (world->truth.records[i].version == version)
            return &world->truth.records[i];
    }
    return NULL;
}

/* What a publisher builds on is a version that is in the log: rule 7. */
static void check_base(const struct trainer *t) {
    struct holder *holder = t->publisher->follower->holder;
    const struct work work = {0};
    const struct known_record *record;
    struct ulp_weights *weights = NULL;

    if (!is_strict(t->station.world) || !holder->held.any)
        return;
    record = published(t->station.world, holder->held.version);
    if (!record)
        violated(t->station.world, "%s builds on version %llu, which is not in the log",
                 t->station.who, (unsigned long long)holder->held.version);
    else if (!t->directory && !holder->ops->weights(holder, &work, false, &weights) &&
             !same_root(&weights->root, &record->root))
        violated(t->station.world, "%s builds on another version %llu than the log's",
                 t->station.who, (unsigned long long)holder->held.version);
}

static void check_status(const struct trainer *t, const char *what, enum ulp_status status) {
    if (t->station.world->habits.honesty == HONEST && !t->station.dead && status &&
        status != ULP_E_FENCED)
        violated(t->station.world, "%s cannot %s: %s: %s", t->station.who, what,
                 ulp_status_name(status), ulp_last_error());
}

/* ---- a life ---- */

static void trainer_dies(struct trainer *t) {
    ulp_publisher_close(t->publisher);
    t->publisher = NULL;
    if (!t->directory && chance_percent(turns_chance(), 30))
        kept_lose(&t->kept);
}

static void trainer_starts(struct trainer *t) {
    const struct ulp_run_options options = {.keep_seen = kept_write,
                                            .keep_user = &t->kept,
                                            .seen = t->kept.record,
                                            .seen_bytes = t->kept.bytes,
                                            .anchor_every = t->anchor_every,
                                            .keep_anchors = t->keep_anchors,
                                            .ahead_bytes = 1};

    char state[96];

    snprintf(state, sizeof state, "%s/state", t->directory ? t->directory : "");
    station_revive(&t->station);
    if (t->deaths) {
        t->deaths--;
        plan_death(&t->station, 60);
    }
    if (ulp_publisher_open(t->station.store, RUN, t->directory ? state : NULL, &options,
                           &t->publisher)) {
        violated(t->station.world, "%s cannot start: %s", t->station.who, ulp_last_error());
        t->publisher = NULL;
    }
}

/* On disk there is a file beside the weights that is always the same. */
static enum ulp_status publish_model(struct trainer *t, struct ulp_run_report *report) {
    char name[32], model[96], config[128];
    FILE *file;

    snprintf(name, sizeof name, "model-%u", t->models++);
    snprintf(model, sizeof model, "%s/%s", t->directory, name);
    snprintf(config, sizeof config, "%s/config.json", model);
    if (ulp_model_save(model, t->state.tensors, t->station.world->shape.count, NULL, 0, 1, NULL))
        abort();
    file = fopen(config, "w");
    if (!file || fputs("{}", file) < 0 || fclose(file))
        abort();
    return ulp_publisher_publish_model(t->publisher, model, t->step, report);
}

static enum ulp_status publish_state(struct trainer *t, struct ulp_run_report *report) {
    return t->directory ? publish_model(t, report)
                        : ulp_publisher_publish(t->publisher, t->state.tensors,
                                                t->station.world->shape.count, t->step, report);
}

static enum ulp_status publish(struct trainer *t) {
    struct ulp_run_report report = {0};
    struct world *world = t->station.world;
    enum ulp_status status;

    if (!t->again) {
        state_move(&world->shape, &t->state, turns_chance());
        t->step += chance_percent(turns_chance(), 95) ? 1 : (uint64_t)-1;
    }
    truth_offer(world, &t->state);
    status = publish_state(t, &report);
    t->again = status != ULP_OK && chance_percent(turns_chance(), 70);
    world_event(world, t->station.who, "published", "", status);
    if (!status && is_strict(world) && !truth_is_published(world, report.version, t->state.bits))
        violated(world, "%s published version %llu, and the log has another", t->station.who,
                 (unsigned long long)report.version);
    check_status(t, "publish", status);
    return status;
}

static enum ulp_status make_anchor(struct trainer *t) {
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_publisher_anchor(t->publisher, &report);

    world_event(t->station.world, t->station.who, "anchored", "", status);
    check_status(t, "make an anchor", status);
    return status;
}

static void trainer_round(struct trainer *t) {
    enum ulp_status status;

    if (!t->publisher)
        trainer_starts(t);
    if (!t->publisher)
        return;
    if (chance_percent(turns_chance(), 15))
        make_anchor(t);
    status = publish(t);
    check_base(t);
    if (!status && chance_percent(turns_chance(), 50)) {
        make_anchor(t);
        check_base(t);
    }
    if (t->station.dead || status == ULP_E_FENCED || chance_percent(turns_chance(), 3))
        trainer_dies(t);
}

void trainer_run(void *user) {
    struct trainer *t = user;

    while (t->rounds-- && !is_violated(t->station.world)) {
        trainer_round(t);
        turns_sleep(chance_below(turns_chance(), SECOND_NS));
    }
    actor_done(t->station.world);
}

static enum ulp_status publish_once_more(struct trainer *t) {
    if (!t->publisher)
        trainer_starts(t);
    return t->publisher ? publish(t) : ULP_E_INTERNAL;
}

/* What is left from before may fail once more; whoever starts anew must succeed. */
void trainer_finish(struct trainer *t) {
    enum ulp_status status;

    t->again = false;
    status = publish_once_more(t);
    if (status) {
        trainer_dies(t);
        status = publish_once_more(t);
    }
    if (status && is_strict(t->station.world))
        violated(t->station.world, "I8: nobody disturbs %s, and it cannot publish: %s",
                 t->station.who, ulp_last_error());
    if (t->publisher)
        check_base(t);
}

void trainer_open(struct trainer *t, struct world *world, const char *who, bool zombie,
                  bool on_disk) {
    struct chance *chance = turns_chance();

    *t = (struct trainer){.state = state_make(&world->shape),
                          .kept = {.world = world},
                          .rounds = (unsigned)chance_between(chance, 2, world->versions_wanted),
                          .deaths = (unsigned)chance_below(chance, 4),
                          .step = chance_below(chance, 10),
                          .anchor_every = (unsigned)chance_between(chance, 1, 12),
                          .keep_anchors = (unsigned)chance_between(chance, 1, 3)};
    station_open(&t->station, world, who);
    t->station.keeps_parts = world->broken == BROKEN_RECORD_BEFORE_PARTS;
    state_move(&world->shape, &t->state, chance);
    if (on_disk)
        t->directory = temp_directory_make();
    if (zombie) {
        t->station.stalls_in = chance_between(chance, 1, 60);
        t->station.stall_ns = chance_between(chance, 10, 1000000) * SECOND_NS;
    }
}

void trainer_close(struct trainer *t) {
    ulp_publisher_close(t->publisher);
    kept_lose(&t->kept);
    state_free(&t->state);
    station_close(&t->station);
    if (t->directory)
        temp_directory_remove(t->directory);
}
