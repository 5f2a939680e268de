// SPDX-License-Identifier: Apache-2.0
/*
 * The payload of one block: gaps and values of its classes, entropy-coded. What they mean is not
 * known here; nothing depends on the weights.
 */
#ifndef CODE_PAYLOAD_H
#define CODE_PAYLOAD_H

#include "code/bits.h"
#include "code/context_scan.h"
#include "code/stream.h"

struct payload_encoder {
    struct tans_encoder gaps[CLASSES_MAX], values[CLASSES_MAX];
};

struct payload_decoder {
    struct tans_decoder gaps[CLASSES_MAX], values[CLASSES_MAX];
    uint32_t gap_bits[CLASSES_MAX], value_bits[CLASSES_MAX]; /* the most that one takes */
};

/* Where a block's numbers go: room for all that its entry announces, and a rank more for each
 * class. */
struct payload_target {
    uint32_t *ranks, *values;
    uint32_t *upper; /* for elements of eight bytes, else NULL */
};

/* What one block has to say, by class. */
struct payload_lists {
    const uint32_t *gaps[CLASSES_MAX];
    const uint32_t *values[CLASSES_MAX];
    const uint32_t *upper[CLASSES_MAX]; /* of values of 64 bits, else NULL */
    uint32_t gap_counts[CLASSES_MAX], value_counts[CLASSES_MAX];
};

/* The most bytes of a symbol with its extra bits, and of all that surrounds them. */
#define PAYLOAD_SYMBOL_MAX 10u
#define PAYLOAD_SLACK (STREAM_STATES * 2 + BITS_SLACK + 1)

/* Returns the byte behind what it wrote. */
uint8_t *payload_write(const struct payload_encoder *tables, uint32_t classes,
                       const struct payload_lists *lists, uint8_t *to);

/* Points the feeds at what it read. */
enum ulp_status payload_read(const struct payload_decoder *tables, uint32_t classes,
                             const struct block_entry *entry, const uint8_t *payload,
                             struct payload_target target, struct event_feed *feeds);

#endif
