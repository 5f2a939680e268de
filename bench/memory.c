// SPDX-License-Identifier: Apache-2.0
/*
 * Scan and digest against the limits of memory: bench_memory [GIGABYTES] [DIRECTORY]
 *
 * Prints one table, best of several rounds, GB/s of one dense side. The model that is digested is a
 * real file, mapped, in DIRECTORY (the current one unless given), and removed afterwards.
 */
#include "base/cpu.h"
#include "bench/limits.h"
#include "scan/digest_twins.h"
#include "scan/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulpsync/ulpsync.h>
#include <unistd.h>

#define ROUNDS 7
#define GIB (UINT64_C(1) << 30)

/* One change in a hundred BF16 elements, at places without a pattern. */
#define CHANGED_SHARE 100u

/* What we promise of the limits: count and collect this share of the compare, the digest at most
 * twice the time of the read. */
#define SCAN_TARGET 0.8
#define DIGEST_TARGET 2.0

static volatile uint64_t sink;

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* What the measured functions work on. */
struct arrays {
    uint8_t *a, *b;
    size_t bytes, changes;
    uint32_t *positions;
    uint16_t *values;
    const struct ulp_tensor *tensor; /* the mapped model's one tensor */
    struct ulp_pool *pool;
};

struct measure {
    const char *name;
    void (*run)(const struct arrays *x, size_t ahead);
    size_t ahead;
};

static void run_compare(const struct arrays *x, size_t ahead) {
    sink = limit_compare(x->a, x->b, x->bytes, ahead);
}

static void run_count(const struct arrays *x, size_t ahead) {
    (void)ahead;
    sink = scan_kernels(2)->count(x->a, x->b, x->bytes / 2);
}

static void run_collect(const struct arrays *x, size_t ahead) {
    (void)ahead;
    sink = scan_kernels(2)->collect(x->a, x->b, x->bytes / 2, x->positions);
}

static void run_gather(const struct arrays *x, size_t ahead) {
    (void)ahead;
    scan_kernels(2)->gather(x->b, x->positions, x->changes, x->values);
}

static void run_scatter(const struct arrays *x, size_t ahead) {
    (void)ahead;
    scan_kernels(2)->scatter(x->b, x->positions, x->changes, x->values);
}

static void run_mapped_read(const struct arrays *x, size_t ahead) {
    sink = limit_read(x->tensor->data, (size_t)x->tensor->bytes, ahead);
}

static void run_digest(const struct arrays *x, size_t ahead) {
    struct ulp_root root;

    if (ulp_state_digest(x->tensor, 1, ahead ? x->pool : NULL, NULL, NULL, &root))
        exit(1);
    sink = root.bytes[0];
}

/* Best seconds of each, the rounds interleaved so that a slow moment hits all alike. */
static void measure_all(const struct arrays *x, const struct measure *measures, size_t count,
                        double *best) {
    for (size_t i = 0; i < count; i++)
        best[i] = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) {
            double start = now(), seconds;

            measures[i].run(x, measures[i].ahead);
            seconds = now() - start;
            if (seconds < best[i])
                best[i] = seconds;
        }
    }
}

static double least(const double *values, size_t count) {
    double best = values[0];

    for (size_t i = 1; i < count; i++)
        best = values[i] < best ? values[i] : best;
    return best;
}

static void print_row(const char *name, double seconds, size_t bytes, double limit_seconds) {
    printf("%-34s %8.2f GB/s   %5.1f %% of the limit\n", name, (double)bytes / seconds / 1e9,
           100 * limit_seconds / seconds);
}

static int bench_scan(struct arrays *x) {
    static const struct measure measures[] = {
        {"two-stream compare", run_compare, 0},
        {"two-stream compare", run_compare, 1024},
        {"two-stream compare", run_compare, 2048},
        {"two-stream compare", run_compare, 4096},
        {"count", run_count, 0},
        {"collect", run_collect, 0},
        {"gather", run_gather, 0},
        {"scatter", run_scatter, 0},
    };
    enum { LIMITS = 4, COUNT = LIMITS, COLLECT, GATHER, SCATTER, ALL };
    double best[ALL], limit;

    measure_all(x, measures, ALL, best);
    limit = least(best, LIMITS);
    printf("\nscan, 2 x %.2f GiB of BF16, %.2f %% changed, one thread, %s\n",
           (double)x->bytes / (double)GIB, 100.0 * (double)x->changes / (double)(x->bytes / 2),
           ulp_cpu());
    print_row("two-stream compare (the limit)", limit, x->bytes, limit);
    print_row("count", best[COUNT], x->bytes, limit);
    print_row("collect positions", best[COLLECT], x->bytes, limit);
    printf("%-34s %8.2f ns per change\n", "gather", best[GATHER] / (double)x->changes * 1e9);
    printf("%-34s %8.2f ns per change\n", "scatter", best[SCATTER] / (double)x->changes * 1e9);
    return best[COUNT] > limit / SCAN_TARGET || best[COLLECT] > limit / SCAN_TARGET;
}

