// SPDX-License-Identifier: Apache-2.0
/*
 * The codec on any bytes. The first three choose the type, the history, the coder, the blocks and
 * the old weights. What follows is either a segment, to be opened and decoded, or it makes new
 * weights, which must be the same after being encoded and decoded.
 */
#include "code/code.h"
#include "fuzz/target.h"

#include <string.h>

#define SETUP_BYTES 3u
#define BLOCKS_MAX 5u
#define BLOCK_ELEMENTS_MAX 4200u
#define ELEMENTS_MAX (BLOCKS_MAX * BLOCK_ELEMENTS_MAX)

#define HISTORY 0x08u
#define ENCODE 0x10u
#define CODER_SHIFT 5 /* two bits, when encoding */

enum choice { CHOICE_CONTEXT, CHOICE_PLAIN, CHOICE_DENSE, CHOICE_BEST };

struct setup {
    struct code_kind kind;
    bool history;
    enum choice choice;
    size_t count, total;
    uint32_t elements[BLOCKS_MAX];
    struct code_block blocks[BLOCKS_MAX];
    uint64_t random;
};

static uint8_t old_weights[8 * ELEMENTS_MAX], new_weights[8 * ELEMENTS_MAX];
static struct code_move moves[ELEMENTS_MAX];

static uint32_t next_random(struct setup *setup) {
    setup->random = setup->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(setup->random >> 33);
}

static uint64_t element_get(const void *from, uint32_t width, size_t index) {
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)from + width * index, width);
    return value;
}

/* Exponents as weights have them; now and then any pattern. */
static void make_element(struct setup *setup, size_t index) {
    const struct code_kind *kind = &setup->kind;
    uint64_t mask = (UINT64_C(1) << kind->exponent_bits) - 1;
    uint64_t value = (uint64_t)next_random(setup) << 32 ^ next_random(setup);

    if (next_random(setup) % 16) {
        value &= ~(mask << kind->exponent_shift);
        value |= ((kind->lowest + 40 + next_random(setup) % 12) & mask) << kind->exponent_shift;
    }
    memcpy(old_weights + kind->width * index, &value, kind->width);
}

static void make_block(struct setup *setup, size_t b) {
    /* Large ones are slow, and rare. */
    static const uint32_t sizes[] = {0, 1, 63, 64, 65, 129, 200, 300};
    struct code_block *block = &setup->blocks[b];

    block->elements = setup->elements[b] =
        next_random(setup) % 32 ? sizes[next_random(setup) % 8] : BLOCK_ELEMENTS_MAX;
    block->old = old_weights + setup->kind.width * setup->total;
    block->new = new_weights + setup->kind.width * setup->total;
    block->moves = setup->history ? moves + setup->total : NULL;
    for (uint32_t i = 0; i < block->elements; i++) {
        int8_t move = (int8_t)(next_random(setup) % 255 - 127);

        make_element(setup, setup->total + i);
        if (next_random(setup) % 4 == 0 && setup->history && move)
            moves[setup->total + block->move_count++] = (struct code_move){i, move};
    }
    setup->total += block->elements;
}

static void make_setup(const uint8_t *data, struct setup *setup) {
    static const struct {
        const char *dtype;
        uint32_t bits;
    } types[8] = {{"BF16", 16},   {"F16", 16}, {"F32", 32}, {"F64", 64},
                  {"F8_E4M3", 8}, {"U8", 8},   {"I16", 16}, {"I64", 64}};

    *setup = (struct setup){.kind = code_kind_of(types[data[0] & 7].dtype, types[data[0] & 7].bits),
                            .history = (data[0] & HISTORY) != 0,
                            .choice = (enum choice)(data[0] >> CODER_SHIFT & 3),
                            .count = data[2] % (BLOCKS_MAX + 1),
                            .random = data[1]};
    for (size_t b = 0; b < setup->count; b++)
        make_block(setup, b);
}

/* Positions ascend inside the block, and each change changes something. */
static void check_positions(const struct setup *setup, size_t b, const uint32_t *positions,
                            const uint8_t *values, uint32_t count) {
    const uint32_t width = setup->kind.width;

    for (uint32_t i = 0; i < count; i++) {
        MUST(positions[i] < setup->elements[b] && (!i || positions[i - 1] < positions[i]));
        MUST(element_get(values, width, i) !=
             element_get(setup->blocks[b].old, width, positions[i]));
    }
}

