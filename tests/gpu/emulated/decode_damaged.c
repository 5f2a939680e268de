// SPDX-License-Identifier: Apache-2.0
/*
 * Damage that no checksum shows: whatever the CPU says of it, the device says, too; nothing is
 * written to the weights, and nothing is touched that is not the kernels' own.
 */
#include "tests/gpu/emulated/device.h"

static const struct form forms[] = {{"a", "F32", {300}, 1, 0},
                                    {"b", "BF16", {40, 60}, 2, 0},
                                    {"c", "F8_E4M3", {900}, 1, 0},
                                    {"d", "F64", {150}, 1, 0}};

/* A good patch, and weights here and there that it fits. */
struct bench {
    struct state base, live;
    struct on_device device;
    struct ulp_weights *host;
    struct device_weights *weights;
    struct bytes bytes;
    struct ulp_patch *patch;
};

/* With history both have come a step already. */
static struct bench bench_make(unsigned per_mille, enum ulp_coder coder, int history) {
    const struct ulp_apply_options remember = {.remember = 1};
    const struct ulp_diff_options options = {.coder = coder, .history = history};
    struct bench bench = {.base = state_make(forms, COUNT(forms), 0)};
    struct state next = state_copy(&bench.base);

    bench.live = state_copy(&bench.base);
    bench.device = device_copy(&bench.base, 0);
    bench.host = weights_of(&bench.live);
    bench.weights = device_weights_of(&bench.device);
    if (history) {
        struct device_apply *apply = NULL;

        state_step(&next, per_mille);
        bench.bytes = patch_to(bench.host, &next, NULL);
        bench.patch = open_bytes(&bench.bytes);
        assert_ok(device_apply_prepare(bench.weights, bench.patch, &remember, &apply));
        assert_ok(device_apply_commit(apply, NULL));
        assert_ok(ulp_apply(bench.host, bench.patch, &remember, NULL));
        device_apply_free(apply);
        ulp_patch_free(bench.patch);
        bytes_free(&bench.bytes);
        memcpy(bench.base.data, next.data, next.bytes);
    }
    state_step(&next, per_mille);
    bench.bytes = patch_to(bench.host, &next, &options);
    bench.patch = open_bytes(&bench.bytes);
    state_free(&next);
    return bench;
}

static void bench_free(struct bench *bench) {
    assert_on_device(&bench->device, &bench->base);
    assert_same_weights(bench->weights, bench->host);
    ulp_patch_free(bench->patch);
    bytes_free(&bench->bytes);
    device_weights_free(bench->weights);
    ulp_weights_free(bench->host);
    device_release(&bench->device);
    state_free(&bench->live);
    state_free(&bench->base);
}

/* The checksum of a chunk is made right again in the table that was read. */
static void mend(struct bench *bench, size_t chunk) {
    struct table_chunk *entry = &bench->patch->table.chunks[chunk];

    entry->checksum = patch_checksum(bench->bytes.data + entry->offset, (size_t)entry->bytes);
}

/* Both prepare; returns what both say. */
static enum ulp_status both(struct bench *bench) {
    struct ulp_apply *apply = NULL;
    struct device_apply *on_device = NULL;
    enum ulp_status expected = ulp_apply_prepare(bench->host, bench->patch, NULL, &apply);
    enum ulp_status status = device_apply_prepare(bench->weights, bench->patch, NULL, &on_device);

    if (status != expected)
        fail_msg("the device says %s: %s; the CPU said %s", ulp_status_name(status),
                 ulp_last_error(), ulp_status_name(expected));
    ulp_apply_free(apply);
    device_apply_free(on_device);
    return status;
}

/* Flips of `bits` bits of a chunk at random, one at a time; returns how many were refused. */
static unsigned flip_some(struct bench *bench, unsigned times) {
    const struct table *table = &bench->patch->table;
    unsigned refused = 0;

    for (unsigned i = 0; i < times; i++) {
        const size_t chunk = (size_t)(test_random() % table->grid.chunk_count);
        const struct table_chunk *entry = &table->chunks[chunk];
        const size_t bit = (size_t)(test_random() % (8 * entry->bytes));
        uint8_t *byte = bench->bytes.data + entry->offset + bit / 8;

        *byte ^= (uint8_t)(1u << bit % 8);
        mend(bench, chunk);
        refused += both(bench) != ULP_OK;
        *byte ^= (uint8_t)(1u << bit % 8);
        mend(bench, chunk);
    }
    return refused;
}

static void test_flipped_bits(void **unused) {
    static const struct {
        unsigned per_mille;
        enum ulp_coder coder;
        int history;
    } cases[] = {{60, ULP_CODER_CONTEXT, 0},
                 {300, ULP_CODER_CONTEXT, 1},
                 {960, ULP_CODER_CONTEXT, 0},
                 {60, ULP_CODER_PLAIN, 0},
                 {60, ULP_CODER_DENSE, 0}};

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const unsigned times = cases[i].coder == ULP_CODER_CONTEXT ? 20 : 5;
        struct bench bench = bench_make(cases[i].per_mille, cases[i].coder, cases[i].history);

        assert_int_equal(both(&bench), ULP_OK);
        assert_true(flip_some(&bench, times) >= times - 1); /* padding is all that may differ */
        assert_int_equal(both(&bench), ULP_OK);
        bench_free(&bench);
    }
}