/* Each twin by itself, on memory. */
static void bench_twins(const struct arrays *x) {
    static const struct {
        const char *name;
        uint32_t features;
    } sets[] = {{"portable", 0},
                {"avx2", CPU_POPCNT | CPU_BMI | CPU_AVX2},
                {"avx512", CPU_ALL & ~(uint32_t)CPU_NEON},
                {"neon", CPU_NEON}};

    printf("\ntwins, one thread, GB/s        count   collect    digest\n");
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        static const struct measure measures[] = {
            {"count", run_count, 0}, {"collect", run_collect, 0}, {"digest", run_digest, 0}};
        double best[3];

        cpu_allow(sets[i].features);
        if (cpu_features() != sets[i].features)
            continue; /* not on this machine */
        measure_all(x, measures, 3, best);
        printf("%-28s %7.2f   %7.2f   %7.2f\n", sets[i].name, (double)x->bytes / best[0] / 1e9,
               (double)x->bytes / best[1] / 1e9, (double)x->tensor->bytes / best[2] / 1e9);
    }
    cpu_allow(CPU_ALL);
}

static int bench_digest(const struct arrays *x) {
    static const struct measure measures[] = {
        {"read", run_mapped_read, 0},    {"read", run_mapped_read, 1024},
        {"read", run_mapped_read, 2048}, {"read", run_mapped_read, 4096},
        {"digest", run_digest, 0},       {"digest", run_digest, 1},
    };
    enum { LIMITS = 4, ONE = LIMITS, MANY, ALL };
    double best[ALL], limit;
    char name[64];

    measure_all(x, measures, ALL, best);
    limit = least(best, LIMITS);
    printf("\ndigest of a mapped model file of %.2f GiB, %s\n",
           (double)x->tensor->bytes / (double)GIB, ulp_cpu());
    print_row("plain read, one thread (the limit)", limit, x->tensor->bytes, limit);
    print_row("digest, one thread", best[ONE], x->tensor->bytes, limit);
    snprintf(name, sizeof name, "digest, %u threads", ulp_pool_threads(x->pool));
    print_row(name, best[MANY], x->tensor->bytes, limit);
    printf("the digest takes %.2f times as long as the read\n", best[ONE] / limit);
    return best[ONE] > DIGEST_TARGET * limit;
}

/* From malloc, as the weights of most programs are. Arrays that lie exactly a large power of two
 * apart would slow down the limit itself by a third. */
static void *big(size_t bytes) {
    void *place = malloc(bytes);

    if (!place) {
        perror("malloc");
        exit(1);
    }
    return place;
}

static void fill(struct arrays *x) {
    uint64_t random = 1;

    x->a = big(x->bytes);
    x->b = big(x->bytes);
    for (size_t i = 0; i < x->bytes; i += 8)
        memcpy(x->a + i, &(uint64_t){next_random(&random)}, 8);
    memcpy(x->b, x->a, x->bytes);
    for (size_t i = 0; i < x->bytes / 2 / CHANGED_SHARE; i++)
        x->b[next_random(&random) % (x->bytes / 2) * 2] ^= 1;
    x->changes = (size_t)scan_kernels(2)->count(x->a, x->b, x->bytes / 2);
    x->positions = big(x->changes * 4 + 4);
    x->values = big(x->changes * 2 + 2);
}

/* Writes the array `a`, twice over, as the model that is digested. */
static struct ulp_model *make_model(const struct arrays *x, const char *path) {
    uint64_t shape[] = {2, x->bytes / 2};
    struct ulp_tensor tensor = {.name = "w", .dtype = "BF16", .shape = shape, .rank = 2};
    struct ulp_writer *writer = NULL;
    struct ulp_model *model = NULL;

    if (ulp_tensor_measure(&tensor) || ulp_writer_create(path, &tensor, 1, NULL, 0, &writer) ||
        ulp_writer_put(writer, 0, 0, x->a, x->bytes) ||
        ulp_writer_put(writer, 0, x->bytes, x->b, x->bytes) ||
        ulp_writer_commit(writer, ULP_COMMIT_REPLACE) || ulp_model_open(path, &model)) {
        fprintf(stderr, "bench_memory: %s\n", ulp_last_error());
        exit(1);
    }
    ulp_writer_free(writer);
    return model;
}

int main(int argc, char **argv) {
    double gigabytes = argc > 1 ? atof(argv[1]) : 2;
    struct arrays x = {.bytes = (size_t)(gigabytes * (double)GIB / 2) / 4096 * 4096};
    char path[4096];
    struct ulp_model *model;
    int slow;

    if (!x.bytes) {
        fprintf(stderr, "usage: bench_memory [GIGABYTES] [DIRECTORY]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/bench-memory.safetensors", argc > 2 ? argv[2] : ".");
    fill(&x);
    model = make_model(&x, path);
    unlink(path); /* the mapping keeps it until the end, however this ends */
    x.tensor = ulp_model_tensors(model);
    if (ulp_pool_new(0, &x.pool))
        return 1;
    slow = bench_scan(&x);
    slow |= bench_digest(&x);
    bench_twins(&x);
    if (slow)
        printf("\nslower than promised\n");
    ulp_pool_free(x.pool);
    ulp_model_free(model);
    return slow;
}
