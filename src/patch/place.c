// SPDX-License-Identifier: Apache-2.0
#include "patch/place.h"

#include "scan/digest_sum.h"

#include <string.h>

/* A stretch of a block that is contiguous in its tensor. */
struct span {
    uint32_t first, words; /* of the block */
    uint64_t offset;       /* bytes into the tensor */
};

static unsigned width_of(const struct block_walk *block) {
    return block->chunk->kind.width;
}

static struct span span_at(const struct block_walk *block, uint32_t first) {
    const struct grid_region *region = piece_region(block->grid, block->piece);
    const struct ulp_region *box = &region->box;
    uint64_t at = block->grid->pieces[block->piece].first + block->first + first;
    uint32_t words = block->words - first;
    uint64_t word;

    if (box->columns == region->pitch) {
        word = box->row * region->pitch + at;
    } else {
        uint64_t column = at % box->columns, left = box->columns - column;

        word = (box->row + at / box->columns) * region->pitch + box->column + column;
        words = words < left ? words : (uint32_t)left;
    }
    return (struct span){first, words, word * width_of(block)};
}

uint64_t place_offset(const struct block_walk *block, uint32_t position) {
    return span_at(block, position).offset;
}

const void *place_read(const struct block_walk *block, const void *data, void *scratch) {
    struct span span = span_at(block, 0);

    if (span.words == block->words)
        return (const uint8_t *)data + span.offset;
    for (;; span = span_at(block, span.first + span.words)) {
        memcpy((uint8_t *)scratch + (size_t)span.first * width_of(block),
               (const uint8_t *)data + span.offset, (size_t)span.words * width_of(block));
        if (span.first + span.words == block->words)
            return scratch;
    }
}

void place_digest(const struct block_walk *block, const void *data, struct ulp_sum *sum) {
    for (struct span span = {0}; span.first + span.words < block->words;) {
        span = span_at(block, span.first + span.words);
        digest_add((const uint8_t *)data + span.offset, (size_t)span.words * width_of(block),
                   span.offset / DIGEST_WORD_BYTES, sum);
    }
}

/* How many of the positions, which ascend, lie in front of `end`. */
static uint32_t in_front(const uint32_t *positions, uint32_t count, uint32_t end) {
    uint32_t n = 0;

    while (n < count && positions[n] < end)
        n++;
    return n;
}

/* `here` is where the span's elements are. */
static void span_replace(const struct block_walk *block, const void *here, struct span span,
                         const uint32_t *positions, uint32_t count, const uint8_t *values,
                         struct ulp_sum *sum) {
    const unsigned width = width_of(block);

    for (uint32_t i = 0; i < count;) { /* a few at a time: positions are counted from the span */
        uint32_t rebased[64], n = 0;

        for (; n < 64 && i + n < count; n++)
            rebased[n] = positions[i + n] - span.first;
        while (n < count - i && n > 1 &&
               rebased[n - 1] * width / 8 == (positions[i + n] - span.first) * width / 8)
            n--; /* the changes of one word stay together */
        digest_replace(here, (size_t)span.words * width, span.offset / DIGEST_WORD_BYTES, width,
                       rebased, n, values + (size_t)i * width, sum);
        i += n;
    }
}

/* The elements of a block: a tensor's memory, or a copy of the block's, end to end. */
struct memory {
    const uint8_t *data, *copy; /* one of them is NULL */
};

static const uint8_t *memory_of_span(struct memory memory, struct span span, unsigned width) {
    return memory.data ? memory.data + span.offset : memory.copy + (size_t)span.first * width;
}

static void replace(const struct block_walk *block, struct memory memory, const uint32_t *positions,
                    uint32_t count, const uint8_t *values, struct ulp_sum *sum) {
    const unsigned width = width_of(block);
    struct span span = span_at(block, 0);

    if (span.words == block->words) {
        digest_replace(memory_of_span(memory, span, width), (size_t)span.words * width,
                       span.offset / DIGEST_WORD_BYTES, width, positions, count, values, sum);
        return;
    }
    for (uint32_t done = 0; done < count; span = span_at(block, span.first + span.words)) {
        uint32_t n = in_front(positions + done, count - done, span.first + span.words);

        span_replace(block, memory_of_span(memory, span, width), span, positions + done, n,
                     values + (size_t)done * width, sum);
        done += n;
    }
}

