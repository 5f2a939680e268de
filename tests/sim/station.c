// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/station.h"

#include "base/status.h"
#include "tests/sim/turns.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES_MAX 65536u

/* Now and then an operation takes longer than usual, whoever does it. */
#define HICCUP_PERCENT 2u
#define HICCUP_NS_MAX ((uint64_t)3000000000)

/* ---- lying ---- */

/* What goes wrong at one kind of operation, and how often. */
static enum ulp_fault pick(struct world *world, const struct habits *h, enum ulp_store_op op) {
    const bool reads = op == ULP_STORE_READ || op == ULP_STORE_STAT || op == ULP_STORE_LIST;
    const bool creates = op == ULP_STORE_CREATE;
    const struct {
        enum ulp_fault fault;
        unsigned percent;
    } faults[] = {
        {ULP_FAULT_BEFORE, h->before},
        {ULP_FAULT_AFTER, h->after},
        {ULP_FAULT_OLD, reads ? h->old : 0},
        {ULP_FAULT_FLIP, op == ULP_STORE_READ ? h->flip : 0},
        {ULP_FAULT_TRUNCATE, reads                                  ? h->truncate
                             : op == ULP_STORE_PUT_WRITE || creates ? h->cut
                                                                    : 0},
        {ULP_FAULT_LOSE, creates || op == ULP_STORE_PUT_END ? h->lose : 0},
        {ULP_FAULT_FORCE, creates ? h->force : 0},
        {ULP_FAULT_INVERT, creates ? h->invert : 0},
    };
    uint64_t roll = chance_below(turns_chance(), 100);

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (roll < faults[i].percent)
            return faults[i].fault;
        roll -= faults[i].percent;
    }
    (void)world;
    return ULP_FAULT_NONE;
}

static enum ulp_fault decide(void *user, enum ulp_store_op op, const char *key) {
    struct world *world = user;
    enum ulp_fault fault;

    if (world->calm)
        return ULP_FAULT_NONE;
    fault = pick(world, &world->habits, op);
    if (fault && world->verbose)
        printf("    fault %d at operation %d on %s\n", (int)fault, (int)op, key);
    return fault;
}

static void inner_free(void *self) {
    (void)self;
}

static enum ulp_status inner_read(void *self, const char *key, uint64_t offset, void *data,
                                  size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    return ulp_store_read(self, key, offset, data, bytes, ret_read, ret_total);
}
static enum ulp_status inner_create(void *self, const char *key, const void *data, size_t bytes) {
    return ulp_store_create(self, key, data, bytes);
}
static enum ulp_status inner_put_begin(void *self, const char *key, void **ret_writer) {
    return ulp_store_put_begin(self, key, (struct ulp_store_writer **)ret_writer);
}
static enum ulp_status inner_put_write(void *self, void *writer, const void *data, size_t bytes) {
    (void)self;
    return ulp_store_put_write(writer, data, bytes);
}
static enum ulp_status inner_put_end(void *self, void *writer, int keep) {
    (void)self;
    return ulp_store_put_end(writer, keep);
}
static enum ulp_status inner_stat(void *self, const char *key, uint64_t *ret_bytes) {
    return ulp_store_stat(self, key, ret_bytes);
}
static enum ulp_status inner_list(void *self, const char *prefix, const char *after,
                                  ulp_store_entry entry, void *user) {
    return ulp_store_list(self, prefix, after, entry, user);
}
static enum ulp_status inner_remove(void *self, const char *key) {
    return ulp_store_remove(self, key);
}

/* The lying store takes over what is below it; the inner one stays ours. */
struct ulp_store *lying_store(struct world *world) {
    static const struct ulp_store_ops ops = {
        .read = inner_read,
        .create = inner_create,
        .put_begin = inner_put_begin,
        .put_write = inner_put_write,
        .put_end = inner_put_end,
        .stat = inner_stat,
        .list = inner_list,
        .remove = inner_remove,
        .free = inner_free,
    };
    struct ulp_store *handle = NULL, *lying = NULL;

    if (ulp_store_new(&ops, world->inner, "inner", &handle) ||
        ulp_store_fault(handle, decide, world, &lying))
        abort();
    return lying;
}

/* ---- each operation ---- */

static enum ulp_status gone(const struct station *station) {
    return fail(ULP_E_IO, "%s is dead", station->who);
}

/* Whether the operation may be done. */
static bool enter(struct station *station) {
    turns_point();
    if (station->world->calm)
        return true;
    if (station->stalls_in && !--station->stalls_in) {
        world_event(station->world, station->who, "stalls", "", ULP_OK);
        turns_sleep(station->stall_ns);
    }
    if (chance_percent(turns_chance(), HICCUP_PERCENT))
        turns_sleep(chance_below(turns_chance(), HICCUP_NS_MAX));
    if (station->dies_in && !--station->dies_in && !station->dies_after) {
        station->dead = true;
        world_event(station->world, station->who, "dies", "", ULP_OK);
    }
    return !station->dead;
}

static enum ulp_status leave(struct station *station, const char *what, const char *key,
                             enum ulp_status status) {
    world_event(station->world, station->who, what, key, status);
    if (!station->world->calm && station->dies_after && !station->dies_in) {
        station->dies_after = false;
        station->dead = true;
        world_event(station->world, station->who, "dies", "", ULP_OK);
        status = gone(station);
    }
    if (station->look)
        station->look(station->user);
    return status;
}

