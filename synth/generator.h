// SPDX-License-Identifier: Apache-2.0
/*
 * Synthetic reinforcement-learning runs: weights that change from step to step as those of a real
 * run do.
 *
 * A run is a set of tensors; a tensor is cut into blocks of up to SYNTH_BLOCK_ELEMENTS; a block is
 * evolved by itself and needs nothing else:
 *
 *     struct synth_run run = { SYNTH_MASTER, SYNTH_DT_BF16, 1e-6f, 42 };
 *     struct synth_block *b = ...;              // 200 KiB, memory of the caller
 *     synth_block_start(b, &run, SYNTH_KIND_MATRIX, tensor, block, elements, SYNTH_MATRIX_SCALE);
 *     synth_block_emit(b, &run, out);           // step 0
 *     synth_block_step(b, &run);
 *     synth_block_emit(b, &run, out);           // step 1
 *
 * The bytes are a pure function of the arguments and the number of steps: the same on every
 * machine, if the source is compiled without contraction of a * b + c (-ffp-contract=off) and
 * without -ffast-math. Nothing is allocated and nothing is global; threads may work on different
 * blocks at the same time, in any order.
 *
 * The run starts in the middle: Adam's moments are warm, as they are some tens of steps into a run.
 * The model and what it was calibrated on are described in generator.c.
 */

#ifndef ULPSYNC_SYNTH_GENERATOR_H
#define ULPSYNC_SYNTH_GENERATOR_H

#include <stddef.h>
#include <stdint.h>

#include "synth/rng.h"

/* Where the weights live between two steps. */
enum synth_regime {
    SYNTH_MASTER, /* in FP32; the emitted type is a rounded view of them */
    SYNTH_BF16,   /* in the emitted type: each update is rounded to it, and small ones are lost */
};

enum synth_dtype { SYNTH_DT_BF16, SYNTH_DT_F16, SYNTH_DT_F32 };

enum synth_kind {
    SYNTH_KIND_MATRIX, /* normal around 0 */
    SYNTH_KIND_NORM,   /* normal around 1 */
};

/* Weights, momentum and drift, 64 KiB each, stay in a level-2 cache of 256 KiB. */
#define SYNTH_BLOCK_ELEMENTS 16384

/* A stretch of elements with one gradient scale, the stand-in for a matrix row. */
#define SYNTH_ROW_ELEMENTS RNG_ROW_WORDS
#define SYNTH_BLOCK_ROWS (SYNTH_BLOCK_ELEMENTS / SYNTH_ROW_ELEMENTS)

/* Standard deviations of the weights in the recorded runs. */
#define SYNTH_MATRIX_SCALE 0.0207f
#define SYNTH_NORM_SCALE 0.01f

struct synth_run {
    enum synth_regime regime;
    enum synth_dtype dtype;
    float lr; /* learning rate; the recorded runs had 1e-6 (master) and 3e-6 (BF16) */
    uint64_t seed;
};

struct synth_block {
    size_t elements;
    struct rng rng;
    float drift_scale[SYNTH_BLOCK_ROWS]; /* of the gradient's lasting part */
    float weight[SYNTH_BLOCK_ELEMENTS];
    float momentum[SYNTH_BLOCK_ELEMENTS];
    float drift[SYNTH_BLOCK_ELEMENTS];
};

/* Bytes of one element. */
size_t synth_dtype_bytes(enum synth_dtype dtype);

/*
 * Block `block` of tensor `tensor` at step 0. 1 <= elements <= SYNTH_BLOCK_ELEMENTS; `scale` is the
 * standard deviation of the weights.
 */
void synth_block_start(struct synth_block *b, const struct synth_run *run, enum synth_kind kind,
                       uint64_t tensor, uint64_t block, size_t elements, float scale);

/* One step of the optimiser. */
void synth_block_step(struct synth_block *b, const struct synth_run *run);

/*
 * Writes the block's elements, little-endian, in the run's type: elements * synth_dtype_bytes()
 * bytes.
 */
void synth_block_emit(const struct synth_block *b, const struct synth_run *run, void *out);

#endif
