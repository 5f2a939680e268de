// SPDX-License-Identifier: Apache-2.0
/* The definition of the keyed sum: plain C, one word after the other. */
#include "base/endian.h"
#include "scan/digest_twins.h"

void digest_words_portable(const void *data, size_t words, uint64_t first_word,
                           struct ulp_sum *sum) {
    const uint8_t *bytes = data;

    for (size_t i = 0; i < words; i++)
        sum_add(sum, digest_mix(first_word + i, load_le64(bytes + 8 * i)));
}

void digest_changes_portable(const struct word_changes *changes, uint64_t first_word,
                             struct ulp_sum *sum) {
    for (size_t i = 0; i < changes->count; i++) {
        sum_subtract(sum, digest_mix(first_word + changes->index[i], changes->old[i]));
        sum_add(sum, digest_mix(first_word + changes->index[i], changes->new[i]));
    }
}
