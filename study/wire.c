// SPDX-License-Identifier: Apache-2.0
#include "study/wire.h"

#include "study/gaps.h"

#include <math.h>

static const struct {
    const char *key, *title, *users;
} formats[WIRE_FORMATS] = {
    [WIRE_STATE] = {"state", "whole state", ""},
    [WIRE_STATE_ZSTD] = {"state_zstd", "whole state, zstd -1", ""},
    [WIRE_XOR_ZSTD] = {"xor_zstd", "dense XOR, zstd -1", "slime, miles, SkyRL, stitch"},
    [WIRE_BITMAP] = {"bitmap", "bitmap + values", ""},
    [WIRE_PAIRS] = {"pairs", "32-bit index + value",
                    "TRL raw, vLLM, verl, prime-rl, SparseRL-Sync"},
    [WIRE_GAPS16] = {"gaps16", "16-bit gaps + values", "TRL gap_delta"},
    [WIRE_GAPS] = {"gaps", "gaps + values", ""},
    [WIRE_GAPS_ZSTD] = {"gaps_zstd", "gaps + values, zstd -1", "PULSESync"},
    [WIRE_GAPS_XOR_ZSTD] = {"gaps_xor_zstd", "16-bit gaps + XOR, zstd -1", "NeMo-RL"},
    [WIRE_RICE] = {"rice", "Rice gaps + Rice steps", "PULSEPT1 v2"},
    [WIRE_RICE_CLASSES] = {"rice_classes", "Rice ranks by exponent", "PULSEPT1 v3"},
};

const char *wire_title(enum wire_format format) {
    return formats[format].title;
}

const char *wire_key(enum wire_format format) {
    return formats[format].key;
}

const char *wire_users(enum wire_format format) {
    return formats[format].users;
}

const char *wire_basis_name(enum wire_basis basis) {
    static const char *const names[] = {"not known", "encoded", "counted", "sampled", "estimate"};

    return names[basis];
}

/* ---- runs ---- */

static void add_gap(struct wire_run *run, uint64_t gap) {
    run->gap_most = gap > run->gap_most ? gap : run->gap_most;
    run->gap_bytes += gap_bytes(gap);
    for (unsigned k = 0; k < WIRE_RICE_MAX; k++)
        run->rice_bits[k] += (gap >> k) + 1 + k;
}

uint64_t wire_run_add(struct wire_run *run, uint64_t place, uint64_t start) {
    const uint64_t gap = run->changed ? place - run->last - 1 : place - start;

    if (run->changed)
        add_gap(run, gap);
    else
        run->first = place;
    run->last = place;
    run->changed++;
    return gap;
}

void wire_run_join(struct wire_run *run, const struct wire_run *next) {
    if (!next->changed)
        return;
    add_gap(run, run->changed ? next->first - run->last - 1 : next->first);
    if (!run->changed)
        run->first = next->first;
    run->changed += next->changed;
    run->last = next->last;
    run->gap_most = next->gap_most > run->gap_most ? next->gap_most : run->gap_most;
    run->gap_bytes += next->gap_bytes;
    for (unsigned k = 0; k < WIRE_RICE_MAX; k++)
        run->rice_bits[k] += next->rice_bits[k];
}

/* ---- sizes ---- */

static void add_size(struct wire_sizes *sizes, enum wire_format format, enum wire_basis basis,
                     double bytes) {
    struct wire_size *size = &sizes->formats[format];

    size->basis = basis > size->basis ? basis : size->basis; /* the weakest of its parts */
    size->bytes += bytes;
}

