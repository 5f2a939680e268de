// SPDX-License-Identifier: Apache-2.0
/* Whether a store keeps its promises: tried, not asked. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/thread.h"
#include "store/store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Some stores are right most of the time. */
#define RACERS 8u
#define ROUNDS 4u

#define OBJECT_BYTES 3000u

struct check {
    struct ulp_store *store;
    struct ulp_store_report *report;
    char folder[64]; /* of this check alone */
};

static void key_of(const struct check *check, const char *name, char key[ULP_KEY_BYTES_MAX + 1]) {
    snprintf(key, ULP_KEY_BYTES_MAX + 1, "%s/%s", check->folder, name);
}

/* Notes what is wrong first; `status` is what the store said, or ULP_OK if it said that all is
 * well. */
static bool wrong(const struct check *check, enum ulp_status status, const char *what) {
    char *why = check->report->why;

    if (!*why)
        snprintf(why, sizeof check->report->why, "%s%s%.160s", what, status ? ": " : "",
                 status ? ulp_last_error() : "");
    return false;
}

static void fill(uint8_t data[OBJECT_BYTES], unsigned seed) {
    for (unsigned i = 0; i < OBJECT_BYTES; i++)
        data[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed * 101);
}

/* ---- writing and reading ---- */

static bool reads(const struct check *check, const char *key, unsigned seed) {
    uint8_t expected[OBJECT_BYTES], found[OBJECT_BYTES + 1];
    uint64_t total = 0, length = 0;
    size_t got = 0;
    enum ulp_status status =
        ulp_store_read(check->store, key, 0, found, sizeof found, &got, &total);

    if (!status)
        status = ulp_store_stat(check->store, key, &length);
    if (status)
        return wrong(check, status, "what was written cannot be read");
    fill(expected, seed);
    if (got != OBJECT_BYTES || total != got || length != got || memcmp(expected, found, got) != 0)
        return wrong(check, ULP_OK, "what was written has other bytes when it is read");
    return true;
}

static bool check_ranges(const struct check *check, const char *key) {
    static const struct {
        uint64_t offset;
        size_t bytes, expected;
    } ranges[] = {{0, 1, 1},    {1000, 500, 500}, {2999, 1, 1}, {2990, 100, 10},
                  {3000, 1, 0}, {9999, 5, 0},     {7, 0, 0}};
    uint8_t expected[OBJECT_BYTES], found[OBJECT_BYTES];

    fill(expected, 1);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        uint64_t total = 0;
        size_t got = 0;
        enum ulp_status status = ulp_store_read(check->store, key, ranges[i].offset, found,
                                                ranges[i].bytes, &got, &total);

        if (status)
            return wrong(check, status, "a range cannot be read");
        if (got != ranges[i].expected || total != OBJECT_BYTES ||
            (got && memcmp(found, expected + ranges[i].offset, got) != 0))
            return wrong(check, ULP_OK, "a range has other bytes than the object");
    }
    return true;
}

static bool check_second(const struct check *check, const char *key) {
    uint8_t other[OBJECT_BYTES];
    enum ulp_status status;

    fill(other, 2);
    status = ulp_store_create(check->store, key, other, sizeof other);
    if (!status)
        return wrong(check, ULP_OK, "an object was created where there was one");
    if (status != ULP_E_EXISTS)
        return wrong(check, status, "creating over an object fails in another way than it should");
    return reads(check, key, 1);
}

/* ---- many at once ---- */

struct race {
    const struct check *check;
    char key[ULP_KEY_BYTES_MAX + 1];
    atomic_uint waiting;
    atomic_bool go;
};

struct racer {
    struct thread thread;
    struct race *race;
    unsigned seed;
    enum ulp_status status;
    struct error_note note;
};

static void run_racer(void *user) {
    struct racer *racer = user;
    uint8_t data[OBJECT_BYTES];

    fill(data, racer->seed);
    atomic_fetch_add(&racer->race->waiting, 1);
    while (!atomic_load(&racer->race->go))
        clock_sleep_ns(10000);
    racer->status =
        ulp_store_create(racer->race->check->store, racer->race->key, data, sizeof data);
    if (racer->status)
        error_save(&racer->note);
}

static bool judge(const struct check *check, const struct racer *racers, const char *key) {
    const struct racer *winner = NULL;

    for (unsigned i = 0; i < RACERS; i++) {
        if (!racers[i].status && winner)
            return wrong(check, ULP_OK, "two created the same object at the same moment");
        if (!racers[i].status)
            winner = &racers[i];
        if (racers[i].status && racers[i].status != ULP_E_EXISTS) {
            error_restore(&racers[i].note);
            return wrong(check, racers[i].status, "creating fails when many do so");
        }
    }
    if (!winner)
        return wrong(check, ULP_OK, "nobody of many created an object");
    return reads(check, key, winner->seed);
}

/* Those that were started all run before one of them begins. */
static bool run_race(const struct check *check, unsigned round) {
    struct race race = {.check = check};
    struct racer racers[RACERS] = {{.race = NULL}};
    unsigned started = 0;
    enum ulp_status status = ULP_OK;
    char name[16];

    snprintf(name, sizeof name, "race%u", round);
    key_of(check, name, race.key);
    for (; !status && started < RACERS; started += !status) {
        racers[started].race = &race;
        racers[started].seed = 10 + started;
        status = thread_start(&racers[started].thread, run_racer, &racers[started]);
    }
    while (atomic_load(&race.waiting) < started)
        clock_sleep_ns(100000);
    atomic_store(&race.go, true);
    for (unsigned i = 0; i < started; i++)
        thread_join(&racers[i].thread);
    if (status)
        return wrong(check, status, "no threads to try it with");
    return judge(check, racers, race.key);
}

