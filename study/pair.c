// SPDX-License-Identifier: Apache-2.0
#include "study/pair.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What one task takes: tensors, or parts of them, one after the other. Streams end with it, so it
 * is long enough for zstd, and what they come to does not depend on the number of threads. */
#define PIECE_BYTES ((uint64_t)32 << 20)

/* Of each piece its beginning is squeezed whole, so that it is about this much of a state. */
#define SAMPLE_BYTES ((uint64_t)64 << 20)
#define SAMPLE_LEAST ((uint64_t)64 << 10)

/* Elements that are counted while they are in the caches, and whose changes are written in turn. */
#define BLOCK 65536u
#define STRETCH 4096u

/* A tensor's share of a piece. */
struct segment {
    size_t tensor;
    uint64_t first, elements;
    struct wire_run run;
};

/* What a thread adds up in. A task takes any that is free: there are as many as threads. */
struct slot {
    atomic_flag taken;
    struct study_counts *kinds[STUDY_KINDS_MAX];
    struct wire_streams *streams;
};

struct job {
    const struct study_states *states;
    struct code_kind *tensor_kinds;
    uint8_t *tensor_slots; /* which of the counters a tensor's kind has */
    struct code_kind kinds[STUDY_KINDS_MAX];
    size_t kind_count;
    struct segment *segments;
    size_t segment_count;
    size_t *piece_ends; /* the segment behind each piece */
    size_t piece_count;
    uint64_t sample_bytes; /* of each piece */
    struct slot *slots;
    unsigned slot_count;
    bool with_sizes;
};

static enum ulp_status out_of_memory(void) {
    return ulp_fail(ULP_E_NOMEM, "out of memory for counting changes");
}

uint64_t study_elements(const struct ulp_tensor *tensor) {
    return tensor->elements ? tensor->bytes / code_kind_of(tensor->dtype, tensor->bits).width : 0;
}

/* ---- how the work is cut ---- */

static bool same_kind(const struct code_kind *a, const struct code_kind *b) {
    return a->width == b->width && a->exponent_shift == b->exponent_shift &&
           a->exponent_bits == b->exponent_bits;
}

static void sort_kinds(struct job *job) {
    for (size_t t = 0; t < job->states->count; t++) {
        const struct ulp_tensor *tensor = &job->states->old[t];
        const struct code_kind kind = code_kind_of(tensor->dtype, tensor->bits);
        size_t k = 0;

        while (k < job->kind_count && !same_kind(&job->kinds[k], &kind))
            k++;
        if (k == job->kind_count)
            job->kinds[job->kind_count++] = kind;
        job->tensor_kinds[t] = kind;
        job->tensor_slots[t] = (uint8_t)k;
    }
}

/* One after the other, a piece is filled before the next is begun. */
static void cut(struct job *job) {
    uint64_t room = PIECE_BYTES;

    for (size_t t = 0; t < job->states->count; t++) {
        const uint64_t width = job->tensor_kinds[t].width;
        const uint64_t elements = study_elements(&job->states->old[t]);

        for (uint64_t first = 0; first < elements;) {
            const uint64_t left = elements - first, fit = room / width;
            const uint64_t here = left < fit ? left : fit;

            job->segments[job->segment_count++] =
                (struct segment){.tensor = t, .first = first, .elements = here};
            first += here;
            room -= here * width;
            if (room < 8) {
                job->piece_ends[job->piece_count++] = job->segment_count;
                room = PIECE_BYTES;
            }
        }
    }
    if (room < PIECE_BYTES)
        job->piece_ends[job->piece_count++] = job->segment_count;
}

static enum ulp_status lay_out(struct job *job, uint64_t dense_bytes, unsigned threads) {
    const size_t count = job->states->count;
    const size_t pieces = (size_t)(dense_bytes / (PIECE_BYTES - 8)) + 1;

    job->tensor_kinds = calloc(count + 1, sizeof *job->tensor_kinds);
    job->tensor_slots = calloc(count + 1, sizeof *job->tensor_slots);
    job->segments = calloc(count + pieces, sizeof *job->segments);
    job->piece_ends = calloc(pieces, sizeof *job->piece_ends);
    job->slots = calloc(threads, sizeof *job->slots);
    if (!job->tensor_kinds || !job->tensor_slots || !job->segments || !job->piece_ends ||
        !job->slots)
        return out_of_memory();
    job->slot_count = threads;
    for (unsigned i = 0; i < threads; i++)
        atomic_flag_clear(&job->slots[i].taken);
    job->sample_bytes = PIECE_BYTES;
    if (dense_bytes > SAMPLE_BYTES) {
        const uint64_t share =
            (uint64_t)((double)SAMPLE_BYTES / (double)dense_bytes * (double)PIECE_BYTES) & ~7ull;

        job->sample_bytes = share > SAMPLE_LEAST ? share : SAMPLE_LEAST;
    }
    sort_kinds(job);
    cut(job);
    return ULP_OK;
}

