// SPDX-License-Identifier: Apache-2.0
/* Weights that change at random: blocks with an old and a new state, and moves from a third. */
#ifndef TESTS_CODE_SAMPLE_H
#define TESTS_CODE_SAMPLE_H

#include "code/code.h"
#include "tests/test.h"

#define OUT_BYTES_MAX (UINT64_C(1) << 28)

enum change {
    CHANGE_ULP,     /* by one, either way */
    CHANGE_RANDOM,  /* to any pattern */
    CHANGE_SPECIAL, /* between zeros, infinities and NaNs */
    CHANGE_EXTREME, /* from 0 to all ones, from the lowest to the highest, and back */
    CHANGES
};

struct sample {
    struct code_kind kind;
    enum code_coder coder; /* to be used; only CODE_HISTORY goes with moves */
    bool history;          /* there are moves */
    size_t count, total;
    struct code_block *blocks;
    uint32_t *elements;
    uint8_t *old, *new;
    struct code_move *moves;
};

static inline uint64_t element_get(const void *from, uint32_t width, size_t index) {
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)from + width * index, width); /* the tests are little-endian */
    return value;
}

static inline void element_put(void *to, uint32_t width, size_t index, uint64_t value) {
    memcpy((uint8_t *)to + width * index, &value, width);
}

static inline uint64_t all_ones(struct code_kind kind) {
    return UINT64_MAX >> (64 - 8 * kind.width);
}

/* A pattern whose exponent is one of a few, as those of weights are. */
static inline uint64_t usual_value(struct code_kind kind) {
    uint64_t mask = (UINT64_C(1) << kind.exponent_bits) - 1;
    uint64_t exponent = (kind.lowest + 30 + test_random() % 20) & mask;

    return (test_random() & ~(mask << kind.exponent_shift)) | exponent << kind.exponent_shift;
}

/* Infinities, NaNs with payloads and zeros, of either sign. */
static inline uint64_t special_value(struct code_kind kind) {
    uint64_t infinity = ((UINT64_C(1) << kind.exponent_bits) - 1) << kind.exponent_shift;
    uint64_t sign = (test_random() & 1) << (8 * kind.width - 1);

    switch (test_random() % 4) {
    case 0:
        return sign;
    case 1:
        return sign | infinity;
    case 2:
        return sign | infinity | (test_random() & ((UINT64_C(1) << kind.exponent_shift) - 1));
    default:
        return sign | infinity | 1;
    }
}

static inline uint64_t extreme_value(struct code_kind kind) {
    uint64_t top = UINT64_C(1) << (8 * kind.width - 1);
    const uint64_t values[] = {0, all_ones(kind), top, top - 1};

    return values[test_random() % 4];
}

static inline uint64_t value_before(struct code_kind kind, enum change change) {
    switch (change) {
    case CHANGE_SPECIAL:
        return special_value(kind);
    case CHANGE_EXTREME:
        return extreme_value(kind);
    case CHANGE_RANDOM:
        return test_random();
    default:
        return usual_value(kind);
    }
}

/* Never the old value, as far as the width is looked at. */
static inline uint64_t value_after(struct code_kind kind, enum change change, uint64_t old) {
    for (;;) {
        uint64_t new = change == CHANGE_ULP ? old + (test_random() & 1 ? 1 : all_ones(kind))
                                            : value_before(kind, change);

        if ((new ^ old) & all_ones(kind))
            return new;
    }
}

/* The moves of a block from a state before the old one, clipped to what a byte holds. */
static inline uint32_t sample_moves(struct sample *sample, const uint8_t *old, uint32_t elements,
                                    struct code_move *moves) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < elements; i++) {
        unsigned size = 1u << test_random() % 10;
        int64_t step = (int64_t)(test_random() % (2 * size + 1)) - size;
        uint64_t earlier = element_get(old, sample->kind.width, i) - (uint64_t)step;
        int64_t move = (int64_t)(element_get(old, sample->kind.width, i) - earlier);

        if (test_random() % 4 || !move)
            continue;
        move = move > 127 ? 127 : move < -127 ? -127 : move;
        moves[count++] = (struct code_move){i, (int8_t)move};
    }
    return count;
}

static inline void sample_fill(struct sample *sample, uint32_t per_mille, enum change change) {
    for (size_t i = 0; i < sample->total; i++) {
        uint64_t old = value_before(sample->kind, change);

        element_put(sample->old, sample->kind.width, i, old);
        if (test_random() % 1000 < per_mille)
            old = value_after(sample->kind, change, old);
        element_put(sample->new, sample->kind.width, i, old);
    }
}

static inline void *sample_memory(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);

    assert_non_null(memory);
    return memory;
}

