// SPDX-License-Identifier: Apache-2.0
/*
 * Segments that are not what the encoder made, and memory that runs out: an error or some changes,
 * never a fault. Not every damage can be noticed here; the checksum of the file is there for that.
 */
#include "code/stream.h"
#include "tests/code/sample.h"

/* Of a thousand flipped bits of steps from old weights, so many may go unnoticed; 108 to 219 do.
 * Where weights are written as they are, nothing here can tell. */
#define UNNOTICED_PER_MILLE 250u

static const uint32_t sizes[] = {4200, 64, 0, 130, 300};
#define BLOCKS (sizeof sizes / sizeof sizes[0])

/* For coders that take more bytes. */
static const uint32_t small_sizes[BLOCKS] = {300, 64, 0, 130, 1};

static struct sample make(const char *dtype, uint32_t bits, bool history, uint32_t per_mille) {
    return sample_make(code_kind_of(dtype, bits), sizes, BLOCKS, per_mille, CHANGE_ULP, history);
}

/* ULP_E_USAGE is for moves where the segment wants none. */
static bool is_refusal(enum ulp_status status) {
    return status == ULP_E_CODE || status == ULP_E_LIMIT || status == ULP_E_USAGE;
}

/* Positions rise and stay inside the block. */
static void check_positions(const uint32_t *positions, uint32_t count, uint32_t elements) {
    for (uint32_t i = 0; i < count; i++) {
        assert_true(positions[i] < elements);
        assert_true(!i || positions[i - 1] < positions[i]);
    }
}

/* A change changes something. */
static void check_values(const struct sample *sample, size_t b, const uint32_t *positions,
                         const uint8_t *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        assert_true(element_get(values, sample->kind.width, i) !=
                    element_get(sample->blocks[b].old, sample->kind.width, positions[i]));
}

/* False if block `b` is refused. The arrays are exactly as long as announced. */
static bool decode_block(const struct sample *sample, const struct code_segment *segment,
                         size_t b) {
    uint32_t most = code_changes(segment, b), changes = 0;
    uint32_t *positions = sample_memory(most, sizeof *positions);
    uint8_t *values = sample_memory(most, sample->kind.width);
    struct code_scratch *scratch = NULL;
    enum ulp_status status;

    assert_ok(code_scratch_new(&scratch));
    assert_true(most <= sample->blocks[b].elements);
    status = code_decode(segment, scratch, b, &sample->blocks[b], positions, values, &changes);
    code_scratch_free(scratch);
    if (status) {
        assert_true(is_refusal(status));
    } else {
        assert_true(changes == most || (changes < most && code_coder_of(segment) == CODE_DENSE));
        check_positions(positions, changes, sample->blocks[b].elements);
        check_values(sample, b, positions, values, changes);
    }
    free(positions);
    free(values);
    return !status;
}

/* Whether all of a segment is accepted. It is given in memory that ends where it ends. */
static bool accepted(const struct sample *sample, const uint8_t *bytes, size_t count) {
    uint8_t *copy = sample_memory(count, 1);
    struct code_segment *segment = NULL;
    enum ulp_status status;
    bool whole = true;

    memcpy(copy, bytes, count);
    status = code_open(sample->kind, sample->elements, sample->count, copy, count, &segment);
    if (status) {
        assert_true(is_refusal(status));
        assert_null(segment);
    } else {
        for (size_t b = 0; b < sample->count; b++)
            whole &= decode_block(sample, segment, b);
        code_close(segment);
    }
    free(copy);
    return !status && whole;
}

/* The same for all kinds of segments that are damaged here. */
static void for_each_sample(void (*test)(const struct sample *, struct buffer *)) {
    static const struct {
        const char *dtype;
        uint32_t bits, per_mille;
    } types[] = {{"BF16", 16, 60}, {"F64", 64, 60}, {"I8", 8, 60}, {"BF16", 16, 950}};

    for (unsigned i = 0; i < 16; i++) {
        enum code_coder coder = (enum code_coder)(i % 4);
        struct sample sample =
            sample_make(code_kind_of(types[i / 4].dtype, types[i / 4].bits),
                        coder < CODE_PLAIN ? sizes : small_sizes, BLOCKS, types[i / 4].per_mille,
                        CHANGE_ULP, coder == CODE_HISTORY);
        struct buffer bytes;

        sample.coder = coder;
        bytes = sample_encode(&sample);
        assert_true(bytes.used <= (coder < CODE_PLAIN ? 1500 : 4000));
        assert_true(accepted(&sample, bytes.data, bytes.used));
        test(&sample, &bytes);
        buffer_release(&bytes);
        sample_free(&sample);
    }
}

