// SPDX-License-Identifier: Apache-2.0
/*
 * Samples on their way back: objects in the store of the run, beside it, so that whatever carries
 * weights one way carries samples the other. One object is what a worker made in one go:
 *
 *     "rlsample", version (8 bytes), groups and samples in each (4 + 4 bytes),
 *     then each sample: length, prompt (1 + 1), its tokens, the chances of those that were said (4 each)
 *
 * Numbers are little-endian. RUN-samples/VERSION/NAME is the key.
 */
#ifndef RL_SAMPLES_H
#define RL_SAMPLES_H

#include "sequence.h"

#include <stddef.h>
#include <ulpsync/store.h>

#define SAMPLES_MAX 65536u

struct samples {
    uint64_t version; /* of the weights that said them */
    size_t groups, size;
    struct sequence *sequences; /* groups * size */
};

void samples_release(struct samples *samples);

/* The key of what somebody made with a version. */
void samples_key(const char *run, uint64_t version, const char *name,
                 char ret_key[ULP_KEY_BYTES_MAX + 1]);

enum ulp_status samples_put(struct ulp_store *store, const char *key,
                            const struct samples *samples);

/* ULP_E_NOT_FOUND; ULP_E_SCHEMA if it is something else: whoever can write to the store can put
 * anything there. */
enum ulp_status samples_get(struct ulp_store *store, const char *key, struct samples *ret_samples);

#endif
