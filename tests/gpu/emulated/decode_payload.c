// SPDX-License-Identifier: Apache-2.0
/*
 * The kernels alone, on payloads that are anything: a block gets a fault exactly if the CPU refuses
 * it, else the same changes; and nothing is touched beside the arrays, each of which is in memory of
 * just its size.
 */
#include "tests/gpu/emulated/device.h"

/* A patch of one tensor, prepared, and what its kernels were given. */
struct bench {
    struct state base, next;
    struct on_device device;
    struct device_weights *weights;
    struct bytes bytes;
    struct ulp_patch *patch;
    struct worker *worker;
    struct device_apply *apply;
    struct cuda_decode decode; /* as the apply's, in memory of its own where it may change */
    struct decode_block *blocks;
    uint8_t *payload;
    size_t payload_bytes, block_count, changes, value_bytes;
};

static void *copy_of(const void *from, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);

    assert_non_null(copy);
    if (bytes)
        memcpy(copy, from, bytes);
    return copy;
}

static void take_arrays(struct bench *bench) {
    const struct cuda_decode *from = device_apply_decode(bench->apply);
    const unsigned width = bench->weights->plan.segments[0].kind.width;

    bench->decode = *from;
    for (unsigned w = 0; w < DECODE_WIDTHS; w++)
        bench->block_count += from->ranges[w].all;
    for (size_t i = 0; i < bench->block_count; i++) {
        const size_t end = (size_t)(from->blocks[i].payload + from->blocks[i].payload_bytes);

        bench->payload_bytes = end > bench->payload_bytes ? end : bench->payload_bytes;
        bench->changes += from->blocks[i].changes;
    }
    bench->value_bytes = bench->changes * width;
    bench->blocks = copy_of(from->blocks, bench->block_count * sizeof *bench->blocks);
    bench->payload = copy_of(from->payload, bench->payload_bytes + DECODE_SLACK);
    bench->decode.blocks = bench->blocks;
    bench->decode.payload = bench->payload;
    bench->decode.tables = malloc(from->table_count * DECODE_STATES * sizeof(uint32_t));
    bench->decode.positions = malloc(bench->changes * sizeof(uint32_t));
    bench->decode.values = malloc(bench->value_bytes);
    bench->decode.sums = calloc(2, sizeof *bench->decode.sums);
    bench->decode.faults = malloc(bench->block_count * sizeof(uint32_t));
    bench->decode.failed = malloc(sizeof(uint32_t));
    assert_ok(cuda_decode_tables(&bench->decode, NULL));
}

static struct bench bench_make(const struct form *form) {
    struct bench bench = {.base = state_make(form, 1, 0)};

    bench.next = state_copy(&bench.base);
    return bench;
}

/* When `next` is what it is to be. */
static void bench_start(struct bench *bench) {
    const struct ulp_diff_options options = {.coder = ULP_CODER_CONTEXT};

    bench->bytes = patch_between(&bench->base, &bench->next, &options);
    bench->patch = open_bytes(&bench->bytes);
    bench->device = device_copy(&bench->base, 0);
    bench->weights = device_weights_of(&bench->device);
    assert_ok(workers_take(bench->weights->weights->workers, 1u << 18, &bench->worker));
    assert_ok(device_apply_prepare(bench->weights, bench->patch, NULL, &bench->apply));
    take_arrays(bench);
}

static void bench_free(struct bench *bench) {
    assert_on_device(&bench->device, &bench->base);
    free(bench->blocks);
    free(bench->payload);
    free(bench->decode.tables);
    free(bench->decode.positions);
    free(bench->decode.values);
    free(bench->decode.sums);
    free(bench->decode.faults);
    free(bench->decode.failed);
    device_apply_free(bench->apply);
    workers_give(bench->weights->weights->workers, bench->worker);
    device_weights_free(bench->weights);
    device_release(&bench->device);
    ulp_patch_free(bench->patch);
    bytes_free(&bench->bytes);
    state_free(&bench->base);
    state_free(&bench->next);
}

static uint32_t run_kernels(struct bench *bench) {
    memset(bench->decode.faults, 0, bench->block_count * sizeof(uint32_t));
    *bench->decode.failed = 0;
    assert_ok(cuda_decode_payload(&bench->decode, NULL));
    assert_ok(cuda_decode_scan(&bench->decode, NULL));
    return *bench->decode.failed;
}

/* What the CPU makes of the first block with these bytes. */
static enum ulp_status decode_here(const struct bench *bench, uint32_t *positions, void *values,
                                   uint32_t *ret_count) {
    struct table_chunk *chunk = &bench->patch->table.chunks[0];
    struct code_block old = {.old = bench->base.tensors[0].data,
                             .elements = bench->weights->plan.blocks[0].elements};
    struct code_segment *segment = NULL;
    enum ulp_status status;

    chunk->checksum = patch_checksum(bench->bytes.data + chunk->offset, (size_t)chunk->bytes);
    assert_ok(patch_chunk(bench->patch, 0, bench->worker, &segment));
    status = code_decode(segment, bench->worker->scratch, 0, &old, positions, values, ret_count);
    code_close(segment);
    return status;
}

/* The device's list, which ascends, against the CPU's. */
static void assert_same_changes(const struct bench *bench, const uint32_t *positions,
                                const uint8_t *values, uint32_t count) {
    const unsigned width = bench->weights->plan.segments[0].kind.width;

    assert_int_equal(count, bench->changes);
    assert_memory_equal(positions, bench->decode.positions, count * sizeof *positions);
    assert_memory_equal(values, bench->decode.values, (size_t)count * width);
}

