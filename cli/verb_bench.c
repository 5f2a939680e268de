// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.h"
#include "cli/bench_states.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Best of so many: other processes only ever make it slower. */
#define ROUNDS 5u

/* Of the limits, with several threads: parts of this size, like the chunks that ours work on. */
#define PART_BYTES ((uint64_t)32 << 20)

/* What recorded runs were trained with; see docs/synth.md. */
#define LR_MASTER 1e-6f
#define LR_BF16 3e-6f

enum measure {
    M_READ,
    M_COMPARE,
    M_COPY,
    M_DIGEST,
    M_SCAN,
    M_ENCODE,
    M_ENCODE_HISTORY,
    M_DECODE,
    M_DECODE_HISTORY,
    M_APPLY,
    M_APPLY_HISTORY,
    MEASURES
};

static const struct {
    const char *key, *title;
    enum measure limit; /* itself: it is a limit */
} measures[MEASURES] = {
    [M_READ] = {"read", "plain read", M_READ},
    [M_COMPARE] = {"compare", "two-stream compare", M_COMPARE},
    [M_COPY] = {"copy", "copy", M_COPY},
    [M_DIGEST] = {"digest", "digest", M_READ},
    [M_SCAN] = {"scan", "diff of equal states: the scan", M_COMPARE},
    [M_ENCODE] = {"encode", "diff and encode", M_COMPARE},
    [M_ENCODE_HISTORY] = {"encode_history", "  with history", M_COMPARE},
    [M_DECODE] = {"decode", "decode and verify", M_READ},
    [M_DECODE_HISTORY] = {"decode_history", "  with history", M_READ},
    [M_APPLY] = {"apply", "decode, verify and write", M_READ},
    [M_APPLY_HISTORY] = {"apply_history", "  with history", M_READ},
};

/* A patch in memory. */
struct made {
    uint8_t *data;
    size_t bytes, room;
    struct ulp_patch *patch;
    struct ulp_diff_report report;
};

struct bench {
    struct bench_states states;
    struct ulp_weights *weights; /* of the old state, with history */
    struct made plain, history;
    struct ulp_pool *pool; /* NULL: one thread */
    struct ulp_progress progress;
    double make_s;
    double best[2][MEASURES]; /* seconds: one thread, and several */
    unsigned threads[2];      /* 0: not measured */
    float lr;
    unsigned regime;
};

static atomic_uint_fast64_t result_sink; /* so that no result is optimised away */

/* ---- the limits ---- */

struct limit_job {
    const struct bench *bench;
    enum measure measure;
    size_t ahead;
};

static enum ulp_status limit_part(void *user, uint64_t part) {
    const struct limit_job *job = user;
    const struct bench_states *states = &job->bench->states;
    const uint64_t first = job->bench->pool ? part * PART_BYTES : 0;
    const uint64_t rest = states->bytes / 64 * 64 - first;
    const size_t bytes = (size_t)(job->bench->pool && rest > PART_BYTES ? PART_BYTES : rest);
    const uint8_t *old = states->tensors[STATE_OLD][0].data;
    const uint8_t *new = states->tensors[STATE_NEW][0].data;

    if (job->measure == M_READ)
        atomic_store(&result_sink, limit_read(old + first, bytes, job->ahead));
    else if (job->measure == M_COMPARE)
        atomic_store(&result_sink, limit_compare(old + first, new + first, bytes, job->ahead));
    else
        limit_copy((uint8_t *)states->tensors[STATE_BEFORE][0].data + first, old + first, bytes);
    return ULP_OK;
}

/* Best over several distances of prefetching too: a limit is what can be had at all. */
static enum ulp_status run_limit(struct bench *bench, enum measure measure, double *ret_seconds) {
    static const size_t distances[] = {0, 1024, 2048, 4096};
    const uint64_t parts = bench->pool ? (bench->states.bytes + PART_BYTES - 1) / PART_BYTES : 1;
    double best = INFINITY;

    for (unsigned i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        struct limit_job job = {bench, measure, distances[i]};
        uint64_t lap = now_ns();
        enum ulp_status status =
            ulp_pool_run(bench->pool, parts, limit_part, &job, &bench->progress);

        if (status)
            return status;
        best = fmin(best, lap_seconds(&lap));
    }
    *ret_seconds = best;
    return ULP_OK;
}

/* ---- ours ---- */

static enum ulp_status count_bytes(void *user, const void *data, size_t bytes) {
    (void)data;
    *(uint64_t *)user += bytes;
    return ULP_OK;
}

