// SPDX-License-Identifier: Apache-2.0
/*
 * A run of a synthetic model through a directory store, from memory to memory: how long publishing
 * takes, how long a worker pauses, and what both need beside the weights themselves.
 *
 *     bench_runs DIRECTORY [GIB...]        0.5, 1 and 2 GiB unless given; DIRECTORY is emptied again
 */
#define _XOPEN_SOURCE 700 /* nftw */
#define _DEFAULT_SOURCE   /* malloc_usable_size */
#include "base/memory.h"
#include "synth/checkpoints.h"

#include <ftw.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STEPS 3u
#define MIB 1048576.0

/* ---- memory ---- */

static atomic_llong taken, most;

static void count(long long bytes) {
    long long now = atomic_fetch_add(&taken, bytes) + bytes, peak = atomic_load(&most);

    while (now > peak && !atomic_compare_exchange_weak(&most, &peak, now))
        ;
}

static void *counted_resize(void *user, void *old, size_t bytes) {
    long long before = old ? (long long)malloc_usable_size(old) : 0;
    void *memory = realloc(old, bytes);

    (void)user;
    if (memory)
        count((long long)malloc_usable_size(memory) - before);
    return memory;
}

static void counted_release(void *user, void *pointer) {
    (void)user;
    if (pointer)
        count(-(long long)malloc_usable_size(pointer));
    free(pointer);
}

/* Who of the two in this process has how much. */
struct owner {
    long long owned, before;
    double peak_mib; /* beside the weights */
};

static void owner_begin(struct owner *owner) {
    owner->before = atomic_load(&taken);
    atomic_store(&most, owner->before);
}

/* `weights` bytes of what it owns are not counted. */
static void owner_end(struct owner *owner, long long weights) {
    double peak = (double)(owner->owned + atomic_load(&most) - owner->before - weights) / MIB;

    owner->peak_mib = peak > owner->peak_mib ? peak : owner->peak_mib;
    owner->owned += atomic_load(&taken) - owner->before;
}

/* ---- one size ---- */

struct run {
    const char *directory;
    struct ulp_pool *pool;
    struct ulp_store *store;
    struct ulp_publisher *publisher;
    struct ulp_follower *follower;
    struct ulp_tensor *held; /* the worker's own */
    size_t count;
    uint64_t bytes;
    struct owner trainer, worker;
};

static void must(enum ulp_status status, const char *what) {
    if (!status)
        return;
    fprintf(stderr, "bench_runs: %s: %s\n", what, ulp_last_error());
    exit((int)status);
}

static const char *below(const struct run *run, const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", run->directory, name);
    return path;
}

static void make_checkpoints(const struct run *run, double gib) {
    struct synth_plan plan = {0};
    struct synth_checkpoints what = {.directory = run->directory,
                                     .plan = &plan,
                                     .run = {SYNTH_MASTER, SYNTH_DT_BF16, 1e-6f, 1},
                                     .steps = STEPS,
                                     .commit = ULP_COMMIT_REPLACE};

    must(synth_plan_make((uint64_t)(gib * 512 * MIB), 0, &plan), "plan");
    must(synth_checkpoints_write(&what, run->pool, NULL), "synth");
    synth_plan_release(&plan);
}

static struct ulp_model *open_step(const struct run *run, unsigned step) {
    struct ulp_model *model = NULL;
    char name[32];

    snprintf(name, sizeof name, "step-%03u.safetensors", step);
    must(ulp_model_open(below(run, name), &model), name);
    return model;
}

/* Memory for the worker's weights; what is in it does not matter. */
static void make_worker(struct run *run, const struct ulp_model *like) {
    run->count = ulp_model_count(like);
    run->bytes = ulp_model_bytes(like);
    run->held = calloc(run->count, sizeof *run->held);
    for (size_t i = 0; run->held && i < run->count; i++) {
        run->held[i] = ulp_model_tensors(like)[i];
        run->held[i].data = malloc((size_t)run->held[i].bytes);
        if (!run->held[i].data)
            must(ulp_fail(ULP_E_NOMEM, "out of memory"), "worker");
    }
}

static double ms(uint64_t ns) {
    return (double)ns / 1e6;
}

static struct ulp_run_report publish(struct run *run, const struct ulp_model *model,
                                     unsigned step) {
    struct ulp_run_report report = {0};

    owner_begin(&run->trainer);
    must(ulp_publisher_publish(run->publisher, ulp_model_tensors(model), ulp_model_count(model),
                               step, &report),
         "publish");
    owner_end(&run->trainer, (long long)run->bytes); /* its snapshot */
    return report;
}