static void truncate_everywhere(const struct sample *sample, struct buffer *bytes) {
    for (size_t length = 0; length < bytes->used; length++)
        assert_false(accepted(sample, bytes->data, length));
}

static void test_truncations(void **state) {
    (void)state;
    for_each_sample(truncate_everywhere);
}

static void append_anything(const struct sample *sample, struct buffer *bytes) {
    for (unsigned i = 0; i < 20; i++) {
        assert_ok(buffer_append_fill(bytes, (uint8_t)(17 * i), 1));
        assert_false(accepted(sample, bytes->data, bytes->used));
    }
}

static void test_trailing_bytes(void **state) {
    (void)state;
    for_each_sample(append_anything);
}

static void flip_everywhere(const struct sample *sample, struct buffer *bytes) {
    size_t unnoticed = 0, bits = 8 * bytes->used;

    for (size_t bit = 0; bit < bits; bit++) {
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        unnoticed += accepted(sample, bytes->data, bytes->used);
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    printf("width %u, coder %d: %zu of %zu flips go unnoticed\n", sample->kind.width,
           (int)sample->coder, unnoticed, bits);
    assert_true(sample->coder >= CODE_PLAIN || unnoticed * 1000 <= bits * UNNOTICED_PER_MILLE);
}

static void test_flipped_bits(void **state) {
    (void)state;
    for_each_sample(flip_everywhere);
}

static void garble(const struct sample *sample, struct buffer *bytes) {
    for (unsigned round = 0; round < 1000; round++) {
        struct buffer copy = BUFFER(OUT_BYTES_MAX);

        assert_ok(buffer_append(&copy, bytes->data, bytes->used));
        for (unsigned i = 0; i < 1 + round % 8; i++)
            copy.data[test_random() % copy.used] = (uint8_t)test_random();
        accepted(sample, copy.data, copy.used);
        buffer_release(&copy);
    }
}

static void test_several_bytes_replaced(void **state) {
    (void)state;
    for_each_sample(garble);
}

/* The weights, the sizes of the blocks, the type or the moves are not those it was made for. */
static void decode_against_others(const struct sample *sample, struct buffer *bytes) {
    static const char *const dtypes[] = {"BF16", "F16", "F32", "F64", "F8_E4M3", "I8", "I64"};

    for (unsigned i = 0; i < 7 * CHANGES * 2; i++) {
        struct sample other =
            sample_make(code_kind_of(dtypes[i % 7], i % 7 < 6 ? 8 : 64), sample->elements,
                        sample->count, 0, i / 7 % CHANGES, i / 28);

        if (other.kind.width == sample->kind.width)
            accepted(&other, bytes->data, bytes->used);
        sample_free(&other);
    }
    for (unsigned i = 0; i < 200; i++) {
        uint32_t others[BLOCKS];
        struct sample other;

        for (size_t b = 0; b < BLOCKS; b++)
            others[b] = i ? (uint32_t)(test_random() % 4300) : sizes[BLOCKS - 1 - b];
        other = sample_make(sample->kind, others, test_random() % (BLOCKS + 1), 0, CHANGE_ULP,
                            !sample->history);
        accepted(&other, bytes->data, bytes->used);
        sample_free(&other);
    }
}

static void test_other_weights(void **state) {
    (void)state;
    for_each_sample(decode_against_others);
}

static void test_any_bytes(void **state) {
    struct sample sample = make("BF16", 16, true, 60);
    uint8_t bytes[200];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        test_random_bytes(bytes, sizeof bytes);
        bytes[0] &= 0x7f; /* few classes, so that more than their map is read */
        accepted(&sample, bytes, test_random() % (sizeof bytes + 1));
    }
    sample_free(&sample);
}

