// SPDX-License-Identifier: Apache-2.0
#include "scan/digest_sum.h"

#include "base/cpu.h"
#include "base/endian.h"
#include "scan/digest_twins.h"

#include <assert.h>
#include <string.h>

digest_words digest_words_best(void) {
    static const struct {
        uint32_t needs; /* CPU features */
        digest_words words;
    } best_first[] = {
#if defined(__x86_64__)
        {CPU_AVX512F | CPU_AVX512DQ, digest_words_avx512},
        {CPU_AVX2, digest_words_avx2},
#elif defined(__aarch64__)
        {CPU_NEON, digest_words_neon},
#endif
        {0, digest_words_portable},
    };
    const size_t last = sizeof best_first / sizeof best_first[0] - 1;
    const uint32_t features = cpu_features();
    size_t i = 0;

    while (i < last && (best_first[i].needs & ~features))
        i++;
    return best_first[i].words;
}

void digest_add(const void *data, size_t bytes, uint64_t first_word, struct ulp_sum *sum) {
    size_t words = bytes / DIGEST_WORD_BYTES, tail = bytes % DIGEST_WORD_BYTES;
    const uint8_t *rest = (const uint8_t *)data + words * DIGEST_WORD_BYTES;

    if (words)
        digest_words_best()(data, words, first_word, sum);
    if (tail)
        sum_add(sum, digest_mix(first_word + words, load_le_partial(rest, tail)));
}

/* The word at `at`, zero-padded if the data end inside it. */
static inline uint64_t load_word(const uint8_t *data, size_t bytes, size_t at) {
    return bytes - at >= DIGEST_WORD_BYTES ? load_le64(data + at)
                                           : load_le_partial(data + at, bytes - at);
}

static digest_changes digest_changes_best(void) {
#if defined(__x86_64__)
    const uint32_t needs = CPU_AVX512F | CPU_AVX512DQ;

    if (!(needs & ~cpu_features()))
        return digest_changes_avx512;
#endif
    return digest_changes_portable;
}

/* Twins take whole vectors, so what is behind the last change must not count. */
static void flush(struct word_changes *changes, digest_changes take, uint64_t first_word,
                  struct ulp_sum *sum) {
    for (size_t i = changes->count; i % 8; i++) {
        changes->index[i] = 0;
        changes->old[i] = changes->new[i] = 0;
    }
    take(changes, first_word, sum);
    changes->count = 0;
}

/* Values are placed into a word as they stand in memory: the first byte of the word is its lowest.
 * */
#define DEFINE_REPLACE(WIDTH, TYPE, TO_LE)                                                         \
    static void replace_##WIDTH(const uint8_t *data, size_t bytes, uint64_t first_word,            \
                                const uint32_t *positions, size_t count, const uint8_t *values,    \
                                struct ulp_sum *sum) {                                             \
        const uint32_t per_word = DIGEST_WORD_BYTES / WIDTH;                                       \
        const uint64_t mask = UINT64_MAX >> (64 - 8 * WIDTH);                                      \
        const digest_changes take = digest_changes_best();                                         \
        struct word_changes changes;                                                               \
                                                                                                   \
        changes.count = 0;                                                                         \
        for (size_t i = 0; i < count;) {                                                           \
            uint32_t index = positions[i] / per_word;                                              \
            uint64_t old = load_word(data, bytes, (size_t)index * DIGEST_WORD_BYTES), new = old;   \
                                                                                                   \
            do { /* all changes inside this word */                                                \
                unsigned shift = 8 * WIDTH * (positions[i] % per_word);                            \
                TYPE value;                                                                        \
                                                                                                   \
                memcpy(&value, values + WIDTH * i, WIDTH);                                         \
                new = (new & ~(mask << shift)) | (uint64_t)TO_LE(value) << shift;                  \
            } while (++i < count && positions[i] / per_word == index);                             \
            changes.index[changes.count] = index;                                                  \
            changes.old[changes.count] = old;                                                      \
            changes.new[changes.count] = new;                                                      \
            if (++changes.count == DIGEST_CHANGES)                                                 \
                flush(&changes, take, first_word, sum);                                            \
        }                                                                                          \
        flush(&changes, take, first_word, sum);                                                    \
    }

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE_16 __builtin_bswap16
#define LE_32 __builtin_bswap32
#define LE_64 __builtin_bswap64
#else
#define LE_16
#define LE_32
#define LE_64
#endif

DEFINE_REPLACE(1, uint8_t, )
DEFINE_REPLACE(2, uint16_t, LE_16)
DEFINE_REPLACE(4, uint32_t, LE_32)
DEFINE_REPLACE(8, uint64_t, LE_64)

void digest_replace(const void *data, size_t bytes, uint64_t first_word, unsigned width,
                    const uint32_t *positions, size_t count, const void *values,
                    struct ulp_sum *sum) {
    static void (*const replace[])(const uint8_t *, size_t, uint64_t, const uint32_t *, size_t,
                                   const uint8_t *,
                                   struct ulp_sum *) = {replace_1, replace_2, replace_4, replace_8};

    assert(!count || ((size_t)positions[count - 1] + 1) * width <= bytes);
    replace[__builtin_ctz(width)](data, bytes, first_word, positions, count, values, sum);
}
