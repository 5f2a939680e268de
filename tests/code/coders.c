// SPDX-License-Identifier: Apache-2.0
/* The coders against each other: which one is chosen, what it costs at worst, what each refuses. */
#include "tests/code/sample.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define MEBIBYTE (1u << 20)

static const struct {
    const char *dtype;
    uint32_t bits;
} types[] = {{"BF16", 16},   {"F16", 16},    {"F32", 32},        {"F64", 64},
             {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E5M2FNUZ", 8}, {"I8", 8},
             {"I16", 16},    {"I32", 32},    {"I64", 64}};

static struct code_kind kind_at(size_t type) {
    return code_kind_of(types[type].dtype, types[type].bits);
}

static size_t forced_bytes(const struct sample *sample, enum code_coder coder) {
    struct sample forced = sample_for(sample, coder);
    struct buffer bytes = sample_encode(&forced);
    size_t used = bytes.used;

    sample_check_decode(&forced, &bytes);
    buffer_release(&bytes);
    free(forced.blocks);
    return used;
}

static struct buffer best_segment(const struct sample *sample, enum code_coder *ret_coder) {
    struct buffer out = BUFFER(OUT_BYTES_MAX);
    struct code_encoder *encoder = NULL;

    assert_ok(code_encoder_new(&encoder));
    assert_ok(code_encode_best(encoder, sample->kind, sample->history, sample->blocks,
                               sample->count, &out, ret_coder));
    code_encoder_free(encoder);
    return out;
}

/* ---- the choice ---- */

static size_t count_changes(const struct sample *sample) {
    size_t changes = 0;

    for (size_t i = 0; i < sample->total; i++)
        changes += element_get(sample->old, sample->kind.width, i) !=
                   element_get(sample->new, sample->kind.width, i);
    return changes;
}

/* By size among those that are tried, the first of equals. */
static enum code_coder expected_choice(const struct sample *sample, size_t *ret_bytes) {
    const size_t changes = count_changes(sample);
    const bool many = 8 * changes >= sample->total;
    enum code_coder best = sample->history ? CODE_HISTORY : CODE_CONTEXT;

    *ret_bytes = forced_bytes(sample, best);
    for (int coder = CODE_PLAIN; coder <= CODE_DENSE; coder++) {
        size_t bytes = forced_bytes(sample, (enum code_coder)coder);

        if ((many || (coder == CODE_PLAIN && changes <= 512)) && bytes < *ret_bytes) {
            *ret_bytes = bytes;
            best = (enum code_coder)coder;
        }
    }
    return best;
}

static enum code_coder check_choice(const struct sample *sample) {
    size_t expected_bytes;
    enum code_coder expected = expected_choice(sample, &expected_bytes), coder = CODE_CONTEXT;
    struct buffer bytes = best_segment(sample, &coder);
    struct sample chosen = *sample;

    assert_int_equal(coder, expected);
    assert_int_equal(bytes.used, expected_bytes);
    chosen.coder = coder;
    sample_check_decode(&chosen, &bytes);
    buffer_release(&bytes);
    return coder;
}

static enum code_coder choice_for(size_t type, const uint32_t *sizes, size_t count,
                                  uint32_t per_mille, enum change change, bool history) {
    struct sample sample = sample_make(kind_at(type), sizes, count, per_mille, change, history);
    enum code_coder coder = check_choice(&sample);

    sample_free(&sample);
    return coder;
}

static void test_choice_is_by_size(void **state) {
    static const uint32_t sizes[] = {3000, 0, 65, 700, 1};
    static const uint32_t densities[] = {0, 1, 10, 100, 130, 500, 990, 1000};

    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        for (size_t d = 0; d < COUNT(densities); d++) {
            for (unsigned c = 0; c < 2 * CHANGES; c++)
                choice_for(type, sizes, COUNT(sizes), densities[d], c / 2, c & 1);
        }
    }
}

/* Each coder has its hour. */
static void test_each_is_chosen(void **state) {
    static const uint32_t size = 60000;

    (void)state;
    assert_int_equal(choice_for(0, &size, 1, 100, CHANGE_ULP, false), CODE_CONTEXT);
    assert_int_equal(choice_for(0, &size, 1, 500, CHANGE_ULP, true), CODE_HISTORY);
    assert_int_equal(choice_for(0, &size, 1, 0, CHANGE_ULP, true), CODE_PLAIN);
    assert_int_equal(choice_for(0, &size, 1, 500, CHANGE_RANDOM, true), CODE_PLAIN);
    assert_int_equal(choice_for(7, &size, 1, 995, CHANGE_RANDOM, false), CODE_DENSE);
}