/* Blocks of these sizes; `per_mille` of the elements change. */
static inline struct sample sample_make(struct code_kind kind, const uint32_t *sizes, size_t count,
                                        uint32_t per_mille, enum change change, bool history) {
    struct sample sample = {.kind = kind,
                            .coder = history ? CODE_HISTORY : CODE_CONTEXT,
                            .history = history,
                            .count = count};
    size_t at = 0;

    for (size_t b = 0; b < count; b++)
        sample.total += sizes[b];
    sample.blocks = sample_memory(count, sizeof *sample.blocks);
    sample.elements = sample_memory(count, sizeof *sample.elements);
    sample.old = sample_memory(sample.total, kind.width);
    sample.new = sample_memory(sample.total, kind.width);
    sample.moves = sample_memory(sample.total, sizeof *sample.moves);
    sample_fill(&sample, per_mille, change);
    for (size_t b = 0; b < count; b++) {
        struct code_block *block = &sample.blocks[b];

        *block = (struct code_block){.old = sample.old + at * kind.width,
                                     .new = sample.new + at *kind.width,
                                     .elements = sizes[b]};
        sample.elements[b] = sizes[b];
        if (history) {
            block->moves = sample.moves + at;
            block->move_count = sample_moves(&sample, block->old, sizes[b], sample.moves + at);
        }
        at += sizes[b];
    }
    return sample;
}

static inline void sample_free(struct sample *sample) {
    free(sample->blocks);
    free(sample->elements);
    free(sample->old);
    free(sample->new);
    free(sample->moves);
}

/* The same weights for another coder, without moves if it wants none; only `blocks` is a copy, for
 * the caller to free. */
static inline struct sample sample_for(const struct sample *sample, enum code_coder coder) {
    struct sample other = *sample;

    other.coder = coder;
    other.blocks = sample_memory(sample->count, sizeof *other.blocks);
    for (size_t b = 0; b < sample->count; b++) {
        other.blocks[b] = sample->blocks[b];
        if (coder != CODE_HISTORY)
            other.blocks[b].move_count = 0;
    }
    return other;
}

/* Hears the places of the changes from the encoder. */
struct sample_watch {
    const struct sample *sample;
    size_t next; /* block */
};

/* They are those of all changes, block after block. */
static inline void sample_check_positions(void *user, size_t b, const uint32_t *positions,
                                          uint32_t count) {
    struct sample_watch *watch = user;
    const struct code_block *block = &watch->sample->blocks[b];
    const uint32_t width = watch->sample->kind.width;
    uint32_t found = 0;

    assert_int_equal(b, watch->next++);
    for (uint32_t i = 0; i < block->elements; i++) {
        if (element_get(block->old, width, i) == element_get(block->new, width, i))
            continue;
        assert_true(found < count);
        assert_int_equal(positions[found++], i);
    }
    assert_int_equal(found, count);
}

/* With an encoder of its own. */
static inline struct buffer sample_encode(const struct sample *sample) {
    struct sample_watch watch = {sample, 0};
    struct buffer out = BUFFER(OUT_BYTES_MAX);
    struct code_encoder *encoder = NULL;

    assert_ok(code_encoder_new(&encoder));
    code_encoder_watch(encoder, sample_check_positions, &watch);
    assert_ok(
        code_encode(encoder, sample->kind, sample->coder, sample->blocks, sample->count, &out));
    assert_int_equal(watch.next, sample->count);
    code_encoder_free(encoder);
    return out;
}

/* As the receiver gives it: without moves if they are not wanted. */
static inline struct code_block sample_old_block(const struct sample *sample,
                                                 const struct code_segment *segment, size_t b) {
    struct code_block block = sample->blocks[b];

    if (!code_needs_history(segment))
        block.move_count = 0;
    return block;
}

/* Decodes block `b` and compares with what really changed. */
static inline void sample_check_block(const struct sample *sample,
                                      const struct code_segment *segment,
                                      struct code_scratch *scratch, size_t b) {
    const struct code_block block = sample_old_block(sample, segment, b);
    const uint32_t width = sample->kind.width, most = code_changes(segment, b);
    uint32_t *positions = sample_memory(most, sizeof *positions), found = 0, changes = 0;
    uint8_t *values = sample_memory(most, width);

    assert_ok(code_decode(segment, scratch, b, &block, positions, values, &changes));
    if (code_coder_of(segment) == CODE_DENSE)
        assert_int_equal(most, block.elements);
    else
        assert_int_equal(most, changes);
    for (uint32_t i = 0; i < block.elements; i++) {
        if (element_get(block.old, width, i) == element_get(block.new, width, i))
            continue;
        assert_true(found < changes);
        assert_int_equal(positions[found], i);
        assert_true(element_get(values, width, found) == element_get(block.new, width, i));
        found++;
    }
    assert_int_equal(found, changes);
    free(positions);
    free(values);
}

static inline void sample_check_decode(const struct sample *sample, const struct buffer *bytes) {
    struct code_segment *segment = NULL;
    struct code_scratch *scratch = NULL;

    assert_ok(code_scratch_new(&scratch));
    assert_ok(code_open(sample->kind, sample->elements, sample->count, bytes->data, bytes->used,
                        &segment));
    assert_int_equal(code_coder_of(segment), sample->coder);
    assert_int_equal(code_needs_history(segment), sample->coder == CODE_HISTORY);
    for (size_t b = 0; b < sample->count; b++)
        sample_check_block(sample, segment, scratch, b);
    code_close(segment);
    code_scratch_free(scratch);
}

#endif
