// SPDX-License-Identifier: Apache-2.0
/*
 * The model, per element. Adam moves a weight by lr * m / sqrt(v); with gradients measured in units
 * of sqrt(v):
 *
 *     drift    <- DRIFT_KEPT * drift + fresh          what the gradient has in common with its past
 *     gradient  = drift + noise                       what one batch of rollouts shows of it
 *     momentum <- momentum + (1 - beta1) * (gradient - momentum)
 *     weight   <- weight - lr * saturate(momentum)    in regime SYNTH_BF16 rounded at once
 *
 * Everything a codec sees follows from this and from the format's rounding: the density, how it
 * falls with the exponent and grows over several steps, sizes and signs of the moves, and who moves
 * again.
 *
 * It was calibrated on two recorded runs: one layer (6.3 M elements) of a 441 M-parameter decoder,
 * eight consecutive steps late in about forty of a policy-gradient run, Adam (0.9, 0.999), one with
 * FP32 master weights at lr 1e-6 and one with weights and moments in BF16 at lr 3e-6. Weights below
 * 2^-16 have an ulp so fine that weight differences show the update itself. In both runs
 *   * (r[t] - 0.9 r[t-1]) / 0.1 is nearly white and normal with deviation 1.04 and 1.07: the
 *     momentum is Adam's own, the noise is about 1 because Adam divides by it;
 *   * r has deviation 0.28 and 0.30, but white noise alone would give 0.24. Its autocorrelation,
 *     0.93 at lag 1 and still 0.64 at lag 7, says that the rest hardly fades within eight steps:
 *     the drift;
 *   * its kurtosis is 2.85 and 2.65, not 3: the saturation;
 *   * rows of a matrix differ in activity by 8-17 % more than chance: their drifts differ in size.
 * One set of constants serves both runs, but for a gain of a few per cent (see update_gain).
 */

#include "synth/generator.h"

#include <assert.h>
#include <float.h>
#include <stdbool.h>

#include "synth/float_bits.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must round to float, or the bytes differ");
_Static_assert(SYNTH_BLOCK_ELEMENTS % SYNTH_ROW_ELEMENTS == 0, "a block is whole rows");

/* 1 - beta1, with Adam's usual beta1 = 0.9. */
#define MOMENTUM_GAIN 0.1f

/* Deviation of the fresh part of the gradient, as measured (see above). */
#define NOISE_SCALE 1.04f

/*
 * Deviations of the drift are uniform over [0, DRIFT_SCALE_MAX) from row to row, so their mean
 * square is a third of DRIFT_SCALE_MAX^2, or 0.19^2. This supplies the variance of r that noise
 * alone does not, and the spread of the rows.
 */
#define DRIFT_SCALE_MAX 0.33f

/*
 * The drift's memory is 100 steps. Eight steps only bound it from below; growth over 16 steps
 * agrees within 3 %. DRIFT_FRESH = sqrt(1 - DRIFT_KEPT^2) keeps its variance.
 */
#define DRIFT_KEPT 0.99f
#define DRIFT_FRESH 0.14106736f

/*
 * The stationary joint distribution of momentum and drift, from which a block starts:
 *     E[momentum * drift] / E[drift^2] = 0.1 / (1 - 0.9 * 0.99) = 0.917.
 * The rest of the momentum is noise, 0.1 / sqrt(1 - 0.9^2) = 0.229 times the gradient's; with what
 * the drift itself adds, 0.235 on average.
 */
#define MOMENTUM_FROM_DRIFT 0.917f
#define MOMENTUM_FROM_NOISE 0.235f

/*
 * sqrt(v) contains the same gradients as the momentum, so where the momentum is large the divisor
 * is too. With z the momentum in units of its own deviation and n = 40 gradients in v,
 *     z / sqrt((z^2 + n - 1) / n), or about z * (1 - (z^2 - 1) / (2 n)), z^2 = momentum^2 / 0.090,
 * is left of it. (The cubic turns back at |z| = 5.2; the few elements out there move a bit less.)
 */