static void test_best_appends(void **state) {
    static const uint32_t size = 500;
    struct sample sample = sample_make(kind_at(0), &size, 1, 900, CHANGE_RANDOM, false);
    enum code_coder coder = CODE_CONTEXT, again = CODE_CONTEXT;
    struct buffer fresh = best_segment(&sample, &coder), out = BUFFER(OUT_BYTES_MAX);
    struct buffer small = BUFFER(20);
    struct code_encoder *encoder = NULL;

    (void)state;
    assert_ok(code_encoder_new(&encoder));
    assert_ok(buffer_append_text(&out, "in front"));
    for (unsigned i = 1; i <= 3; i++) {
        assert_ok(code_encode_best(encoder, sample.kind, false, sample.blocks, 1, &out, &again));
        assert_int_equal(again, coder);
        assert_int_equal(out.used, 8 + i * fresh.used);
        assert_memory_equal(out.data + 8 + (i - 1) * fresh.used, fresh.data, fresh.used);
    }
    assert_true(code_encode_best(encoder, sample.kind, false, sample.blocks, 1, &small, &again));
    assert_int_equal(small.used, 0);
    code_encoder_free(encoder);
    buffer_release(&small);
    buffer_release(&out);
    buffer_release(&fresh);
    sample_free(&sample);
}

/* ---- sizes ---- */

/* At most a thousandth more than the elements themselves. */
static void test_random_bits_do_not_grow(void **state) {
    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        const uint32_t width = kind_at(type).width, elements = MEBIBYTE / width;
        const uint32_t half = elements / 2 < CODE_BLOCK_MAX ? elements / 2 : CODE_BLOCK_MAX;
        const uint32_t sizes[] = {half, half, half, half};
        struct sample sample =
            sample_make(kind_at(type), sizes, width == 1 ? 4 : 2, 1000, CHANGE_RANDOM, false);
        enum code_coder coder = CODE_CONTEXT;
        struct buffer bytes = best_segment(&sample, &coder);

        assert_true(coder >= CODE_PLAIN);
        assert_true(bytes.used <= MEBIBYTE + 4);
        assert_true(forced_bytes(&sample, CODE_PLAIN) <= MEBIBYTE + MEBIBYTE / 1000);
        assert_true(forced_bytes(&sample, CODE_DENSE) <= MEBIBYTE + 4);
        buffer_release(&bytes);
        sample_free(&sample);
    }
}

/* What surrounds a coded part is weighed against what it saves, however small the blocks. */
static void test_small_blocks_do_not_grow(void **state) {
    static uint32_t sizes[4096];

    (void)state;
    for (uint32_t size = 1; size <= 64; size *= 2) {
        for (unsigned c = 0; c < CHANGES; c++) {
            struct sample sample;

            for (size_t b = 0; b < COUNT(sizes); b++)
                sizes[b] = size;
            sample = sample_make(kind_at(0), sizes, COUNT(sizes), 1000, (enum change)c, false);
            assert_true(forced_bytes(&sample, CODE_DENSE) <= 2 * sample.total + 4);
            assert_true(forced_bytes(&sample, CODE_PLAIN) <= 2 * sample.total + 4);
            sample_free(&sample);
        }
    }
}

/* A single change of a large tensor: about as much as saying it. */
static void test_one_change_is_short(void **state) {
    static const uint32_t size = 200000;
    struct sample sample = sample_make(kind_at(2), &size, 1, 0, CHANGE_ULP, false);

    (void)state;
    element_put(sample.new, 4, 123456, 0x3f8ccccd);
    assert_int_equal(check_choice(&sample), CODE_PLAIN);
    assert_true(forced_bytes(&sample, CODE_PLAIN) <= 36);
    sample_free(&sample);
}

/* ---- values ---- */