/* Fetches and stages, then applies; the last of the two reports has the pause. */
static struct ulp_run_report follow(struct run *run, struct ulp_run_report *ret_applied) {
    struct ulp_run_report polled = {0};

    owner_begin(&run->worker);
    must(ulp_follower_poll(run->follower, &polled), "poll");
    must(ulp_follower_apply(run->follower, ret_applied), "apply");
    owner_end(&run->worker, 0);
    return polled;
}

static void check(const struct run *run, const struct ulp_model *model) {
    for (size_t i = 0; i < run->count; i++) {
        const struct ulp_tensor *tensor = &ulp_model_tensors(model)[i];

        if (memcmp(tensor->data, run->held[i].data, (size_t)tensor->bytes) != 0)
            must(ulp_fail(ULP_E_WRONG_RESULT, "the worker's %s differs", tensor->name), "check");
    }
}

static void print_step(const struct ulp_run_report *p, const struct ulp_run_report *polled,
                       const struct ulp_run_report *applied, double gib) {
    printf("%4.1f GiB  step %llu: patch %6.2f MB, %.3f bits a change;"
           " publish: encode %5.0f, check %4.0f, store %4.0f, commit %3.0f ms;"
           " worker: fetch %4.0f, decode %5.0f ms, pause %5.1f ms\n",
           gib, (unsigned long long)p->head.step, (double)p->head.patch_bytes / 1e6,
           8 * (double)p->head.patch_bytes / (double)p->head.changed, ms(p->phases.encode_ns),
           ms(p->phases.verify_ns), ms(p->phases.store_ns), ms(p->phases.commit_ns),
           ms(polled->phases.fetch_ns), ms(polled->phases.decode_ns), ms(applied->phases.apply_ns));
}

static void close_run(struct run *run) {
    ulp_follower_close(run->follower);
    ulp_publisher_close(run->publisher);
    ulp_store_free(run->store);
    ulp_pool_free(run->pool);
    for (size_t i = 0; i < run->count; i++)
        free(run->held[i].data);
    free(run->held);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void run_size(const char *directory, double gib) {
    struct run run = {.directory = directory};
    struct ulp_run_options options = {0};
    struct ulp_model *first;

    if (mkdir(directory, 0777))
        must(ulp_fail(ULP_E_EXISTS, "%s must not exist yet", directory), "directory");
    must(ulp_pool_new(0, &run.pool), "pool");
    make_checkpoints(&run, gib);
    must(ulp_store_open(below(&run, "store"), &run.store), "store");
    options.pool = run.pool;
    first = open_step(&run, 0);
    make_worker(&run, first);
    must(ulp_publisher_open(run.store, "bench", NULL, &options, &run.publisher), "publisher");
    must(ulp_follower_open_memory(run.store, "bench", run.held, run.count, &options, &run.follower),
         "follower");
    publish(&run, first, 0);
    run.trainer.peak_mib = 0; /* of the first version all is new */
    follow(&run, &(struct ulp_run_report){0});
    run.worker.peak_mib = 0;
    ulp_model_free(first);
    for (unsigned step = 1; step <= STEPS; step++) {
        struct ulp_model *model = open_step(&run, step);
        struct ulp_run_report published = publish(&run, model, step), applied = {0};
        struct ulp_run_report polled = follow(&run, &applied);

        print_step(&published, &polled, &applied, gib);
        check(&run, model);
        ulp_model_free(model);
    }
    printf("%4.1f GiB  memory beside the weights: publisher %.0f MiB, worker %.0f MiB\n", gib,
           run.trainer.peak_mib, run.worker.peak_mib);
    close_run(&run);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv) {
    static const struct mem_hooks hooks = {counted_resize, counted_release, NULL};
    static const char *const usual[] = {"0.5", "1", "2"};
    const char *const *sizes = argc > 2 ? (const char *const *)argv + 2 : usual;
    int size_count = argc > 2 ? argc - 2 : 3;

    if (argc < 2) {
        fprintf(stderr, "Usage: bench_runs DIRECTORY [GIB...]\n");
        return 2;
    }
    mem_install(&hooks);
    for (int i = 0; i < size_count; i++)
        run_size(argv[1], atof(sizes[i]));
    return 0;
}