void place_replace(const struct block_walk *block, const void *data, const uint32_t *positions,
                   uint32_t count, const void *values, struct ulp_sum *sum) {
    replace(block, (struct memory){.data = data}, positions, count, values, sum);
}

void place_replace_copy(const struct block_walk *block, const void *copy, const uint32_t *positions,
                        uint32_t count, const void *values, struct ulp_sum *sum) {
    replace(block, (struct memory){.copy = copy}, positions, count, values, sum);
}

/* A span ends where a piece of the whole tensor does. */
static struct span cut_at_piece(struct span span, unsigned width) {
    uint64_t word = span.offset / width, left = GRID_PIECE_WORDS - word % GRID_PIECE_WORDS;

    span.words = span.words < left ? span.words : (uint32_t)left;
    return span;
}

static void replace_split(const struct block_walk *block, struct memory memory,
                          const uint32_t *positions, uint32_t count, const uint8_t *values,
                          struct ulp_sum *sums) {
    const unsigned width = width_of(block);
    uint32_t first = 0;

    for (uint32_t done = 0; done < count;) {
        struct span span = cut_at_piece(span_at(block, first), width);
        uint32_t n = in_front(positions + done, count - done, span.first + span.words);

        span_replace(block, memory_of_span(memory, span, width), span, positions + done, n,
                     values + (size_t)done * width, &sums[span.offset / width / GRID_PIECE_WORDS]);
        done += n;
        first = span.first + span.words;
    }
}

void place_replace_split(const struct block_walk *block, const void *data,
                         const uint32_t *positions, uint32_t count, const void *values,
                         struct ulp_sum *sums) {
    replace_split(block, (struct memory){.data = data}, positions, count, values, sums);
}

void place_replace_split_copy(const struct block_walk *block, const void *copy,
                              const uint32_t *positions, uint32_t count, const void *values,
                              struct ulp_sum *sums) {
    replace_split(block, (struct memory){.copy = copy}, positions, count, values, sums);
}

enum ulp_status place_each_stretch(const struct block_walk *block, const void *elements,
                                   place_stretch_fn fn, void *user) {
    const unsigned width = width_of(block);
    enum ulp_status status = ULP_OK;

    for (struct span span = {0}; !status && span.first + span.words < block->words;) {
        span = span_at(block, span.first + span.words);
        status = fn(user, span.offset, (const uint8_t *)elements + (size_t)span.first * width,
                    (size_t)span.words * width);
    }
    return status;
}

#define DEFINE_SWAP(WIDTH, TYPE)                                                                   \
    static void swap_##WIDTH(uint8_t *data, const uint32_t *positions, uint32_t count,             \
                             uint8_t *values) {                                                    \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            TYPE before, after;                                                                    \
                                                                                                   \
            memcpy(&before, data + WIDTH * (size_t)positions[i], WIDTH);                           \
            memcpy(&after, values + WIDTH * (size_t)i, WIDTH);                                     \
            memcpy(data + WIDTH * (size_t)positions[i], &after, WIDTH);                            \
            memcpy(values + WIDTH * (size_t)i, &before, WIDTH);                                    \
        }                                                                                          \
    }

DEFINE_SWAP(1, uint8_t)
DEFINE_SWAP(2, uint16_t)
DEFINE_SWAP(4, uint32_t)
DEFINE_SWAP(8, uint64_t)

void place_swap(const struct block_walk *block, void *data, const uint32_t *positions,
                uint32_t count, void *values) {
    static void (*const swaps[])(uint8_t *, const uint32_t *, uint32_t,
                                 uint8_t *) = {swap_1, swap_2, swap_4, swap_8};
    const unsigned width = width_of(block);
    struct span span = span_at(block, 0);

    if (span.words == block->words) {
        swaps[__builtin_ctz(width)]((uint8_t *)data + span.offset, positions, count, values);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t here = 0;

        swaps[__builtin_ctz(width)]((uint8_t *)data + place_offset(block, positions[i]), &here, 1,
                                    (uint8_t *)values + (size_t)width * i);
    }
}