#define SATURATION_LINEAR 1.0125f /* 1 + 1 / 80 */
#define SATURATION_CUBIC 0.139f   /* 1 / (80 * 0.090) */

/*
 * The sum of a random word's four bytes has mean 510, deviation sqrt(4 * (256^2 - 1) / 12) = 147.8.
 */
#define BYTE_SUM_MEAN 510
#define BYTE_SUM_UNIT (1.0f / 147.8f)

/*
 * A row of standard normal numbers, from four random words each. A word counts as two uniform
 * numbers, itself and itself with its halves swapped: one's high bits are the other's low bits. A
 * sum of eight of 28 bits has deviation sqrt(8 / 12) * 2^28 and keeps a grain far below the ulp of
 * any weight worth having. Its kurtosis is 3 - 1.2 / 8; the cubic (Cornish and Fisher's: excess /
 * 24) makes up for that and reaches out to 5.5.
 */
static void row_normals(struct rng *rng, float *normal) {
    const float unit = 1.22474487f * 0x1p-28f;
    const float excess = 0.15f / 24.0f;
    uint32_t sum[SYNTH_ROW_ELEMENTS] = {0};

    for (int draw = 0; draw < 4; draw++) {
        const uint32_t *word = rng_row(rng);

        for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++) {
            uint32_t swapped = word[i] << 16 | word[i] >> 16;
            sum[i] += (word[i] >> 4) + (swapped >> 4);
        }
    }
    for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++) {
        float z = unit * (float)((int32_t)sum[i] - (1 << 30)); /* below 8 * 2^28, so it fits */
        normal[i] = z * (1.0f - 3.0f * excess + excess * (z * z));
    }
}

/* What training in the emitted type does to the weights after each update. */
static void row_round(float *weight, enum synth_dtype dtype) {
    if (dtype == SYNTH_DT_BF16) {
        for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++)
            weight[i] = bf16_to_float(bf16_from_float(weight[i]));
    } else if (dtype == SYNTH_DT_F16) {
        for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++)
            weight[i] = f16_to_float(f16_from_float(weight[i]));
    }
}

/*
 * The updates of the run with FP32 masters were 3.5 % smaller than this model's, those of the run
 * in BF16 3.5 % larger: there Adam's second moment is BF16 too, and is slow to grow when it rounds.
 */
static float update_gain(enum synth_regime regime) {
    return regime == SYNTH_MASTER ? 0.966f : 1.036f;
}

static size_t block_rows(const struct synth_block *b) {
    return (b->elements + SYNTH_ROW_ELEMENTS - 1) / SYNTH_ROW_ELEMENTS;
}

static void block_start_scales(struct synth_block *b) {
    const uint32_t *word = rng_row(&b->rng);

    for (size_t row = 0; row < SYNTH_BLOCK_ROWS; row++)
        b->drift_scale[row] = DRIFT_SCALE_MAX * ((float)(int32_t)(word[row] >> 8) * 0x1p-24f);
}

static void row_start_weights(struct synth_block *b, size_t row, float mean, float scale) {
    float *weight = b->weight + row * SYNTH_ROW_ELEMENTS;

    row_normals(&b->rng, weight);
    for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++)
        weight[i] = mean + scale * weight[i];
}

static void row_start_moments(struct synth_block *b, size_t row) {
    float *momentum = b->momentum + row * SYNTH_ROW_ELEMENTS;
    float *drift = b->drift + row * SYNTH_ROW_ELEMENTS;
    float drift_scale = b->drift_scale[row];

    row_normals(&b->rng, drift);
    row_normals(&b->rng, momentum);
    for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++) {
        drift[i] = drift_scale * drift[i];
        momentum[i] =
            MOMENTUM_FROM_DRIFT * drift[i] + MOMENTUM_FROM_NOISE * NOISE_SCALE * momentum[i];
    }
}

