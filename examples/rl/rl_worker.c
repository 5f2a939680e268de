// SPDX-License-Identifier: Apache-2.0
/*
 * A rollout worker: holds the BF16 weights of the newest version, asks itself, answers, and hands the
 * answers back, tagged with the version that gave them. It can be killed and started again at any
 * time: it keeps nothing that the store does not have.
 */
#include "bf16.h"
#include "decode.h"
#include "gather.h"
#include "grpo.h"
#include "memory.h"
#include "options.h"
#include "samples.h"
#include "sync.h"
#include "task.h"
#include "tell.h"

#include <string.h>

struct worker {
    /* as asked for */
    const char *store_url, *run, *sync, *log_path;
    uint64_t number, workers, steps, groups, size, piece, lag, seed, idle_ms;
    double patience_s;

    struct layout layout;
    struct state state;
    float *weights;
    struct model model;
    struct decoder decoder;
    struct sequence *sequences;
    struct random *streams;
    struct ulp_store *store;
    struct receiver receiver;
    struct telling telling;
    struct jsonl log;
    uint64_t born_ms, made; /* this process; pieces it has made */
    bool has_made;          /* with the version that it holds */
    uint64_t said;          /* samples, ever */
    double heard;           /* when something new came */
};

/* ---- weights ---- */

static void log_version(struct worker *w, const struct received *r) {
    const uint64_t now = wall_ms();

    jsonl_begin(&w->log, "version");
    jsonl_count(&w->log, "worker", w->number);
    jsonl_count(&w->log, "version", w->receiver.version);
    if (r->time_ms)
        jsonl_count(&w->log, "publish_to_active_ms", now > r->time_ms ? now - r->time_ms : 0);
    jsonl_count(&w->log, "bytes", r->bytes);
    jsonl_count(&w->log, "patches", r->patches);
    jsonl_count(&w->log, "anchors", r->anchors);
    jsonl_number(&w->log, "poll_ms", (double)r->phases.poll_ns / 1e6);
    jsonl_number(&w->log, "fetch_ms", (double)r->phases.fetch_ns / 1e6);
    jsonl_number(&w->log, "verify_ms", (double)r->phases.verify_ns / 1e6);
    jsonl_number(&w->log, "decode_ms", (double)r->phases.decode_ns / 1e6);
    jsonl_number(&w->log, "digest_ms", (double)r->phases.digest_ns / 1e6);
    jsonl_number(&w->log, "apply_ms", (double)r->phases.apply_ns / 1e6);
    jsonl_end(&w->log);
    tell_followed(&w->telling, w->receiver.version, r, now);
}

static enum ulp_status look(struct worker *w) {
    struct received received;
    const enum ulp_status status = receiver_look(&w->receiver, &received);

    if (status || !received.fresh)
        return status;
    bf16_expand_all(w->weights, w->state.bits, w->layout.total);
    w->has_made = false;
    w->heard = seconds();
    log_version(w, &received);
    return ULP_OK;
}

/* ---- samples ---- */

/*
 * In step, samples are named by seed, version and place, so that whoever makes them says the same. Out
 * of step nobody repeats anybody, not even itself in an earlier life.
 */
static void ask(struct worker *w, uint64_t first, size_t groups) {
    const uint64_t life = w->lag ? w->seed ^ (w->born_ms * 64 + w->number) : w->seed;
    const uint64_t version = w->lag ? w->made : w->receiver.version;

    for (size_t g = 0; g < groups; g++) {
        struct random random = random_stream(life, version, 2 * (first + g));
        struct sequence question;

        task_ask(&random, &question);
        for (size_t i = 0; i < w->size; i++) {
            w->sequences[g * w->size + i] = question;
            w->streams[g * w->size + i] =
                random_stream(life, version, 2 * ((first + g) * w->size + i) + 1);
        }
    }
}

static void name_piece(const struct worker *w, char name[64]) {
    if (!w->lag)
        gather_name(w->number, name);
    else
        snprintf(name, 64, "worker-%llu-%llu-%llu", (unsigned long long)w->number,
                 (unsigned long long)w->born_ms, (unsigned long long)w->made);
}

static enum ulp_status make(struct worker *w, uint64_t first, size_t groups) {
    const struct samples samples = {w->receiver.version, groups, w->size, w->sequences};
    const double started = seconds();
    struct group_report report;
    char name[64], key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    ask(w, first, groups);
    decoder_say(&w->decoder, &w->model, w->sequences, w->streams, groups * w->size);
    name_piece(w, name);
    samples_key(w->run, w->receiver.version, name, key);
    status = samples_put(w->store, key, &samples);
    if (status)
        return status;
    w->has_made = true;
    w->made++;
    w->said += groups * w->size;
    w->heard = seconds();
    grpo_judge(w->sequences, groups, w->size, &report);
    jsonl_begin(&w->log, "samples");
    jsonl_count(&w->log, "worker", w->number);
    jsonl_count(&w->log, "version", w->receiver.version);
    jsonl_count(&w->log, "samples", groups * w->size);
    jsonl_number(&w->log, "reward", report.reward);
    jsonl_number(&w->log, "seconds", seconds() - started);
    jsonl_end(&w->log);
    return ULP_OK;
}

/* No more than a step's worth waits for the trainer: what waits grows old. */
static enum ulp_status wanted(struct worker *w, bool *ret_wanted) {
    const uint64_t version = w->receiver.version;
    size_t waiting = 0;
    enum ulp_status status;

    if (!w->lag) {
        *ret_wanted = !w->has_made;
        return ULP_OK;
    }
    status = gather_waiting(w->store, w->run, version > w->lag ? version - w->lag : 0, &waiting);
    *ret_wanted = waiting * w->piece < w->groups;
    return status;
}

