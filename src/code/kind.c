// SPDX-License-Identifier: Apache-2.0
#include "code/kind.h"

#include "base/word.h"

#include <string.h>

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
    return (struct code_kind){(uint8_t)word_bytes_of(bits), 0, 0, 0};
}
