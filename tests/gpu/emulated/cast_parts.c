// SPDX-License-Identifier: Apache-2.0
/* What patches at the cast are made of: rounding, the cast of a block, merging journals, each against its
 * definition; and a device that has no memory left. */
#include "tests/gpu/emulated/device.h"

#include "cuda/cast.h"
#include "cuda/round.h"
#include "gpu/cast_portable.h"
#include "gpu/device_cast.h"

#include <limits.h>
#include <math.h>

extern size_t emulate_memory_most;
extern int emulate_refusal;
#define NO_MEMORY 2 /* cudaErrorMemoryAllocation */

/* ---- rounding ---- */

/* By way of doubles, which hold every one of these numbers and half-way between: a format of so many
 * bits of exponent and mantissa. */
static uint32_t rounded(float x, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    const uint32_t sign = signbit(x) ? 1u << (exponent_bits + mantissa_bits) : 0;
    const double size = fabs((double)x);
    int exponent, least = 1 - bias;
    double whole;

    if (isnan(x))
        return 0x7fff;
    if (isinf(x))
        return sign | (uint32_t)top << mantissa_bits;
    if (size == 0)
        return sign;
    frexp(size, &exponent);
    exponent = exponent - 1 > least ? exponent - 1 : least;
    whole = nearbyint(ldexp(size, mantissa_bits - exponent)); /* in units of the last place */
    if (ldexp(whole, exponent - mantissa_bits) >= ldexp(1, bias + 1))
        return sign | (uint32_t)top << mantissa_bits;
    /* a mantissa that overflows, or a denormal that becomes normal, carries into the exponent */
    return sign | (((uint32_t)(exponent - least) << mantissa_bits) + (uint32_t)whole);
}

static void check_rounding(uint32_t bits) {
    float x;

    memcpy(&x, &bits, sizeof x);
    if (round_to_bf16(bits) != rounded(x, 8, 7))
        fail_msg("%08x is %04x in BF16, not %04x", bits, rounded(x, 8, 7), round_to_bf16(bits));
    if (round_to_f16(bits) != rounded(x, 5, 10))
        fail_msg("%08x is %04x in F16, not %04x", bits, rounded(x, 5, 10), round_to_f16(bits));
}

/* Every sign, exponent and upper mantissa, with what decides ties in either format below. */
static void test_rounding(void **unused) {
    static const uint32_t low[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x1fff, 0x2000,
                                   0x3000, 0x7fff, 0x8000, 0x8001, 0xffff, 0xa5a5};

    (void)unused;
    for (uint32_t high = 0; high < 1u << 16; high++) {
        for (size_t i = 0; i < sizeof low / sizeof *low; i++)
            check_rounding(high << 16 | low[i]);
    }
    /* half-way between denormals of F16: any one bit below, and none */
    for (uint32_t exponent = 100; exponent < 114; exponent++) {
        for (uint32_t bit = 0; bit < 23; bit++) {
            for (uint32_t below = 0; below < 24; below++)
                check_rounding(exponent << 23 | (0x7fffffu >> bit << bit) |
                               (below < bit ? 1u << below : 0));
            check_rounding(exponent << 23 | 1u << bit);
        }
    }
}

/* ---- entries ---- */

struct list {
    uint32_t positions[5000];
    uint16_t values[5000];
    uint32_t count;
};

static struct list random_list(uint32_t elements, uint32_t every) {
    struct list list = {.count = 0};

    for (uint32_t i = 0; i < elements; i++) {
        if (test_random() % every)
            continue;
        list.positions[list.count] = i;
        list.values[list.count++] = (uint16_t)(test_random() & 3); /* often what is there */
    }
    return list;
}

/* One block of BF16 and what the kernels are told of it. */
#define ELEMENTS 30000u

struct block {
    uint16_t weights[ELEMENTS];
    struct cuda_segment segment;
    struct cuda_block block;
    struct cuda_plan plan;
};

static struct block *make_block(void) {
    struct block *block = calloc(1, sizeof *block);

    assert_non_null(block);
    block->segment =
        (struct cuda_segment){.blocks = 1, .elements = ELEMENTS, .kind = code_kind_of("BF16", 16)};
    block->block =
        (struct cuda_block){.old = (const uint8_t *)block->weights, .elements = ELEMENTS};
    block->plan = (struct cuda_plan){&block->segment, &block->block, 1, 1, 1};
    for (uint32_t i = 0; i < ELEMENTS; i++)
        block->weights[i] = (uint16_t)(test_random() & 3);
    return block;
}

static const uint64_t zero;

