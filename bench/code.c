// SPDX-License-Identifier: Apache-2.0
/*
 * The codec against the limits of memory: bench_code [MEGABYTES]
 * Encodes and decodes one step of a synthetic run of that size, one thread, best of several rounds.
 */
#include "code/code.h"
#include "bench/limits.h"
#include "synth/generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ulpsync/ulpsync.h>

#define ROUNDS 5
#define SEGMENT_BLOCKS (CODE_SEGMENT_MAX / CODE_BLOCK_MAX)

struct states {
    uint16_t *old, *new;
    size_t elements;         /* whole blocks */
    struct code_move *moves; /* into the old state, if there is history */
    uint32_t *move_counts;   /* of each block */
};

struct tools {
    struct code_encoder *encoder;
    struct code_scratch *scratch;
    enum code_coder coder;
};

struct result {
    double encode_s, decode_s;
    uint64_t bytes, changes;
};

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(enum ulp_status status) {
    if (!status)
        return;
    fprintf(stderr, "bench_code: %s\n", ulp_last_error());
    exit(1);
}

static void *memory(size_t count, size_t size) {
    void *memory = calloc(count, size);

    if (!memory)
        must(ulp_fail(ULP_E_NOMEM, "out of memory"));
    return memory;
}

/* What the elements of a part of a block did: steps of the bit pattern. */
static uint32_t find_moves(const uint16_t *earlier, const uint16_t *old, uint32_t first,
                           struct code_move *to) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < SYNTH_BLOCK_ELEMENTS; i++) {
        int move = (int16_t)(uint16_t)(old[i] - earlier[i]);

        move = move > 127 ? 127 : move < -127 ? -127 : move;
        if (move)
            to[count++] = (struct code_move){first + i, (int8_t)move};
    }
    return count;
}

static struct states make_states(enum synth_regime regime, size_t elements) {
    static uint16_t earlier[SYNTH_BLOCK_ELEMENTS];
    const struct synth_run run = {regime, SYNTH_DT_BF16, regime == SYNTH_MASTER ? 1e-6f : 3e-6f, 1};
    struct synth_block *block = memory(1, sizeof *block);
    struct states states = {memory(elements, 2), memory(elements, 2), elements,
                            memory(elements, sizeof(struct code_move)),
                            memory(elements / CODE_BLOCK_MAX, sizeof(uint32_t))};
    size_t moves = 0;

    for (size_t at = 0; at < elements; at += SYNTH_BLOCK_ELEMENTS) {
        uint32_t found;

        synth_block_start(block, &run, SYNTH_KIND_MATRIX, 0, at / SYNTH_BLOCK_ELEMENTS,
                          SYNTH_BLOCK_ELEMENTS, SYNTH_MATRIX_SCALE);
        synth_block_emit(block, &run, earlier);
        synth_block_step(block, &run);
        synth_block_emit(block, &run, states.old + at);
        synth_block_step(block, &run);
        synth_block_emit(block, &run, states.new + at);
        found = find_moves(earlier, states.old + at, (uint32_t)(at % CODE_BLOCK_MAX),
                           states.moves + moves);
        states.move_counts[at / CODE_BLOCK_MAX] += found;
        moves += found;
    }
    free(block);
    return states;
}

/* One segment, both ways. */
static void code_segment(const struct tools *tools, const struct code_block *blocks, size_t count,
                         struct buffer *bytes, struct result *result) {
    static uint32_t positions[CODE_BLOCK_MAX];
    static uint16_t values[CODE_BLOCK_MAX];
    const struct code_kind kind = code_kind_of("BF16", 16);
    uint32_t elements[SEGMENT_BLOCKS];
    struct code_segment *segment = NULL;
    uint32_t changes = 0;
    double start;

    for (size_t b = 0; b < count; b++)
        elements[b] = blocks[b].elements;
    buffer_clear(bytes);
    start = now();
    must(code_encode(tools->encoder, kind, tools->coder, blocks, count, bytes));
    result->encode_s += now() - start;
    result->bytes += bytes->used;
    start = now();
    must(code_open(kind, elements, count, bytes->data, bytes->used, &segment));
    for (size_t b = 0; b < count; b++) {
        must(code_decode(segment, tools->scratch, b, &blocks[b], positions, values, &changes));
        result->changes += changes;
    }
    code_close(segment);
    result->decode_s += now() - start;
}

