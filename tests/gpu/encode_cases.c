// SPDX-License-Identifier: Apache-2.0
/*
 * The device's encoder against the CPU's, byte for byte, chunk by chunk; on a GPU, or on fibers that
 * stand in for one. No test framework, so that it builds where nothing can be installed.
 */
#include "gpu_cases.h"

#include "code/code.h"
#include "cuda/ops.h"
#include "gpu/device_plan.h"
#include "patch/layout.h"
#include "patch/table.h"
#include "patch/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static uint64_t next_random(void) {
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void must(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "%s: %s: %s\n", doing, ulp_status_name(status), ulp_last_error());
    exit(1);
}

static void must_hold(bool holds, const char *what, const char *name, size_t where) {
    if (holds)
        return;
    fprintf(stderr, "%s: %s (%zu)\n", name, what, where);
    exit(1);
}

static void *must_alloc(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);

    if (!memory)
        abort();
    return memory;
}

/* Weights as a network has them: their exponents are spread over a dozen values. */
static uint64_t random_weight(unsigned width, struct code_kind kind) {
    uint64_t random = next_random(), spread = (uint64_t)__builtin_ctzll(next_random() | 1u << 20);

    if (!kind.exponent_bits)
        return random;
    uint64_t middle = (UINT64_C(1) << (kind.exponent_bits - 1)) - 2;
    uint64_t exponent = middle > spread ? middle - spread : 0;
    uint64_t mantissa = random & ((UINT64_C(1) << kind.exponent_shift) - 1);

    return random >> 63 << (8 * width - 1) | exponent << kind.exponent_shift | mantissa;
}

static void put(uint8_t *to, unsigned width, uint64_t value) {
    memcpy(to, &value, width);
}

static uint64_t get(const uint8_t *from, unsigned width) {
    uint64_t value = 0;

    memcpy(&value, from, width);
    return value;
}

/* Small weights, one in 32, nearly always step: their classes are flipped. */
#define SMALL_STEP UINT32_MAX

static bool steps(uint64_t random, uint64_t value, struct code_kind kind, uint32_t every) {
    uint64_t exponent = value >> kind.exponent_shift & ((UINT64_C(1) << kind.exponent_bits) - 1);

    if (every != SMALL_STEP)
        return random % every == 0;
    return exponent + 7 < UINT64_C(1) << (kind.exponent_bits - 1) ? random % 16 != 0 : random % 4096 == 0;
}

/* One element in `every` steps, by little more often than by much. */
static uint64_t stepped(uint64_t value, struct code_kind kind, uint32_t every) {
    uint64_t random = next_random(), size = 1;

    if (!steps(random, value, kind, every))
        return value;
    if (random >> 32 & 1)
        size += (uint64_t)__builtin_ctzll(next_random() | UINT64_C(1) << 40);
    if ((random >> 33 & 1023) == 0)
        size = next_random() | 1;
    return random >> 50 & 1 ? value + size : value - size;
}

struct shape {
    const char *dtype;
    uint64_t elements;
};

struct pair {
    char (*names)[32];
    uint64_t *extents;
    struct ulp_tensor *old, *new; /* host memory */
    size_t count;
};

static struct pair make_pair(const struct shape *shapes, size_t count, uint32_t every) {
    struct pair pair = {.count = count};

    pair.names = must_alloc(count * sizeof *pair.names);
    pair.extents = must_alloc(count * sizeof *pair.extents);
    pair.old = must_alloc(count * sizeof *pair.old);
    pair.new = must_alloc(count * sizeof *pair.new);
    for (size_t i = 0; i < count; i++) {
        struct ulp_tensor *tensor = &pair.old[i];

        snprintf(pair.names[i], sizeof pair.names[i], "t%07zu", i);
        pair.extents[i] = shapes[i].elements;
        *tensor = (struct ulp_tensor){
            .name = pair.names[i], .dtype = shapes[i].dtype, .shape = &pair.extents[i], .rank = 1};
        must(ulp_tensor_measure(tensor), "measuring");
        pair.new[i] = *tensor;
        pair.old[i].data = must_alloc(tensor->bytes);
        pair.new[i].data = must_alloc(tensor->bytes);
        struct code_kind kind = code_kind_of(tensor->dtype, tensor->bits);
        for (uint64_t at = 0; at < tensor->bytes; at += kind.width) {
            uint64_t value = random_weight(kind.width, kind);

            put((uint8_t *)pair.old[i].data + at, kind.width, value);
            put((uint8_t *)pair.new[i].data + at, kind.width, every ? stepped(value, kind, every) : value);
        }
    }
    return pair;
}