static enum ulp_status run_diff(struct bench *bench, enum measure measure, double *ret_seconds) {
    const struct ulp_tensor *to =
        bench->states.tensors[measure == M_SCAN ? STATE_BEFORE : STATE_NEW];
    struct ulp_diff_options options = {
        .pool = bench->pool, .progress = &bench->progress, .history = measure == M_ENCODE_HISTORY};
    uint64_t written = 0, lap = now_ns();
    struct ulp_sink sink = {count_bytes, &written};
    enum ulp_status status =
        ulp_diff(bench->weights, to, bench->states.plan.count, &options, &sink, NULL);

    *ret_seconds = lap_seconds(&lap);
    return status;
}

static enum ulp_status run_apply(struct bench *bench, enum measure measure, double *ret_seconds) {
    const bool write = measure == M_APPLY || measure == M_APPLY_HISTORY;
    const bool history = measure == M_DECODE_HISTORY || measure == M_APPLY_HISTORY;
    struct ulp_apply_options options = {
        .pool = bench->pool, .progress = &bench->progress, .staging_bytes = UINT64_C(1) << 50};
    struct ulp_apply *apply = NULL;
    uint64_t lap = now_ns();
    enum ulp_status status = ulp_apply_prepare(
        bench->weights, history ? bench->history.patch : bench->plain.patch, &options, &apply);

    if (!status && write)
        status = ulp_apply_commit(apply, NULL, NULL);
    *ret_seconds = lap_seconds(&lap);
    if (!status && write)
        status = ulp_apply_undo(apply);
    ulp_apply_free(apply);
    return status;
}

static enum ulp_status run_digest(struct bench *bench, double *ret_seconds) {
    uint64_t lap = now_ns();
    struct ulp_root root;
    enum ulp_status status =
        ulp_state_digest(bench->states.tensors[STATE_OLD], bench->states.plan.count, bench->pool,
                         &bench->progress, NULL, &root);

    *ret_seconds = lap_seconds(&lap);
    return status;
}

static enum ulp_status run_one(struct bench *bench, enum measure measure, double *ret_seconds) {
    if (measure <= M_COPY)
        return run_limit(bench, measure, ret_seconds);
    if (measure == M_DIGEST)
        return run_digest(bench, ret_seconds);
    return measure <= M_ENCODE_HISTORY ? run_diff(bench, measure, ret_seconds)
                                       : run_apply(bench, measure, ret_seconds);
}

/* Rounds go through all measures, so that a slow moment hits them alike. */
static enum ulp_status run_all(struct bench *bench, double best[MEASURES]) {
    struct progress_line line;
    enum ulp_status status = ULP_OK;

    for (unsigned i = 0; i < MEASURES; i++)
        best[i] = INFINITY;
    for (unsigned round = 0; !status && round < ROUNDS; round++) {
        for (unsigned i = 0; !status && i < MEASURES; i++) {
            double seconds = INFINITY;

            bench->progress = progress_begin(&line, measures[i].key, bench->states.bytes);
            status = run_one(bench, (enum measure)i, &seconds);
            progress_end(&line);
            best[i] = fmin(best[i], seconds);
        }
    }
    return status;
}

/* ---- making ready ---- */

static enum ulp_status keep_bytes(void *user, const void *data, size_t bytes) {
    struct made *made = user;

    if (bytes > made->room - made->bytes) {
        size_t room = 2 * (made->bytes + bytes);
        uint8_t *larger = realloc(made->data, room);

        if (!larger)
            return ulp_fail(ULP_E_NOMEM, "out of memory for a patch");
        made->data = larger;
        made->room = room;
    }
    memcpy(made->data + made->bytes, data, bytes);
    made->bytes += bytes;
    return ULP_OK;
}

static enum ulp_status make_patch(struct bench *bench, struct ulp_pool *pool, bool history,
                                  struct made *made) {
    struct ulp_diff_options options = {
        .pool = pool, .progress = &bench->progress, .history = history};
    struct ulp_sink sink = {keep_bytes, made};
    enum ulp_status status = ulp_diff(bench->weights, bench->states.tensors[STATE_NEW],
                                      bench->states.plan.count, &options, &sink, &made->report);

    return status ? status : ulp_patch_open_memory(made->data, made->bytes, &made->patch);
}

static void release_patch(struct made *made) {
    ulp_patch_free(made->patch);
    free(made->data);
}

