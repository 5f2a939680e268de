// SPDX-License-Identifier: Apache-2.0
#include "code/kind.h"

#include <string.h>

static uint8_t word_bytes(uint32_t bits) {
    return bits % 64 == 0 ? 8 : bits % 32 == 0 ? 4 : bits % 16 == 0 ? 2 : 1;
}

struct code_kind code_kind_of(const char *dtype, uint32_t bits) {
    /* Weights above 2 and below 2^-62 share the edge cells of the 8-bit exponents. */
    static const struct {
        const char *dtype;
        struct code_kind kind;
    } known[] = {
        {"BF16", {2, 7, 8, 64}},       {"F16", {2, 10, 5, 0}},        {"F32", {4, 23, 8, 64}},
        {"F64", {8, 52, 11, 192}},     {"F8_E4M3", {1, 3, 4, 0}},     {"F8_E5M2", {1, 2, 5, 0}},
        {"F8_E4M3FNUZ", {1, 3, 4, 0}}, {"F8_E5M2FNUZ", {1, 2, 5, 0}},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!strcmp(known[i].dtype, dtype))
            return known[i].kind;
    }
    return (struct code_kind){word_bytes(bits), 0, 0, 0};
}