static void free_pair(struct pair *pair) {
    for (size_t i = 0; i < pair->count; i++) {
        free(pair->old[i].data);
        free(pair->new[i].data);
    }
    free(pair->names);
    free(pair->extents);
    free(pair->old);
    free(pair->new);
}

/* The same tensors in device memory, `shift` bytes off the alignment. */
static struct ulp_tensor *upload(const struct cuda_ops *ops, const struct ulp_tensor *tensors,
                                 size_t count, size_t shift, void ***ret_memory) {
    struct ulp_tensor *copies = must_alloc(count * sizeof *copies);
    void **memory = must_alloc(count * sizeof *memory);

    for (size_t i = 0; i < count; i++) {
        copies[i] = tensors[i];
        must(ops->memory_new(tensors[i].bytes + shift, &memory[i]), "device memory");
        copies[i].data = (uint8_t *)memory[i] + shift;
        must(ops->copy(copies[i].data, tensors[i].data, tensors[i].bytes, NULL), "uploading");
    }
    *ret_memory = memory;
    return copies;
}

static void release(const struct cuda_ops *ops, struct ulp_tensor *tensors, void **memory, size_t count) {
    for (size_t i = 0; i < count; i++)
        ops->memory_free(memory[i]);
    free(memory);
    free(tensors);
}

/* ---- what the CPU says ---- */

/* History as both sides want it. */
struct history {
    struct code_move *moves; /* of all blocks */
    uint32_t *packed;
    uint64_t *first;
};

static struct history no_history(void) {
    return (struct history){NULL, NULL, NULL};
}

static struct history make_history(const struct grid *grid, uint32_t every) {
    struct history history;
    size_t blocks = 0, count = 0, b = 0;

    for (size_t i = 0; i < grid->chunk_count; i++)
        blocks += grid->chunks[i].blocks;
    history.first = must_alloc((blocks + 1) * sizeof *history.first);
    history.moves = must_alloc((size_t)grid->words * sizeof *history.moves);
    history.packed = must_alloc((size_t)grid->words * sizeof *history.packed);
    for (size_t i = 0; i < grid->chunk_count; i++) {
        struct block_walk walk = block_walk_start(grid, i);

        while (block_walk_next(&walk)) {
            for (uint32_t at = 0; at < walk.words; at++) {
                int move = (int)(next_random() % 80) - 40;

                if (next_random() % every || !move)
                    continue;
                history.moves[count] = (struct code_move){at, (int8_t)move};
                history.packed[count++] = at | (uint32_t)(move + 128) << 18;
            }
            history.first[++b] = count;
        }
    }
    return history;
}

static struct code_block *blocks_of(const struct grid *grid, size_t chunk, const struct pair *pair,
                                    const struct history *history, size_t first_block) {
    struct code_block *blocks = must_alloc(grid->chunks[chunk].blocks * sizeof *blocks);
    struct block_walk walk = block_walk_start(grid, chunk);

    while (block_walk_next(&walk)) {
        const struct grid_piece *piece = &grid->pieces[walk.piece];
        size_t tensor = grid->regions[piece->region].tensor;
        size_t offset = (size_t)(piece->first + walk.first) * grid->chunks[chunk].kind.width;
        struct code_block *block = &blocks[walk.index];

        *block = (struct code_block){.old = (const uint8_t *)pair->old[tensor].data + offset,
                                     .new = (const uint8_t *)pair->new[tensor].data + offset,
                                     .elements = walk.words};
        if (history->moves) {
            size_t b = first_block + walk.index;

            block->moves = history->moves + history->first[b];
            block->move_count = (uint32_t)(history->first[b + 1] - history->first[b]);
        }
    }
    return blocks;
}

