// SPDX-License-Identifier: Apache-2.0
/* The half of the benchmark of casts that is plain C: the calls that are timed. */
#ifndef TESTS_GPU_CAST_BENCH_H
#define TESTS_GPU_CAST_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cast_bench {
    uint64_t elements;
    uint16_t *weights, *snapshot; /* device memory; the latter is the state before each step */
    float *masters;
    void (*step)(const struct cast_bench *bench, unsigned step); /* of the masters */
};

struct cast_times {
    double cast_ms, cast_diff_ms, diff_ms; /* the best of some steps, calls and all */
    double changed, patch_bytes;           /* of the last */
    uint64_t cast_bytes, encoder_bytes;    /* device memory */
};

/* Both ways beside each other, step by step; their patches are compared. */
struct cast_times cast_bench_run(const struct cast_bench *bench);

#ifdef __cplusplus
}
#endif

#endif
