// SPDX-License-Identifier: Apache-2.0
/*
 * A string of bits that is either being written or being read, so that one function per field
 * serves both ways and they cannot disagree. After the first failure nothing more is read or
 * written.
 */
#ifndef CODE_FIELDS_H
#define CODE_FIELDS_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* The longest run of ones of a Rice code before the number is written whole. */
#define RICE_ESCAPE 24u

struct fields {
    struct buffer *out; /* writing; NULL when reading */
    const uint8_t *in;
    uint64_t at, end; /* in bits */
    enum ulp_status status;
};

/* What was read cannot be; only the first failure counts. */
void field_fail(struct fields *fields, const char *what);

/* `bits` bits of *value, lowest first. */
void field_bits(struct fields *fields, uint32_t *value, unsigned bits);
void field_flag(struct fields *fields, bool *flag);
void field_u8(struct fields *fields, uint8_t *byte, unsigned bits);

/* Numbers around 2^k, k chosen beforehand: the rest in unary, then k bits. */
void field_rice(struct fields *fields, uint32_t *value, unsigned k);

/* A share as its number of bits, then the bits below the highest. */
void field_share(struct fields *fields, uint16_t *share);

/* Reading: zero bits up to a whole byte. */
void field_padding(struct fields *fields);

#endif
