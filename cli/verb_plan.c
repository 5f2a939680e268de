// SPDX-License-Identifier: Apache-2.0
/* A model of costs that fits on a page: what is sent, how long that takes, and what it costs in
 * waiting. */
#include "cli/options.h"
#include "cli/output.h"
#include "cli/runs.h"

#include <stdio.h>

#define BITS_PER_BYTE 8.0
#define GIGA 1e9

/* So many of a run's last records are looked at. */
#define MEASURED_RECORDS 64u

struct question {
    double params, element_bytes;
    double density, bits; /* share of elements that change in a step; bits for each */
    double link;          /* bits a second, to one follower */
    double step_seconds;
    double followers;
    double encode, decode; /* bytes of the model a second */
    double utilisation;    /* wanted */
};

struct answer {
    double full_bytes, patch_bytes;
    double full_seconds, patch_seconds; /* to send */
    double coding_seconds;
    double full_lost, patch_lost;   /* share of time in which workers wait */
    double full_link, patch_link;   /* bits a second for the utilisation that is wanted */
    double store_full, store_patch; /* bytes that leave the store for one step */
    double break_even;              /* bits a second above which sending everything is faster */
};

static double lost(double waiting, double step) {
    return waiting / (step + waiting);
}

/* Waiting may take so long that the workers are busy for the wanted share of the time. */
static double link_for(double bytes, const struct question *q, double coding) {
    double waiting = q->step_seconds * (1 - q->utilisation) / q->utilisation - coding;

    return waiting > 0 ? bytes * BITS_PER_BYTE / waiting : 0;
}

static struct answer answer(const struct question *q) {
    struct answer a = {.full_bytes = q->params * q->element_bytes};

    a.patch_bytes = q->params * q->density * q->bits / BITS_PER_BYTE;
    a.full_seconds = a.full_bytes * BITS_PER_BYTE / q->link;
    a.patch_seconds = a.patch_bytes * BITS_PER_BYTE / q->link;
    a.coding_seconds = a.full_bytes / q->encode + a.full_bytes / q->decode;
    a.full_lost = lost(a.full_seconds, q->step_seconds);
    a.patch_lost = lost(a.patch_seconds + a.coding_seconds, q->step_seconds);
    a.full_link = link_for(a.full_bytes, q, 0);
    a.patch_link = link_for(a.patch_bytes, q, a.coding_seconds);
    a.store_full = a.full_bytes * q->followers;
    a.store_patch = a.patch_bytes * q->followers;
    a.break_even = (a.full_bytes - a.patch_bytes) * BITS_PER_BYTE / a.coding_seconds;
    return a;
}

static void print_text(const struct question *q, const struct answer *a) {
    printf("%s parameters, of which %.3f %% change in a step of %.1f s, in %.2f bits each\n\n",
           readable_count((uint64_t)q->params).text, 100 * q->density, q->step_seconds, q->bits);
    printf("%-34s %16s %16s\n", "", "everything", "patches");
    printf("%-34s %16s %16s\n", "bytes of a step", readable_bytes((uint64_t)a->full_bytes).text,
           readable_bytes((uint64_t)a->patch_bytes).text);
    printf("%-34s %16.3f %16.3f\n", "seconds to send", a->full_seconds, a->patch_seconds);
    printf("%-34s %16s %16.3f\n", "seconds to encode and apply", "-", a->coding_seconds);
    printf("%-34s %15.1f%% %15.1f%%\n", "time that workers wait", 100 * a->full_lost,
           100 * a->patch_lost);
    printf("link for %.0f %% of the time at work    %9.3f Gbit/s ", 100 * q->utilisation,
           a->full_link / GIGA);
    if (a->patch_link > 0)
        printf("%9.3f Gbit/s\n", a->patch_link / GIGA);
    else
        printf("%16s\n", "not possible");
    printf("%-34s %16s %16s\n", "leaves the store for each step",
           readable_bytes((uint64_t)a->store_full).text,
           readable_bytes((uint64_t)a->store_patch).text);
    printf("\nSending everything is faster on links above %.1f Gbit/s.\n", a->break_even / GIGA);
}

