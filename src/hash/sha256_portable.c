// SPDX-License-Identifier: Apache-2.0
#include "hash/sha256_portable.h"

#include "base/endian.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned by) {
    return x >> by | x << (32 - by);
}

static void expand(const uint8_t block[64], uint32_t w[64]) {
    for (unsigned i = 0; i < 16; i++)
        w[i] = load_be32(block + 4 * i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* A round changes two of the standard's variables a..h, and then each takes the name of the next. */
static inline void do_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                            uint32_t g, uint32_t *h, uint32_t word) {
    const uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t t1 = *h + s1 + choice + word;
    const uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);

    *d += t1;
    *h = t1 + s0 + majority;
}

/* After eight rounds the names are where they were: so nothing is moved but what changes. */
static void compress(uint32_t state[8], const uint8_t block[64]) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    uint32_t w[64];

    expand(block, w);
    for (unsigned i = 0; i < 64; i++)
        w[i] += round_constants[i];
    for (unsigned i = 0; i < 64; i += 8) {
        do_round(a, b, c, &d, e, f, g, &h, w[i]);
        do_round(h, a, b, &c, d, e, f, &g, w[i + 1]);
        do_round(g, h, a, &b, c, d, e, &f, w[i + 2]);
        do_round(f, g, h, &a, b, c, d, &e, w[i + 3]);
        do_round(e, f, g, &h, a, b, c, &d, w[i + 4]);
        do_round(d, e, f, &g, h, a, b, &c, w[i + 5]);
        do_round(c, d, e, &f, g, h, a, &b, w[i + 6]);
        do_round(b, c, d, &e, f, g, h, &a, w[i + 7]);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_portable_begin(struct sha256_portable *hash) {
    /* The same of the square roots of the first 8 primes. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    *hash = (struct sha256_portable){0};
    memcpy(hash->state, start, sizeof start);
}

void sha256_portable_add(struct sha256_portable *hash, const void *data, size_t bytes) {
    const uint8_t *from = data;

    while (bytes) {
        size_t used = hash->bytes % 64, room = 64 - used;
        size_t piece = bytes < room ? bytes : room;

        memcpy(hash->block + used, from, piece);
        hash->bytes += piece;
        from += piece;
        bytes -= piece;
        if (piece == room)
            compress(hash->state, hash->block);
    }
}

void sha256_portable_end(struct sha256_portable *hash, uint8_t ret_digest[32]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->bytes * 8;
    uint8_t length[8];

    store_be32(length, (uint32_t)(bits >> 32));
    store_be32(length + 4, (uint32_t)bits);
    /* One to 64 bytes of padding leave exactly room for the length. */
    sha256_portable_add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
    sha256_portable_add(hash, length, sizeof length);
    for (unsigned i = 0; i < 8; i++)
        store_be32(ret_digest + 4 * i, hash->state[i]);
}