static uint64_t count_changes(const struct code_block *blocks, size_t count, unsigned width) {
    uint64_t changes = 0;

    for (size_t b = 0; b < count; b++) {
        for (uint32_t i = 0; i < blocks[b].elements; i++)
            changes += get((const uint8_t *)blocks[b].old + (size_t)width * i, width) !=
                       get((const uint8_t *)blocks[b].new + (size_t)width * i, width);
    }
    return changes;
}

/* ---- comparing ---- */

static void check_chunk(const struct cuda_ops *ops, const char *name, size_t chunk, struct code_kind kind,
                        const struct code_block *blocks, size_t count, bool history,
                        const struct cuda_segment_report *report, const uint8_t *output) {
    struct buffer expected = BUFFER(UINT64_C(1) << 32);
    struct code_encoder *encoder = NULL;
    uint64_t changes = count_changes(blocks, count, kind.width);

    must_hold(report->changes == changes, "another number of changes", name, chunk);
    if (!changes || report->elsewhere) {
        must_hold(!report->bytes, "bytes for nothing", name, chunk);
        return;
    }
    must(code_encoder_new(&encoder), "an encoder");
    must(code_encode(encoder, kind, history ? CODE_HISTORY : CODE_CONTEXT, blocks, count, &expected), "encoding");
    uint8_t *made = must_alloc((size_t)report->bytes);

    must(ops->copy(made, output + report->offset, (size_t)report->bytes, NULL), "downloading");
    must(ops->wait(NULL), "waiting");
    for (size_t i = 0; i < expected.used && i < report->bytes; i++)
        must_hold(made[i] == expected.data[i], "the bytes part here", name, i);
    must_hold(report->bytes == expected.used, "another length", name, (size_t)report->bytes);
    must_hold(report->checksum == patch_checksum(made, (size_t)report->bytes), "another checksum", name, chunk);
    free(made);
    buffer_release(&expected);
    code_encoder_free(encoder);
}

