// SPDX-License-Identifier: Apache-2.0
/*
 * The trainer: learns a text, publishes that as version 0, and then, step by step, takes what workers
 * said, learns from how good it was, and publishes what has changed.
 */
#include "bf16.h"
#include "gaps.h"
#include "gather.h"
#include "grpo.h"
#include "learner.h"
#include "memory.h"
#include "options.h"
#include "pretrain.h"
#include "sync.h"
#include "tell.h"

#include <string.h>

#define WARM_UP 4 /* steps in which the rate grows */

struct trainer {
    /* as asked for */
    const char *store_url, *run, *sync, *corpus, *start, *keep_start, *log_path;
    uint64_t steps, workers, groups, size, lag, seed, threads;
    double rate, floor, clip, patience_s;
    struct pretraining pretraining;

    struct learner learner;
    struct state state;
    uint16_t *before; /* the view that was published last */
    struct ulp_store *store;
    struct sender sender;
    struct telling telling;
    struct harvest harvest;
    struct jsonl log;
};

struct step {
    uint64_t number;
    struct group_report groups;
    struct lesson_report lesson;
    struct sent sent;
    size_t changed, gaps_bytes, gaps_zstd_bytes;
    double wait_s, train_s, publish_s;
};

static uint64_t full_bytes(const struct trainer *t) {
    return t->learner.layout.total * sizeof *t->state.bits;
}

/* The BF16 view of the masters, and what the next pass computes with. */
static void take_view(struct trainer *t) {
    const size_t count = t->learner.layout.total;

    memcpy(t->before, t->state.bits, count * sizeof *t->before);
    bf16_round_all(t->state.bits, t->learner.masters, count);
    bf16_expand_all(t->learner.weights, t->state.bits, count);
}

/* ---- the log ---- */

static void log_phases(struct jsonl *log, const struct ulp_run_phases *phases) {
    jsonl_number(log, "encode_ms", (double)phases->encode_ns / 1e6);
    jsonl_number(log, "verify_ms", (double)phases->verify_ns / 1e6);
    jsonl_number(log, "digest_ms", (double)phases->digest_ns / 1e6);
    jsonl_number(log, "store_ms", (double)phases->store_ns / 1e6);
    jsonl_number(log, "commit_ms", (double)phases->commit_ns / 1e6);
    jsonl_number(log, "apply_ms", (double)phases->apply_ns / 1e6);
}

static void log_learning(struct trainer *t, const struct step *s) {
    jsonl_count(&t->log, "samples", t->harvest.groups * t->size);
    jsonl_number(&t->log, "age", t->harvest.age);
    jsonl_count(&t->log, "stale", t->harvest.stale);
    jsonl_number(&t->log, "reward", s->groups.reward);
    jsonl_number(&t->log, "exact", s->groups.exact);
    jsonl_number(&t->log, "idle", s->groups.idle);
    jsonl_number(&t->log, "loss", s->lesson.loss);
    jsonl_number(&t->log, "ratio", s->lesson.ratio);
    jsonl_number(&t->log, "clipped", s->lesson.clipped);
    jsonl_number(&t->log, "gradient", s->lesson.gradient);
    jsonl_number(&t->log, "wait_ms", s->wait_s * 1e3);
    jsonl_number(&t->log, "train_ms", s->train_s * 1e3);
}

/* Step 0 publishes what was pre-trained; nothing was learned by reward yet. */
static void log_step(struct trainer *t, const struct step *s) {
    const size_t count = t->learner.layout.total;

    jsonl_begin(&t->log, "step");
    jsonl_count(&t->log, "step", s->number);
    jsonl_count(&t->log, "version", s->sent.version);
    jsonl_root(&t->log, "root", &s->sent.root);
    jsonl_count(&t->log, "elements", count);
    jsonl_count(&t->log, "full_bytes", full_bytes(t));
    jsonl_count(&t->log, "bytes", s->sent.bytes);
    if (s->number) {
        jsonl_count(&t->log, "changed", s->changed);
        jsonl_number(&t->log, "density", (double)s->changed / (double)count);
        jsonl_number(&t->log, "times_smaller", (double)full_bytes(t) / (double)s->sent.bytes);
        jsonl_count(&t->log, "gaps_bytes", s->gaps_bytes);
        if (s->gaps_zstd_bytes)
            jsonl_count(&t->log, "gaps_zstd_bytes", s->gaps_zstd_bytes);
        log_learning(t, s);
    }
    jsonl_number(&t->log, "publish_ms", s->publish_s * 1e3);
    log_phases(&t->log, &s->sent.phases);
    jsonl_end(&t->log);
}

