// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include "base/limits.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t bits;
} known[] = {
    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},        {"U8", 8},
    {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},
    {"I32", 32},    {"U32", 32},    {"F32", 32},    {"I64", 64},        {"U64", 64},
    {"F64", 64},    {"C64", 64},
};

uint32_t dtype_bits(const char *dtype) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!strcmp(known[i].name, dtype))
            return known[i].bits;
    }
    return 0;
}

bool dtype_name_allowed(const char *dtype) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t length = strlen(dtype);

    return length >= 1 && length <= LIMIT_DTYPE_BYTES && strspn(dtype, allowed) == length;
}
