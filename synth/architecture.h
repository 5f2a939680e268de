// SPDX-License-Identifier: Apache-2.0
/*
 * The tensors of a decoder-only transformer of a given size, under the names that Hugging Face
 * checkpoints use.
 */
#ifndef SYNTH_ARCHITECTURE_H
#define SYNTH_ARCHITECTURE_H

#include "synth/generator.h"

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/status.h>

#define SYNTH_PARAMS_MIN UINT64_C(10000)
#define SYNTH_PARAMS_MAX UINT64_C(1000000000000)
#define SYNTH_LAYERS_MAX 512u

struct synth_tensor {
    char name[64];
    uint64_t shape[2];
    uint32_t rank;
    uint64_t elements;
    enum synth_kind kind;
};

struct synth_plan {
    uint64_t hidden, vocabulary, layers;
    uint64_t params; /* what came out: at most as many as asked for, short by less than a row */
    struct synth_tensor *tensors;
    size_t count;
};

/* `layers` 0 chooses. ULP_E_USAGE when the sizes do not go together. */
enum ulp_status synth_plan_make(uint64_t params, uint64_t layers, struct synth_plan *ret_plan);
void synth_plan_release(struct synth_plan *plan);

#endif