static enum ulp_status station_read(void *self, const char *key, uint64_t offset, void *data,
                                    size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    struct station *station = self;

    if (!enter(station))
        return gone(station);
    return leave(
        station, "reads", key,
        ulp_store_read(station->world->shared, key, offset, data, bytes, ret_read, ret_total));
}

static enum ulp_status station_stat(void *self, const char *key, uint64_t *ret_bytes) {
    struct station *station = self;

    if (!enter(station))
        return gone(station);
    return leave(station, "looks for", key, ulp_store_stat(station->world->shared, key, ret_bytes));
}

static enum ulp_status station_list(void *self, const char *prefix, const char *after,
                                    ulp_store_entry entry, void *user) {
    struct station *station = self;

    if (!enter(station))
        return gone(station);
    return leave(station, "lists", prefix,
                 ulp_store_list(station->world->shared, prefix, after, entry, user));
}

static enum ulp_status station_remove(void *self, const char *key) {
    struct station *station = self;
    enum ulp_status status;

    if (!enter(station))
        return gone(station);
    status = ulp_store_remove(station->world->shared, key);
    truth_check_removed(station->world, key);
    return leave(station, "removes", key, status);
}

/* ---- records ---- */

static size_t look_at_record(const struct world *world, const char *key, uint8_t *bytes) {
    uint64_t total = 0;
    size_t got = 0;

    return ulp_store_read(world->inner, key, 0, bytes, RECORD_BYTES_MAX, &got, &total) ? 0 : got;
}

static void send_late(struct station *station);

static enum ulp_status station_create(void *self, const char *key, const void *data, size_t bytes) {
    static uint8_t before[RECORD_BYTES_MAX], after[RECORD_BYTES_MAX];
    struct station *station = self;
    struct world *world = station->world;
    const uint64_t sequence = strtoull(strrchr(key, '/') + 1, NULL, 10);
    size_t was, is;
    enum ulp_status status;

    if (!enter(station))
        return gone(station);
    was = look_at_record(world, key, before);
    status = ulp_store_create(world->shared, key, data, bytes);
    is = look_at_record(world, key, after);
    if (is != was || memcmp(before, after, is) != 0) {
        truth_record(world, sequence, after, is, true);
        truth_check_parts(world);
    }
    if (!status && !is_strict(world))
        truth_record(world, sequence, data, bytes, false);
    status = leave(station, "creates", key, status);
    send_late(station);
    return status;
}

/* ---- parts ---- */

struct late {
    struct late *next;
    struct ulp_store_writer *writer;
};

struct door {
    struct ulp_store_writer *writer;
    char key[ULP_KEY_BYTES_MAX + 1];
};

/* Nobody sees what is being written: others need not go on here. */
static enum ulp_status station_put_begin(void *self, const char *key, void **ret_writer) {
    struct station *station = self;
    struct door *door;
    enum ulp_status status;

    if (station->dead)
        return gone(station);
    door = calloc(1, sizeof *door);
    if (!door)
        abort();
    snprintf(door->key, sizeof door->key, "%s", key);
    status = ulp_store_put_begin(station->world->shared, key, &door->writer);
    if (status)
        free(door);
    else
        *ret_writer = door;
    return status;
}

static enum ulp_status station_put_write(void *self, void *writer, const void *data, size_t bytes) {
    struct station *station = self;
    struct door *door = writer;

    return station->dead ? gone(station) : ulp_store_put_write(door->writer, data, bytes);
}

static void keep_late(struct station *station, struct ulp_store_writer *writer) {
    struct late *late = malloc(sizeof *late);

    if (!late)
        abort();
    *late = (struct late){station->late, writer};
    station->late = late;
}

static void send_late(struct station *station) {
    while (station->late) {
        struct late *late = station->late;

        station->late = late->next;
        ulp_store_put_end(late->writer, enter(station));
        free(late);
    }
}

static enum ulp_status station_put_end(void *self, void *writer, int keep) {
    struct station *station = self;
    struct door *door = writer;
    enum ulp_status status = ULP_OK;

    if (!enter(station)) {
        ulp_store_put_end(door->writer, 0);
        status = gone(station);
    } else if (station->keeps_parts && keep) {
        keep_late(station, door->writer);
    } else {
        status = ulp_store_put_end(door->writer, keep);
        status = leave(station, "stores", door->key, status);
    }
    free(door);
    return status;
}

/* ---- life ---- */

static void station_free(void *self) {
    (void)self;
}

void station_open(struct station *station, struct world *world, const char *who) {
    static const struct ulp_store_ops ops = {
        .read = station_read,
        .create = station_create,
        .put_begin = station_put_begin,
        .put_write = station_put_write,
        .put_end = station_put_end,
        .stat = station_stat,
        .list = station_list,
        .remove = station_remove,
        .free = station_free,
    };

    *station = (struct station){.world = world, .who = who};
    if (ulp_store_new(&ops, station, who, &station->store))
        abort();
}

void station_revive(struct station *station) {
    station->dead = false;
    station->dies_in = 0;
    station->dies_after = false;
}

void station_close(struct station *station) {
    send_late(station);
    ulp_store_free(station->store);
    station->store = NULL;
}
