// SPDX-License-Identifier: Apache-2.0
/*
 * What the changes of a step would take in the encodings that others send. Positions are those in
 * their tensor; a gap is the number of unchanged elements in front of a changed one.
 */
#ifndef STUDY_WIRE_H
#define STUDY_WIRE_H

#include "study/counts.h"

#include <ulpsync/ulpsync.h>

enum wire_format {
    WIRE_STATE,         /* all new weights */
    WIRE_STATE_ZSTD,    /* ... through zstd */
    WIRE_XOR_ZSTD,      /* old ^ new of all weights, through zstd */
    WIRE_BITMAP,        /* a bit for each element, then the new values */
    WIRE_PAIRS,         /* a 32-bit index and the new value: 48 bits for BF16 */
    WIRE_GAPS16,        /* 16-bit gaps and new values; 32-bit gaps in tensors where one is larger */
    WIRE_GAPS,          /* gaps as varints and new values */
    WIRE_GAPS_ZSTD,     /* ... each through zstd */
    WIRE_GAPS_XOR_ZSTD, /* 16-bit gaps and old ^ new, each through zstd */
    WIRE_RICE,          /* Rice codes of gaps and of zigzag steps */
    WIRE_RICE_CLASSES,  /* Rice codes of ranks among the elements of an exponent, and of steps */
    WIRE_FORMATS
};

/* How a size was found. */
enum wire_basis {
    WIRE_NOT_KNOWN, /* this build has no zstd */
    WIRE_ENCODED,   /* the bytes were made */
    WIRE_COUNTED,   /* it follows from what was counted, to the byte */
    WIRE_SAMPLED,   /* a part of the bytes was made, and scaled */
    WIRE_FORMULA    /* an estimate */
};

struct wire_size {
    enum wire_basis basis;
    double bytes;
};

/* "gaps + values, zstd -1", "gaps_zstd", "PULSESync" */
const char *wire_title(enum wire_format format);
const char *wire_key(enum wire_format format);
const char *wire_users(enum wire_format format); /* "" if there are none to name */
const char *wire_basis_name(enum wire_basis basis);

/* ---- changes of a run of elements of one tensor ---- */

#define WIRE_RICE_MAX 20u

/* What is known of a run of elements. Runs of a tensor are joined in their order. */
struct wire_run {
    uint64_t changed;
    uint64_t first, last;              /* changed places, when there are any */
    uint64_t gap_most;                 /* of those behind the first place */
    uint64_t gap_bytes;                /* as varints */
    uint64_t rice_bits[WIRE_RICE_MAX]; /* as Rice codes with that many low bits */
};

/* Adds a change; places ascend. Returns its gap, counted from `start` if it is the first. */
uint64_t wire_run_add(struct wire_run *run, uint64_t place, uint64_t start);

/* Puts `next` behind `run`. An empty `run` stands for the beginning of the tensor. */
void wire_run_join(struct wire_run *run, const struct wire_run *next);

/* ---- bytes that are really made ---- */

/* Streams of one thread: filled, squeezed when they are full and at the end of a piece. */
struct wire_streams;

/* `*ret_streams` stays NULL, and nothing is to be done, in a build without zstd. */
enum ulp_status wire_streams_new(struct wire_streams **ret_streams);
void wire_streams_free(struct wire_streams *streams);

enum ulp_status wire_streams_change(struct wire_streams *streams, uint64_t gap, uint64_t old,
                                    uint64_t new, unsigned width);
enum ulp_status wire_streams_flush(struct wire_streams *streams);

/* A sample of both whole states. */
enum ulp_status wire_streams_sample(struct wire_streams *streams, const void *old, const void *new,
                                    size_t bytes);

struct wire_made {
    uint64_t gaps, gaps_xor;               /* bytes of the streams */
    uint64_t sampled, state, xor_of_state; /* bytes that were looked at, and what they became */
};
struct wire_made wire_streams_made(const struct wire_streams *streams);

/* ---- the sizes of all of it ---- */

struct wire_sizes {
    struct wire_size formats[WIRE_FORMATS];
};

/* Adds what a tensor takes whose runs were joined. */
void wire_sizes_tensor(struct wire_sizes *sizes, const struct ulp_tensor *tensor, unsigned width,
                       const struct wire_run *run);

/* Adds what streams made; `dense_bytes` is the size of the whole state. */
void wire_sizes_made(struct wire_sizes *sizes, const struct wire_made *made, uint64_t dense_bytes);

/* Adds the steps of what Rice codes take, from the counts of a kind, and `WIRE_RICE_CLASSES`. */
void wire_sizes_counts(struct wire_sizes *sizes, const struct study_counts *counts);

/* Adds `from` to `to`. */
void wire_sizes_add(struct wire_sizes *to, const struct wire_sizes *from);

#endif
