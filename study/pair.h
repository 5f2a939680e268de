// SPDX-License-Identifier: Apache-2.0
/*
 * Two whole states and, if there is one, the state before them: everything that is counted of the
 * step between the two, in one pass. Memory does not depend on the size of the tensors.
 */
#ifndef STUDY_PAIR_H
#define STUDY_PAIR_H

#include "study/counts.h"
#include "study/entropy.h"
#include "study/wire.h"

#include <ulpsync/ulpsync.h>

/* Tensors of the same names, dtypes and shapes, in the same order: study_same_layout(). */
struct study_states {
    const struct ulp_tensor *before; /* or NULL */
    const struct ulp_tensor *old, *new;
    size_t count;
};

/* Widths with and without an exponent. */
#define STUDY_KINDS_MAX 16u

/* Zeroed before study_pair_measure(). Elements of packed dtypes (4 or 6 bits) are counted in
 * bytes. */
struct study_pair {
    uint64_t elements, changed, dense_bytes;
    uint64_t *tensor_changed; /* of each tensor */
    struct study_counts *kinds[STUDY_KINDS_MAX];
    size_t kind_count;
    struct study_floor floor; /* of all kinds together */
    struct study_recurrence recurrence;
    struct wire_sizes sizes;
};

enum study_sizes { STUDY_WITHOUT_SIZES, STUDY_WITH_SIZES };

/* `progress` hears of pieces. With STUDY_WITHOUT_SIZES nothing is squeezed, and `sizes` stays
 * empty. */
enum ulp_status study_pair_measure(const struct study_states *states, enum study_sizes sizes,
                                   struct ulp_pool *pool, const struct ulp_progress *progress,
                                   struct study_pair *ret_pair);
void study_pair_release(struct study_pair *pair);

/* ULP_E_LAYOUT, with what differs; `name` is what to call the second one. */
enum ulp_status study_same_layout(const struct ulp_tensor *tensors, size_t count,
                                  const struct ulp_tensor *others, size_t other_count,
                                  const char *name);

/* Elements of a tensor as they are counted here. */
uint64_t study_elements(const struct ulp_tensor *tensor);

#endif
