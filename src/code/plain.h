// SPDX-License-Identifier: Apache-2.0
/*
 * The coders that do not need the old elements: CODE_PLAIN names the places that change and what
 * stands there afterwards, CODE_DENSE says all of the new elements. In a payload the raw planes
 * come first, one after the other; behind them is one entropy-coded part with the gaps and the
 * coded planes.
 */
#ifndef CODE_PLAIN_H
#define CODE_PLAIN_H

#include "code/planes.h"
#include "code/stream.h"

/* Working memory of an encoder; starts as zeros. */
struct plain_encoder {
    uint32_t room;                /* elements that the arrays hold ... */
    uint32_t room_width;          /* ... of this width */
    uint32_t *positions, *events; /* of one block */
    uint8_t *values;              /* its new elements that are coded */
    uint8_t *bytes;               /* their planes, one after the other */
    uint32_t largest_gap;
    uint64_t counts[PLANES_MAX][TANS_SYMBOLS_MAX];
    struct tans_encoder gaps, planes[PLANES_MAX];
};

void plain_encoder_release(struct plain_encoder *plain);

/* Fills the header, which has its coder and is zero otherwise, and the entries, which are zero, and
 * appends the payloads. */
enum ulp_status plain_encode(struct plain_encoder *plain, struct code_kind kind,
                             const struct code_block *blocks, size_t count,
                             struct stream_header *header, struct block_entry *entries,
                             struct buffer *payload);

struct plain_decoder {
    struct tans_decoder gaps, planes[PLANES_MAX];
};

void plain_decoder_build(const struct stream_header *header, struct plain_decoder *tables);

/* As code_decode(); the block has as many elements as the entry was checked against. */
enum ulp_status plain_decode(const struct plain_decoder *tables, const struct stream_header *header,
                             struct code_kind kind, const struct block_entry *entry,
                             const uint8_t *payload, const struct code_block *old,
                             uint32_t *ret_positions, void *ret_values, uint32_t *ret_count);

/* Reads a payload without the old elements. */
enum ulp_status plain_check(const struct plain_decoder *tables, const struct stream_header *header,
                            const struct block_entry *entry, const uint8_t *payload,
                            uint32_t elements);

/* The places below `elements` that are not among the `count` ascending ones given. */
static inline void places_between(const uint32_t *places, uint32_t count, uint32_t elements,
                                  uint32_t *others) {
    uint32_t at = 0;

    for (uint32_t i = 0; i <= count; i++) {
        uint32_t end = i < count ? places[i] : elements;

        while (at < end)
            *others++ = at++;
        at++;
    }
}

#endif
