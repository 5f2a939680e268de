// SPDX-License-Identifier: Apache-2.0
/* The keyed sum: every twin equals the definition, pieces add up, and replacing equals starting
 * again. */
#include "base/endian.h"
#include "scan/digest_mix.h"
#include "scan/digest_sum.h"
#include "scan/scan.h"
#include "tests/scan/every_feature_set.h"
#include "tests/scan/guarded.h"

#define BYTES_MAX 2000u

static struct guarded memory;

/* Straight from the definition, byte by byte. */
static struct ulp_sum naive(const uint8_t *data, size_t bytes, uint64_t first_word) {
    struct ulp_sum sum = {{0, 0}};

    for (size_t at = 0; at < bytes; at += 8) {
        size_t left = bytes - at;

        sum_add(&sum,
                digest_mix(first_word + at / 8, load_le_partial(data + at, left < 8 ? left : 8)));
    }
    return sum;
}

static void assert_sums_equal(struct ulp_sum x, struct ulp_sum y) {
    assert_int_equal(x.lane[0], y.lane[0]);
    assert_int_equal(x.lane[1], y.lane[1]);
}

static void twins_equal_definition(void) {
    for (size_t bytes = 0; bytes < 600; bytes++) {
        uint8_t *data = memory.end - bytes;
        uint64_t first = test_random() >> (test_random() % 64);
        struct ulp_sum sum = {{7, 9}}, expected = naive(data, bytes, first);

        digest_add(data, bytes, first, &sum);
        sum.lane[0] -= 7;
        sum.lane[1] -= 9;
        assert_sums_equal(sum, expected);
    }
}

static void test_twins_equal_the_definition(void **state) {
    (void)state;
    memory = guarded_make(BYTES_MAX);
    test_random_bytes(memory.begin, (size_t)(memory.end - memory.begin));
    with_every_feature_set(twins_equal_definition);
    guarded_free(&memory);
}

static void test_pieces_add_up(void **state) {
    uint8_t data[1003];
    struct ulp_sum whole = {{0, 0}}, pieces = {{0, 0}};
    size_t at = 0;

    (void)state;
    test_random_bytes(data, sizeof data);
    digest_add(data, sizeof data, 0, &whole);
    while (at < sizeof data) {
        size_t piece = 8 * (1 + test_random() % 20);

        if (piece > sizeof data - at)
            piece = sizeof data - at;
        digest_add(data + at, piece, at / 8, &pieces);
        at += piece;
    }
    assert_sums_equal(whole, pieces);
}

/* Changes a block at random places and follows the sum both ways. */
static void follow_changes(unsigned width, size_t bytes, unsigned rarity) {
    static uint8_t old[BYTES_MAX], new[BYTES_MAX], values[BYTES_MAX];
    static uint32_t positions[BYTES_MAX];
    const struct scan_kernels *kernels = scan_kernels(width);
    uint64_t first = test_random() % 1000;
    struct ulp_sum sum = naive(old, 0, 0), before, after;
    size_t n = bytes / width, found;

    test_random_bytes(old, bytes);
    memcpy(new, old, bytes);
    for (size_t i = 0; i < n; i++) {
        if (test_random() % rarity == 0)
            test_random_bytes(new + i *width, width);
    }
    before = naive(old, bytes, first);
    after = naive(new, bytes, first);
    found = kernels->collect(old, new, n, positions);
    sum = before;
    kernels->gather(new, positions, found, values);
    digest_replace(old, bytes, first, width, positions, found, values, &sum);
    assert_sums_equal(sum, after);
    kernels->gather(old, positions, found, values); /* and back again */
    digest_replace(new, bytes, first, width, positions, found, values, &sum);
    assert_sums_equal(sum, before);
}

static void test_replacing_equals_starting_again(void **state) {
    (void)state;
    for (unsigned width = 1; width <= 8; width *= 2) {
        for (unsigned round = 0; round < 300; round++)
            follow_changes(width, test_random() % (BYTES_MAX / 8) * 8 / width * width,
                           1 + round % 40);
        for (size_t bytes = width; bytes < 100; bytes += width) /* odd tails */
            follow_changes(width, bytes, 2);
    }
}

/* The values of docs/format/root.md: any change of the mix must be seen here first. */
static void test_pinned_values(void **state) {
    static const struct {
        uint64_t position, word, a, b;
    } pinned[] = {
#include "tests/digest/pinned_mixes.inc"
    };

    (void)state;
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++) {
        struct ulp_sum mix = digest_mix(pinned[i].position, pinned[i].word);

        assert_int_equal(mix.lane[0], pinned[i].a);
        assert_int_equal(mix.lane[1], pinned[i].b);
    }
}

TEST_MAIN(test_twins_equal_the_definition, test_pieces_add_up, test_replacing_equals_starting_again,
          test_pinned_values)
