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

/* The word at `at` as bytes, zero-padded if the data end inside it. */
static void load_word(const uint8_t *data, size_t bytes, size_t at,
                      uint8_t word[DIGEST_WORD_BYTES]) {
    memset(word, 0, DIGEST_WORD_BYTES);
    memcpy(word, data + at, bytes - at < DIGEST_WORD_BYTES ? bytes - at : DIGEST_WORD_BYTES);
}

void digest_replace(const void *data, size_t bytes, uint64_t first_word, unsigned width,
                    const uint32_t *positions, size_t count, const void *values,
                    struct ulp_sum *sum) {
    const uint8_t *value = values;
    size_t i = 0;

    while (i < count) {
        size_t word_index = (size_t)positions[i] * width / DIGEST_WORD_BYTES;
        size_t word_at = word_index * DIGEST_WORD_BYTES;
        uint8_t word[DIGEST_WORD_BYTES];

        load_word(data, bytes, word_at, word);
        sum_subtract(sum, digest_mix(first_word + word_index, load_le64(word)));
        for (; i < count; i++) { /* all changes inside this word */
            size_t at = (size_t)positions[i] * width - word_at;

            if (at >= DIGEST_WORD_BYTES)
                break;
            assert(word_at + at + width <= bytes);
            memcpy(word + at, value + i * width, width);
        }
        sum_add(sum, digest_mix(first_word + word_index, load_le64(word)));
    }
}
