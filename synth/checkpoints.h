// SPDX-License-Identifier: Apache-2.0
/*
 * A whole synthetic run on disk: one safetensors file per step. Every block of every tensor is
 * carried through all steps by itself and written into all files, so memory stays the same however
 * large the model is.
 */
#ifndef SYNTH_CHECKPOINTS_H
#define SYNTH_CHECKPOINTS_H

#include "synth/architecture.h"

#include <ulpsync/ulpsync.h>

/* Every step is an open file until the end. */
#define SYNTH_STEPS_MAX 255u

struct synth_checkpoints {
    const char *directory; /* must exist */
    const struct synth_plan *plan;
    struct synth_run run;
    unsigned steps; /* optimiser steps; one more file than that is written */
};

/* DIRECTORY/step-000.safetensors and so on; all appear together at the end, or none. */
enum ulp_status synth_checkpoints_write(const struct synth_checkpoints *what, struct ulp_pool *pool,
                                        const struct ulp_progress *progress);

/* The path of one step's file; NULL when memory is short. To be freed with free(). */
char *synth_checkpoint_path(const char *directory, unsigned step);

#endif
