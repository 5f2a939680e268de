// SPDX-License-Identifier: Apache-2.0
/* The generator is a pure function, and its rounding is the machine's. */
#include "synth/generator.h"

#include "synth/float_bits.h"
#include "tests/test.h"

static struct synth_block block;

static void emit_after(const struct synth_run *run, uint64_t tensor, uint64_t index,
                       size_t elements, int steps, void *out) {
    synth_block_start(&block, run, SYNTH_KIND_MATRIX, tensor, index, elements, SYNTH_MATRIX_SCALE);
    for (int i = 0; i < steps; i++)
        synth_block_step(&block, run);
    synth_block_emit(&block, run, out);
}

static uint64_t fingerprint(const void *data, size_t bytes) {
    const uint8_t *byte = data;
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Every machine and compiler must make these very bytes. */
static void test_bytes_are_pinned(void **state) {
    static const struct {
        struct synth_run run;
        uint64_t fingerprint;
    } pinned[] = {
#include "tests/synth/pinned_runs.inc"
    };
    static uint8_t out[SYNTH_BLOCK_ELEMENTS * 4];

    (void)state;
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++) {
        const struct synth_run *run = &pinned[i].run;
        uint64_t made;

        emit_after(run, 3, 5, SYNTH_BLOCK_ELEMENTS, 3, out);
        made = fingerprint(out, SYNTH_BLOCK_ELEMENTS * synth_dtype_bytes(run->dtype));
        if (made != pinned[i].fingerprint)
            fail_msg("run %zu: made 0x%016llx", i, (unsigned long long)made);
    }
}

static void test_blocks_differ_and_short_ones_are_beginnings(void **state) {
    const struct synth_run run = {SYNTH_MASTER, SYNTH_DT_BF16, 1e-6f, 1};
    static uint16_t a[SYNTH_BLOCK_ELEMENTS], b[SYNTH_BLOCK_ELEMENTS];

    (void)state;
    emit_after(&run, 0, 0, SYNTH_BLOCK_ELEMENTS, 2, a);
    emit_after(&run, 0, 1, SYNTH_BLOCK_ELEMENTS, 2, b);
    assert_memory_not_equal(a, b, sizeof a);
    emit_after(&run, 1, 0, SYNTH_BLOCK_ELEMENTS, 2, b);
    assert_memory_not_equal(a, b, sizeof a);
    memset(b, 0, sizeof b);
    emit_after(&run, 0, 0, 1, 0, b);
    assert_int_equal(b[1], 0); /* not a byte more than asked for */
}

/* Every BF16 and F16 value survives the way to FP32 and back, and halves go to even. */
static void test_rounding(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
        float value = bf16_to_float((uint16_t)bits);

        assert_int_equal(bf16_from_float(value), bits);
        if (bits < 0x7c00)
            assert_int_equal(f16_from_float(f16_to_float((uint16_t)bits)), bits);
    }
    assert_int_equal(bf16_from_float(float_from_bits(0x3f808000)), 0x3f80); /* tie, even below */
    assert_int_equal(bf16_from_float(float_from_bits(0x3f818000)), 0x3f82); /* tie, even above */
    assert_int_equal(bf16_from_float(float_from_bits(0x3f808001)), 0x3f81);
    assert_int_equal(f16_from_float(1.0f), 0x3c00);
    assert_int_equal(f16_from_float(-0x1p-24f), 0x8001);
    assert_int_equal(f16_from_float(0x1p-25f), 0); /* tie, even below */
}

TEST_MAIN(test_bytes_are_pinned, test_blocks_differ_and_short_ones_are_beginnings, test_rounding)