void synth_block_start(struct synth_block *b, const struct synth_run *run, enum synth_kind kind,
                       uint64_t tensor, uint64_t block, size_t elements, float scale) {
    float mean = kind == SYNTH_KIND_NORM ? 1.0f : 0.0f;

    assert(elements >= 1 && elements <= SYNTH_BLOCK_ELEMENTS);
    memset(b, 0, sizeof(*b));
    b->elements = elements;
    rng_start(&b->rng, run->seed, tensor, block);
    block_start_scales(b);
    for (size_t row = 0; row < block_rows(b); row++) {
        row_start_weights(b, row, mean, scale);
        row_start_moments(b, row);
        if (run->regime == SYNTH_BF16)
            row_round(b->weight + row * SYNTH_ROW_ELEMENTS, run->dtype);
    }
}

/*
 * One random word feeds both parts of an element's gradient: the sum of its four bytes is the
 * noise, the difference of two pairs of them moves the drift. The two are uncorrelated and have the
 * same deviation.
 */
static void row_step(float *restrict weight, float *restrict momentum, float *restrict drift,
                     const uint32_t *restrict word, float noise_unit, float drift_unit,
                     float rate) {
    for (size_t i = 0; i < SYNTH_ROW_ELEMENTS; i++) {
        uint32_t pairs = (word[i] & 0x00ff00ffu) + ((word[i] >> 8) & 0x00ff00ffu);
        int32_t low = (int32_t)(pairs & 0xffffu);
        int32_t high = (int32_t)(pairs >> 16);

        float lasting = DRIFT_KEPT * drift[i] + drift_unit * (float)(low - high);
        float gradient = lasting + noise_unit * (float)(low + high - BYTE_SUM_MEAN);
        float m = momentum[i] + MOMENTUM_GAIN * (gradient - momentum[i]);

        drift[i] = lasting;
        momentum[i] = m;
        weight[i] -= rate * (m * (SATURATION_LINEAR - SATURATION_CUBIC * (m * m)));
    }
}

void synth_block_step(struct synth_block *b, const struct synth_run *run) {
    float rate = run->lr * update_gain(run->regime);

    for (size_t row = 0; row < block_rows(b); row++) {
        size_t first = row * SYNTH_ROW_ELEMENTS;
        float noise_unit = BYTE_SUM_UNIT * NOISE_SCALE;
        float drift_unit = BYTE_SUM_UNIT * DRIFT_FRESH * b->drift_scale[row];

        row_step(b->weight + first, b->momentum + first, b->drift + first, rng_row(&b->rng),
                 noise_unit, drift_unit, rate);
        if (run->regime == SYNTH_BF16)
            row_round(b->weight + first, run->dtype);
    }
}

size_t synth_dtype_bytes(enum synth_dtype dtype) {
    return dtype == SYNTH_DT_F32 ? 4 : 2;
}

static void store_le16(uint8_t *out, uint16_t value) {
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

static void store_le32(uint8_t *out, uint32_t value) {
    store_le16(out, (uint16_t)value);
    store_le16(out + 2, (uint16_t)(value >> 16));
}

void synth_block_emit(const struct synth_block *b, const struct synth_run *run, void *out) {
    uint8_t *restrict bytes = out;

    switch (run->dtype) {
    case SYNTH_DT_BF16:
        for (size_t i = 0; i < b->elements; i++)
            store_le16(bytes + 2 * i, bf16_from_float(b->weight[i]));
        break;
    case SYNTH_DT_F16:
        for (size_t i = 0; i < b->elements; i++)
            store_le16(bytes + 2 * i, f16_from_float(b->weight[i]));
        break;
    case SYNTH_DT_F32:
        for (size_t i = 0; i < b->elements; i++)
            store_le32(bytes + 4 * i, float_to_bits(b->weight[i]));
        break;
    }
}
