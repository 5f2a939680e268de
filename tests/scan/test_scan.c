// SPDX-License-Identifier: Apache-2.0
/* Every twin gives the answers of an independent, naive implementation, for every width, length and
 * alignment, with the arrays ending and beginning at pages that must not be touched. */
#include "scan/scan.h"
#include "tests/scan/every_feature_set.h"
#include "tests/scan/guarded.h"

#define ELEMENTS_MAX 700u
#define WIDTH_MAX 8u

static struct guarded memory_a, memory_b, memory_out;

/* The naive answer: positions of differing elements by comparing bytes. */
static size_t differing(const uint8_t *a, const uint8_t *b, unsigned width, size_t n,
                        uint32_t *positions) {
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i * width, b + i * width, width))
            positions[found++] = (uint32_t)i;
    }
    return found;
}

static void check(const uint8_t *a, const uint8_t *b, unsigned width, size_t n) {
    static uint32_t expected[ELEMENTS_MAX];
    size_t found = differing(a, b, width, n, expected);
    /* Room for exactly what is found, ending at a forbidden page. */
    uint32_t *positions = (uint32_t *)(void *)memory_out.end - found;

    memset(positions, 0xee, found * sizeof *positions);
    assert_int_equal(scan_kernels(width)->count(a, b, n), found);
    assert_int_equal(scan_kernels(width)->collect(a, b, n, positions), found);
    assert_memory_equal(positions, expected, found * sizeof *positions);
}

/* Flips one random bit in about one element of `rarity`. */
static void change(uint8_t *b, unsigned width, size_t n, unsigned rarity) {
    for (size_t i = 0; i < n; i++) {
        if (test_random() % rarity == 0)
            b[i * width + test_random() % width] ^= (uint8_t)(1u << test_random() % 8);
    }
}

static void all_lengths(void) {
    static const unsigned rarities[] = {1, 2, 20, 100, 100000};

    for (unsigned width = 1; width <= WIDTH_MAX; width *= 2) {
        for (size_t n = 0; n < 300; n++) {
            uint8_t *a = memory_a.end - n * width, *b = memory_b.end - n * width;

            test_random_bytes(a, n * width);
            memcpy(b, a, n * width);
            change(b, width, n, rarities[n % 5]);
            check(a, b, width, n);
        }
    }
}

static void all_alignments(void) {
    for (unsigned width = 1; width <= WIDTH_MAX; width *= 2) {
        for (size_t shift = 0; shift < 64; shift++) {
            size_t n = 200 + test_random() % 400;
            uint8_t *a = memory_a.begin + shift, *b = memory_b.begin + test_random() % 64;

            test_random_bytes(a, n * width);
            memcpy(b, a, n * width);
            change(b, width, n, 30);
            check(a, b, width, n);
        }
    }
}

/* Each single bit of each element in turn is seen, at every place of a group. */
static void every_bit(void) {
    for (unsigned width = 1; width <= WIDTH_MAX; width *= 2) {
        const size_t n = 130, bytes = n * width;
        uint8_t *a = memory_a.begin, *b = memory_b.begin;

        test_random_bytes(a, bytes);
        memcpy(b, a, bytes);
        for (size_t bit = 0; bit < bytes * 8; bit++) {
            uint32_t position = 0;

            b[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(scan_kernels(width)->collect(a, b, n, &position), 1);
            assert_int_equal(position, bit / 8 / width);
            b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(scan_kernels(width)->count(a, b, n), 0);
    }
}

static void moves_round_trip(void) {
    for (unsigned width = 1; width <= WIDTH_MAX; width *= 2) {
        const struct scan_kernels *kernels = scan_kernels(width);
        static uint32_t positions[ELEMENTS_MAX];
        size_t n = 1 + test_random() % (ELEMENTS_MAX - 1), found;
        uint8_t *a = memory_a.end - n * width, *b = memory_b.end - n * width;
        uint8_t *values;

        test_random_bytes(a, n * width);
        memcpy(b, a, n * width);
        change(b, width, n, 5);
        found = kernels->collect(a, b, n, positions);
        values = memory_out.end - found * width;
        kernels->gather(b, positions, found, values);
        for (size_t i = 0; i < found; i++)
            assert_memory_equal(values + i * width, b + positions[i] * width, width);
        kernels->scatter(a, positions, found, values);
        assert_memory_equal(a, b, n * width);
    }
}

static void with_memory(void (*test)(void)) {
    memory_a = guarded_make(ELEMENTS_MAX * WIDTH_MAX + 64);
    memory_b = guarded_make(ELEMENTS_MAX * WIDTH_MAX + 64);
    memory_out = guarded_make(ELEMENTS_MAX * WIDTH_MAX);
    test_random_seed(1);
    with_every_feature_set(test);
    guarded_free(&memory_a);
    guarded_free(&memory_b);
    guarded_free(&memory_out);
}

static void test_every_length_up_to_a_forbidden_page(void **state) {
    (void)state;
    with_memory(all_lengths);
}

static void test_every_alignment(void **state) {
    (void)state;
    with_memory(all_alignments);
}

static void test_every_single_bit_is_seen(void **state) {
    (void)state;
    with_memory(every_bit);
}

static void test_gather_and_scatter_round_trip(void **state) {
    (void)state;
    with_memory(moves_round_trip);
}

/* +0 and -0 are different, equal NaNs are equal: bits are compared, not numbers. */
static void test_floats_are_bit_patterns(void **state) {
    uint16_t a[64] = {0x0000, 0x7fc0, 0x7fc1, 0xffff}, b[64] = {0x8000, 0x7fc0, 0x7fc2, 0xffff};
    uint32_t positions[2];

    (void)state;
    assert_int_equal(scan_kernels(2)->collect(a, b, 64, positions), 2);
    assert_int_equal(positions[0], 0);
    assert_int_equal(positions[1], 2);
}

/* More changes than the staging buffer holds, many times over. */
static void test_all_changed(void **state) {
    const size_t n = 100003;
    uint16_t *a = calloc(n, 2), *b = malloc(n * 2);
    uint32_t *positions = malloc(n * 4);

    (void)state;
    assert_true(a && b && positions);
    memset(b, 0xff, n * 2);
    assert_int_equal(scan_kernels(2)->collect(a, b, n, positions), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(positions[i], i);
    free(a);
    free(b);
    free(positions);
}

TEST_MAIN(test_every_length_up_to_a_forbidden_page, test_every_alignment,
          test_every_single_bit_is_seen, test_gather_and_scatter_round_trip,
          test_floats_are_bit_patterns, test_all_changed)
