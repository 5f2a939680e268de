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
    enum ulp_commit commit;
};

/*
 * DIRECTORY/step-000.safetensors and so on, put into place when all are complete. If that fails in
 * the middle, the new ones are removed again; ones that replaced others stay. A replacing run also
 * removes the steps of a longer one that would follow its own.
 */
enum ulp_status synth_checkpoints_write(const struct synth_checkpoints *what, struct ulp_pool *pool,
                                        const struct ulp_progress *progress);

#endif