static struct code_block *make_blocks(const struct states *states, bool history) {
    size_t count = states->elements / CODE_BLOCK_MAX;
    struct code_block *blocks = memory(count, sizeof *blocks);
    const struct code_move *moves = states->moves;

    for (size_t b = 0; b < count; b++) {
        size_t at = b * CODE_BLOCK_MAX;

        blocks[b] = (struct code_block){
            .old = states->old + at, .new = states->new + at, .elements = CODE_BLOCK_MAX};
        if (history) {
            blocks[b].moves = moves;
            blocks[b].move_count = states->move_counts[b];
            moves += states->move_counts[b];
        }
    }
    return blocks;
}

static struct result run_all(const struct tools *tools, const struct code_block *blocks,
                             size_t count) {
    struct buffer bytes = BUFFER((size_t)1 << 32);
    struct result result = {0};

    for (size_t b = 0; b < count; b += SEGMENT_BLOCKS)
        code_segment(tools, blocks + b, count - b < SEGMENT_BLOCKS ? count - b : SEGMENT_BLOCKS,
                     &bytes, &result);
    buffer_release(&bytes);
    return result;
}

static void least(double seconds, double *least) {
    *least = seconds < *least ? seconds : *least;
}

/* The limits are measured in the same rounds: machines differ from one moment to the next. */
static void bench(const char *name, const struct states *states, enum code_coder coder) {
    const size_t elements = states->elements;
    const double bytes = 2.0 * (double)elements;
    double compare = 1e9, read = 1e9, encode = 1e9, decode = 1e9, start;
    struct code_block *blocks = make_blocks(states, coder == CODE_HISTORY);
    struct tools tools = {.coder = coder};
    struct result result = {0};
    volatile uint64_t sink;

    must(code_encoder_new(&tools.encoder));
    must(code_scratch_new(&tools.scratch));
    for (int round = 0; round < ROUNDS; round++) {
        start = now();
        sink = limit_compare(states->old, states->new, 2 * elements, 512);
        least(now() - start, &compare);
        start = now();
        sink = limit_read(states->old, 2 * elements, 512);
        least(now() - start, &read);
        result = run_all(&tools, blocks, elements / CODE_BLOCK_MAX);
        least(result.encode_s, &encode);
        least(result.decode_s, &decode);
    }
    (void)sink;
    printf("%-15s %6.3f bits per change, %5.2f %% changed; encode %6.2f GB/s, %4.1f %% of the "
           "compare (%.2f); decode %6.2f GB/s, %4.1f %% of the read (%.2f)\n",
           name, 8.0 * (double)result.bytes / (double)result.changes,
           100.0 * (double)result.changes / (double)elements, bytes / encode / 1e9,
           100 * compare / encode, bytes / compare / 1e9, bytes / decode / 1e9, 100 * read / decode,
           bytes / read / 1e9);
    code_encoder_free(tools.encoder);
    code_scratch_free(tools.scratch);
    free(blocks);
}

static void bench_regime(const char *name, const char *name_with_history, enum synth_regime regime,
                         size_t elements) {
    struct states states = make_states(regime, elements);

    bench(name, &states, CODE_CONTEXT);
    bench(name_with_history, &states, CODE_HISTORY);
    if (regime == SYNTH_MASTER) {
        bench("plain", &states, CODE_PLAIN);
        bench("dense", &states, CODE_DENSE);
    }
    free(states.old);
    free(states.new);
    free(states.moves);
    free(states.move_counts);
}

int main(int argc, char **argv) {
    size_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 512;
    size_t elements = megabytes * 524288 / CODE_BLOCK_MAX * CODE_BLOCK_MAX;

    if (!elements) {
        fprintf(stderr, "usage: bench_code [MEGABYTES]\n");
        return 2;
    }
    printf("\ncodec, %zu MiB of BF16, one thread, %s\n", megabytes, ulp_cpu());
    bench_regime("master", "master, history", SYNTH_MASTER, elements);
    bench_regime("bf16", "bf16, history", SYNTH_BF16, elements);
    return 0;
}