static void print_json(const struct question *q, const struct answer *a) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_real(&out, "params", q->params);
    json_out_real(&out, "density", q->density);
    json_out_real(&out, "bits_per_change", q->bits);
    json_out_real(&out, "step_seconds", q->step_seconds);
    json_out_real(&out, "full_bytes", a->full_bytes);
    json_out_real(&out, "patch_bytes", a->patch_bytes);
    json_out_real(&out, "full_seconds", a->full_seconds);
    json_out_real(&out, "patch_seconds", a->patch_seconds);
    json_out_real(&out, "coding_seconds", a->coding_seconds);
    json_out_real(&out, "full_lost", a->full_lost);
    json_out_real(&out, "patch_lost", a->patch_lost);
    json_out_real(&out, "full_link_gbit", a->full_link / GIGA);
    json_out_real(&out, "patch_link_gbit", a->patch_link / GIGA);
    json_out_real(&out, "store_full_bytes", a->store_full);
    json_out_real(&out, "store_patch_bytes", a->store_patch);
    json_out_real(&out, "break_even_gbit", a->break_even / GIGA);
    json_out_end(&out, '}');
}

/* ---- what a run tells ---- */

struct measured {
    double versions, changed, patch_bytes, seconds; /* of all versions together */
};

static void add_version(struct measured *m, const struct ulp_run_record *before,
                        const struct ulp_run_record *record) {
    if (record->version == before->version || !record->patch_bytes)
        return;
    m->versions++;
    m->changed += (double)record->changed;
    m->patch_bytes += (double)record->patch_bytes;
    m->seconds += ((double)record->time_ms - (double)before->time_ms) / 1000;
}

/* The first version is stored whole, and tells how large the model is. */
static enum ulp_status measure(const struct run_place *place, struct measured *m,
                               double *ret_model_bytes) {
    struct ulp_run_record head = {0}, first = {0}, before = {0}, record = {0};
    enum ulp_status status = ulp_run_head(place->store, place->run, &head);
    uint64_t at = head.sequence > MEASURED_RECORDS ? head.sequence - MEASURED_RECORDS : 1;

    if (!status)
        status = ulp_run_read(place->store, place->run, 1, &first);
    if (!status)
        status = ulp_run_read(place->store, place->run, at, &before);
    for (at++; !status && at <= head.sequence; at++) {
        status = ulp_run_read(place->store, place->run, at, &record);
        if (!status)
            add_version(m, &before, &record);
        before = record;
    }
    if (!status && m->changed <= 0)
        status = ulp_fail(ULP_E_USAGE, "run '%s' has no steps yet to be measured", place->run);
    *ret_model_bytes = (double)first.anchor_bytes;
    return status;
}

/* Before the options, which say it better. */
static enum ulp_status ask_run(const struct cli_args *args, struct question *q) {
    struct measured m = {0};
    struct run_place place = {0};
    double model_bytes = 0;
    enum ulp_status status;

    if (!option_given(args, "store") && !option_given(args, "run"))
        return ULP_OK;
    status = run_place_open(args, &place);
    if (!status)
        status = measure(&place, &m, &model_bytes);
    run_place_close(&place);
    if (status)
        return status;
    if (q->params <= 0)
        q->params = model_bytes / q->element_bytes;
    if (q->params <= 0)
        return ulp_fail(ULP_E_USAGE, "the run does not tell how large the model is: --params 7B");
    q->density = m.changed / m.versions / q->params;
    q->bits = BITS_PER_BYTE * m.patch_bytes / m.changed;
    if (m.seconds > 0)
        q->step_seconds = m.seconds / m.versions;
    return ULP_OK;
}

/* ---- the question ---- */

static enum ulp_status read_size(const struct cli_args *args, struct question *q) {
    uint64_t params = 0;
    enum ulp_status status = option_count(args, "params", 1, UINT64_MAX / 16, &params);

