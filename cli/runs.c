// SPDX-License-Identifier: Apache-2.0
#include "cli/runs.h"

#include "cli/report.h"
#include "cli/secrets.h"
#include "cli/stores.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CACHE_BYTES_DEFAULT ((uint64_t)16 << 30)
#define POLL_MS_MAX 86400000u

static bool has_option(const struct cli_verb *verb, const char *name) {
    for (const struct cli_option *option = verb->options; option->name; option++) {
        if (!strcmp(option->name, name))
            return true;
    }
    return false;
}

/* NULL too when the verb has no such option. */
static const char *text_of(const struct cli_args *args, const char *name) {
    return has_option(args->verb, name) ? option_text(args, name) : NULL;
}

/* ---- where, and with which keys ---- */

static enum ulp_status open_cache(const struct cli_args *args, struct ulp_store **store) {
    const char *directory = text_of(args, "cache");
    uint64_t bytes = CACHE_BYTES_DEFAULT;
    struct ulp_store *inner = *store;
    enum ulp_status status;

    if (!directory)
        return text_of(args, "cache-bytes")
                   ? ulp_fail(ULP_E_USAGE, "--cache-bytes goes with --cache DIR")
                   : ULP_OK;
    status = option_size(args, "cache-bytes", 1 << 20, (uint64_t)1 << 50, &bytes);
    if (status)
        return status;
    *store = NULL;
    return ulp_store_cache(inner, directory, bytes, store);
}

enum ulp_status run_key_load(const char *path, struct ulp_key **ret_key) {
    secrets_keep();
    return ulp_key_load(path, ret_key);
}

static enum ulp_status open_place(const struct cli_args *args, const char *url,
                                  struct run_place *place) {
    const char *sign = text_of(args, "sign"), *trust = text_of(args, "trust");
    enum ulp_status status = ULP_OK;

    if (has_option(args->verb, "threads"))
        status = option_pool(args, &place->pool);
    if (!status && sign)
        status = run_key_load(sign, &place->sign);
    if (!status && trust)
        status = ulp_public_keys_load(trust, place->trusted, ULP_TRUSTED_KEYS_MAX,
                                      &place->trusted_count);
    if (!status)
        status = store_open(args, url, &place->store);
    if (!status)
        status = open_cache(args, &place->store);
    return status;
}

enum ulp_status run_place_open(const struct cli_args *args, struct run_place *ret_place) {
    const char *url = option_text(args, "store");
    struct run_place place = {.run = option_text(args, "run")};
    enum ulp_status status;

    if (!url || !place.run)
        return ulp_fail(ULP_E_USAGE, "say which run: --store URL --run NAME");
    status = open_place(args, url, &place);
    if (status)
        run_place_close(&place);
    else
        *ret_place = place;
    return status;
}

void run_place_close(struct run_place *place) {
    ulp_store_free(place->store);
    ulp_pool_free(place->pool);
    ulp_key_free(place->sign);
    *place = (struct run_place){0};
}

/* ---- options ---- */

enum ulp_status run_options(const struct cli_args *args, const struct run_place *place,
                            struct ulp_run_options *ret_options) {
    double max_age = 0;
    enum ulp_status status = ULP_OK;

    if (text_of(args, "max-age"))
        status = option_real(args, "max-age", 0.001, 1e9, &max_age);
    if (status)
        return status;
    *ret_options = (struct ulp_run_options){
        .pool = place->pool,
        .trusted = place->trusted_count ? place->trusted : NULL,
        .trusted_count = place->trusted_count,
        .max_age_ms = (uint64_t)(max_age * 1000),
        .base = text_of(args, "base"),
        .sign = place->sign,
    };
    return ULP_OK;
}

enum ulp_status run_options_version(const struct cli_args *args, const struct run_place *place,
                                    struct ulp_run_options *options) {
    uint64_t step = 0;
    enum ulp_status status = option_count(args, "version", 0, UINT64_MAX, &options->version);

    if (!status)
        status = option_count(args, "step", 0, UINT64_MAX, &step);
    if (status)
        return status;
    options->stop_at_version = option_given(args, "version") || option_given(args, "step");
    if (!option_given(args, "step"))
        return ULP_OK;
    if (option_given(args, "version"))
        return ulp_fail(ULP_E_USAGE, "give either --step or --version");
    return ulp_run_find_step(place->store, place->run, step, options, &options->version);
}

/* Versions do not go back from one record to the next, so halving finds the first that has it. */
enum ulp_status run_record_of_version(const struct run_place *place,
                                      const struct ulp_run_record *head, uint64_t version,
                                      struct ulp_run_record *ret_record) {
    struct ulp_run_record found = *head;
    uint64_t low = 1, high = head->sequence;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        struct ulp_run_record record = {0};
        enum ulp_status status = ulp_run_read(place->store, place->run, middle, &record);

        if (status)
            return status;
        if (record.version < version) {
            low = middle + 1;
        } else {
            high = middle;
            found = record;
        }
    }
    if (found.version != version)
        return ulp_fail(ULP_E_CHAIN, "no record of run '%s' published version %llu", place->run,
                        (unsigned long long)version);
    *ret_record = found;
    return ULP_OK;
}

enum ulp_status run_option_poll(const struct cli_args *args, uint64_t *poll_ms) {
    return option_count(args, "poll", 1, POLL_MS_MAX, poll_ms);
}

void run_wait(uint64_t poll_ms) {
    static uint64_t state;

    if (!state)
        state = now_ns() ^ ((uint64_t)getpid() << 32);
    state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's generator */
    terminal_wait_ms(poll_ms - poll_ms / 5 + (state >> 33) % (2 * (poll_ms / 5) + 1));
}

