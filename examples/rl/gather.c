// SPDX-License-Identifier: Apache-2.0
#include "gather.h"

#include "memory.h"

#include <string.h>

#define OBJECTS_MAX 1024
#define NAP_MS 5

void harvest_release(struct harvest *harvest) {
    free(harvest->sequences);
    memset(harvest, 0, sizeof *harvest);
}

void gather_name(uint64_t worker, char ret_name[32]) {
    snprintf(ret_name, 32, "worker-%llu", (unsigned long long)worker);
}

uint64_t gather_share(uint64_t groups, uint64_t workers, uint64_t worker) {
    return groups * (worker + 1) / workers - groups * worker / workers;
}

static void add(struct harvest *harvest, const struct samples *samples, uint64_t version) {
    const size_t before = harvest->groups * samples->size;
    const size_t more = samples->groups * samples->size;
    const double share = (double)samples->groups / (double)(harvest->groups + samples->groups);

    if (before + more > harvest->room) {
        struct sequence *larger = zeroed(2 * (before + more), sizeof *larger);

        if (before)
            memcpy(larger, harvest->sequences, before * sizeof *larger);
        free(harvest->sequences);
        harvest->sequences = larger;
        harvest->room = 2 * (before + more);
    }
    memcpy(harvest->sequences + before, samples->sequences, more * sizeof *samples->sequences);
    harvest->groups += samples->groups;
    harvest->age += share * ((double)(version - samples->version) - harvest->age);
}

/* ---- in step: each worker's share of this version ---- */

static enum ulp_status gather_share_of(const struct gathering *how, uint64_t version,
                                       uint64_t worker, struct harvest *harvest) {
    const double started = seconds();
    struct samples samples = {0};
    char name[32], key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    gather_name(worker, name);
    samples_key(how->run, version, name, key);
    while ((status = samples_get(how->store, key, &samples)) == ULP_E_NOT_FOUND &&
           seconds() - started < how->patience_s)
        nap_ms(NAP_MS);
    if (!status && (samples.version != version || samples.size != how->size ||
                    samples.groups != gather_share(how->groups, how->workers, worker)))
        status = ulp_fail(ULP_E_SCHEMA, "%s is not what was asked for", key);
    if (!status)
        add(harvest, &samples, version);
    samples_release(&samples);
    return status ? status : ulp_store_remove(how->store, key);
}

/* ---- out of step: whatever is young enough, oldest first ---- */

struct keys {
    size_t count;
    char text[OBJECTS_MAX][160];
};

static int add_key(void *user, const char *key, uint64_t bytes) {
    struct keys *keys = user;

    (void)bytes;
    if (keys->count < OBJECTS_MAX && strlen(key) < sizeof keys->text[0])
        memcpy(keys->text[keys->count++], key, strlen(key) + 1);
    return 0;
}

static enum ulp_status list(struct ulp_store *store, const char *run, uint64_t version,
                            struct keys *keys) {
    char prefix[ULP_KEY_BYTES_MAX + 1], after[ULP_KEY_BYTES_MAX + 1];

    snprintf(prefix, sizeof prefix, "%s-samples/", run);
    samples_key(run, version, "0", after); /* names begin with letters */
    keys->count = 0;
    return ulp_store_list(store, prefix, version ? after : "", add_key, keys);
}

enum ulp_status gather_waiting(struct ulp_store *store, const char *run, uint64_t version,
                               size_t *ret_objects) {
    struct keys *keys = zeroed(1, sizeof *keys);
    const enum ulp_status status = list(store, run, version, keys);

    if (!status)
        *ret_objects = keys->count;
    free(keys);
    return status;
}

enum ulp_status gather_clear(struct ulp_store *store, const char *run) {
    struct keys *keys = zeroed(1, sizeof *keys);
    enum ulp_status status;

    do {
        status = list(store, run, 0, keys);
        for (size_t i = 0; !status && i < keys->count; i++)
            status = ulp_store_remove(store, keys->text[i]);
    } while (!status && keys->count == OBJECTS_MAX);
    free(keys);
    return status;
}

/* What is malformed or too old is thrown away, with a word about it. */
static void refuse(const struct gathering *how, const char *key, const char *why) {
    jsonl_begin(how->log, "refused");
    jsonl_text(how->log, "key", key);
    jsonl_text(how->log, "why", why);
    jsonl_end(how->log);
}

static enum ulp_status gather_object(const struct gathering *how, uint64_t version, const char *key,
                                     struct harvest *harvest) {
    struct samples samples = {0};
    enum ulp_status status = samples_get(how->store, key, &samples);

    if (status == ULP_E_SCHEMA || status == ULP_E_LIMIT) {
        refuse(how, key, "malformed");
    } else if (status) {
        return status == ULP_E_NOT_FOUND ? ULP_OK : status;
    } else if (samples.size != how->size || samples.version > version) {
        refuse(how, key, "not what was asked for");
    } else if (version - samples.version > how->lag) {
        harvest->stale++;
    } else {
        add(harvest, &samples, version);
    }
    samples_release(&samples);
    return ulp_store_remove(how->store, key);
}

static enum ulp_status gather_any(const struct gathering *how, uint64_t version,
                                  struct harvest *harvest) {
    struct keys *keys = zeroed(1, sizeof *keys);
    double heard = seconds();
    enum ulp_status status = ULP_OK;

    while (!status && harvest->groups < how->groups) {
        status = list(how->store, how->run, 0, keys);
        for (size_t i = 0; !status && i < keys->count && harvest->groups < how->groups; i++) {
            status = gather_object(how, version, keys->text[i], harvest);
            heard = seconds();
        }
        if (!status && !keys->count && seconds() - heard > how->patience_s)
            status = ulp_fail(ULP_E_NOT_FOUND, "no samples came for %.0f s; is a worker running?",
                              how->patience_s);
        if (!status && harvest->groups < how->groups)
            nap_ms(NAP_MS);
    }
    free(keys);
    return status;
}

enum ulp_status gather(const struct gathering *how, uint64_t version, struct harvest *harvest) {
    enum ulp_status status = ULP_OK;

    harvest->groups = 0;
    harvest->age = 0;
    harvest->stale = 0;
    if (how->lag)
        return gather_any(how, version, harvest);
    for (uint64_t i = 0; !status && i < how->workers; i++)
        status = gather_share_of(how, version, i, harvest);
    return status;
}