static enum ulp_status make_ready(struct bench *bench, const struct synth_run *run, uint64_t size,
                                  struct ulp_pool *pool) {
    struct progress_line line;
    uint64_t lap = now_ns();
    enum ulp_status status;

    bench->progress = progress_begin(&line, "make", 3 * size);
    status = bench_states_make(run, size, pool, &bench->progress, &bench->states);
    bench->make_s = lap_seconds(&lap);
    if (!status)
        status = ulp_weights_new(bench->states.tensors[STATE_OLD], bench->states.plan.count, pool,
                                 &bench->progress, &bench->weights);
    if (!status)
        status = ulp_weights_remember(bench->weights, bench->states.tensors[STATE_BEFORE],
                                      bench->states.plan.count, pool, &bench->progress);
    if (!status)
        status = make_patch(bench, pool, false, &bench->plain);
    if (!status)
        status = make_patch(bench, pool, true, &bench->history);
    if (!status) /* the state before is remembered; its place serves for a copy of the old one */
        memcpy(bench->states.tensors[STATE_BEFORE][0].data,
               bench->states.tensors[STATE_OLD][0].data, (size_t)bench->states.bytes);
    progress_end(&line);
    return status;
}

/* ---- showing ---- */

static double speed(const struct bench *bench, unsigned run, enum measure measure) {
    return (double)bench->states.bytes / bench->best[run][measure] / 1e9;
}

/* Percent of what is possible; a limit has none. */
static double percent(const struct bench *bench, unsigned run, enum measure measure) {
    return 100 * bench->best[run][measures[measure].limit] / bench->best[run][measure];
}

static void print_size_json(struct json_out *out, const char *key, const struct made *made) {
    json_out_begin(out, key, '{');
    json_out_u64(out, "patch_bytes", made->report.patch_bytes);
    json_out_real(out, "bits_per_change",
                  report_share(8 * (double)made->report.patch_bytes, (double)made->report.changed));
    json_out_real(out, "ratio",
                  report_share((double)made->report.dense_bytes, (double)made->report.patch_bytes));
    json_out_bool(out, "history", made->report.history);
    json_out_end(out, '}');
}

static void print_run_json(struct json_out *out, const struct bench *bench, unsigned run) {
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "threads", bench->threads[run]);
    for (unsigned i = 0; i < MEASURES; i++) {
        json_out_begin(out, measures[i].key, '{');
        json_out_real(out, "seconds", bench->best[run][i]);
        json_out_real(out, "gb_per_s", speed(bench, run, (enum measure)i));
        if (measures[i].limit != i) {
            json_out_text(out, "limit", measures[measures[i].limit].key);
            json_out_real(out, "percent", percent(bench, run, (enum measure)i));
        }
        if (run)
            json_out_real(out, "speed_up", bench->best[0][i] / bench->best[run][i]);
        json_out_end(out, '}');
    }
    json_out_end(out, '}');
}

static void print_json(const struct bench *bench) {
    const struct ulp_diff_report *report = &bench->plain.report;
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "cpu", ulp_cpu());
    json_out_text(&out, "regime", bench->regime == SYNTH_MASTER ? "master" : "bf16");
    json_out_real(&out, "lr", (double)bench->lr);
    json_out_u64(&out, "bytes", bench->states.bytes);
    json_out_u64(&out, "elements", report->elements);
    json_out_u64(&out, "changed", report->changed);
    json_out_real(&out, "density", report_share((double)report->changed, (double)report->elements));
    json_out_real(&out, "make_seconds", bench->make_s);
    json_out_u64(&out, "rounds", ROUNDS);
    json_out_begin(&out, "sizes", '{');
    print_size_json(&out, "stateless", &bench->plain);
    print_size_json(&out, "history", &bench->history);
    json_out_end(&out, '}');
    json_out_begin(&out, "runs", '[');
    for (unsigned run = 0; run < 2; run++) {
        if (bench->threads[run])
            print_run_json(&out, bench, run);
    }
    json_out_end(&out, ']');
    json_out_end(&out, '}');
}

static void print_row(const struct bench *bench, enum measure measure) {
    const enum measure limit = measures[measure].limit;

    printf("%-32s", measures[measure].title);
    for (unsigned run = 0; run < 2 && bench->threads[run]; run++) {
        printf(" %8.2f", speed(bench, run, measure));
        if (limit == measure)
            printf(" %8s", "");
        else
            printf("  %5.1f %%", percent(bench, run, measure));
        if (run)
            printf("  %5.2f x", bench->best[0][measure] / bench->best[run][measure]);
    }
    printf("  %s\n", limit == measure ? "(a limit)" : measures[limit].title);
}

static void print_size(const char *title, const struct made *made) {
    printf("%-32s %8s  %8.3f bits per change  1/%.1f of the model\n", title,
           readable_bytes(made->report.patch_bytes).text,
           report_share(8 * (double)made->report.patch_bytes, (double)made->report.changed),
           (double)made->report.dense_bytes / (double)made->report.patch_bytes);
}

