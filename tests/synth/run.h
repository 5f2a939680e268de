// SPDX-License-Identifier: Apache-2.0
/* Consecutive states of a synthetic run, in memory. */
#ifndef TESTS_SYNTH_RUN_H
#define TESTS_SYNTH_RUN_H

#include "synth/generator.h"
#include "tests/test.h"

/* `count` states of `blocks` blocks each, in BF16; to be freed with run_free(). */
static inline void run_make(enum synth_regime regime, float lr, size_t blocks, uint16_t **states,
                            int count) {
    const struct synth_run run = {regime, SYNTH_DT_BF16, lr, 7};
    static struct synth_block block;

    for (int step = 0; step < count; step++) {
        states[step] = malloc(blocks * SYNTH_BLOCK_ELEMENTS * sizeof *states[step]);
        assert_non_null(states[step]);
    }
    for (size_t b = 0; b < blocks; b++) {
        synth_block_start(&block, &run, SYNTH_KIND_MATRIX, 0, b, SYNTH_BLOCK_ELEMENTS,
                          SYNTH_MATRIX_SCALE);
        for (int step = 0; step < count; step++) {
            if (step)
                synth_block_step(&block, &run);
            synth_block_emit(&block, &run, states[step] + b * SYNTH_BLOCK_ELEMENTS);
        }
    }
}

static inline void run_free(uint16_t **states, int count) {
    for (int step = 0; step < count; step++)
        free(states[step]);
}

#endif