/* For whoever looks on. */
static void tell_step(struct trainer *t, const struct step *s) {
    const struct note notes[] = {{"reward", s->groups.reward},
                                 {"exact", s->groups.exact},
                                 {"loss", s->lesson.loss},
                                 {"age", t->harvest.age},
                                 {"clipped", s->lesson.clipped},
                                 {"gradient", s->lesson.gradient},
                                 {"wait_ms", s->wait_s * 1e3},
                                 {"train_ms", s->train_s * 1e3},
                                 {NULL, 0}};
    static const struct note none = {NULL, 0}; /* was learned by reward, before the first step */

    tell_published(&t->telling, &s->sent, s->number ? notes : &none);
}

static void print_step(const struct trainer *t, const struct step *s) {
    printf(
        "step %3llu  reward %.3f  right %4.1f %%  density %5.2f %%  %7llu bytes, 1/%-4.0f age %.1f  "
        "%.2f s\n",
        (unsigned long long)s->number, s->groups.reward, 100 * s->groups.exact,
        100 * (double)s->changed / (double)t->learner.layout.total,
        (unsigned long long)s->sent.bytes, (double)full_bytes(t) / (double)s->sent.bytes,
        t->harvest.age, s->wait_s + s->train_s + s->publish_s);
    fflush(stdout);
}

/* ---- the steps ---- */

static enum ulp_status publish(struct trainer *t, struct step *s) {
    const double started = seconds();
    enum ulp_status status;

    take_view(t);
    status = sender_send(&t->sender, &s->sent);
    s->publish_s = seconds() - started;
    return status;
}

static enum ulp_status learn(struct trainer *t, struct step *s) {
    const double started = seconds();
    const double warm = s->number < WARM_UP ? (double)s->number / WARM_UP : 1;
    const struct lesson lesson = {t->harvest.sequences, t->harvest.groups * t->size, t->rate * warm,
                                  t->clip};
    enum ulp_status status;

    grpo_judge(t->harvest.sequences, t->harvest.groups, t->size, &s->groups);
    status = learner_step(&t->learner, &lesson, &s->lesson);
    s->train_s = seconds() - started;
    return status;
}

static enum ulp_status one_step(struct trainer *t, uint64_t number) {
    const struct gathering how = {.store = t->store,
                                  .run = t->run,
                                  .workers = t->workers,
                                  .groups = t->groups,
                                  .size = t->size,
                                  .lag = t->lag,
                                  .patience_s = t->patience_s,
                                  .log = &t->log};
    const double started = seconds();
    struct step s = {.number = number};
    enum ulp_status status = gather(&how, number - 1, &t->harvest);

    s.wait_s = seconds() - started;
    if (!status)
        status = learn(t, &s);
    if (!status)
        status = publish(t, &s);
    if (status)
        return status;
    s.changed = bf16_changed(t->before, t->state.bits, t->learner.layout.total);
    gaps_measure(t->before, t->state.bits, t->learner.layout.total, &s.gaps_bytes,
                 &s.gaps_zstd_bytes);
    log_step(t, &s);
    tell_step(t, &s);
    print_step(t, &s);
    return ULP_OK;
}

static enum ulp_status first_version(struct trainer *t) {
    struct step s = {0};
    struct corpus corpus = {0};
    enum ulp_status status;

    if (t->start) {
        status = masters_load(&t->learner.layout, t->learner.masters, t->start);
    } else {
        status = corpus_read(t->corpus, &corpus);
        if (!status)
            status = pretrain(&t->learner, &corpus, &t->pretraining, &t->log);
        corpus_release(&corpus);
    }
    if (!status && t->keep_start)
        status = masters_save(&t->learner.layout, t->learner.masters, t->keep_start);
    learner_refresh(&t->learner, t->floor);
    if (!status)
        status = publish(t, &s);
    if (status)
        return status;
    log_step(t, &s);
    tell_step(t, &s);
    return ULP_OK;
}

static enum ulp_status train(struct trainer *t) {
    const double started = seconds();
    struct ulp_root root;
    enum ulp_status status = first_version(t);

    for (uint64_t number = 1; !status && number <= t->steps; number++)
        status = one_step(t, number);
    if (!status)
        status = state_root(&t->state, &root);
    if (!status)
        status = gather_clear(t->store, t->run);
    if (status)
        return status;
    jsonl_begin(&t->log, "final");
    jsonl_count(&t->log, "version", t->steps);
    jsonl_root(&t->log, "root", &root);
    jsonl_number(&t->log, "seconds", seconds() - started);
    jsonl_end(&t->log);
    return ULP_OK;
}