static struct cuda_journal journal_of(const struct list *list) {
    return (struct cuda_journal){.positions = list->positions,
                                 .values = (const uint8_t *)list->values,
                                 .first = &zero,
                                 .value = &zero,
                                 .count = &list->count};
}

static struct journal_entries entries_of(const struct list *list) {
    return (struct journal_entries){list->positions, list->values, list->count};
}

static void assert_same_lists(const struct list *made, const struct list *expected) {
    assert_int_equal(made->count, expected->count);
    assert_memory_equal(made->positions, expected->positions,
                        made->count * sizeof *made->positions);
    assert_memory_equal(made->values, expected->values, made->count * sizeof *made->values);
}

static void test_merging(void **unused) {
    static const uint32_t every[][2] = {{20, 20}, {7, 3000}, {3000, 7}, {30001, 20}, {20, 30001}};

    (void)unused;
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        struct block *block = make_block();
        static struct list older, newer, made, expected;
        const struct cuda_journal_room to = {made.positions, (uint8_t *)made.values, &zero, &zero};
        struct cuda_journal of_older, of_newer;

        older = random_list(ELEMENTS, every[i][0]);
        newer = random_list(ELEMENTS, every[i][1]);
        of_older = journal_of(&older);
        of_newer = journal_of(&newer);
        expected.count =
            journal_merge_portable(2, block->weights, entries_of(&older), entries_of(&newer),
                                   expected.positions, expected.values);
        assert_ok(cuda_journal_count(&block->plan, &of_older, &of_newer, &made.count, NULL));
        assert_ok(cuda_journal_merge(&block->plan, &of_older, &of_newer, &to, NULL));
        assert_same_lists(&made, &expected);
        free(block);
    }
}

/* A block that is cast with ever so small a pool is cast all the same, and each launch lists what it
 * has written. */
static void test_listing(void **unused) {
    static uint32_t masters[ELEMENTS], pages[ELEMENTS], positions[CAST_POOL_LEAST];
    static uint16_t values[CAST_POOL_LEAST], twin[ELEMENTS];
    static uint32_t expected_positions[ELEMENTS];
    static uint16_t expected_values[ELEMENTS];
    const uint32_t *master = masters;
    struct block *block = make_block();
    uint32_t done = 0, count = 0, stopped = 1, seen = 0, launches = 0, total;
    unsigned long long used = 0;
    const struct cuda_cast cast = {block->plan, &master,         &done,     &count,
                                   &zero,       pages,           positions, (uint8_t *)values,
                                   2,           CAST_POOL_LEAST, &used,     &stopped};

    (void)unused;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        masters[i] = (uint32_t)test_random();
    memcpy(twin, block->weights, sizeof twin);
    total = cast_portable(block->segment.kind, masters, ELEMENTS, twin, expected_positions,
                          expected_values);
    for (; stopped && launches < 20; launches++) {
        stopped = count = 0;
        used = 0;
        assert_ok(cuda_cast_run(&cast, NULL));
        for (uint32_t i = 0; i < count; i++, seen++) {
            const uint32_t at = pages[i / JOURNAL_PAGE] + i % JOURNAL_PAGE;

            assert_true(at < CAST_POOL_LEAST && seen < total);
            assert_int_equal(positions[at], expected_positions[seen]);
            assert_int_equal(values[at], expected_values[seen]);
        }
    }
    assert_true(launches > 3 && !stopped);
    assert_int_equal(seen, total);
    assert_int_equal(done, ELEMENTS);
    assert_memory_equal(block->weights, twin, sizeof twin);
    free(block);
}

/* ---- no memory ---- */

#define MANY 100000u

static uint16_t base[MANY], now[MANY], cast_all[MANY];
static uint32_t masters_of_all[MANY];

static struct ulp_tensor tensor_of(const char *dtype, void *data, const uint64_t *elements) {
    struct ulp_tensor tensor = {
        .name = "w", .dtype = dtype, .shape = elements, .rank = 1, .data = data};

    assert_ok(ulp_tensor_measure(&tensor));
    return tensor;
}

static void fill_all(void) {
    for (uint32_t i = 0; i < MANY; i++) {
        masters_of_all[i] = 0x3c000000u + (uint32_t)(test_random() % 0x1000000);
        base[i] = now[i] = (uint16_t)(0x3000 + test_random() % 512);
        cast_all[i] = round_to_bf16(masters_of_all[i]);
    }
}

static enum ulp_status count_bytes(void *user, const void *data, size_t bytes) {
    (void)data;
    *(size_t *)user += bytes;
    return ULP_OK;
}