/* Weights that are not the base, though their root says so: the events do not fit, or the sums show
 * it. */
static void test_other_weights(void **unused) {
    struct bench bench = bench_make(100, ULP_CODER_CONTEXT, 0);
    unsigned said[64] = {0};

    (void)unused;
    for (unsigned i = 0; i < 12; i++) {
        const size_t tensor = i % COUNT(forms);
        const size_t byte = (size_t)(test_random() % bench.live.tensors[tensor].bytes);
        const uint8_t mask = (uint8_t)(1u << test_random() % 8);
        uint8_t *here = (uint8_t *)(uintptr_t)bench.live.tensors[tensor].data + byte;
        uint8_t *there = (uint8_t *)(uintptr_t)bench.device.tensors[tensor].data + byte;

        *here ^= mask;
        *there ^= mask;
        said[both(&bench)]++;
        *here ^= mask;
        *there ^= mask;
    }
    assert_true(said[ULP_E_WRONG_RESULT] + said[ULP_E_CODE] > 0);
    bench_free(&bench);
}

/* ---- the kernels alone, each array in memory of just its size ---- */

struct arrays {
    struct cuda_decode decode;
    uint8_t *payload;
    size_t payload_bytes, blocks, changes, value_bytes, pieces;
};

static void *copy_of(const void *from, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);

    assert_non_null(copy);
    if (bytes)
        memcpy(copy, from, bytes);
    return copy;
}

static struct arrays arrays_make(const struct bench *bench, const struct cuda_decode *from) {
    struct arrays arrays = {.decode = *from, .pieces = bench->host->grid.piece_count};

    for (unsigned w = 0; w < DECODE_WIDTHS; w++)
        arrays.blocks += from->ranges[w].all;
    for (size_t i = 0; i < arrays.blocks; i++) {
        const struct decode_block *block = &from->blocks[i];
        const struct decode_segment *segment = &from->segments[block->segment];
        const size_t end = (size_t)(block->payload + block->payload_bytes);
        const size_t values = (size_t)block->values + block->changes * segment->kind.width;

        arrays.payload_bytes = end > arrays.payload_bytes ? end : arrays.payload_bytes;
        arrays.value_bytes = values > arrays.value_bytes ? values : arrays.value_bytes;
        arrays.changes += block->changes;
    }
    arrays.payload = copy_of(from->payload, arrays.payload_bytes + DECODE_SLACK);
    arrays.decode.payload = arrays.payload;
    arrays.decode.tables = malloc(from->table_count * DECODE_STATES * sizeof(uint32_t));
    arrays.decode.positions = malloc(arrays.changes * sizeof(uint32_t));
    arrays.decode.values = malloc(arrays.value_bytes);
    arrays.decode.sums = calloc(2 * arrays.pieces, sizeof *arrays.decode.sums);
    arrays.decode.faults = malloc(arrays.blocks * sizeof(uint32_t));
    arrays.decode.failed = malloc(sizeof(uint32_t));
    assert_ok(cuda_decode_tables(&arrays.decode, NULL));
    return arrays;
}

static void arrays_free(struct arrays *arrays) {
    free(arrays->payload);
    free(arrays->decode.tables);
    free(arrays->decode.positions);
    free(arrays->decode.values);
    free(arrays->decode.sums);
    free(arrays->decode.faults);
    free(arrays->decode.failed);
}

static uint32_t run_kernels(struct arrays *arrays) {
    memset(arrays->decode.faults, 0, arrays->blocks * sizeof(uint32_t));
    *arrays->decode.failed = 0;
    assert_ok(cuda_decode_payload(&arrays->decode, NULL));
    assert_ok(cuda_decode_scan(&arrays->decode, NULL));
    return *arrays->decode.failed;
}

static void test_random_payloads(void **unused) {
    for (int turn = 0; turn < 3; turn++) {
        struct bench bench = bench_make(turn == 2 ? 960 : 200, ULP_CODER_CONTEXT, turn == 1);
        struct device_apply *apply = NULL;
        struct arrays arrays;

        (void)unused;
        assert_ok(device_apply_prepare(bench.weights, bench.patch, NULL, &apply));
        arrays = arrays_make(&bench, device_apply_decode(apply));
        assert_int_equal(run_kernels(&arrays), 0);
        for (unsigned i = 0; i < 14; i++) { /* a stretch of any length becomes anything */
            const size_t from = (size_t)(test_random() % arrays.payload_bytes);
            const size_t left = arrays.payload_bytes - from;
            const size_t bytes = 1 + (size_t)(test_random() % (i % 2 ? left : 1 + left / 20));
            uint8_t *kept = copy_of(arrays.payload + from, bytes);

            if (i % 4 == 0)
                memset(arrays.payload + from, i % 8 ? 0xff : 0, bytes);
            else
                test_random_bytes(arrays.payload + from, bytes);
            (void)run_kernels(&arrays);
            memcpy(arrays.payload + from, kept, bytes);
            free(kept);
        }
        assert_int_equal(run_kernels(&arrays), 0);
        arrays_free(&arrays);
        device_apply_free(apply);
        bench_free(&bench);
    }
}

TEST_MAIN(test_flipped_bits, test_other_weights, test_random_payloads)
