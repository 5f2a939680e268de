// SPDX-License-Identifier: Apache-2.0
/*
 * Tabled asymmetric numeral systems: entropy coding by walking through a table of states. A table
 * of 2^TANS_LOG states gives each symbol a share of them; coding a symbol moves the state and puts
 * out a few bits. Decoding walks back, so what is written last is read first.
 */
#ifndef CODE_TANS_H
#define CODE_TANS_H

#include "code/symbols.h"

#include <stdbool.h>
#include <stdint.h>

#define TANS_LOG 10u
#define TANS_STATES (1u << TANS_LOG)
#define TANS_SYMBOLS_MAX 256u /* bytes; gaps and values have fewer */

/* Shares of the states; they add up to TANS_STATES, and a symbol that occurs has at least one. */
struct tans_shares {
    uint16_t share[TANS_SYMBOLS_MAX];
};

/* From counts; a pure function of them. At least one count must be positive. */
void tans_normalise(const uint64_t *counts, uint32_t symbols, struct tans_shares *shares);

/* The rate of `events` events, at least one, among `all` chances. */
uint16_t tans_rate(uint64_t events, uint64_t all);

/*
 * Shares of gaps between events that happen with probability 2^(-rate / 2048), for symbols up to
 * `top`, which all get at least one state: the whole model is these two numbers.
 */
void tans_geometric(uint32_t rate, uint32_t top, struct tans_shares *shares);

struct tans_encoder {
    uint16_t next[TANS_STATES];
    struct {
        uint32_t bits;  /* (bits << 16) - threshold, so that (state + bits) >> 16 is how many */
        int32_t offset; /* into next[], to be added to the shortened state */
    } symbol[TANS_SYMBOLS_MAX];
};

struct tans_decoder {
    struct {
        uint16_t next; /* state before the bits that are read are added */
        uint8_t bits, symbol;
    } state[TANS_STATES];
};

void tans_encoder_build(const struct tans_shares *shares, uint32_t symbols,
                        struct tans_encoder *encoder);
void tans_decoder_build(const struct tans_shares *shares, uint32_t symbols,
                        struct tans_decoder *decoder);

/* Whether shares from outside add up to TANS_STATES. */
bool tans_shares_valid(const struct tans_shares *shares, uint32_t symbols);

#endif
