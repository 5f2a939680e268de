// SPDX-License-Identifier: Apache-2.0
/*
 * Every pair of an old and a new BF16 weight, all 2^32, through every coder that takes no moves. A
 * segment holds 2^22 of them, with few exponents of the new weights, so that their planes are
 * coded.
 */
#include "code/code.h"
#include "tests/test.h"

#define BLOCKS 16u
#define PAIRS (BLOCKS * CODE_BLOCK_MAX)
#define SEGMENTS 1024u
#define OUT_BYTES_MAX (UINT64_C(1) << 28)

/* Odd, so that multiplying by it shuffles. */
#define SHUFFLE 0x9e3779b1u

struct pairs {
    uint16_t old[PAIRS], new[PAIRS];
    uint32_t positions[CODE_BLOCK_MAX];
    uint16_t values[CODE_BLOCK_MAX], result[CODE_BLOCK_MAX];
    struct code_block blocks[BLOCKS];
    uint32_t elements[BLOCKS];
};

/* The 10 bits of the segment's number and the 22 of the pair's are those of the two weights. */
static void make_pairs(uint32_t segment, struct pairs *pairs) {
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t pair = i * SHUFFLE % PAIRS;

        pairs->new[i] = (uint16_t)((pair & 0x1ff) | (segment & 0x3f) << 9 | (pair >> 9 & 1) << 15);
        pairs->old[i] = (uint16_t)(pair >> 10 | segment >> 6 << 12);
    }
    for (uint32_t b = 0; b < BLOCKS; b++) {
        pairs->elements[b] = CODE_BLOCK_MAX;
        pairs->blocks[b] = (struct code_block){.old = pairs->old + b * CODE_BLOCK_MAX,
                                               .new = pairs->new + b *CODE_BLOCK_MAX,
                                               .elements = CODE_BLOCK_MAX};
    }
}

/* Applies the changes to the old weights; each must change something, and in ascending order. */
static bool apply(struct pairs *pairs, uint32_t b, uint32_t count) {
    memcpy(pairs->result, pairs->blocks[b].old, sizeof pairs->result);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = pairs->positions[i];

        if (at >= CODE_BLOCK_MAX || (i && at <= pairs->positions[i - 1]) ||
            pairs->result[at] == pairs->values[i])
            return false;
        pairs->result[at] = pairs->values[i];
    }
    return !memcmp(pairs->result, pairs->blocks[b].new, sizeof pairs->result);
}

static enum ulp_status check_decode(struct pairs *pairs, const struct buffer *bytes,
                                    enum code_coder coder) {
    struct code_segment *segment = NULL;
    struct code_scratch *scratch = NULL;
    enum ulp_status status = code_open(code_kind_of("BF16", 16), pairs->elements, BLOCKS,
                                       bytes->data, bytes->used, &segment);

    if (!status)
        status = code_scratch_new(&scratch);
    for (uint32_t b = 0; b < BLOCKS && !status; b++) {
        uint32_t count = 0;

        status = code_decode(segment, scratch, b, &pairs->blocks[b], pairs->positions,
                             pairs->values, &count);
        if (!status && !apply(pairs, b, count))
            status =
                ulp_fail(ULP_E_CODE, "coder %d gives other weights in block %u", (int)coder, b);
    }
    code_scratch_free(scratch);
    code_close(segment);
    return status;
}

static enum ulp_status check_segment(void *user, uint64_t index) {
    static const enum code_coder coders[] = {CODE_CONTEXT, CODE_PLAIN, CODE_DENSE};
    struct pairs *pairs = malloc(sizeof *pairs);
    struct code_encoder *encoder = NULL;
    enum ulp_status status = pairs ? code_encoder_new(&encoder) : ULP_E_NOMEM;

    (void)user;
    if (!status)
        make_pairs((uint32_t)index, pairs);
    for (unsigned i = 0; i < 3 && !status; i++) {
        struct buffer bytes = BUFFER(OUT_BYTES_MAX);

        status = code_encode(encoder, code_kind_of("BF16", 16), coders[i], pairs->blocks, BLOCKS,
                             &bytes);
        if (!status)
            status = check_decode(pairs, &bytes, coders[i]);
        buffer_release(&bytes);
    }
    code_encoder_free(encoder);
    free(pairs);
    return status;
}

static void test_every_pair(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(0, &pool));
    assert_ok(ulp_pool_run(pool, SEGMENTS, check_segment, NULL, NULL));
    ulp_pool_free(pool);
}

TEST_MAIN(test_every_pair)