void wire_sizes_tensor(struct wire_sizes *sizes, const struct ulp_tensor *tensor, unsigned width,
                       const struct wire_run *run) {
    const double values = (double)(run->changed * width);
    const uint64_t elements = tensor->bytes / width;
    const uint64_t bitmap = (elements + 7) / 8;
    uint64_t rice = run->rice_bits[0];

    for (unsigned k = 1; k < WIRE_RICE_MAX; k++)
        rice = run->rice_bits[k] < rice ? run->rice_bits[k] : rice;
    add_size(sizes, WIRE_STATE, WIRE_COUNTED, (double)tensor->bytes);
    add_size(sizes, WIRE_BITMAP, WIRE_COUNTED, (double)bitmap + values);
    add_size(sizes, WIRE_PAIRS, WIRE_COUNTED, 4 * (double)run->changed + values);
    add_size(sizes, WIRE_GAPS16, WIRE_COUNTED,
             (run->gap_most > UINT16_MAX ? 4 : 2) * (double)run->changed + values);
    add_size(sizes, WIRE_GAPS, WIRE_COUNTED, (double)run->gap_bytes + values);
    add_size(sizes, WIRE_RICE, WIRE_FORMULA, (double)rice / 8);
}

void wire_sizes_made(struct wire_sizes *sizes, const struct wire_made *made, uint64_t dense_bytes) {
    const enum wire_basis basis = made->sampled == dense_bytes ? WIRE_ENCODED : WIRE_SAMPLED;
    const double scale = made->sampled ? (double)dense_bytes / (double)made->sampled : 0;

    add_size(sizes, WIRE_GAPS_ZSTD, WIRE_ENCODED, (double)made->gaps);
    add_size(sizes, WIRE_GAPS_XOR_ZSTD, WIRE_ENCODED, (double)made->gaps_xor);
    add_size(sizes, WIRE_STATE_ZSTD, basis, scale * (double)made->state);
    add_size(sizes, WIRE_XOR_ZSTD, basis, scale * (double)made->xor_of_state);
}

/* A quotient beyond this is written as so many ones, and the number in full. */
#define RICE_ESCAPE 24u

static double rice_length(uint64_t number, unsigned k, unsigned width) {
    const uint64_t quotient = number >> k;

    return quotient < RICE_ESCAPE ? (double)quotient + 1 + k : RICE_ESCAPE + 8.0 * width;
}

/* Zigzag less one, in Rice codes with the best number of low bits. */
static double rice_steps(const study_steps steps, unsigned width) {
    double best = INFINITY;

    for (unsigned k = 0; k < WIRE_RICE_MAX; k++) {
        double bits = 0;

        for (unsigned s = 0; s < STUDY_SYMBOLS; s++) {
            const uint64_t zigzag = 2 * (study_symbol_size(s) - 1) + (s >= STUDY_SIZES);

            if (steps[s])
                bits += (double)steps[s] * rice_length(zigzag, k, width);
        }
        best = bits < best ? bits : best;
    }
    return best;
}

/* Ranks of changes that are as likely everywhere in their class: the mean length of a Rice code of
 * a geometric distribution is k + 1 / (1 - (1 - p)^(2^k)). */
static double rice_ranks(uint64_t elements, uint64_t changed) {
    const double p = (double)changed / (double)elements;
    double best = INFINITY;

    for (unsigned k = 0; k < WIRE_RICE_MAX; k++) {
        const double bits = k - 1 / expm1(ldexp(log1p(-p), (int)k));

        best = bits < best ? bits : best;
    }
    return best * (double)changed;
}

void wire_sizes_counts(struct wire_sizes *sizes, const struct study_counts *counts) {
    study_steps all = {0};
    double classes = 0;

    for (unsigned e = 0; e < EXPONENT_CELLS; e++) {
        const uint64_t changed = study_total(counts->steps[e], STUDY_SYMBOLS);

        if (!changed)
            continue;
        classes += rice_ranks(counts->elements[e], changed) +
                   rice_steps(counts->steps[e], counts->kind.width);
        for (unsigned s = 0; s < STUDY_SYMBOLS; s++)
            all[s] += counts->steps[e][s];
    }
    add_size(sizes, WIRE_RICE, WIRE_FORMULA, rice_steps(all, counts->kind.width) / 8);
    add_size(sizes, WIRE_RICE_CLASSES, WIRE_FORMULA, classes / 8);
}

void wire_sizes_add(struct wire_sizes *to, const struct wire_sizes *from) {
    for (unsigned f = 0; f < WIRE_FORMATS; f++)
        add_size(to, (enum wire_format)f, from->formats[f].basis, from->formats[f].bytes);
}
