// SPDX-License-Identifier: Apache-2.0
/*
 * The payload of one block: gaps and values of its classes, entropy-coded. What they mean is not known
 * here; nothing depends on the weights.
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
};

/* What one block has to say, by class. */
struct payload_lists {
    const uint32_t *gaps[CLASSES_MAX];
    const uint64_t *values[CLASSES_MAX];
    uint32_t gap_counts[CLASSES_MAX], value_counts[CLASSES_MAX];
};

/* The most bytes of a symbol with its extra bits, and of all that surrounds them. */
#define PAYLOAD_SYMBOL_MAX 10u
#define PAYLOAD_SLACK (STREAM_STATES * 2 + BITS_SLACK + 1)

/* Returns the byte behind what it wrote. */
uint8_t *payload_write(const struct payload_encoder *tables, uint32_t classes,
                       const struct payload_lists *lists, uint8_t *to);

/* Fills `ranks` and `values`, which have room for all that `entry` announces, and points the feeds at
 * them. */
enum ulp_status payload_read(const struct payload_decoder *tables, uint32_t classes,
                             const struct block_entry *entry, const uint8_t *payload,
                             uint32_t *ranks, uint64_t *values, struct event_feed *feeds);

#endif
