// SPDX-License-Identifier: Apache-2.0
#include "code/fields.h"

#include "base/status.h"
#include "code/tans.h"

void field_fail(struct fields *fields, const char *what) {
    if (!fields->status)
        fields->status = fail(ULP_E_CODE, "the models of a segment are damaged: %s", what);
}

static void write_bit(struct fields *fields, unsigned bit) {
    if (fields->at % 8 == 0 && !fields->status)
        fields->status = buffer_append_fill(fields->out, 0, 1);
    if (!fields->status)
        fields->out->data[fields->out->used - 1] |= (uint8_t)(bit << fields->at % 8);
    fields->at++;
}

static unsigned read_bit(struct fields *fields) {
    unsigned bit = 0;

    if (fields->at >= fields->end)
        field_fail(fields, "they end too early");
    else
        bit = (unsigned)fields->in[fields->at / 8] >> fields->at % 8 & 1u;
    fields->at++;
    return bit;
}

void field_bits(struct fields *fields, uint32_t *value, unsigned bits) {
    uint32_t read = 0;

    for (unsigned i = 0; i < bits && !fields->status; i++) {
        if (fields->out)
            write_bit(fields, *value >> i & 1);
        else
            read |= read_bit(fields) << i;
    }
    if (!fields->out)
        *value = read;
}

void field_flag(struct fields *fields, bool *flag) {
    uint32_t value = *flag;

    field_bits(fields, &value, 1);
    *flag = value != 0;
}

void field_u8(struct fields *fields, uint8_t *byte, unsigned bits) {
    uint32_t value = *byte;

    field_bits(fields, &value, bits);
    *byte = (uint8_t)value;
}

void field_rice(struct fields *fields, uint32_t *value, unsigned k) {
    uint32_t ones = fields->out ? *value >> k : 0, one = 1, zero = 0, rest = *value;

    if (fields->out && ones >= RICE_ESCAPE)
        ones = RICE_ESCAPE;
    if (fields->out) {
        for (uint32_t i = 0; i < ones; i++)
            field_bits(fields, &one, 1);
        if (ones < RICE_ESCAPE)
            field_bits(fields, &zero, 1);
    } else {
        while (ones < RICE_ESCAPE && !fields->status && read_bit(fields))
            ones++;
    }
    if (ones == RICE_ESCAPE) {
        field_bits(fields, value, 32);
        if (!fields->out && *value >> k < RICE_ESCAPE)
            field_fail(fields, "a number is written in a long form");
        return;
    }
    field_bits(fields, &rest, k);
    if (!fields->out)
        *value = ones << k | rest;
}

void field_share(struct fields *fields, uint16_t *share) {
    uint32_t bits = *share ? 32 - (uint32_t)__builtin_clz(*share) : 0, low;

    field_bits(fields, &bits, 4);
    if (bits > TANS_LOG + 1)
        field_fail(fields, "a share is too large");
    if (!bits || fields->status) {
        *share = 0;
        return;
    }
    low = *share & ((1u << (bits - 1)) - 1);
    field_bits(fields, &low, bits - 1);
    *share = (uint16_t)(1u << (bits - 1) | low);
}

void field_padding(struct fields *fields) {
    while (fields->at % 8 && !fields->status) {
        if (read_bit(fields))
            field_fail(fields, "their last byte has bits to spare");
    }
}
