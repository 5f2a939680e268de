// SPDX-License-Identifier: Apache-2.0
/* Three states of a synthetic run in memory, one step apart, for measuring. */
#ifndef CLI_BENCH_STATES_H
#define CLI_BENCH_STATES_H

#include "synth/architecture.h"

#include <ulpsync/ulpsync.h>

enum { STATE_BEFORE, STATE_OLD, STATE_NEW, STATES };

/* Zeroed means none. */
struct bench_states {
    struct synth_plan plan;
    struct ulp_tensor *tensors[STATES]; /* plan.count of each */
    uint8_t *memory[STATES];            /* their data, one tensor behind the other */
    uint64_t bytes;                     /* of one state */
};

/* About `bytes` bytes of BF16 for each state. */
enum ulp_status bench_states_make(const struct synth_run *run, uint64_t bytes,
                                  struct ulp_pool *pool, const struct ulp_progress *progress,
                                  struct bench_states *states);
void bench_states_release(struct bench_states *states);

/* Sets run->lr so that this share of the elements changes in a step, as far as that is possible. */
enum ulp_status bench_states_tune(struct synth_run *run, double density);

#endif