static void release(struct job *job) {
    for (unsigned i = 0; i < job->slot_count; i++) {
        for (size_t k = 0; k < STUDY_KINDS_MAX; k++)
            free(job->slots[i].kinds[k]);
        wire_streams_free(job->slots[i].streams);
    }
    free(job->slots);
    free(job->tensor_kinds);
    free(job->tensor_slots);
    free(job->segments);
    free(job->piece_ends);
}

/* ---- a piece ---- */

static struct slot *take_slot(struct job *job) {
    for (;;) {
        for (unsigned i = 0; i < job->slot_count; i++) {
            if (!atomic_flag_test_and_set_explicit(&job->slots[i].taken, memory_order_acquire))
                return &job->slots[i];
        }
    }
}

static enum ulp_status write_changes(struct slot *slot, struct segment *segment, uint64_t first,
                                     const uint8_t *old, const uint8_t *new, unsigned width,
                                     const uint32_t *places, size_t count) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++) {
        const uint64_t gap = wire_run_add(&segment->run, first + places[i], segment->first);

        if (slot->streams)
            status = wire_streams_change(slot->streams, gap, study_word(old, places[i], width),
                                         study_word(new, places[i], width), width);
    }
    return status;
}

/* Elements `first` to `end` of a tensor. */
static enum ulp_status count_block(const struct job *job, struct slot *slot,
                                   struct segment *segment, uint64_t first, uint64_t end) {
    const struct study_states *states = job->states;
    const size_t tensor = segment->tensor;
    struct study_counts *counts = slot->kinds[job->tensor_slots[tensor]];
    const unsigned width = counts->kind.width;
    const uint8_t *old = states->old[tensor].data, *new = states->new[tensor].data;
    const uint8_t *before = states->before ? states->before[tensor].data : NULL;
    uint32_t places[STRETCH];
    enum ulp_status status = ULP_OK;

    study_count_elements(counts, before ? before + first * width : NULL, old + first * width,
                         (size_t)(end - first));
    for (; !status && first < end; first += STRETCH) {
        const size_t here = end - first < STRETCH ? (size_t)(end - first) : STRETCH;
        const uint64_t at = first * width;
        const size_t count = study_changes(old + at, new + at, width, here, places);

        study_count_changes(counts, before ? before + at : NULL, old + at, new + at, places, count);
        status = write_changes(slot, segment, first, old + at, new + at, width, places, count);
    }
    return status;
}

static enum ulp_status count_segment(const struct job *job, struct slot *slot,
                                     struct segment *segment, uint64_t *sample) {
    const size_t tensor = segment->tensor, kind = job->tensor_slots[tensor];
    const unsigned width = job->kinds[kind].width;
    const uint64_t end = segment->first + segment->elements;
    enum ulp_status status = ULP_OK;

    if (!slot->kinds[kind])
        slot->kinds[kind] = study_counts_new(job->kinds[kind]);
    if (!slot->kinds[kind])
        return out_of_memory();
    for (uint64_t first = segment->first; !status && first < end; first += BLOCK)
        status = count_block(job, slot, segment, first, end - first < BLOCK ? end : first + BLOCK);
    if (!status && slot->streams && *sample) {
        const uint64_t bytes = segment->elements * width, at = segment->first * width;
        const uint64_t take = bytes < *sample ? bytes : *sample;

        status =
            wire_streams_sample(slot->streams, (const uint8_t *)job->states->old[tensor].data + at,
                                (const uint8_t *)job->states->new[tensor].data + at, (size_t)take);
        *sample -= take;
    }
    return status;
}

static enum ulp_status count_piece(void *user, uint64_t piece) {
    struct job *job = user;
    struct slot *slot = take_slot(job);
    uint64_t sample = job->sample_bytes;
    enum ulp_status status = ULP_OK;

    if (job->with_sizes && !slot->streams)
        status = wire_streams_new(&slot->streams);
    for (size_t s = piece ? job->piece_ends[piece - 1] : 0; !status && s < job->piece_ends[piece];
         s++)
        status = count_segment(job, slot, &job->segments[s], &sample);
    if (!status && slot->streams)
        status = wire_streams_flush(slot->streams);
    atomic_flag_clear_explicit(&slot->taken, memory_order_release);
    return status;
}

/* ---- all of it ---- */

static void add_made(struct wire_made *to, const struct wire_made *from) {
    to->gaps += from->gaps;
    to->gaps_xor += from->gaps_xor;
    to->sampled += from->sampled;
    to->state += from->state;
    to->xor_of_state += from->xor_of_state;
}

