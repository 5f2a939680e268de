// SPDX-License-Identifier: Apache-2.0
/*
 * The two ends of a link: a trainer that publishes checkpoints from memory, one for each line that
 * it reads, and a worker that holds the weights in memory and follows.
 *
 *     link_ends trainer STORE CHECKPOINT...
 *     link_ends worker STORE CHECKPOINT VERSIONS     CHECKPOINT gives names and shapes
 *
 * Both print one line of JSON for each version. Their clocks are one: time is what lies between the
 * record and the moment in which the worker has the weights.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulpsync/ulpsync.h>

#define RUN "link"

static void must(enum ulp_status status, const char *what) {
    if (!status)
        return;
    fprintf(stderr, "link_ends: %s: %s\n", what, ulp_last_error());
    exit((int)status);
}

static double now_ms(void) {
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double ms(uint64_t ns) {
    return (double)ns / 1e6;
}

/* ---- the trainer ---- */

static void publish(struct ulp_publisher *publisher, const char *path, uint64_t step) {
    struct ulp_model *model = NULL;
    struct ulp_run_report report = {0};
    double started;

    must(ulp_model_open(path, &model), path);
    started = now_ms();
    must(ulp_publisher_publish(publisher, ulp_model_tensors(model), ulp_model_count(model), step,
                               &report),
         "publish");
    printf("{\"version\": %llu, \"started_ms\": %.3f, \"published_ms\": %.3f, \"bytes\": %llu, "
           "\"encode_ms\": %.1f, \"check_ms\": %.1f, \"store_ms\": %.1f, \"commit_ms\": %.1f}\n",
           (unsigned long long)report.head.version, started, now_ms(),
           (unsigned long long)report.stored_bytes, ms(report.phases.encode_ns),
           ms(report.phases.verify_ns), ms(report.phases.store_ns), ms(report.phases.commit_ns));
    fflush(stdout);
    ulp_model_free(model);
}

static int trainer(struct ulp_store *store, const struct ulp_run_options *options,
                   char **checkpoints, int count) {
    struct ulp_publisher *publisher = NULL;
    char line[16];

    must(ulp_publisher_open(store, RUN, NULL, options, &publisher), "publisher");
    for (int i = 0; i < count && fgets(line, sizeof line, stdin); i++)
        publish(publisher, checkpoints[i], (uint64_t)i);
    ulp_publisher_close(publisher);
    return 0;
}

/* ---- the worker ---- */

/* Memory of its own, with what the checkpoint holds: the run begins with it. */
static struct ulp_tensor *copy_of(const struct ulp_model *model) {
    const size_t count = ulp_model_count(model);
    struct ulp_tensor *tensors = calloc(count, sizeof *tensors);

    for (size_t i = 0; tensors && i < count; i++) {
        tensors[i] = ulp_model_tensors(model)[i];
        tensors[i].data = malloc((size_t)tensors[i].bytes);
        if (!tensors[i].data)
            must(ulp_fail(ULP_E_NOMEM, "out of memory"), "worker");
        memcpy(tensors[i].data, ulp_model_tensors(model)[i].data, (size_t)tensors[i].bytes);
    }
    return tensors;
}

static void print_active(const struct ulp_run_report *polled, const struct ulp_run_report *applied,
                         double polled_at) {
    const struct ulp_run_phases *phases = &polled->phases;

    printf("{\"version\": %llu, \"record_ms\": %llu, \"active_ms\": %.3f, \"bytes\": %llu, "
           "\"found_ms\": %.1f, \"poll_ms\": %.1f, \"fetch_ms\": %.1f, \"decode_ms\": %.1f, "
           "\"digest_ms\": %.1f, \"apply_ms\": %.1f, \"last_poll_ms\": %.1f}\n",
           (unsigned long long)applied->version, (unsigned long long)polled->head.time_ms, now_ms(),
           (unsigned long long)polled->fetched_bytes, polled_at - (double)polled->head.time_ms,
           ms(phases->poll_ns), ms(phases->fetch_ns), ms(phases->decode_ns), ms(phases->digest_ns),
           ms(applied->phases.apply_ns), now_ms() - polled_at);
    fflush(stdout);
}

static int worker(struct ulp_store *store, const struct ulp_run_options *options,
                  const char *checkpoint, uint64_t versions) {
    struct ulp_model *model = NULL;
    struct ulp_follower *follower = NULL;
    struct ulp_run_report polled = {0}, applied = {0};
    struct ulp_tensor *tensors;

    must(ulp_model_open(checkpoint, &model), checkpoint);
    tensors = copy_of(model);
    must(ulp_follower_open_memory(store, RUN, tensors, ulp_model_count(model), options, &follower),
         "follower");
    while (applied.version + 1 < versions) {
        const double started = now_ms();
        enum ulp_status status = ulp_follower_poll(follower, &polled);

        if (status == ULP_E_NO_RUN)
            continue;
        must(status, "poll");
        if (!polled.ready) {
            if (!applied.version && !applied.fresh) {
                puts("{\"ready\": true}");
                fflush(stdout);
                applied.fresh = 1;
            }
            continue;
        }
        must(ulp_follower_apply(follower, &applied), "apply");
        print_active(&polled, &applied, started);
    }
    ulp_follower_close(follower);
    for (size_t i = 0; i < ulp_model_count(model); i++)
        free(tensors[i].data);
    free(tensors);
    ulp_model_free(model);
    return 0;
}

int main(int argc, char **argv) {
    struct ulp_run_options options = {.anchor_every = 1000000, .anchor_share = 1000000, .eager = 1};
    struct ulp_store *store = NULL;
    struct ulp_pool *pool = NULL;
    int result = 2;

    if (argc < 4) {
        fprintf(stderr, "Usage: link_ends trainer STORE CHECKPOINT...\n"
                        "       link_ends worker STORE CHECKPOINT VERSIONS\n");
        return 2;
    }
    must(ulp_pool_new(0, &pool), "pool");
    must(ulp_store_open(argv[2], &store), argv[2]);
    options.pool = pool;
    if (!strcmp(argv[1], "trainer"))
        result = trainer(store, &options, argv + 3, argc - 3);
    else if (argc == 5)
        result = worker(store, &options, argv[3], strtoull(argv[4], NULL, 10));
    ulp_store_free(store);
    ulp_pool_free(pool);
    return result;
}
