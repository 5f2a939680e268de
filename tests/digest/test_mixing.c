// SPDX-License-Identifier: Apache-2.0
/*
 * Is the mix good enough for what it is for? A sum of mixes must not stay the same when weights
 * change in the ways weights and faults change things: one bit, a sign here and there, two words
 * swapped, everything moved by one, a small step up in one place and down in another.
 *
 * Each statistic is compared with what independent uniform values would give. The bounds are so
 * wide that a perfect mix fails any of them less than once in 10^6 runs, and the seed is fixed.
 */
#include "scan/digest_mix.h"
#include "tests/test.h"

#define LANES 2

/* Weights as they are: four BF16 values of small models, sorted into one word. */
static uint64_t weights_word(void) {
    uint64_t word = 0;

    for (int i = 0; i < 4; i++) {
        uint64_t exponent = 110 + test_random() % 14;

        word = word << 16 | (test_random() & 0x807f) | exponent << 7;
    }
    return word;
}

/* The kinds of input that are tried everywhere. */
static uint64_t word_of_kind(int kind) {
    switch (kind) {
    case 0:
        return test_random();
    case 1:
        return weights_word();
    case 2:
        return test_random() % 4; /* nearly all zero */
    default:
        return test_random() % 2 ? 0 : UINT64_C(0x3f803f803f803f80); /* zeros and ones */
    }
}
#define WORD_KINDS 4

static uint64_t small_position(void) {
    return test_random() % 4096;
}

/* ---- avalanche: any input bit flips any output bit half of the time ---------------------- */

#define AVALANCHE_ROUNDS 16384
/* Six standard deviations of a fair coin thrown that often, over 24 000 pairs of bits. */
#define AVALANCHE_SLACK (6 * 64)

static void count_flips(int input_bit, int kind, uint32_t flips[LANES][64]) {
    memset(flips, 0, LANES * 64 * sizeof flips[0][0]);
    for (int round = 0; round < AVALANCHE_ROUNDS; round++) {
        uint64_t position = test_random() >> 20, word = word_of_kind(kind);
        uint64_t flip = input_bit < 64 ? UINT64_C(1) << input_bit : 0;
        uint64_t move = input_bit < 64 ? 0 : UINT64_C(1) << (input_bit - 64);
        struct ulp_sum x = digest_mix(position, word);
        struct ulp_sum y = digest_mix(position ^ move, word ^ flip);

        for (int lane = 0; lane < LANES; lane++) {
            for (int bit = 0; bit < 64; bit++)
                flips[lane][bit] += (uint32_t)((x.lane[lane] ^ y.lane[lane]) >> bit & 1);
        }
    }
}

static void assert_avalanche(int kind, int input_bits) {
    for (int input_bit = 0; input_bit < input_bits; input_bit++) {
        uint32_t flips[LANES][64];

        count_flips(input_bit, kind, flips);
        for (int lane = 0; lane < LANES; lane++) {
            for (int bit = 0; bit < 64; bit++) {
                int off = (int)flips[lane][bit] - AVALANCHE_ROUNDS / 2;

                if (abs(off) > AVALANCHE_SLACK)
                    fail_msg("kind %d: input bit %d flips bit %d of lane %d in %u of %d rounds",
                             kind, input_bit, bit, lane, flips[lane][bit], AVALANCHE_ROUNDS);
            }
        }
    }
}

static void test_avalanche_of_words_and_positions(void **state) {
    (void)state;
    test_random_seed(11);
    assert_avalanche(0, 64 + 40); /* all bits of the word, positions up to 8 TB */
    assert_avalanche(1, 64);
}

/* ---- collisions of truncated values ------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static unsigned collisions(uint32_t *values, size_t count) {
    unsigned equal = 0;

    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 1; i < count; i++)
        equal += values[i] == values[i - 1];
    return equal;
}

#define SAMPLES 65536u
/* Expected: SAMPLES^2 / 2^33 = 0.5; Poisson gives more than 7 once in 10^6. */
#define COLLISIONS_MAX 7u

/* Fills four columns: the low and the high half of each lane. */
struct columns {
    uint32_t half[4][SAMPLES];
};
static struct columns columns;

static void put_sample(size_t i, struct ulp_sum sum) {
    for (int lane = 0; lane < LANES; lane++) {
        columns.half[2 * lane][i] = (uint32_t)sum.lane[lane];
        columns.half[2 * lane + 1][i] = (uint32_t)(sum.lane[lane] >> 32);
    }
}

static void assert_few_collisions(const char *what, int parameter) {
    for (int column = 0; column < 4; column++) {
        unsigned found = collisions(columns.half[column], SAMPLES);

        if (found > COLLISIONS_MAX)
            fail_msg("%s %d: %u collisions in column %d", what, parameter, found, column);
    }
}

/* Words that differ only in 16 bits, at each place; and one word at many positions. */
static void test_low_entropy_inputs(void **state) {
    (void)state;
    for (int shift = 0; shift <= 48; shift += 4) {
        for (uint32_t i = 0; i < SAMPLES; i++)
            put_sample(i, digest_mix(5, (uint64_t)i << shift));
        assert_few_collisions("counter shifted by", shift);
    }
    for (int shift = 0; shift <= 40; shift += 4) {
        for (uint32_t i = 0; i < SAMPLES; i++)
            put_sample(i, digest_mix((uint64_t)i << shift, 0));
        assert_few_collisions("zeros at positions shifted by", shift);
    }
}

/* ---- what a change does to a sum --------------------------------------------------------- */

