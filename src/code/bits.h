// SPDX-License-Identifier: Apache-2.0
/*
 * Bits, lowest first. A header is written and read forwards. A payload is written forwards and read
 * backwards from its end, as tANS wants it: its last byte holds a 1 bit above the last data bit.
 */
#ifndef CODE_BITS_H
#define CODE_BITS_H

#include "base/endian.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The widest single put or get. */
#define BITS_MAX 56u

/* The caller provides room: BITS_SLACK bytes beyond what is written. */
#define BITS_SLACK 8u

struct bit_writer {
    uint8_t *at;
    uint64_t pending;
    uint32_t count; /* of pending bits */
};

static inline void bits_put(struct bit_writer *writer, uint64_t value, uint32_t bits) {
    writer->pending |= value << writer->count;
    writer->count += bits;
}

/* After at most BITS_MAX bits of puts. */
static inline void bits_flush(struct bit_writer *writer) {
    store_le64(writer->at, writer->pending);
    writer->at += writer->count >> 3;
    writer->pending >>= writer->count & ~7u;
    writer->count &= 7;
}

/* Marks the end of a payload and returns the byte behind it. */
static inline uint8_t *bits_end(struct bit_writer *writer) {
    bits_put(writer, 1, 1);
    bits_flush(writer);
    if (writer->count)
        writer->at++;
    return writer->at;
}

/* Reads towards the front. `left` goes below zero when more is asked for than is there; the bits
 * are zero then, and nothing in front of `begin` is touched. */
struct bit_reader {
    const uint8_t *begin;
    size_t bytes;
    int64_t left; /* bits not read yet */
};

/* False if the payload is empty or its last byte has no mark. */
static inline bool bits_open(struct bit_reader *reader, const uint8_t *begin, size_t bytes) {
    if (!bytes || !begin[bytes - 1])
        return false;
    reader->begin = begin;
    reader->bytes = bytes;
    reader->left = (int64_t)bytes * 8 - 8 + 31 - __builtin_clz(begin[bytes - 1]);
    return true;
}

/* The lowest `bits` (at most BITS_MAX) of the bits that end at `left`. */
static inline uint64_t bits_get(struct bit_reader *reader, uint32_t bits) {
    int64_t from = reader->left -= bits;
    size_t byte = (size_t)from >> 3;
    uint64_t word;

    if (__builtin_expect(from < 0, 0))
        return 0;
    if (__builtin_expect(byte + 8 <= reader->bytes, 1))
        word = load_le64(reader->begin + byte);
    else
        word = load_le_partial(reader->begin + byte, reader->bytes - byte);
    return word >> (from & 7) & ((UINT64_C(1) << bits) - 1);
}

#endif