/* The changes that block `b` must have when it was encoded from the new weights. */
static void check_changes(const struct setup *setup, size_t b, const uint32_t *positions,
                          const uint8_t *values, uint32_t count) {
    const struct code_block *block = &setup->blocks[b];
    const uint32_t width = setup->kind.width;
    uint32_t found = 0;

    for (uint32_t i = 0; i < block->elements; i++) {
        uint64_t new = element_get(block->new, width, i);

        if (new == element_get(block->old, width, i))
            continue;
        MUST(found < count && positions[found] == i && element_get(values, width, found) == new);
        found++;
    }
    MUST(found == count);
}

/* Arrays of exactly the announced size, so that a sanitizer sees a write behind them. */
static void decode_block(const struct setup *setup, const struct code_segment *segment, size_t b,
                         bool encoded) {
    uint32_t most = code_changes(segment, b), changes = 0;
    uint32_t *positions = malloc(most * sizeof *positions + 1);
    uint8_t *values = malloc((size_t)most * setup->kind.width + 1);
    struct code_block block = setup->blocks[b];
    struct code_scratch *scratch = NULL;
    enum ulp_status status;

    MUST(!code_scratch_new(&scratch));
    MUST(positions && values && most <= setup->elements[b]);
    if (!code_needs_history(segment))
        block.move_count = 0;
    status = code_decode(segment, scratch, b, &block, positions, values, &changes);
    code_scratch_free(scratch);
    MUST(!status || (status == ULP_E_CODE && !encoded));
    MUST(status || changes == most || (changes < most && code_coder_of(segment) == CODE_DENSE));
    if (!status)
        check_positions(setup, b, positions, values, changes);
    if (encoded)
        check_changes(setup, b, positions, values, changes);
    free(positions);
    free(values);
}

static void decode(const struct setup *setup, const uint8_t *bytes, size_t size, bool encoded) {
    struct code_segment *segment = NULL;
    enum ulp_status status =
        code_open(setup->kind, setup->elements, setup->count, bytes, size, &segment);

    MUST(!status || (status == ULP_E_CODE && !encoded));
    if (status)
        return;
    for (size_t b = 0; b < setup->count; b++)
        decode_block(setup, segment, b, encoded);
    code_close(segment);
}

/* A byte of the input per element: no change, a small step, or the bytes from there on. */
static void make_new(const struct setup *setup, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < setup->total; i++) {
        uint64_t value = element_get(old_weights, setup->kind.width, i);
        uint8_t byte = size ? data[i % size] : 0;

        if (byte >= 0xf0 && i < size)
            memcpy(&value, data + i, size - i < 8 ? size - i : 8);
        else if (byte >= 0x80)
            value += (uint64_t)(byte & 15) - 8;
        memcpy(new_weights + setup->kind.width * i, &value, setup->kind.width);
    }
}

static void encode(struct code_encoder *encoder, const struct setup *setup, struct buffer *out) {
    enum code_coder coder = setup->history ? CODE_HISTORY : CODE_CONTEXT;
    struct code_block without_moves[BLOCKS_MAX];

    if (setup->choice == CHOICE_BEST) {
        MUST(!code_encode_best(encoder, setup->kind, setup->history, setup->blocks, setup->count,
                               out, &coder));
    } else if (setup->choice == CHOICE_CONTEXT) {
        MUST(!code_encode(encoder, setup->kind, coder, setup->blocks, setup->count, out));
    } else {
        coder = setup->choice == CHOICE_PLAIN ? CODE_PLAIN : CODE_DENSE;
        for (size_t b = 0; b < setup->count; b++) {
            without_moves[b] = setup->blocks[b];
            without_moves[b].move_count = 0;
        }
        MUST(!code_encode(encoder, setup->kind, coder, without_moves, setup->count, out));
    }
}

static void encode_and_decode(const struct setup *setup) {
    struct buffer out = BUFFER(UINT64_C(1) << 24);
    struct code_encoder *encoder = NULL;

    MUST(!code_encoder_new(&encoder));
    encode(encoder, setup, &out);
    decode(setup, out.data, out.used, true);
    code_encoder_free(encoder);
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct setup setup;

    if (size < SETUP_BYTES)
        return 0;
    make_setup(data, &setup);
    if (data[0] & ENCODE) {
        make_new(&setup, data + SETUP_BYTES, size - SETUP_BYTES);
        encode_and_decode(&setup);
    } else {
        decode(&setup, data + SETUP_BYTES, size - SETUP_BYTES, false);
    }
    return 0;
}
