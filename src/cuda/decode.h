// SPDX-License-Identifier: Apache-2.0
/*
 * Decoding on the device. The host has parsed and checked headers and directories; what they say is
 * uploaded as the arrays below. Then, each a launch or one for each width of elements:
 *
 *     tables     of the entropy coder, from the models                        decode_tables.cu
 *     payload    entropy decoding: ranks within classes, and steps            decode_payload.cu
 *     scan       over the old elements: ranks become positions, steps become  decode_scan.cu
 *                new elements; how the sums of the pieces change; lists in order
 *     remember   how the elements move, for the next patch with history       decode_apply.cu
 *     swap       writes the new elements and leaves the old ones in the list  decode_apply.cu
 *
 * All but the last leave the weights alone. The bytes of payloads are hostile: whatever they are,
 * nothing outside of these arrays is read or written, and a block that cannot be gets a fault. The
 * CPU's decoder (code/payload_read.c, code/context_scan.c) defines everything.
 *
 * All launchers enqueue on `stream`, a cudaStream_t, and return at once; ULP_E_DEVICE when a
 * launch is refused.
 */
#ifndef CUDA_DECODE_H
#define CUDA_DECODE_H

#include "cuda/plan.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As in the room code, whose headers are for C; gpu/coded.c makes sure that they agree. */
#define DECODE_CLASSES 16u
#define DECODE_BLOCK_MAX (1u << 18)
#define DECODE_STATES 1024u
#define DECODE_GAP_SYMBOLS 76u
#define DECODE_VALUE_SYMBOLS 136u

/* More bytes than the numbers of any block can take: a gap or value of at most 72 bits for each
 * element, eight states and the mark at the end. Positions in a payload then fit 32 bits. */
#define DECODE_PAYLOAD_MAX (2u * DECODE_BLOCK_MAX * 9u + 16u)

/* Bytes that must be readable behind the last payload. */
#define DECODE_SLACK 144u

/* Elements are 1, 2, 4 or 8 bytes wide; arrays by width are indexed with its logarithm. */
#define DECODE_WIDTHS 4u

/* What a table of the entropy coder is made of. */
struct decode_model {
    uint32_t shares; /* of values: where the shares of its symbols begin */
    uint16_t rate;   /* of gaps */
    uint8_t top;     /* the largest symbol */
    uint8_t gaps;    /* 1, or 0 for values */
};

struct decode_segment {
    uint32_t classes, flipped;
    struct code_kind kind;
    uint32_t gap_table[DECODE_CLASSES], value_table[DECODE_CLASSES]; /* numbers of models */
    uint8_t class_of[CELLS];
};

struct decode_block {
    uint64_t payload; /* where its bytes begin */
    uint64_t first;   /* of its changes, in the list of positions */
    uint64_t values;  /* byte where their values begin */
    uint64_t moves;   /* where its elements' previous moves begin */
    uint32_t payload_bytes;
    uint32_t changes, move_count;
    uint32_t counts;  /* where its counts begin: events of each class, then changes of each */
    uint32_t segment; /* in `segments` */
    uint32_t block;   /* in the plan */
};

/* Blocks [first, first + coded) of a width are decoded here; behind them, up to first + all, are
 * those whose changes the host decoded, which are only swapped and remembered. */
struct decode_range {
    uint32_t first, coded, all;
};

/* The previous move of an element: its position in the block, times 256, and what it moved, clipped
 * to a byte. Ascending in a block. */
typedef uint32_t decode_move;

/* What is wrong with a block; 0 is nothing. */
enum decode_fault {
    DECODE_NO_END = 1, /* its payload has no mark */
    DECODE_GAP = 2,    /* a gap leads out of it */
    DECODE_VALUE = 3,  /* a value is wider than the elements */
    DECODE_STATE = 4,  /* its payload does not end where it began */
    DECODE_LENGTH = 5, /* its payload is too long or too short */
    DECODE_MISFIT = 6  /* its events do not fit these weights */
};

/* All pointers are device memory. */
struct cuda_decode {
    const struct cuda_block *plan;
    const struct decode_model *models;
    const uint16_t *shares;
    uint32_t *tables; /* DECODE_STATES for each model */
    uint32_t table_count;
    const struct decode_segment *segments;
    const struct decode_block *blocks;
    struct decode_range ranges[DECODE_WIDTHS];
    const uint32_t *counts;
    const uint8_t *payload;   /* aligned to 16 bytes */
    const decode_move *moves; /* what the elements did before; NULL without history */
    uint32_t *positions;      /* of the changes: ranks between payload and scan */
    uint8_t *values;          /* steps between payload and scan; aligned to 8 bytes */
    unsigned long long *sums; /* two for each piece of the plan; the differences are added */
    uint32_t *faults;         /* one for each of `blocks`, zero before */
    uint32_t *failed;         /* how many have one; zero before */
    const struct cuda_place
        *places; /* of the plan's blocks, for regions (cuda/place.h); else NULL */
};

enum ulp_status cuda_decode_tables(const struct cuda_decode *decode, void *stream);
enum ulp_status cuda_decode_payload(const struct cuda_decode *decode, void *stream);
enum ulp_status cuda_decode_scan(const struct cuda_decode *decode, void *stream);

/* How the elements are about to move, as the next patch's `moves`: those of a block begin at its
 * `first`. To be called before the swap. */
enum ulp_status cuda_decode_remember(const struct cuda_decode *decode, decode_move *moves,
                                     void *stream);

/*
 * Writes the values and leaves in their place what was there before, so that doing it again undoes
 * it. `poisoned`, a word that the device can write and others may share, is 1 from before the first
 * write until after the last, and stays so if the device or the process dies between.
 */
enum ulp_status cuda_decode_swap(const struct cuda_decode *decode, uint32_t *poisoned,
                                 void *stream);

#ifdef __cplusplus
}
#endif

#endif
