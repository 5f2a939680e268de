// SPDX-License-Identifier: Apache-2.0
/* Half of a tensor of BF16, as a band of rows and as one of columns, beside all of it: gpu_part_bench
 * [LOG2_ELEMENTS]. Patches are made, prepared, committed and undone, and the weights audited. */
#include "gpu_step.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "cuda/memory.h"
#include "gpu/device_apply.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 8192u
#define ROUNDS 6 /* the first ones take memory */

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

/* What each took, of all rounds the least. */
struct times {
    double diff, prepare, commit;
    uint64_t bytes, changed;
};

static double ms_since(uint64_t started) {
    return (double)(clock_monotonic_ns() - started) / 1e6;
}

static void keep_least(double *least, double ms) {
    if (!*least || ms < *least)
        *least = ms;
}

static void round_of(struct device_weights *weights, const struct ulp_tensor *next,
                     const struct ulp_diff_options *options, const struct ulp_root *child,
                     struct ulp_pool *pool, struct times *times) {
    const struct ulp_apply_options apply_options = {.pool = pool};
    struct buffer made = BUFFER(UINT64_C(1) << 34);
    const struct ulp_sink sink = {append, &made};
    struct ulp_diff_report report;
    struct ulp_patch *patch = NULL;
    struct device_apply *apply = NULL;
    uint64_t started = clock_monotonic_ns();

    must(device_diff(weights, next, 1, options, &sink, &report), "a patch");
    keep_least(&times->diff, ms_since(started));
    must(ulp_patch_open_memory(made.data, made.used, &patch), "the patch");
    started = clock_monotonic_ns();
    must(device_apply_prepare_parts(weights, (const struct ulp_patch *const *)&patch, 1, child,
                                    &apply_options, &apply),
         "preparing");
    keep_least(&times->prepare, ms_since(started));
    started = clock_monotonic_ns();
    must(device_apply_commit(apply, NULL), "committing");
    keep_least(&times->commit, ms_since(started));
    must(device_apply_undo(apply), "undoing");
    device_apply_free(apply);
    times->bytes = made.used;
    times->changed = report.changed;
    ulp_patch_free(patch);
    buffer_release(&made);
}

static void measure(const char *name, const struct ulp_tensor *old, const struct ulp_tensor *next,
                    const struct ulp_region *region, struct ulp_pool *pool) {
    static const struct ulp_root root = {{1}}, child = {{2}};
    const struct ulp_diff_options options = {0};
    struct device_weights *weights = NULL;
    struct times times = {0};

    if (region)
        must(device_weights_new_tile(old, 1, region, 1, &root, NULL, NULL, &weights), name);
    else
        must(device_weights_new(old, 1, NULL, NULL, &weights), name);
    for (int i = 0; i < ROUNDS; i++)
        round_of(weights, next, &options, region ? &child : NULL, pool, &times);
    must(device_weights_audit(weights), name);
    printf("%-16s %10llu changes, %10llu bytes: made in %7.3f ms, prepared in %7.3f, committed "
           "in %7.3f\n",
           name, (unsigned long long)times.changed, (unsigned long long)times.bytes, times.diff,
           times.prepare, times.commit);
    device_weights_free(weights);
}

/* One element in 100 steps by one. */
static void fill(uint16_t *old, uint16_t *next, uint64_t elements) {
    uint64_t random = 1, exponent;

    for (uint64_t i = 0; i < elements; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        exponent = (uint64_t)(120 - __builtin_ctzll(random >> 40 | 256));
        old[i] = (uint16_t)(random >> 63 << 15 | exponent << 7 | (random >> 33 & 127));
        next[i] = (uint16_t)(old[i] + ((random >> 20) % 100 == 0));
    }
}

int main(int argc, char **argv) {
    const uint64_t elements = UINT64_C(1) << (argc > 1 ? strtoul(argv[1], NULL, 10) : 30);
    const uint64_t shape[] = {elements / COLUMNS, COLUMNS};
    const struct ulp_region rows = {"w", shape[0] / 4, shape[0] / 2, 0, COLUMNS};
    const struct ulp_region columns = {"w", 0, shape[0], COLUMNS / 4, COLUMNS / 2};
    struct ulp_tensor old = {.name = "w", .dtype = "BF16", .shape = shape, .rank = 2}, next;
    struct uploaded on[2];
    struct ulp_pool *pool = NULL;

    if (cuda_find_device()) {
        fprintf(stderr, "gpu_part_bench: no GPU\n");
        return 77;
    }
    must(ulp_tensor_measure(&old), "measuring");
    old.data = must_alloc(old.bytes);
    next = old;
    next.data = must_alloc(old.bytes);
    fill(old.data, next.data, elements);
    must(ulp_pool_new(0, &pool), "threads");
    on[0] = upload(&old, 1, 0);
    on[1] = upload(&next, 1, 0);
    measure("all", on[0].tensors, on[1].tensors, NULL, pool);
    measure("half the rows", on[0].tensors, on[1].tensors, &rows, pool);
    measure("half the columns", on[0].tensors, on[1].tensors, &columns, pool);
    release(&on[0]);
    release(&on[1]);
    ulp_pool_free(pool);
    free(old.data);
    free(next.data);
    return 0;
}
