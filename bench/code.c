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
    size_t elements; /* whole blocks */
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

static struct states make_states(enum synth_regime regime, size_t elements) {
    const struct synth_run run = {regime, SYNTH_DT_BF16, regime == SYNTH_MASTER ? 1e-6f : 3e-6f, 1};
    struct synth_block *block = malloc(sizeof *block);
    struct states states = {malloc(elements * 2), malloc(elements * 2), elements, CODE_CONTEXT};

    if (!block || !states.old || !states.new)
        must(ulp_fail(ULP_E_NOMEM, "out of memory"));
    for (size_t at = 0; at < elements; at += SYNTH_BLOCK_ELEMENTS) {
        synth_block_start(block, &run, SYNTH_KIND_MATRIX, 0, at / SYNTH_BLOCK_ELEMENTS,
                          SYNTH_BLOCK_ELEMENTS, SYNTH_MATRIX_SCALE);
        synth_block_emit(block, &run, states.old + at);
        synth_block_step(block, &run);
        synth_block_emit(block, &run, states.new + at);
    }
    free(block);
    return states;
}

/* One segment, both ways. */
static void code_segment(struct code_encoder *encoder, const struct states *states, size_t first,
                         struct buffer *bytes, struct result *result) {
    static uint32_t positions[CODE_BLOCK_MAX];
    static uint16_t values[CODE_BLOCK_MAX];
    const struct code_kind kind = code_kind_of("BF16", 16);
    struct code_block blocks[SEGMENT_BLOCKS];
    uint32_t elements[SEGMENT_BLOCKS];
    struct code_segment *segment = NULL;
    uint32_t changes = 0;
    size_t count = 0;
    double start;

    for (size_t at = first; at < states->elements && count < SEGMENT_BLOCKS; at += CODE_BLOCK_MAX) {
        elements[count] = CODE_BLOCK_MAX;
        blocks[count++] =
            (struct code_block){states->old + at, states->new + at, CODE_BLOCK_MAX, NULL, 0};
    }
    buffer_clear(bytes);
    start = now();
    must(code_encode(encoder, kind, states->coder, blocks, count, bytes));
    result->encode_s += now() - start;
    result->bytes += bytes->used;
    start = now();
    must(code_open(kind, elements, count, bytes->data, bytes->used, &segment));
    for (size_t b = 0; b < count; b++) {
        must(code_decode(segment, NULL, b, &blocks[b], positions, values, &changes));
        result->changes += changes;
    }
    code_close(segment);
    result->decode_s += now() - start;
}

static struct result run_all(struct code_encoder *encoder, const struct states *states) {
    struct buffer bytes = BUFFER((size_t)1 << 32);
    struct result result = {0};

    for (size_t first = 0; first < states->elements; first += CODE_SEGMENT_MAX)
        code_segment(encoder, states, first, &bytes, &result);
    buffer_release(&bytes);
    return result;
}

static void bench(const char *name, enum synth_regime regime, enum code_coder coder,
                  size_t elements) {
    struct states states = make_states(regime, elements);
    const double bytes = 2.0 * (double)elements;
    double compare = 1e9, read = 1e9, encode = 1e9, decode = 1e9, start;
    struct code_encoder *encoder = NULL;
    struct result result = {0};
    volatile uint64_t sink;

    states.coder = coder;
    must(code_encoder_new(&encoder));
    for (int round = 0; round < ROUNDS; round++) {
        start = now();
        sink = limit_compare(states.old, states.new, 2 * elements, 512);
        compare = now() - start < compare ? now() - start : compare;
        start = now();
        sink = limit_read(states.old, 2 * elements, 512);
        read = now() - start < read ? now() - start : read;
        result = run_all(encoder, &states);
        encode = result.encode_s < encode ? result.encode_s : encode;
        decode = result.decode_s < decode ? result.decode_s : decode;
    }
    (void)sink;
    printf(
        "%-7s %6.3f bits per change, %5.2f %% changed; encode %6.2f GB/s, %4.1f %% of the compare; "
        "decode %6.2f GB/s, %4.1f %% of the read\n",
        name, 8.0 * (double)result.bytes / (double)result.changes,
        100.0 * (double)result.changes / (double)elements, bytes / encode / 1e9,
        100 * compare / encode, bytes / decode / 1e9, 100 * read / decode);
    code_encoder_free(encoder);
    free(states.old);
    free(states.new);
}

int main(int argc, char **argv) {
    size_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 512;
    size_t elements = megabytes * 524288 / CODE_BLOCK_MAX * CODE_BLOCK_MAX;

    if (!elements) {
        fprintf(stderr, "usage: bench_code [MEGABYTES]\n");
        return 2;
    }
    printf("\ncodec, %zu MiB of BF16, one thread, %s\n", megabytes, ulp_cpu());
    bench("master", SYNTH_MASTER, CODE_CONTEXT, elements);
    bench("bf16", SYNTH_BF16, CODE_CONTEXT, elements);
    bench("plain", SYNTH_MASTER, CODE_PLAIN, elements);
    bench("dense", SYNTH_MASTER, CODE_DENSE, elements);
    return 0;
}
