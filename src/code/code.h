// SPDX-License-Identifier: Apache-2.0
/*
 * The codec: changes between two states of some elements, as few bytes; the receiver holds the old
 * ones. docs/format/code.md describes the stream.
 *
 * A segment is a sequence of blocks that share their models; a block is a run of elements of one
 * tensor that is decoded by itself. How the stream is parsed does not depend on the weights, so it
 * can be entropy-decoded before they are looked at.
 */
#ifndef CODE_CODE_H
#define CODE_CODE_H

#include "base/buffer.h"
#include "code/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of a block; positions in it take 18 bits. */
#define CODE_BLOCK_MAX (1u << 18)

/* Elements and blocks of a segment. */
#define CODE_SEGMENT_MAX (1u << 24)
#define CODE_BLOCKS_MAX 65536u

/* What an element did in the patch before, clipped to what a byte holds; zero is not listed. */
struct code_move {
    uint32_t position;
    int8_t move;
};

struct code_block {
    const void *old, *new; /* `new` is not looked at when decoding */
    uint32_t elements;
    const struct code_move *moves; /* ascending; none without history */
    uint32_t move_count;

    /* For CODE_PLAIN, in the place of `old` and `new`, which are NULL then: the places of the changes,
     * ascending, and what stands there afterwards. */
    const uint32_t *places;
    const void *values;
    uint32_t place_count;
};

/* ULP_E_USAGE unless the block is within limits and its moves are in order. */
enum ulp_status code_block_check(const struct code_block *block, bool history);

/* How a segment is coded. The numbers are part of the format. */
enum code_coder {
    CODE_CONTEXT, /* steps from the old elements, whose exponents tell what to expect */
    CODE_HISTORY, /* the same, and the moves of the patch before tell, too */
    CODE_PLAIN,   /* places, and what stands there afterwards */
    CODE_DENSE    /* all new elements, changed or not */
};

/* A segment with so few changes may be shorter without models of the old elements; code_encode_best()
 * tries. */
#define CODE_FEW_CHANGES 512u

/* Working memory of an encoder, kept from segment to segment; one thread at a time. */
struct code_encoder;

enum ulp_status code_encoder_new(struct code_encoder **ret_encoder);
void code_encoder_free(struct code_encoder *encoder);

/* Appends the segment to `out`. Only with CODE_HISTORY may the blocks have moves. The bytes depend
 * on the arguments alone. */
enum ulp_status code_encode(struct code_encoder *encoder, struct code_kind kind,
                            enum code_coder coder, const struct code_block *blocks, size_t count,
                            struct buffer *out);

/*
 * Appends the shortest segment that can be expected: CODE_CONTEXT, or CODE_HISTORY with `history`;
 * where few elements change or many, the other coders are tried, too. The first of equals wins, so
 * that the bytes again depend on the arguments alone.
 */
enum ulp_status code_encode_best(struct code_encoder *encoder, struct code_kind kind, bool history,
                                 const struct code_block *blocks, size_t count, struct buffer *out,
                                 enum code_coder *ret_coder);

/*
 * Who wants to know the places of the changes, ascending, hears of each block once, in order, while
 * its elements are still in the cache. NULL: nobody.
 */
typedef void (*code_changes_fn)(void *user, size_t block, const uint32_t *positions,
                                uint32_t count);
void code_encoder_watch(struct code_encoder *encoder, code_changes_fn fn, void *user);

/* A segment that was read from outside and checked as far as it can be without the weights. */
struct code_segment;

/* `bytes` must outlive the segment. `elements` has one number per block. */
enum ulp_status code_open(struct code_kind kind, const uint32_t *elements, size_t count,
                          const uint8_t *bytes, size_t byte_count,
                          struct code_segment **ret_segment);
void code_close(struct code_segment *segment);

enum code_coder code_coder_of(const struct code_segment *segment);
bool code_needs_history(const struct code_segment *segment);

/* The changes of a block; with CODE_DENSE, which lists all elements, the most there can be. */
uint32_t code_changes(const struct code_segment *segment, size_t block);

/* Bytes of its payload. */
uint64_t code_block_bytes(const struct code_segment *segment, size_t block);

/* Working memory for decoding, kept from block to block; one thread at a time. */
struct code_scratch;

enum ulp_status code_scratch_new(struct code_scratch **ret_scratch);
void code_scratch_free(struct code_scratch *scratch);

/*
 * The changes of one block against its old elements: ascending positions, and new values of the
 * kind's width. Both arrays need room for code_changes(); *ret_count says how many there are.
 * Different threads, each with a scratch of its own, may decode different blocks of one segment.
 */
enum ulp_status code_decode(const struct code_segment *segment, struct code_scratch *scratch,
                            size_t block, const struct code_block *old, uint32_t *ret_positions,
                            void *ret_values, uint32_t *ret_count);

/*
 * Reads a payload without the weights: fails if it is damaged. Context-coded ones tell how far
 * their elements move, in ulps; `fn`, which may be NULL, hears of each.
 */
enum ulp_status code_each_size(const struct code_segment *segment, struct code_scratch *scratch,
                               size_t block, void (*fn)(void *user, uint64_t size), void *user);

#endif