static bool check_races(const struct check *check) {
    for (unsigned round = 0; round < ROUNDS; round++)
        if (!run_race(check, round))
            return false;
    return true;
}

/* ---- listing and removing ---- */

struct listed {
    char last[ULP_KEY_BYTES_MAX + 1];
    size_t count;
    bool disordered;
};

static int hear_entry(void *user, const char *key, uint64_t bytes) {
    struct listed *listed = user;

    (void)bytes;
    listed->disordered = listed->disordered || strcmp(listed->last, key) >= 0;
    snprintf(listed->last, sizeof listed->last, "%s", key);
    listed->count++;
    return 0;
}

/* Listings may lack what is new, so what they show is told of and decides nothing. */
static bool check_list(const struct check *check, size_t expected) {
    struct listed listed = {.count = 0};
    char prefix[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    key_of(check, "", prefix);
    status = ulp_store_list(check->store, prefix, "", hear_entry, &listed);
    if (status)
        return wrong(check, status, "objects cannot be listed");
    if (listed.disordered || listed.count != expected)
        return wrong(check, ULP_OK, "a listing lacks something, or is not in order");
    return true;
}

static bool check_remove(const struct check *check, const char *key) {
    uint64_t bytes = 0;
    enum ulp_status status = ulp_store_remove(check->store, key);

    if (!status)
        status = ulp_store_remove(check->store, key); /* what is not there can be removed */
    if (status)
        return wrong(check, status, "objects cannot be removed");
    status = ulp_store_stat(check->store, key, &bytes);
    if (status != ULP_E_NOT_FOUND)
        return wrong(check, status, "what was removed is still there");
    return true;
}

static void clean_up(const struct check *check) {
    char name[16], key[ULP_KEY_BYTES_MAX + 1];

    key_of(check, "put", key);
    ulp_store_remove(check->store, key);
    key_of(check, "created", key);
    ulp_store_remove(check->store, key);
    for (unsigned round = 0; round < ROUNDS; round++) {
        snprintf(name, sizeof name, "race%u", round);
        key_of(check, name, key);
        ulp_store_remove(check->store, key);
    }
}

/* ---- the whole ---- */

static enum ulp_store_verdict verdict(const struct ulp_store_report *report) {
    if (!report->writes)
        return ULP_STORE_READ_ONLY;
    if (!report->reads_own || !report->ranges)
        return ULP_STORE_UNFIT;
    return report->refuses_second && report->one_of_many ? ULP_STORE_SEVERAL_PUBLISHERS
                                                         : ULP_STORE_ONE_PUBLISHER;
}

static void check_all(const struct check *check, const char *created, const char *put) {
    struct ulp_store_report *report = check->report;

    report->reads_own = reads(check, created, 1) && reads(check, put, 1);
    report->ranges = report->reads_own && check_ranges(check, put);
    report->refuses_second = report->reads_own && check_second(check, created);
    report->one_of_many = report->reads_own && check_races(check);
    report->lists = check_list(check, 2 + ROUNDS);
    report->removes = check_remove(check, put);
}

/* Whoever cannot write at all may be a reader; where only creating fails, something is wrong. */
enum ulp_status ulp_store_check(struct ulp_store *store, struct ulp_store_report *ret_report) {
    struct ulp_store_report report = {.why = ""};
    struct check check = {.store = store, .report = &report};
    char created[ULP_KEY_BYTES_MAX + 1], put[ULP_KEY_BYTES_MAX + 1];
    uint8_t data[OBJECT_BYTES];
    enum ulp_status status;

    if (!store || !ret_report)
        return store_argument_missing(__func__);
    snprintf(check.folder, sizeof check.folder, "ulpsync-check/%016llx-%lx",
             (unsigned long long)clock_wall_ns(), (unsigned long)getpid());
    key_of(&check, "created", created);
    key_of(&check, "put", put);
    fill(data, 1);
    status = ulp_store_put(store, put, data, sizeof data);
    report.writes = !status || status == ULP_E_EXISTS; /* a name that nobody else has */
    if (status && !report.writes && status != ULP_E_UNSUPPORTED && status != ULP_E_PERMISSION)
        return status;
    if (!report.writes) {
        wrong(&check, status, "nothing can be written");
    } else {
        if (!status)
            status = ulp_store_create(store, created, data, sizeof data);
        if (status)
            wrong(&check, status, "creating is refused where there is nothing");
        else
            check_all(&check, created, put);
        clean_up(&check);
    }
    report.verdict = verdict(&report);
    *ret_report = report;
    return ULP_OK;
}

const char *ulp_store_verdict_name(enum ulp_store_verdict verdict) {
    switch (verdict) {
    case ULP_STORE_READ_ONLY:
        return "read only";
    case ULP_STORE_ONE_PUBLISHER:
        return "one publisher";
    case ULP_STORE_SEVERAL_PUBLISHERS:
        return "several publishers";
    default:
        return "unfit";
    }
}