/* Both decode the block with one bit flipped; returns how many flips both refused. */
static unsigned flip_every_bit(struct bench *bench) {
    const size_t room = bench->weights->plan.blocks[0].elements;
    uint32_t *positions = malloc(room * sizeof *positions), count = 0;
    uint8_t *values = malloc(room * 8);
    unsigned refused = 0;

    assert_int_equal(bench->block_count, 1);
    assert_int_equal(run_kernels(bench), 0);
    for (size_t bit = 0; bit < 8 * (size_t)bench->blocks[0].payload_bytes; bit++) {
        const size_t byte = (size_t)bench->blocks[0].payload + bit / 8;
        const uint8_t mask = (uint8_t)(1u << bit % 8);
        enum ulp_status expected;
        uint32_t failed;

        bench->payload[byte] ^= mask;
        bench->bytes.data[byte] ^= mask;
        expected = decode_here(bench, positions, values, &count);
        failed = run_kernels(bench);
        if ((expected != ULP_OK) != (failed != 0))
            fail_msg("bit %zu: the CPU says %s, the device fault %u", bit,
                     ulp_status_name(expected), bench->decode.faults[0]);
        if (!failed)
            assert_same_changes(bench, positions, values, count);
        refused += failed;
        bench->payload[byte] ^= mask;
        bench->bytes.data[byte] ^= mask;
    }
    free(positions);
    free(values);
    return refused;
}

/* All elements step by half of all there is: the value next to theirs is one too wide. */
static void test_widest_values(void **unused) {
    static const struct form forms[] = {{"a", "F8_E4M3", {5}, 1, 0},
                                        {"a", "I16", {4}, 1, 0},
                                        {"a", "F32", {3}, 1, 0},
                                        {"a", "F64", {3}, 1, 0}};

    (void)unused;
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct bench bench = bench_make(&forms[i]);
        const size_t bytes = (size_t)bench.next.tensors[0].bytes;
        const size_t width = bytes / (size_t)forms[i].shape[0];

        for (size_t at = width - 1; at < bytes; at += width)
            ((uint8_t *)(uintptr_t)bench.next.tensors[0].data)[at] ^= 0x80;
        bench_start(&bench);
        assert_true(flip_every_bit(&bench) > 80);
        bench_free(&bench);
    }
}

/* Gaps with extra bits, between changes and, where most elements change, between those that do not. */
static void test_gaps(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {200}, 1, 0}, {"a", "I8", {200}, 1, 0}};
    static const unsigned per_mille[] = {30, 970};

    (void)unused;
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct bench bench = bench_make(&forms[i]);
        uint8_t *data = bench.next.tensors[0].data;
        const size_t width = i ? 1 : 2;

        for (size_t k = 0; k < 200; k++) {
            if (k < 160 ? test_random() % 1000 < per_mille[i] : i && k != 173 && k != 198)
                data[k * width] ^= 1; /* a gap of 24 at the end; of 26 leads out of the block */
        }
        bench_start(&bench);
        assert_true(flip_every_bit(&bench) > 80);
        bench_free(&bench);
    }
}

/* A payload that begins a byte too early or too late, or ends elsewhere. */
static void test_lengths(void **unused) {
    static const struct form form = {"a", "BF16", {900}, 1, 0};
    struct bench bench = bench_make(&form);

    (void)unused;
    state_step(&bench.next, 60);
    bench_start(&bench);
    assert_int_equal(run_kernels(&bench), 0);
    bench.blocks[0].payload--;
    bench.blocks[0].payload_bytes++;
    assert_int_equal(run_kernels(&bench), 1);
    assert_int_equal(bench.decode.faults[0], DECODE_LENGTH);
    bench.blocks[0].payload += 2;
    bench.blocks[0].payload_bytes -= 2;
    assert_int_equal(run_kernels(&bench), 1);
    bench.blocks[0].payload_bytes = 3; /* not even the states */
    assert_int_equal(run_kernels(&bench), 1);
    bench.payload[bench.blocks[0].payload + 2] = 0;
    assert_int_equal(run_kernels(&bench), 1);
    assert_int_equal(bench.decode.faults[0], DECODE_NO_END);
    bench_free(&bench);
}

/* Stretches of any length become anything. */
static void test_random_payloads(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {3000}, 1, 0}, {"a", "F64", {200}, 1, 0}};
    static const unsigned per_mille[] = {200, 960};

    (void)unused;
    for (unsigned turn = 0; turn < 2; turn++) {
        struct bench bench = bench_make(&forms[turn]);

        state_step(&bench.next, per_mille[turn]);
        bench_start(&bench);
        assert_int_equal(run_kernels(&bench), 0);
        for (unsigned i = 0; i < 20; i++) {
            const size_t from = (size_t)(test_random() % bench.payload_bytes);
            const size_t left = bench.payload_bytes - from;
            const size_t bytes = 1 + (size_t)(test_random() % (i % 2 ? left : 1 + left / 20));
            uint8_t *kept = copy_of(bench.payload + from, bytes);

            if (i % 4 == 0)
                memset(bench.payload + from, i % 8 ? 0xff : 0, bytes);
            else
                test_random_bytes(bench.payload + from, bytes);
            (void)run_kernels(&bench);
            memcpy(bench.payload + from, kept, bytes);
            free(kept);
        }
        assert_int_equal(run_kernels(&bench), 0);
        bench_free(&bench);
    }
}

TEST_MAIN(test_widest_values, test_gaps, test_lengths, test_random_payloads)
