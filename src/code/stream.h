// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of a segment that encoder and decoder share: the header with its models, and the
 * directory of the blocks. Both are written and read by one description of their fields.
 */
#ifndef CODE_STREAM_H
#define CODE_STREAM_H

#include "base/buffer.h"
#include "code/classes.h"
#include "code/code.h"
#include "code/tans.h"

/* States that take turns, so that a GPU decodes as many symbols at once. */
#define STREAM_STATES 8u

/* Bytes of the widest element. */
#define PLANES_MAX 8u

struct class_model {
    bool used;         /* it has events */
    uint16_t rate;     /* of events: their probability is 2^(-rate / 2048) */
    uint8_t top_gap;   /* the largest gap symbol */
    bool changes;      /* it has changes, and so values */
    uint8_t top_value; /* the largest value symbol */
    struct tans_shares values;
};

/* One byte of the elements: written as it is, or entropy-coded with a table of its own. */
struct plane_model {
    bool coded;
    uint8_t first, top; /* the smallest and the largest byte there is */
    struct tans_shares shares;
};

struct stream_header {
    enum code_coder coder;
    uint32_t width;       /* of an element; not written */
    struct class_map map; /* CODE_PLAIN and CODE_DENSE: one class, nothing else */
    struct class_model models[CLASSES_MAX];
    struct plane_model planes[PLANES_MAX]; /* CODE_PLAIN and CODE_DENSE, lowest byte first */
};

/* Planes that are entropy-coded. */
uint32_t header_coded_planes(const struct stream_header *header);

/* Of one block. In a class that is not flipped every event is a change. */
struct block_entry {
    uint32_t raw;   /* bytes of its payload that are written as they are, in front ... */
    uint32_t bytes; /* ... and of the entropy-coded rest */
    uint32_t events[CLASSES_MAX], changes[CLASSES_MAX];
};

/* Events and changes of all its classes. */
uint32_t block_events(const struct block_entry *entry, uint32_t classes);
uint32_t block_changes(const struct block_entry *entry, uint32_t classes);

/* Entropy-coded numbers of all sorts. */
uint32_t block_symbols(const struct stream_header *header, const struct block_entry *entry);

enum ulp_status stream_write(const struct stream_header *header, const struct block_entry *entries,
                             size_t blocks, struct buffer *out);

/* Checks everything that can be checked; *ret_used is where the payloads begin. */
enum ulp_status stream_read(const uint8_t *bytes, size_t byte_count, uint32_t width,
                            const uint32_t *elements, size_t blocks,
                            struct stream_header *ret_header, struct block_entry *ret_entries,
                            size_t *ret_used);

#endif
