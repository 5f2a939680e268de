// SPDX-License-Identifier: Apache-2.0
/* The synthetic runs have the same bytes on every machine; without a test framework, see
 * twins_check.c. */
#include "synth/generator.h"

#include <stdio.h>

static struct synth_block block;
static uint8_t bytes[SYNTH_BLOCK_ELEMENTS * 4];

static uint64_t fingerprint(size_t count) {
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

int main(void) {
    static const struct {
        struct synth_run run;
        uint64_t fingerprint;
    } pinned[] = {
#include "tests/synth/pinned_runs.inc"
    };
    const size_t count = sizeof pinned / sizeof pinned[0];

    for (size_t i = 0; i < count; i++) {
        const struct synth_run *run = &pinned[i].run;

        synth_block_start(&block, run, SYNTH_KIND_MATRIX, 3, 5, SYNTH_BLOCK_ELEMENTS,
                          SYNTH_MATRIX_SCALE);
        for (int step = 0; step < 3; step++)
            synth_block_step(&block, run);
        synth_block_emit(&block, run, bytes);
        if (fingerprint(SYNTH_BLOCK_ELEMENTS * synth_dtype_bytes(run->dtype)) !=
            pinned[i].fingerprint) {
            fprintf(stderr, "run %zu has other bytes on this machine\n", i);
            return 1;
        }
    }
    printf("synth: %zu runs, the same bytes as everywhere\n", count);
    return 0;
}
