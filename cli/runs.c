// SPDX-License-Identifier: Apache-2.0
#include "cli/runs.h"

#include <string.h>
#include <sys/resource.h>

/* Credentials are in the environment and in memory; a crash does not write them to a disk. */
static void keep_secrets(const char *url) {
    struct rlimit limit;

    if (!strncmp(url, "s3://", 5) && !getrlimit(RLIMIT_CORE, &limit)) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
}

static bool has_option(const struct cli_verb *verb, const char *name) {
    for (const struct cli_option *option = verb->options; option->name; option++) {
        if (!strcmp(option->name, name))
            return true;
    }
    return false;
}

enum ulp_status run_place_open(const struct cli_args *args, struct run_place *ret_place) {
    const char *url = option_text(args, "store");
    struct run_place place = {.run = option_text(args, "run")};
    enum ulp_status status = ULP_OK;

    if (!url || !place.run)
        return ulp_fail(ULP_E_USAGE, "say which run: --store URL --run NAME");
    keep_secrets(url);
    if (has_option(args->verb, "threads"))
        status = option_pool(args, &place.pool);
    if (!status)
        status = ulp_store_open(url, &place.store);
    if (status) {
        run_place_close(&place);
        return status;
    }
    *ret_place = place;
    return ULP_OK;
}

void run_place_close(struct run_place *place) {
    ulp_store_free(place->store);
    ulp_pool_free(place->pool);
    *place = (struct run_place){0};
}

void run_record_json(struct json_out *out, const struct ulp_run_record *record) {
    json_out_u64(out, "sequence", record->sequence);
    json_out_u64(out, "version", record->version);
    json_out_u64(out, "epoch", record->epoch);
    json_out_u64(out, "step", record->step);
    json_out_u64(out, "time_ms", record->time_ms);
    json_out_root(out, "root", &record->root);
    json_out_u64(out, "changed", record->changed);
    json_out_u64(out, "patch_bytes", record->patch_bytes);
    json_out_u64(out, "anchor_bytes", record->anchor_bytes);
    json_out_bool(out, "history", record->history);
}