static void test_no_memory(void **unused) {
    const uint64_t elements = MANY;
    const struct ulp_tensor tensor = tensor_of("BF16", now, &elements);
    const struct ulp_tensor masters = tensor_of("F32", masters_of_all, &elements);
    struct device_weights *weights = NULL;
    uint32_t poisoned = 0;
    size_t bytes = 0;
    const struct ulp_sink sink = {count_bytes, &bytes};

    (void)unused;
    fill_all();
    assert_ok(device_weights_new(&tensor, 1, &poisoned, NULL, &weights));
    weights->cast_pool = 1;

    /* none for the pool; some for it, and none for the first journal: nothing has happened */
    for (emulate_memory_most = 20000; emulate_memory_most < 60000; emulate_memory_most += 34000) {
        assert_int_equal(device_cast(weights, &masters, 1), ULP_E_NOMEM);
        assert_int_equal(poisoned, 0);
        assert_memory_equal(now, base, sizeof now);
        assert_ok(device_weights_audit(weights));
    }
    /* for some journals: in part */
    emulate_memory_most = 300000;
    assert_fails(device_cast(weights, &masters, 1), ULP_E_NOMEM, "in part");
    assert_int_equal(poisoned, 1);
    assert_memory_not_equal(now, base, sizeof now);
    assert_memory_not_equal(now, cast_all, sizeof now);
    assert_fails(device_cast_diff(weights, NULL, &sink, NULL), ULP_E_POISONED, "cast again");
    assert_int_equal(device_cast_commit(weights), ULP_E_POISONED);
    assert_int_equal(device_weights_audit(weights), ULP_E_POISONED);
    assert_int_equal(bytes, 0);
    assert_ok(device_cast_undo(weights));
    assert_int_equal(poisoned, 0);
    assert_memory_equal(now, base, sizeof now);
    assert_ok(device_weights_audit(weights));
    /* the same, and then there is room */
    assert_int_equal(device_cast(weights, &masters, 1), ULP_E_NOMEM);
    emulate_memory_most = 0;
    assert_ok(device_cast(weights, &masters, 1));
    assert_int_equal(poisoned, 0);
    assert_memory_equal(now, cast_all, sizeof now);
    assert_ok(device_cast_diff(weights, NULL, &sink, NULL));
    assert_ok(device_weights_audit(weights));
    assert_ok(device_cast_undo(weights));
    assert_memory_equal(now, base, sizeof now);

    /* marked by somebody else */
    poisoned = 1;
    assert_int_equal(device_cast(weights, &masters, 1), ULP_E_POISONED);
    assert_int_equal(device_cast_undo(weights), ULP_E_POISONED);
    assert_memory_equal(now, base, sizeof now);
    device_weights_free(weights);
}

/* The host's memory may end anywhere: then all is as it was, or in part and can be undone. */
static void test_no_host_memory(void **unused) {
    const uint64_t elements = MANY / 10;
    const struct ulp_tensor tensor = tensor_of("BF16", now, &elements);
    const struct ulp_tensor masters = tensor_of("F32", masters_of_all, &elements);
    const struct ulp_diff_options options = {.history = 1};
    size_t bytes = 0;
    const struct ulp_sink sink = {count_bytes, &bytes};
    unsigned failures = 0;

    (void)unused;
    fill_all();
    for (uint64_t at = 0;; at++) {
        struct device_weights *weights = NULL;
        enum ulp_status status;

        failing_allocator_start(at, 0);
        status = device_weights_new(&tensor, 1, NULL, NULL, &weights);
        if (!status)
            status = device_cast(weights, &masters, 1);
        if (!status)
            status = device_cast_diff(weights, &options, &sink, NULL);
        if (!status)
            status = device_cast_commit(weights);
        if (status && weights)
            assert_ok(device_cast_undo(weights));
        device_weights_free(weights);
        failing_allocator_stop();
        if (!status)
            break;
        assert_int_equal(status, ULP_E_NOMEM);
        assert_memory_equal(now, base, sizeof now);
        failures++;
    }
    assert_true(failures > 20);
    assert_memory_equal(now, cast_all, elements * sizeof *now);
}

/* A kernel that is loaded when it is first launched may find no memory, too. Then what was written before is
 * put back, or the weights are marked. Nothing is written that nobody knows of. */