    if (!status)
        status = option_real(args, "element-bytes", 0.5, 8, &q->element_bytes);
    q->params = (double)params;
    if (!status)
        status = ask_run(args, q);
    if (!status && q->params <= 0)
        status = ulp_fail(ULP_E_USAGE, "say how large the model is: --params 7B");
    return status;
}

static enum ulp_status read_question(const struct cli_args *args, struct question *q) {
    double link = 1, encode = 14, decode = 20, wanted = 90;
    uint64_t followers = 1;
    enum ulp_status status = read_size(args, q);

    if (!status)
        status = option_count(args, "followers", 1, 1000000000, &followers);
    if (!status)
        status = option_real(args, "density", 1e-9, 1, &q->density);
    if (!status)
        status = option_real(args, "bits", 0.01, 1000, &q->bits);
    if (!status)
        status = option_real(args, "link", 1e-6, 1e6, &link);
    if (!status)
        status = option_real(args, "step-time", 1e-3, 1e7, &q->step_seconds);
    if (!status)
        status = option_real(args, "encode", 1e-3, 1e5, &encode);
    if (!status)
        status = option_real(args, "decode", 1e-3, 1e5, &decode);
    if (!status)
        status = option_real(args, "busy", 1, 99.999, &wanted);
    q->followers = (double)followers;
    q->link = link * GIGA;
    q->encode = encode * GIGA;
    q->decode = decode * GIGA;
    q->utilisation = wanted / 100;
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct question q = {.element_bytes = 2, .density = 0.01, .bits = 6.9, .step_seconds = 60};
    struct answer a;
    enum ulp_status status = read_question(args, &q);

    if (status)
        return status;
    a = answer(&q);
    if (option_given(args, "json"))
        print_json(&q, &a);
    else
        print_text(&q, &a);
    return ULP_OK;
}

static const struct cli_option options[] = {
    {"params", 'p', "N", "Parameters of the model, such as 7B."},
    {"element-bytes", 0, "B", "Bytes of each; 2 unless given."},
    {"density", 0, "D", "Share of them that changes in a step; 0.01 unless given."},
    {"bits", 0, "B", "Bits for each change; 6.9 unless given, as with FP32 masters."},
    {"link", 0, "GBIT", "Gbit/s to one follower; 1 unless given."},
    {"step-time", 0, "S", "Seconds that workers work between two steps; 60 unless given."},
    {"followers", 0, "N", "Workers that fetch from the store; 1 unless given."},
    {"encode", 0, "GB",
     "GB/s of the model that are encoded; 14, as eight threads do, unless given."},
    {"decode", 0, "GB",
     "GB/s of the model that are applied; 20, as eight threads do, unless given."},
    {"store", 0, "URL", "Measure a run of yours instead: where it is kept,"},
    {"run", 'r', "NAME", "and its name. Density, bits and time of a step are those of its end."},
    STORE_OPTIONS,
    {"busy", 0, "PERCENT", "Share of the time that workers should work; 90 unless given."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_plan = {
    .name = "plan",
    .group = CLI_RUNS,
    .summary = "what sending steps costs: bytes, seconds, waiting, links",
    .operands = "--params N | --store URL --run NAME [--link GBIT] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Compares sending every step whole with sending patches: bytes, seconds, the\n"
        "share of their time that workers wait, the link that keeps them busy, and the\n"
        "speed above which sending everything is faster. Nothing overlaps in this model,\n"
        "so it is on the safe side. 'ulpsync bench' tells this machine's speeds.\n"
        "\n"
        "How much of a model changes, and in how many bits, depends on the training.\n"
        "Where a run exists already, --store and --run take from its last 64 records the\n"
        "share of elements that change, the bits for each and the time between two\n"
        "versions, and the size of the model from its first one. What is given as an\n"
        "option counts more.\n",
    .examples = "  $ ulpsync plan --params 7B --link 0.2 --step-time 50 --followers 16\n"
                "  $ ulpsync plan --store /mnt/weights --run rl1 --link 0.2 --followers 16\n",
    .options = options,
    .run = run,
};
