// SPDX-License-Identifier: Apache-2.0
/*
 * Reading numbers and bytes out of a table that cannot be trusted. After the first failure
 * everything reads as zero; the status is looked at once at the end of a stretch.
 *
 * A varint has seven bits per byte, lowest first; the highest bit says that more follow.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include "base/buffer.h"
#include "base/endian.h"
#include "base/status.h"

#include <stdbool.h>

#define VARINT_BYTES 10u

struct cursor {
    const uint8_t *at, *end;
    bool failed; /* it ended too early, or a number was too long */
};

static inline uint64_t cursor_varint(struct cursor *cursor) {
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;

        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (!byte && shift)
                break; /* longer than needed */
            return value;
        }
    }
    cursor->failed = true;
    cursor->at = cursor->end;
    return 0;
}

/* A number that is at most `most`. */
static inline uint64_t cursor_varint_upto(struct cursor *cursor, uint64_t most) {
    uint64_t value = cursor_varint(cursor);

    if (value <= most)
        return value;
    cursor->failed = true;
    cursor->at = cursor->end;
    return 0;
}

/* NULL when they are not there. */
static inline const uint8_t *cursor_bytes(struct cursor *cursor, size_t bytes) {
    const uint8_t *at = cursor->at;

    if (bytes > (size_t)(cursor->end - cursor->at)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    cursor->at += bytes;
    return at;
}

static inline uint64_t cursor_u64(struct cursor *cursor) {
    const uint8_t *at = cursor_bytes(cursor, 8);

    return at ? load_le64(at) : 0;
}

static inline enum ulp_status put_varint(struct buffer *out, uint64_t value) {
    uint8_t bytes[VARINT_BYTES];
    size_t count = 0;

    do {
        bytes[count] = (uint8_t)(value & 0x7f);
        value >>= 7;
        bytes[count++] |= (uint8_t)(value ? 0x80 : 0);
    } while (value);
    return buffer_append(out, bytes, count);
}

static inline enum ulp_status put_u64(struct buffer *out, uint64_t value) {
    uint8_t bytes[8];

    store_le64(bytes, value);
    return buffer_append(out, bytes, sizeof bytes);
}

#endif