static void print_text(const struct bench *bench) {
    const struct ulp_diff_report *report = &bench->plain.report;
    char heading[32];

    printf("%s of BF16 in each state, %.3f %% changed, regime %s, %s\n",
           readable_bytes(bench->states.bytes).text,
           100 * report_share((double)report->changed, (double)report->elements),
           bench->regime == SYNTH_MASTER ? "master" : "bf16", ulp_cpu());
    printf("made in %.1f s, which is in no figure below; best of %u rounds\n\n%-32s", bench->make_s,
           ROUNDS, "GB/s of one state");
    for (unsigned run = 0; run < 2 && bench->threads[run]; run++) {
        snprintf(heading, sizeof heading, "%u thread%s", bench->threads[run],
                 bench->threads[run] == 1 ? "" : "s");
        printf(" %*s", run ? 26 : 17, heading);
    }
    puts("  of which limit");
    for (unsigned i = 0; i < MEASURES; i++)
        print_row(bench, (enum measure)i);
    putchar('\n');
    print_size("patch without history", &bench->plain);
    print_size("patch with history", &bench->history);
}

/* ---- the verb ---- */

static enum ulp_status read_run(const struct cli_args *args, struct synth_run *run,
                                uint64_t *size) {
    static const char *const regimes[] = {"master", "bf16", NULL};
    unsigned regime = SYNTH_MASTER;
    double density = 0;
    enum ulp_status status = option_choice(args, "regime", regimes, &regime);

    if (!status)
        status = option_size(args, "size", 2 * SYNTH_PARAMS_MIN, UINT64_C(1) << 40, size);
    if (!status)
        status = option_real(args, "density", 1e-6, 1, &density);
    *run = (struct synth_run){(enum synth_regime)regime, SYNTH_DT_BF16,
                              regime == SYNTH_MASTER ? LR_MASTER : LR_BF16, 1};
    if (!status && option_given(args, "density"))
        status = bench_states_tune(run, density);
    return status;
}

/* With --threads that many alone; otherwise one, and as many as there are CPUs. */
static enum ulp_status measure(const struct cli_args *args, struct bench *bench,
                               struct ulp_pool *pool) {
    unsigned threads = ulp_pool_threads(pool);
    enum ulp_status status;

    bench->threads[0] = option_given(args, "threads") ? threads : 1;
    bench->pool = bench->threads[0] > 1 ? pool : NULL;
    status = run_all(bench, bench->best[0]);
    if (status || option_given(args, "threads") || threads == 1)
        return status;
    bench->threads[1] = threads;
    bench->pool = pool;
    return run_all(bench, bench->best[1]);
}

static enum ulp_status run(const struct cli_args *args) {
    struct bench bench = {0};
    struct ulp_pool *pool = NULL;
    struct synth_run run;
    uint64_t size = UINT64_C(1) << 30;
    enum ulp_status status = read_run(args, &run, &size);

    if (!status)
        status = option_pool(args, &pool);
    bench.lr = run.lr;
    bench.regime = run.regime;
    if (!status)
        status = make_ready(&bench, &run, size, pool);
    if (!status)
        status = measure(args, &bench, pool);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&bench);
    release_patch(&bench.plain);
    release_patch(&bench.history);
    ulp_weights_free(bench.weights);
    bench_states_release(&bench.states);
    ulp_pool_free(pool);
    return status;
}

static const struct cli_option options[] = {
    {"size", 's', "SIZE", "Bytes of one state, such as 256MiB or 2g; 1GiB unless given."},
    {"regime", 0, "KIND", "'master' (the default) or 'bf16', as 'ulpsync synth' has them."},
    {"density", 'd', "SHARE",
     "Let this share of the weights change, such as 0.01; without it, what the regime gives."},
    {"threads", 't', "N", "Measure with N threads; without it, with one and with one per CPU."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_bench = {
    .name = "bench",
    .group = CLI_TRIALS,
    .summary = "how fast this machine makes and applies patches",
    .operands = "[--size SIZE] [--regime KIND] [--threads N] [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Makes three states of a synthetic run in memory and measures, beside what the\n"
        "machine's memory allows at all: the digest, the scan, making a patch, decoding\n"
        "and verifying one, and writing the result, without and with history. Speeds are\n"
        "in GB/s of one state's bytes, each as a share of its limit from the same run.\n"
        "\n"
        "It takes three to four times SIZE of memory, and nothing is written to disk.\n",
    .examples = "  $ ulpsync bench --size 256MiB\n"
                "  $ ulpsync bench --regime bf16 --threads 1\n"
                "  $ ulpsync bench --density 0.05 --json | jq .sizes\n",
    .options = options,
    .run = run,
};
