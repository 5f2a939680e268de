// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.h"

#include <string.h>

/* Plain loops that compilers turn into the widest loads of each clone. Clones are chosen before the
 * thread sanitizer is ready, which ends such a program at once. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#define LINE_WORDS 8u /* words of a cache line */

static uint64_t fold(const uint64_t words[LINE_WORDS]) {
    uint64_t all = 0;

    for (unsigned i = 0; i < LINE_WORDS; i++)
        all |= words[i];
    return all;
}

CLONES uint64_t limit_read(const void *a, size_t bytes, size_t ahead) {
    const uint64_t *from = a;
    uint64_t seen[LINE_WORDS] = {0};

    for (size_t i = 0; i < bytes / 8; i += LINE_WORDS) {
        __builtin_prefetch((const uint8_t *)(from + i) + ahead);
        for (unsigned k = 0; k < LINE_WORDS; k++)
            seen[k] |= from[i + k];
    }
    return fold(seen);
}

CLONES uint64_t limit_compare(const void *a, const void *b, size_t bytes, size_t ahead) {
    const uint64_t *x = a, *y = b;
    uint64_t differs[LINE_WORDS] = {0};

    for (size_t i = 0; i < bytes / 8; i += LINE_WORDS) {
        __builtin_prefetch((const uint8_t *)(x + i) + ahead);
        __builtin_prefetch((const uint8_t *)(y + i) + ahead);
        for (unsigned k = 0; k < LINE_WORDS; k++)
            differs[k] |= x[i + k] ^ y[i + k];
    }
    return fold(differs);
}

void limit_copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}