static enum ulp_status work(struct worker *w) {
    const uint64_t first = w->groups * w->number / w->workers;
    bool is_wanted = false;
    enum ulp_status status = wanted(w, &is_wanted);

    if (status)
        return status;
    if (is_wanted)
        return w->lag ? make(w, 0, (size_t)w->piece)
                      : make(w, first, (size_t)gather_share(w->groups, w->workers, w->number));
    nap_ms((unsigned)w->idle_ms);
    return ULP_OK;
}

/* ---- life ---- */

static bool is_done(const struct worker *w) {
    return w->receiver.holds && w->receiver.version >= w->steps;
}

static enum ulp_status live(struct worker *w) {
    struct ulp_root root;
    enum ulp_status status = look(w);

    while (!status && !is_done(w)) {
        if (w->receiver.holds)
            status = work(w);
        else
            nap_ms((unsigned)w->idle_ms);
        if (!status && seconds() - w->heard > w->patience_s)
            status =
                ulp_fail(ULP_E_NOT_FOUND, "nothing new came for %.0f s; is the trainer running?",
                         w->patience_s);
        if (!status)
            status = look(w);
    }
    if (!status)
        status = state_root(&w->state, &root); /* of what is in memory, not of what was announced */
    if (status)
        return status;
    jsonl_begin(&w->log, "final");
    jsonl_count(&w->log, "worker", w->number);
    jsonl_count(&w->log, "version", w->receiver.version);
    jsonl_count(&w->log, "samples", w->said);
    jsonl_root(&w->log, "root", &root);
    jsonl_end(&w->log);
    return ULP_OK;
}

static void furnish(struct worker *w) {
    const size_t rows = (size_t)((w->groups > w->piece ? w->groups : w->piece) * w->size);

    w->weights = zeroed(w->layout.total, sizeof *w->weights);
    model_view(&w->layout, w->weights, &w->model);
    decoder_init(&w->decoder, &w->layout, rows);
    w->sequences = zeroed(rows, sizeof *w->sequences);
    w->streams = zeroed(rows, sizeof *w->streams);
    w->born_ms = wall_ms();
    w->heard = seconds();
}

static enum ulp_status open_all(struct worker *w) {
    enum sync_mode mode = SYNC_ULPSYNC;
    enum ulp_status status = sync_mode_read(w->sync, &mode);

    if (!status &&
        (!w->store_url || w->number >= w->workers || w->groups < w->workers || !w->size ||
         !w->piece || w->groups > SAMPLES_MAX / w->size || w->piece > SAMPLES_MAX / w->size))
        status = ulp_fail(ULP_E_USAGE, "--store is needed, a --worker below --workers, and "
                                       "groups, size and piece that make sense");
    if (!status)
        status = jsonl_open(&w->log, w->log_path);
    if (!status) {
        layout_make(&dims_default, &w->layout);
        status = state_init(&w->state, &w->layout);
    }
    if (!status) {
        furnish(w);
        status = ulp_store_open(w->store_url, &w->store);
    }
    if (!status) {
        char name[32];

        snprintf(name, sizeof name, "worker-%llu", (unsigned long long)w->number);
        telling_open(&w->telling, mode, w->store, w->run, name);
    }
    return status ? status : receiver_open(&w->receiver, mode, w->store, w->run, &w->state);
}

static void close_all(struct worker *w) {
    receiver_close(&w->receiver);
    telling_close(&w->telling);
    ulp_store_free(w->store);
    decoder_release(&w->decoder);
    free(w->sequences);
    free(w->streams);
    free(w->weights);
    state_release(&w->state);
    jsonl_close(&w->log);
}

static int read_options(int argc, char **argv, struct worker *w) {
    const struct option options[] = {
        {"store", &w->store_url, NULL, NULL, "as the trainer's, and so the rest"},
        {"run", &w->run, NULL, NULL, "[rl]"},
        {"sync", &w->sync, NULL, NULL, "ulpsync or full [ulpsync]"},
        {"worker", NULL, &w->number, NULL, "which one this is, from 0 [0]"},
        {"workers", NULL, &w->workers, NULL, "[2]"},
        {"steps", NULL, &w->steps, NULL, "the version to end with [50]"},
        {"groups", NULL, &w->groups, NULL, "prompts of a step [64]"},
        {"size", NULL, &w->size, NULL, "samples for each prompt [16]"},
        {"piece", NULL, &w->piece, NULL, "prompts that are answered in one go [8]"},
        {"lag", NULL, &w->lag, NULL, "versions that samples may be old; 0: in step [1]"},
        {"seed", NULL, &w->seed, NULL, "[1]"},
        {"idle", NULL, &w->idle_ms, NULL, "milliseconds between two looks at the store [5]"},
        {"patience", NULL, NULL, &w->patience_s, "seconds to wait for anything new [600]"},
        {"log", &w->log_path, NULL, NULL, "a file of JSON lines to add to"},
        {NULL, NULL, NULL, NULL, NULL},
    };

    return options_read(argc, argv, options);
}

int main(int argc, char **argv) {
    static struct worker w = {.run = "rl",
                              .sync = "ulpsync",
                              .workers = 2,
                              .steps = 50,
                              .groups = 64,
                              .size = 16,
                              .piece = 8,
                              .lag = 1,
                              .seed = 1,
                              .idle_ms = 5,
                              .patience_s = 600};
    enum ulp_status status;

    if (read_options(argc, argv, &w))
        return ULP_E_USAGE;
    openblas_set_num_threads(1);
    status = open_all(&w);
    if (!status)
        status = live(&w);
    if (status)
        fprintf(stderr, "rl_worker %llu: %s: %s\n", (unsigned long long)w.number,
                ulp_status_name(status), ulp_last_error());
    close_all(&w);
    return (int)status;
}