static enum ulp_status decode_all(const struct sample *sample, const struct code_segment *segment) {
    static uint32_t positions[4200];
    static uint8_t values[4200 * 8];
    struct code_scratch *scratch = NULL;
    enum ulp_status status = code_scratch_new(&scratch);
    uint32_t changes;

    for (size_t b = 0; b < sample->count && !status; b++)
        status = code_decode(segment, scratch, b, &sample->blocks[b], positions, values, &changes);
    code_scratch_free(scratch);
    return status;
}

/* All there is, in memory that may run out. What is appended is either all of it or nothing. */
static enum ulp_status encode_and_decode(const struct sample *sample) {
    struct code_encoder *encoder = NULL;
    struct code_segment *segment = NULL;
    struct buffer out = BUFFER(OUT_BYTES_MAX), best = BUFFER(OUT_BYTES_MAX);
    enum code_coder chosen;
    enum ulp_status status = code_encoder_new(&encoder);

    if (!status) {
        status =
            code_encode(encoder, sample->kind, sample->coder, sample->blocks, sample->count, &out);
        assert_true(!status || !out.used);
    }
    if (!status) {
        status = code_encode_best(encoder, sample->kind, sample->history, sample->blocks,
                                  sample->count, &best, &chosen);
        assert_true(!status || !best.used);
    }
    if (!status)
        status =
            code_open(sample->kind, sample->elements, sample->count, out.data, out.used, &segment);
    if (!status)
        status = decode_all(sample, segment);
    code_close(segment);
    code_encoder_free(encoder);
    buffer_release(&out);
    buffer_release(&best);
    return status;
}

static void fail_every_allocation(enum code_coder coder) {
    struct sample sample = make("BF16", 16, coder == CODE_HISTORY, 600);
    uint64_t calls;

    sample.coder = coder;
    failing_allocator_start(UINT64_MAX, 0);
    assert_ok(encode_and_decode(&sample));
    calls = failing_allocator_stop();
    assert_true(calls > 10);
    for (uint64_t i = 0; i < 2 * calls; i++) {
        enum ulp_status status;

        failing_allocator_start(i / 2, i & 1);
        status = encode_and_decode(&sample);
        failing_allocator_stop();
        assert_int_equal(status, ULP_E_NOMEM);
    }
    sample_free(&sample);
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++)
        fail_every_allocation((enum code_coder)coder);
}

/* ---- well-formed, but not what the encoder would write ---- */

/* One block of 100 elements of two bytes, 30 of which have events. */
struct forged {
    struct stream_header header;
    struct block_entry entry;
    uint32_t elements;
};

static struct forged forge(enum code_coder coder) {
    struct forged forged = {.header = {.coder = coder, .width = 2, .map = {.count = 1}},
                            .elements = 100};

    if (coder == CODE_PLAIN) {
        forged.header.map.flipped = 1;
        forged.header.models[0] = (struct class_model){.used = true, .rate = 2048, .top_gap = 9};
        forged.entry.events[0] = 30;
    }
    forged.header.planes[1] = (struct plane_model){.coded = true, .first = 7, .top = 9};
    forged.header.planes[1].shares.share[7] = TANS_STATES - 3;
    forged.header.planes[1].shares.share[9] = 3;
    forged.entry.bytes = 50;
    return forged;
}

/* Writes it, damages one bit of it (none: UINT32_MAX), and reads it. */
static void check_damaged(const struct forged *forged, uint32_t bit, const char *message) {
    struct buffer bytes = BUFFER(OUT_BYTES_MAX);
    struct stream_header header;
    struct block_entry entry;
    enum ulp_status status;
    size_t used;

    assert_ok(stream_write(&forged->header, &forged->entry, 1, &bytes));
    assert_ok(buffer_append_fill(&bytes, 1, 50 + (forged->header.coder == CODE_PLAIN ? 30 : 100)));
    if (bit < 8 * bytes.used)
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    status = stream_read(bytes.data, bytes.used, 2, &forged->elements, 1, &header, &entry, &used);
    if (message)
        assert_fails(status, ULP_E_CODE, message);
    else
        assert_ok(status);
    buffer_release(&bytes);
}

static void check_forged(const struct forged *forged, const char *message) {
    check_damaged(forged, UINT32_MAX, message);
}