static void check_case(const struct cuda_ops *ops, const char *name, const struct shape *shapes, size_t count,
                       uint32_t every, uint32_t moved_every, size_t shift, struct cuda_encoder_options options) {
    struct pair pair = make_pair(shapes, count, every);
    struct grid grid = {0};
    struct device_plan plan = {0};
    struct cuda_encoder *encoder = NULL;
    void **old_memory, **new_memory;
    struct ulp_tensor *old = upload(ops, pair.old, count, shift, &old_memory);
    struct ulp_tensor *new = upload(ops, pair.new, count, shift, &new_memory);

    must(grid_make(pair.old, count, NULL, 0, &grid), "a grid");
    must(device_plan_make(&grid, old, &plan), "a plan");
    device_plan_set_new(&plan, &grid, new);
    struct history history = moved_every ? make_history(&grid, moved_every) : no_history();
    struct cuda_moves moves = {NULL, NULL};
    void *device_moves = NULL, *device_first = NULL, *device_sums = NULL;
    if (moved_every) {
        size_t moves_bytes = (size_t)history.first[plan.plan.block_count] * 4;

        must(ops->memory_new(moves_bytes, &device_moves), "moves");
        must(ops->memory_new(8 * (size_t)(plan.plan.block_count + 1), &device_first), "moves");
        must(ops->copy(device_moves, history.packed, moves_bytes, NULL), "moves");
        must(ops->copy(device_first, history.first, 8 * (size_t)(plan.plan.block_count + 1), NULL), "moves");
        moves = (struct cuda_moves){device_moves, device_first};
    }
    struct ulp_sum *sums = must_alloc(grid.piece_count * sizeof *sums), *expected = must_alloc(grid.piece_count * sizeof *sums);
    must(weights_digest(&grid, pair.old, NULL, NULL, sums), "digest");
    must(weights_digest(&grid, pair.new, NULL, NULL, expected), "digest");
    must(ops->memory_new(grid.piece_count * sizeof *sums, &device_sums), "sums");
    must(ops->copy(device_sums, sums, grid.piece_count * sizeof *sums, NULL), "sums");

    struct cuda_segment_report *reports = must_alloc(grid.chunk_count * sizeof *reports);
    const uint8_t *output = NULL;
    must(ops->encoder_new(&plan.plan, &options, &encoder), "the device's encoder");
    for (int round = 0; round < 2; round++) { /* its memory is used again */
        must(ops->copy(device_sums, sums, grid.piece_count * sizeof *sums, NULL), "sums");
        must(ops->encoder_run(encoder, plan.blocks, &moves, device_sums, NULL, reports, &output), name);
    }
    uint64_t changes = 0, elsewhere = 0, bytes = 0;
    for (size_t chunk = 0, b = 0; chunk < grid.chunk_count; b += grid.chunks[chunk++].blocks) {
        struct code_block *blocks = blocks_of(&grid, chunk, &pair, &history, b);

        check_chunk(ops, name, chunk, grid.chunks[chunk].kind, blocks, grid.chunks[chunk].blocks, moved_every != 0,
                    &reports[chunk], output);
        free(blocks);
        changes += reports[chunk].changes;
        bytes += reports[chunk].bytes;
        elsewhere += reports[chunk].elsewhere;
    }
    must(ops->copy(sums, device_sums, grid.piece_count * sizeof *sums, NULL), "sums");
    must(ops->wait(NULL), "waiting");
    for (size_t i = 0; i < grid.piece_count; i++)
        must_hold(!memcmp(&sums[i], &expected[i], sizeof *sums), "another sum", name, i);
    printf("encode: %-24s %9llu elements, %8llu changes, %8llu bytes, %llu of %zu chunks elsewhere: equal\n", name,
           (unsigned long long)grid.words, (unsigned long long)changes, (unsigned long long)bytes,
           (unsigned long long)elsewhere, grid.chunk_count);

    ops->encoder_free(encoder);
    ops->memory_free(device_sums);
    ops->memory_free(device_moves);
    ops->memory_free(device_first);
    release(ops, old, old_memory, count);
    release(ops, new, new_memory, count);
    device_plan_release(&plan);
    grid_release(&grid);
    free(history.moves);
    free(history.packed);
    free(history.first);
    free(sums);
    free(expected);
    free(reports);
    free_pair(&pair);
}

void encode_cases(const struct cuda_ops *ops, uint64_t scale) {
    const struct cuda_encoder_options plain = {0};
    const char *dtypes[] = {"BF16", "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "I64", "I32", "U16", "U8"};
    const struct shape one = {"BF16", 300000 * scale};
    struct shape tiny[700], mixed[16];

    random_state = 1;
    check_case(ops, "one tensor", &one, 1, 90, 0, 0, plain);
    check_case(ops, "denser", &one, 1, 20, 0, 0, plain);
    check_case(ops, "flipped classes", &one, 1, SMALL_STEP, 0, 0, plain);
    check_case(ops, "flipped, with history", &one, 1, SMALL_STEP, 40, 0, plain);
    check_case(ops, "nothing changes", &one, 1, 0, 0, 0, plain);
    check_case(ops, "with history", &one, 1, 60, 50, 0, plain);
    check_case(ops, "off the alignment", &one, 1, 90, 70, 2, plain);
    check_case(ops, "an eighth and more", &one, 1, 4, 0, 0, plain);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        struct shape shape = {dtypes[i], 70001 * scale};

        check_case(ops, dtypes[i], &shape, 1, 40, i % 2 ? 30 : 0, 0, plain);
    }
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++)
        tiny[i] = (struct shape){i % 5 ? "BF16" : "F32", next_random() % 90};
    check_case(ops, "tiny tensors", tiny, sizeof tiny / sizeof *tiny, 30, 0, 0, plain);
    check_case(ops, "tiny, with history", tiny, sizeof tiny / sizeof *tiny, 30, 10, 0, plain);
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        mixed[i] = (struct shape){dtypes[next_random() % 10], next_random() % (20000 * scale)};
    check_case(ops, "mixed", mixed, sizeof mixed / sizeof *mixed, 50, 0, 0, plain);
}