static struct ulp_sum difference(uint64_t position, uint64_t from, uint64_t to) {
    struct ulp_sum sum = digest_mix(position, to);

    sum_subtract(&sum, digest_mix(position, from));
    return sum;
}

/*
 * If flipping one bit changed the sum by one of few amounts, two such flips could cancel each
 * other. So the amounts must look random: as few of them equal as of random numbers.
 */
static void test_single_bit_changes_do_not_repeat(void **state) {
    (void)state;
    test_random_seed(12);
    for (int bit = 0; bit < 64; bit++) {
        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t word = weights_word();

            put_sample(i, difference(i, word, word ^ UINT64_C(1) << bit));
        }
        assert_few_collisions("amounts of flips of bit", bit);
    }
}

/* The same at one position: the amounts depend on the word as well. */
static void test_changes_at_one_position_do_not_repeat(void **state) {
    (void)state;
    test_random_seed(13);
    for (int bit = 0; bit < 64; bit++) {
        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t word = test_random();

            put_sample(i, difference(77, word, word ^ UINT64_C(1) << bit));
        }
        assert_few_collisions("amounts at one position, bit", bit);
    }
}

/* An ulp step of each of the four elements, up or down. */
static void test_ulp_steps_do_not_repeat(void **state) {
    (void)state;
    test_random_seed(14);
    for (int element = 0; element < 4; element++) {
        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t word = weights_word();
            uint64_t step = UINT64_C(1) << (16 * element);

            put_sample(i, difference(i / 2, word, i % 2 ? word + step : word - step));
        }
        assert_few_collisions("ulp steps of element", element);
    }
}

/* Two words exchanged, at all small distances. */
static void test_swaps_do_not_repeat(void **state) {
    (void)state;
    test_random_seed(15);
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t p = small_position(), q = p + 1 + i % 1000;
            uint64_t x = word_of_kind(kind), y = word_of_kind(kind);
            struct ulp_sum sum = difference(p, x, y);

            sum_add(&sum, difference(q, y, x));
            put_sample(i, sum);
        }
        assert_few_collisions("swaps of words of kind", kind);
    }
}

/* A block of a few words moved by one word, with what was behind it moved to the front. */
static void test_rotations_do_not_repeat(void **state) {
    (void)state;
    test_random_seed(16);
    for (int kind = 0; kind < WORD_KINDS - 2; kind++) {
        for (uint32_t i = 0; i < SAMPLES; i++) {
            struct ulp_sum sum = {{0, 0}};
            uint64_t p = small_position(), words[4];

            for (int k = 0; k < 4; k++)
                words[k] = word_of_kind(kind);
            for (int k = 0; k < 4; k++)
                sum_add(&sum, difference(p + (uint64_t)k, words[k], words[(k + 1) % 4]));
            put_sample(i, sum);
        }
        assert_few_collisions("rotations of words of kind", kind);
    }
}

/* The same word in two places, both changed the same way or in opposite ways. */
static void test_paired_changes_do_not_cancel(void **state) {
    (void)state;
    test_random_seed(17);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t flip = UINT64_C(1) << bit;

        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t word = weights_word();
            struct ulp_sum sum = difference(i, word & ~flip, word | flip);

            sum_add(&sum, difference(i + SAMPLES, word | flip, word & ~flip));
            put_sample(i, sum);
        }
        assert_few_collisions("a bit set here and cleared there, bit", bit);
    }
}

/* A word that moves and takes the difference of the keys with it is still seen, in both lanes. */
static void test_moving_with_the_key_is_seen(void **state) {
    (void)state;
    test_random_seed(19);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint64_t p = small_position(), q = small_position() + 5000, word = weights_word();
        uint64_t keys = (DIGEST_KEY_A_START + p * DIGEST_KEY_A_STEP) ^
                        (DIGEST_KEY_A_START + q * DIGEST_KEY_A_STEP);
        struct ulp_sum sum = digest_mix(p, word);

        sum_subtract(&sum, digest_mix(q, word ^ keys));
        assert_true(sum.lane[0] && sum.lane[1]);
        put_sample(i, sum);
    }
    assert_few_collisions("moved with the key", 0);
}

/* The lanes are independent: equal low halves of one say nothing of the other. */
static void test_lanes_are_independent(void **state) {
    uint32_t both = 0;

    (void)state;
    test_random_seed(18);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        struct ulp_sum x = digest_mix(small_position(), test_random());
        uint32_t low_a = (uint32_t)x.lane[0], low_b = (uint32_t)x.lane[1];

        columns.half[0][i] = low_a ^ low_b;
        columns.half[1][i] = low_a - low_b;
        columns.half[2][i] = low_a + low_b;
        columns.half[3][i] = low_a ^ (uint32_t)(x.lane[1] >> 32);
        both += (uint32_t)__builtin_popcount(low_a ^ low_b);
    }
    assert_few_collisions("combined lanes", 0);
    assert_in_range(both, SAMPLES * 16 - 6 * 724,
                    SAMPLES * 16 + 6 * 724); /* sqrt(32 n) / 2 = 724 */
}

TEST_MAIN(test_avalanche_of_words_and_positions, test_low_entropy_inputs,
          test_single_bit_changes_do_not_repeat, test_changes_at_one_position_do_not_repeat,
          test_ulp_steps_do_not_repeat, test_swaps_do_not_repeat, test_rotations_do_not_repeat,
          test_paired_changes_do_not_cancel, test_moving_with_the_key_is_seen,
          test_lanes_are_independent)