/* Zeros, subnormals, infinities and NaNs with payloads of either sign, each to each. */
static void test_every_special_value(void **state) {
    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        const struct code_kind kind = kind_at(type);
        const uint64_t sign = UINT64_C(1) << (8 * kind.width - 1);
        const uint64_t one = UINT64_C(1) << kind.exponent_shift;
        const uint64_t infinity = ((UINT64_C(1) << kind.exponent_bits) - 1) << kind.exponent_shift;
        const uint64_t values[] = {0,
                                   1,
                                   one - 1,
                                   one,
                                   infinity,
                                   infinity + 1,
                                   infinity + one / 2,
                                   infinity + one - 1,
                                   infinity - 1};
        static const uint32_t size = 4 * COUNT(values) * COUNT(values);
        struct sample sample = sample_make(kind, &size, 1, 0, CHANGE_ULP, false);

        for (uint32_t i = 0; i < size; i++) {
            uint32_t from = i / 4 / COUNT(values), to = i / 4 % COUNT(values);

            element_put(sample.old, kind.width, i, values[from] | (i & 1 ? sign : 0));
            element_put(sample.new, kind.width, i, values[to] | (i & 2 ? sign : 0));
        }
        for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++)
            forced_bytes(&sample, (enum code_coder)coder);
        sample_free(&sample);
    }
}

/* ---- other weights ---- */

static enum ulp_status decode_against(const struct sample *sample, const struct buffer *bytes,
                                      const void *old, uint32_t *positions, void *values,
                                      uint32_t *ret_count) {
    const struct code_block block = {.old = old, .elements = sample->elements[0]};
    struct code_segment *segment = NULL;
    struct code_scratch *scratch = NULL;
    enum ulp_status status;

    assert_ok(code_scratch_new(&scratch));
    assert_ok(code_open(sample->kind, sample->elements, 1, bytes->data, bytes->used, &segment));
    status = code_decode(segment, scratch, 0, &block, positions, values, ret_count);
    code_scratch_free(scratch);
    code_close(segment);
    return status;
}

/* A change that changes nothing shows that the weights are not those it was made for. */
static void test_plain_on_the_new_weights(void **state) {
    static const uint32_t size = 1000;
    static uint32_t positions[1000], count;
    static uint8_t values[8000];

    (void)state;
    for (uint32_t per_mille = 10; per_mille <= 1000; per_mille += 330) {
        struct sample sample = sample_make(kind_at(0), &size, 1, per_mille, CHANGE_RANDOM, false);
        struct buffer bytes;

        sample.coder = CODE_PLAIN;
        bytes = sample_encode(&sample);
        assert_ok(decode_against(&sample, &bytes, sample.old, positions, values, &count));
        assert_fails(decode_against(&sample, &bytes, sample.new, positions, values, &count),
                     ULP_E_CODE, "right base");
        buffer_release(&bytes);
        sample_free(&sample);
    }
}

/* All is said, so it does not matter what was there. */
static void test_dense_on_any_weights(void **state) {
    static const uint32_t size = 1000;
    static uint32_t positions[1000], count = 7;
    static uint8_t values[8000];

    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        struct sample sample = sample_make(kind_at(type), &size, 1, 500, CHANGE_RANDOM, false);
        const uint32_t width = sample.kind.width;
        struct buffer bytes;

        sample.coder = CODE_DENSE;
        bytes = sample_encode(&sample);
        assert_ok(decode_against(&sample, &bytes, sample.new, positions, values, &count));
        assert_int_equal(count, 0);
        test_random_bytes(sample.old, (size_t)size * width);
        assert_ok(decode_against(&sample, &bytes, sample.old, positions, values, &count));
        for (uint32_t i = 0; i < count; i++)
            element_put(sample.old, width, positions[i], element_get(values, width, i));
        assert_memory_equal(sample.old, sample.new, (size_t)size * width);
        buffer_release(&bytes);
        sample_free(&sample);
    }
}

static void test_moves_are_for_history_only(void **state) {
    static const uint32_t size = 100;
    struct sample sample = sample_make(kind_at(0), &size, 1, 100, CHANGE_ULP, true);
    struct code_encoder *encoder = NULL;
    struct buffer out = BUFFER(OUT_BYTES_MAX);

    (void)state;
    assert_ok(code_encoder_new(&encoder));
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++) {
        if (coder != CODE_HISTORY)
            assert_fails(
                code_encode(encoder, sample.kind, (enum code_coder)coder, sample.blocks, 1, &out),
                ULP_E_USAGE, "without history");
    }
    code_encoder_free(encoder);
    buffer_release(&out);
    sample_free(&sample);
}

TEST_MAIN(test_choice_is_by_size, test_each_is_chosen, test_best_appends,
          test_random_bits_do_not_grow, test_small_blocks_do_not_grow, test_one_change_is_short,
          test_every_special_value, test_plain_on_the_new_weights, test_dense_on_any_weights,
          test_moves_are_for_history_only)