/* The first slot's counters become those of the pair, and the others are added to them. */
static void gather_counts(struct job *job, struct study_pair *pair) {
    pair->kind_count = 0;
    for (size_t k = 0; k < job->kind_count; k++) {
        struct study_counts *sum = NULL;

        for (unsigned i = 0; i < job->slot_count; i++) {
            struct study_counts **from = &job->slots[i].kinds[k];

            if (sum && *from) {
                study_counts_add(sum, *from);
            } else if (*from) {
                sum = *from;
                *from = NULL;
            }
        }
        if (sum)
            pair->kinds[pair->kind_count++] = sum;
    }
}

static void gather_runs(const struct job *job, struct study_pair *pair) {
    for (size_t t = 0, s = 0; t < job->states->count; t++) {
        struct wire_run run = {0};

        for (; s < job->segment_count && job->segments[s].tensor == t; s++)
            wire_run_join(&run, &job->segments[s].run);
        pair->tensor_changed[t] = run.changed;
        pair->elements += study_elements(&job->states->old[t]);
        pair->changed += run.changed;
        if (job->with_sizes)
            wire_sizes_tensor(&pair->sizes, &job->states->old[t], job->tensor_kinds[t].width, &run);
    }
}

static void conclude(struct job *job, struct study_pair *pair) {
    struct wire_made made = {0};
    bool any = false;

    gather_counts(job, pair);
    gather_runs(job, pair);
    for (size_t k = 0; k < pair->kind_count; k++) {
        const struct study_floor floor = study_floor(pair->kinds[k]);
        const struct study_recurrence found = study_recurrence(pair->kinds[k]);

        study_floor_add(&pair->floor, &floor);
        pair->recurrence.of += found.of;
        pair->recurrence.again += found.again;
        pair->recurrence.same += found.same;
        if (job->with_sizes)
            wire_sizes_counts(&pair->sizes, pair->kinds[k]);
    }
    for (unsigned i = 0; i < job->slot_count; i++) {
        if (job->slots[i].streams) {
            const struct wire_made part = wire_streams_made(job->slots[i].streams);

            add_made(&made, &part);
            any = true;
        }
    }
    if (any)
        wire_sizes_made(&pair->sizes, &made, pair->dense_bytes);
}

enum ulp_status study_pair_measure(const struct study_states *states, enum study_sizes sizes,
                                   struct ulp_pool *pool, const struct ulp_progress *progress,
                                   struct study_pair *ret_pair) {
    struct job job = {.states = states, .with_sizes = sizes == STUDY_WITH_SIZES};
    struct study_pair pair = {0};
    enum ulp_status status;

    for (size_t t = 0; t < states->count; t++)
        pair.dense_bytes += states->old[t].bytes;
    pair.tensor_changed = calloc(states->count + 1, sizeof *pair.tensor_changed);
    status = pair.tensor_changed
                 ? lay_out(&job, pair.dense_bytes, pool ? ulp_pool_threads(pool) : 1)
                 : out_of_memory();
    if (!status)
        status = ulp_pool_run(pool, job.piece_count, count_piece, &job, progress);
    if (!status) {
        conclude(&job, &pair);
        *ret_pair = pair;
    } else {
        study_pair_release(&pair);
    }
    release(&job);
    return status;
}

void study_pair_release(struct study_pair *pair) {
    for (size_t k = 0; k < pair->kind_count; k++)
        free(pair->kinds[k]);
    free(pair->tensor_changed);
    memset(pair, 0, sizeof *pair);
}

/* ---- layouts ---- */

static bool same_shape(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

enum ulp_status study_same_layout(const struct ulp_tensor *tensors, size_t count,
                                  const struct ulp_tensor *others, size_t other_count,
                                  const char *name) {
    for (size_t i = 0; i < count || i < other_count; i++) {
        const int order = i >= count         ? 1
                          : i >= other_count ? -1
                                             : strcmp(tensors[i].name, others[i].name);

        if (order)
            return ulp_fail(ULP_E_LAYOUT,
                            "'%s' has %s tensor '%.200s', unlike the first checkpoint", name,
                            order < 0 ? "no" : "a", (order < 0 ? tensors : others)[i].name);
        if (strcmp(tensors[i].dtype, others[i].dtype) != 0)
            return ulp_fail(ULP_E_LAYOUT,
                            "tensor '%.200s' is %s in '%s' and %s in the first checkpoint",
                            tensors[i].name, others[i].dtype, name, tensors[i].dtype);
        if (!same_shape(&tensors[i], &others[i]))
            return ulp_fail(
                ULP_E_LAYOUT,
                "tensor '%.200s' has another shape in '%s' than in the first checkpoint",
                tensors[i].name, name);
    }
    return ULP_OK;
}