bool run_may_pass(enum ulp_status status) {
    switch (status) {
    case ULP_E_NO_RUN:
    case ULP_E_IO:
    case ULP_E_PART:
    case ULP_E_PART_MISSING:
    case ULP_E_UNREACHABLE:
    case ULP_E_FROZEN:
    case ULP_E_FILE_CHANGED:
    case ULP_E_NO_SPACE:
        return true;
    default:
        return false;
    }
}

void run_complain(enum ulp_status *last, enum ulp_status status, const char *doing) {
    if (status && status != *last && status != ULP_E_NO_RUN) {
        fprintf(stderr, "ulpsync: %s: ", doing);
        print_safely(stderr, ulp_last_error());
        fputc('\n', stderr);
    }
    *last = status;
}

/* ---- reports ---- */

const char *const run_phase_names[RUN_PHASES] = {"poll",  "fetch", "verify", "decode", "digest",
                                                 "stage", "apply", "encode", "store",  "commit"};

uint64_t run_phase_ns(const struct ulp_run_phases *phases, unsigned index) {
    const uint64_t ns[RUN_PHASES] = {phases->poll_ns,   phases->fetch_ns,  phases->verify_ns,
                                     phases->decode_ns, phases->digest_ns, phases->stage_ns,
                                     phases->apply_ns,  phases->encode_ns, phases->store_ns,
                                     phases->commit_ns};

    return ns[index];
}

static void add_phases(struct ulp_run_phases *total, const struct ulp_run_phases *more) {
    total->poll_ns += more->poll_ns;
    total->fetch_ns += more->fetch_ns;
    total->verify_ns += more->verify_ns;
    total->decode_ns += more->decode_ns;
    total->digest_ns += more->digest_ns;
    total->stage_ns += more->stage_ns;
    total->apply_ns += more->apply_ns;
    total->encode_ns += more->encode_ns;
    total->store_ns += more->store_ns;
    total->commit_ns += more->commit_ns;
}

void run_report_add(struct ulp_run_report *total, const struct ulp_run_report *call) {
    struct ulp_run_report sum = *call;

    sum.fetched_bytes += total->fetched_bytes;
    sum.patch_bytes += total->patch_bytes;
    sum.anchor_bytes += total->anchor_bytes;
    sum.record_bytes += total->record_bytes;
    sum.fetched_patches += total->fetched_patches;
    sum.fetched_anchors += total->fetched_anchors;
    sum.fetched_records += total->fetched_records;
    sum.fetched_objects += total->fetched_objects;
    sum.stored_bytes += total->stored_bytes;
    sum.stored_objects += total->stored_objects;
    add_phases(&sum.phases, &total->phases);
    *total = sum;
}

void run_record_json(struct json_out *out, const struct ulp_run_record *record) {
    char signer[ULP_PUBLIC_KEY_HEX_BYTES];

    json_out_u64(out, "sequence", record->sequence);
    json_out_u64(out, "version", record->version);
    json_out_u64(out, "epoch", record->epoch);
    json_out_u64(out, "step", record->step);
    json_out_u64(out, "time_ms", record->time_ms);
    json_out_root(out, "root", &record->root);
    json_out_u64(out, "elements", record->elements);
    json_out_u64(out, "changed", record->changed);
    json_out_u64(out, "patch_bytes", record->patch_bytes);
    json_out_real(out, "bits_per_change",
                  report_share(8 * (double)record->patch_bytes, (double)record->changed));
    json_out_u64(out, "anchor_bytes", record->anchor_bytes);
    json_out_bool(out, "history", record->history);
    json_out_u64(out, "anchors", record->anchors);
    json_out_u64(out, "ways", record->ways);
    json_out_u64(out, "oldest", record->oldest);
    json_out_u64(out, "boundary", record->boundary);
    if (!record->is_signed) {
        json_out_null(out, "signer");
        return;
    }
    ulp_public_key_hex(&record->signer, signer);
    json_out_text(out, "signer", signer);
}

void run_fetched_json(struct json_out *out, const struct ulp_run_report *report) {
    json_out_u64(out, "fetched_bytes", report->fetched_bytes);
    json_out_u64(out, "fetched_patch_bytes", report->patch_bytes);
    json_out_u64(out, "fetched_anchor_bytes", report->anchor_bytes);
    json_out_u64(out, "fetched_record_bytes", report->record_bytes);
    json_out_u64(out, "fetched_patches", report->fetched_patches);
    json_out_u64(out, "fetched_anchors", report->fetched_anchors);
    json_out_u64(out, "fetched_records", report->fetched_records);
    json_out_u64(out, "fetched_objects", report->fetched_objects);
}

void run_stored_json(struct json_out *out, const struct ulp_run_report *report) {
    json_out_u64(out, "stored_bytes", report->stored_bytes);
    json_out_u64(out, "stored_objects", report->stored_objects);
}

void run_phases_json(struct json_out *out, const struct ulp_run_phases *phases) {
    json_out_begin(out, "phases", '{');
    for (unsigned i = 0; i < RUN_PHASES; i++) {
        char name[32];

        snprintf(name, sizeof name, "%s_ms", run_phase_names[i]);
        json_out_real(out, name, (double)run_phase_ns(phases, i) / 1e6);
    }
    json_out_end(out, '}');
}

void run_fetched_text(const struct ulp_run_record *record, const struct ulp_run_report *report) {
    printf("version %llu, step %llu: fetched %s in %u patch%s and %u anchor%s\n",
           (unsigned long long)record->version, (unsigned long long)record->step,
           readable_bytes(report->fetched_bytes).text, report->fetched_patches,
           report->fetched_patches == 1 ? "" : "es", report->fetched_anchors,
           report->fetched_anchors == 1 ? "" : "s");
}
