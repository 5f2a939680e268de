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

/* ---- weights that are not the base, though their root says so ---- */

/* Odd exponents change more often, so that there are two classes; with 1000 the second is flipped. */
static void step_odd_exponents(struct state *state, unsigned per_mille) {
    uint16_t *elements = (uint16_t *)(uintptr_t)state->tensors[0].data;

    for (size_t i = 0; i < state->tensors[0].bytes / 2; i++)
        elements[i] ^= test_random() % 1000 < (elements[i] >> 7 & 1 ? per_mille : 20);
}

/* The exponents of elements [from, to) become odd or even, here and there alike. */
static void turn_exponents(struct bench *bench, size_t from, size_t to) {
    uint16_t *here = (uint16_t *)(uintptr_t)bench->live.tensors[0].data;
    uint16_t *there = (uint16_t *)(uintptr_t)bench->device.tensors[0].data;

    for (size_t i = from; i < to; i++) {
        here[i] ^= 0x80;
        there[i] ^= 0x80;
    }
}

static void test_other_weights(void **unused) {
    static const struct form form = {"a", "BF16", {2500}, 1, 0};
    static const unsigned per_mille[] = {1000, 400};

    (void)unused;
    for (unsigned turn = 0; turn < COUNT(per_mille); turn++) {
        struct bench bench = {.base = state_make(&form, 1, 0)};
        struct state next = state_copy(&bench.base);
        const struct ulp_diff_options options = {.coder = ULP_CODER_CONTEXT};

        step_odd_exponents(&next, per_mille[turn]);
        bench.live = state_copy(&bench.base);
        bench.device = device_copy(&bench.base, 0);
        bench.host = weights_of(&bench.live);
        bench.weights = device_weights_of(&bench.device);
        bench.bytes = patch_to(bench.host, &next, &options);
        bench.patch = open_bytes(&bench.bytes);
        assert_int_equal(both(&bench), ULP_OK);
        turn_exponents(&bench, 1000, 1001); /* one more, or one fewer, of the flipped class */
        assert_int_equal(both(&bench), turn == 0 ? ULP_E_CODE : ULP_E_WRONG_RESULT);
        turn_exponents(&bench, 1000, 1001);
        for (size_t i = 0; i < 2500; i++) { /* none of the second class is left */
            if (((uint16_t *)bench.base.tensors[0].data)[i] >> 7 & 1)
                turn_exponents(&bench, i, i + 1);
        }
        assert_int_equal(both(&bench), ULP_E_CODE);
        for (size_t i = 0; i < 2500; i++) {
            if (((uint16_t *)bench.base.tensors[0].data)[i] >> 7 & 1)
                turn_exponents(&bench, i, i + 1);
        }
        state_free(&next);
        bench_free(&bench);
    }
}

TEST_MAIN(test_flipped_bits, test_other_weights)