static void test_launches_without_memory(void **unused) {
    const uint64_t elements = MANY / 4;
    static uint32_t wide[MANY / 4], wide_before[MANY / 4];
    enum ulp_status status = ULP_E_NOMEM;

    (void)unused;
    for (unsigned launches = 0; status; launches++) {
        struct ulp_tensor tensors[] = {tensor_of("BF16", now, &elements),
                                       tensor_of("F32", wide, &elements)};
        struct ulp_tensor masters[] = {tensor_of("F32", masters_of_all, &elements),
                                       tensor_of("F32", masters_of_all + elements, &elements)};
        struct device_weights *weights = NULL;
        uint32_t poisoned = 0;

        fill_all();
        memcpy(wide, wide_before, sizeof wide);
        tensors[1].name = masters[1].name = "x";
        assert_ok(device_weights_new(tensors, 2, &poisoned, NULL, &weights));
        weights->cast_pool = 1;
        emulate_memory_most = launches % 2 ? 120000 : 0; /* journals find none either, or do */
        emulate_refusal = NO_MEMORY;
        emulate_launches_left = launches / 2;
        status = device_cast(weights, masters, 2);
        emulate_memory_most = 0;
        emulate_refusal = 999;
        emulate_launches_left = UINT_MAX;
        if (status && !poisoned) {
            assert_memory_equal(now, base, elements * sizeof *now);
            assert_memory_equal(wide, wide_before, sizeof wide);
        }
        if (!poisoned && status)
            assert_ok(device_weights_audit(weights));
        device_weights_free(weights);
        assert_true(launches < 1000);
    }
    assert_memory_equal(now, cast_all, elements * sizeof *now);
}

/* A snapshot in the host's memory belongs to somebody else, and tiles have no patches of all tensors. */
static void test_what_cannot_be_cast(void **unused) {
    const uint64_t elements = MANY;
    const struct ulp_tensor tensor = tensor_of("BF16", now, &elements);
    const struct ulp_region region = {.tensor = "w", .rows = 1, .columns = MANY / 2};
    const struct ulp_root root = {{7}};
    struct ulp_weights *snapshot = NULL;
    struct device_weights *weights = NULL;
    size_t bytes = 0;
    const struct ulp_sink sink = {count_bytes, &bytes};

    (void)unused;
    fill_all();
    assert_ok(ulp_weights_new(&tensor, 1, NULL, NULL, &snapshot));
    assert_ok(device_weights_on_host(snapshot, 0, NULL, &weights));
    assert_fails(device_cast_diff(weights, NULL, &sink, NULL), ULP_E_USAGE, "the host's memory");
    assert_int_equal(device_cast_commit(weights), ULP_E_USAGE);
    device_weights_free(weights);
    ulp_weights_free(snapshot);
    assert_ok(device_weights_new_tile(&tensor, 1, &region, 1, &root, NULL, NULL, &weights));
    assert_fails(device_cast_diff(weights, NULL, &sink, NULL), ULP_E_REGIONS, "");
    assert_int_equal(device_cast_commit(weights), ULP_E_USAGE);
    assert_memory_equal(&weights->weights->root, &root, sizeof root);
    device_weights_free(weights);
    assert_int_equal(bytes, 0);
}

/* A cast that ended half-way is mended by one of the same tensors, not by one of others. */
static void test_no_memory_and_other_masters(void **unused) {
    const uint64_t elements = MANY / 2;
    struct ulp_tensor tensors[] = {tensor_of("BF16", now, &elements),
                                   tensor_of("BF16", now + elements, &elements)};
    struct ulp_tensor masters[] = {tensor_of("F32", masters_of_all, &elements),
                                   tensor_of("F32", masters_of_all + elements, &elements)};
    struct device_weights *weights = NULL;
    uint32_t poisoned = 0;

    (void)unused;
    fill_all();
    tensors[1].name = masters[1].name = "x";
    assert_ok(device_weights_new(tensors, 2, &poisoned, NULL, &weights));
    weights->cast_pool = 1;
    emulate_memory_most = 300000;
    assert_fails(device_cast(weights, masters, 2), ULP_E_NOMEM, "in part");
    emulate_memory_most = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_fails(device_cast(weights, &masters[i], 1), ULP_E_POISONED, "the same tensors");
        assert_int_equal(poisoned, 1);
    }
    assert_ok(device_cast(weights, masters, 2));
    assert_int_equal(poisoned, 0);
    assert_memory_equal(now, cast_all, sizeof now);
    assert_ok(device_cast_undo(weights));
    assert_memory_equal(now, base, sizeof now);
    assert_ok(device_cast(weights, &masters[1], 1)); /* nothing is due any more */
    assert_memory_equal(now, base, sizeof now / 2);
    assert_memory_equal(now + elements, cast_all + elements, sizeof now / 2);
    device_weights_free(weights);
}

TEST_MAIN(test_rounding, test_merging, test_listing, test_no_memory, test_no_host_memory,
          test_launches_without_memory, test_what_cannot_be_cast, test_no_memory_and_other_masters)