/* ---- life ---- */

static enum ulp_status open_all(struct trainer *t) {
    enum sync_mode mode = SYNC_ULPSYNC;
    enum ulp_status status = sync_mode_read(t->sync, &mode);

    if (!status && (!t->store_url || !t->workers || !t->groups || !t->size ||
                    t->groups > SAMPLES_MAX / t->size || !t->pretraining.batch))
        status =
            ulp_fail(ULP_E_USAGE, "--store is needed, and workers, groups, size and batch above 0");
    if (!status)
        status = jsonl_open(&t->log, t->log_path);
    if (!status)
        status = learner_init(&t->learner, &dims_default, t->seed, (unsigned)t->threads);
    if (!status)
        status = state_init(&t->state, &t->learner.layout);
    if (!status) {
        t->before = zeroed(t->learner.layout.total, sizeof *t->before);
        status = ulp_store_open(t->store_url, &t->store);
    }
    if (!status)
        status = sender_open(&t->sender, mode, t->store, t->run, &t->state);
    if (!status)
        telling_open(&t->telling, mode, t->store, t->run, "trainer");
    return status ? status : gather_clear(t->store, t->run);
}

static void close_all(struct trainer *t) {
    sender_close(&t->sender);
    telling_close(&t->telling);
    ulp_store_free(t->store);
    harvest_release(&t->harvest);
    free(t->before);
    state_release(&t->state);
    learner_release(&t->learner);
    jsonl_close(&t->log);
}

static int read_options(int argc, char **argv, struct trainer *t) {
    const struct option options[] = {
        {"store", &t->store_url, NULL, NULL, "a directory, or what else ulp_store_open() takes"},
        {"run", &t->run, NULL, NULL, "name of the run [rl]"},
        {"sync", &t->sync, NULL, NULL, "ulpsync or full [ulpsync]"},
        {"steps", NULL, &t->steps, NULL, "of learning by reward [50]"},
        {"workers", NULL, &t->workers, NULL, "whose shares make a step when --lag is 0 [2]"},
        {"groups", NULL, &t->groups, NULL, "prompts of a step [64]"},
        {"size", NULL, &t->size, NULL, "samples for each prompt [16]"},
        {"lag", NULL, &t->lag, NULL, "versions that samples may be old; 0: in step [1]"},
        {"rate", NULL, NULL, &t->rate, "of learning by reward [2e-3]"},
        {"floor", NULL, NULL, &t->floor, "of what Adam divides by, for that [0.1]"},
        {"clip", NULL, NULL, &t->clip, "of the ratio of chances [0.2]"},
        {"seed", NULL, &t->seed, NULL, "[1]"},
        {"threads", NULL, &t->threads, NULL, "the results are the same with any number [2]"},
        {"patience", NULL, NULL, &t->patience_s, "seconds to wait for samples [600]"},
        {"corpus", &t->corpus, NULL, NULL, "the text to learn first"},
        {"pretrain", NULL, &t->pretraining.steps, NULL, "steps of that [400]"},
        {"batch", NULL, &t->pretraining.batch, NULL, "lines in each [128]"},
        {"start", &t->start, NULL, NULL, "masters to start from instead of a text"},
        {"keep-start", &t->keep_start, NULL, NULL, "where to write what the run starts from"},
        {"log", &t->log_path, NULL, NULL, "a file of JSON lines to add to"},
        {NULL, NULL, NULL, NULL, NULL},
    };

    return options_read(argc, argv, options);
}

int main(int argc, char **argv) {
    static struct trainer t = {.run = "rl",
                               .sync = "ulpsync",
                               .corpus = "homework.txt",
                               .steps = 50,
                               .workers = 2,
                               .groups = 64,
                               .size = 16,
                               .lag = 1,
                               .seed = 1,
                               .threads = 2,
                               .rate = 2e-3,
                               .floor = 0.1,
                               .clip = 0.2,
                               .patience_s = 600,
                               .pretraining = {.steps = 400, .batch = 128, .rate = 3e-3}};
    enum ulp_status status;

    if (read_options(argc, argv, &t))
        return ULP_E_USAGE;
    t.pretraining.seed = t.seed;
    status = open_all(&t);
    if (!status)
        status = train(&t);
    if (status)
        fprintf(stderr, "rl_trainer: %s: %s\n", ulp_status_name(status), ulp_last_error());
    close_all(&t);
    return (int)status;
}