/* Behind the coder and the flags of the planes: first and top byte, then the shares. */
static void test_forged_planes(void **state) {
    struct forged forged = forge(CODE_DENSE);

    (void)state;
    check_forged(&forged, NULL);
    check_damaged(&forged, 4, "shares of a byte");  /* the first does not occur */
    check_damaged(&forged, 12, "shares of a byte"); /* nor does the last */
    check_damaged(&forged, 7, "shares of a byte");  /* the first is behind the last */
    check_damaged(&forged, 24, "shares of a byte"); /* they do not add up */
    check_damaged(&forged, 20, "shares of a byte");
    check_damaged(&forged, 22, "too large");
    forged.entry.bytes = 51;
    check_forged(&forged, "do not add up");
    forged = forge(CODE_PLAIN);
    check_forged(&forged, NULL);
    forged.entry.bytes = 49;
    check_forged(&forged, "do not add up");
}

static void test_forged_counts(void **state) {
    struct forged forged = forge(CODE_PLAIN);

    (void)state;
    forged.entry.events[0] = 101;
    check_forged(&forged, "counts of a block");
    forged.entry.events[0] = 51; /* and not flipped */
    check_forged(&forged, "larger half");
    forged.entry.events[0] = 0;
    check_forged(&forged, "without use");
    forged = forge(CODE_PLAIN);
    forged.header.map.flipped = 0;
    forged.entry.events[0] = 50;
    check_forged(&forged, "larger half");
    forged = forge(CODE_DENSE);
    forged.elements = 0;
    check_forged(&forged, "without use");
}

/* Moves that a segment does not want, that do not ascend, or that lie outside of the block. */
static void test_moves_out_of_place(void **state) {
    static const uint16_t weights[4] = {0x3f80, 0x3f80, 0x3f80, 0x3f80};
    const struct code_kind kind = code_kind_of("BF16", 16);
    struct code_move moves[2] = {{1, 1}, {2, -1}};
    struct code_block block = {
        .old = weights, .new = weights, .elements = 4, .moves = moves, .move_count = 2};
    struct code_encoder *encoder = NULL;
    struct buffer out = BUFFER(OUT_BYTES_MAX);

    (void)state;
    assert_ok(code_encoder_new(&encoder));
    assert_ok(code_encode(encoder, kind, CODE_HISTORY, &block, 1, &out));
    assert_fails(code_encode(encoder, kind, CODE_CONTEXT, &block, 1, &out), ULP_E_USAGE,
                 "without history");
    moves[1].position = 1;
    assert_fails(code_encode(encoder, kind, CODE_HISTORY, &block, 1, &out), ULP_E_USAGE,
                 "out of place");
    moves[1].position = 4;
    assert_fails(code_encode(encoder, kind, CODE_HISTORY, &block, 1, &out), ULP_E_USAGE,
                 "out of place");
    buffer_release(&out);
    code_encoder_free(encoder);
}

/* An encoder that failed can be used again. */
static void test_encoder_after_failure(void **state) {
    struct sample sample = make("BF16", 16, true, 60);
    struct buffer expected = sample_encode(&sample);

    (void)state;
    for (uint64_t fail_at = 1; fail_at < 40; fail_at++) {
        struct code_encoder *encoder = NULL;
        struct buffer out = BUFFER(OUT_BYTES_MAX);

        failing_allocator_start(fail_at, 0);
        assert_ok(code_encoder_new(&encoder));
        if (code_encode(encoder, sample.kind, CODE_HISTORY, sample.blocks, BLOCKS, &out))
            assert_ok(code_encode(encoder, sample.kind, CODE_HISTORY, sample.blocks, BLOCKS, &out));
        assert_int_equal(out.used, expected.used);
        assert_memory_equal(out.data, expected.data, expected.used);
        code_encoder_free(encoder);
        buffer_release(&out);
        failing_allocator_stop();
    }
    buffer_release(&expected);
    sample_free(&sample);
}

TEST_MAIN(test_moves_out_of_place, test_truncations, test_trailing_bytes, test_flipped_bits,
          test_several_bytes_replaced, test_other_weights, test_any_bytes,
          test_every_allocation_fails, test_forged_planes, test_forged_counts,
          test_encoder_after_failure)
