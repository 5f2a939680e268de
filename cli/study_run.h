// SPDX-License-Identifier: Apache-2.0
/*
 * What `ulpsync study` finds out about a row of checkpoints: for k = 1, 2, 4, ... the patches of a
 * run that sends every k-th of them, 0 -> k -> 2k ..., each with the patch before it as history.
 */
#ifndef CLI_STUDY_RUN_H
#define CLI_STUDY_RUN_H

#include "cli/groups.h"
#include "study/pair.h"

#include <stdbool.h>

/* One patch. */
struct study_patch {
    unsigned from, to; /* checkpoints */
    bool after;        /* there was a patch before it */
    uint64_t changed;
    struct study_floor floor;
    struct study_recurrence recurrence;
    uint64_t bytes, history_bytes; /* as ulpsync makes it; 0: it was not made */
};

/* All patches of one interval; counts and sizes are sums over them. */
struct study_interval {
    unsigned k;
    struct study_patch *patches;
    size_t count;
    size_t count_after; /* of those with a patch before them */
    uint64_t elements, changed, dense_bytes;
    uint64_t changed_after, dense_bytes_after; /* of those with a patch before them */
    uint64_t bytes, history_bytes;             /* the latter of those with a patch before them */
    struct study_floor floor;
    struct study_recurrence recurrence;
    struct wire_sizes sizes;
    struct study_counts *kinds[STUDY_KINDS_MAX];
    size_t kind_count;
    struct ulp_tensor_report *tensors; /* elements, changed and bits of each, in patches */
    struct group *layers, *parts;      /* by layer, and by kind of tensor */
    size_t layer_count, part_count;
};

#define STUDY_INTERVALS 5u /* 1, 2, 4, 8, 16 */

struct study {
    const char *const *paths;
    unsigned count;          /* checkpoints */
    struct ulp_model *first; /* names, dtypes and shapes of all of them */
    bool quick;              /* count alone: no patches, nothing is squeezed */
    struct study_interval intervals[STUDY_INTERVALS];
    unsigned interval_count;
    double seconds;
};

/* `paths`, `count` and `quick` are set. study_release() also after a failure. */
enum ulp_status study_run(struct study *study, struct ulp_pool *pool);
void study_release(struct study *study);

/* ---- how it is said, in text, JSON and HTML alike ---- */

/* The dtypes of a kind, as "BF16" or "U8, I8". */
struct study_label {
    char text[64];
};
struct study_label study_kind_label(const struct study *study, const struct code_kind *kind);

/* Elements of cell `cell` are about 2 to this power; at the edges of the window, that and beyond. */
int study_cell_power(const struct study *study, const struct code_kind *kind, unsigned cell);

/* The first and last cell that hold elements; false without an exponent. */
bool study_cells(const struct study_counts *counts, unsigned *ret_first, unsigned *ret_last);

/* Steps of all kinds by size and sign, and how many buckets there are up to the last that is not
 * empty. */
struct study_histogram {
    uint64_t up[STUDY_BUCKETS], down[STUDY_BUCKETS];
    unsigned used;
};
struct study_histogram study_histogram(const struct study_interval *interval);

/* "1", "3-4" */
struct study_label study_bucket_label(unsigned bucket);

/* Encodings in the order in which they are shown: ulpsync's own two, then those of others. */
#define STUDY_ENCODINGS (WIRE_FORMATS + 2u)
struct study_encoding {
    const char *key, *title, *users;
    enum wire_basis basis;
    double bytes;   /* of one patch, the mean; NaN when it is not known */
    double changed; /* in one patch, the mean */
    double dense;   /* bytes of the state */
};
struct study_encoding study_encoding(const struct study_interval *interval, unsigned index);

#endif
