// SPDX-License-Identifier: Apache-2.0
/* The counters of a step beside the plainest way to count. */
#include "study/counts.h"
#include "study/entropy.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void test_symbols(void **state) {
    static const struct {
        int64_t step;
        unsigned symbol, bits, bucket;
        uint64_t size;
    } known[] = {
        {1, 0, 0, 0, 1},
        {-1, STUDY_SIZES, 0, 0, 1},
        {2, 1, 0, 1, 2},
        {3, 2, 0, 2, 3},
        {4, 3, 0, 2, 4},
        {64, 63, 0, 6, 64},
        {65, 64, 6, 7, 65},
        {128, 64, 6, 7, 65},
        {129, 65, 7, 8, 129},
        {-32768, STUDY_SIZES + 72, 14, 15, 16385},
        {INT64_MIN, STUDY_SYMBOLS - 1, 62, 63, (UINT64_C(1) << 62) + 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const unsigned symbol = study_symbol(known[i].step);

        assert_int_equal(symbol, known[i].symbol);
        assert_int_equal(study_symbol_bits(symbol), known[i].bits);
        assert_int_equal(study_symbol_bucket(symbol), known[i].bucket);
        assert_true(study_symbol_size(symbol) == known[i].size);
    }
}

static void test_steps_wrap_at_the_width(void **state) {
    (void)state;
    assert_true(study_step(0, 0x8000, 2) == -32768); /* +0 to -0 */
    assert_true(study_step(0xffff, 0, 2) == 1);
    assert_true(study_step(0, 0xff, 1) == -1);
    assert_true(study_step(0, 0xff, 2) == 255);
    assert_true(study_step(5, 3, 8) == -2);
    assert_true(study_step(0, UINT64_C(1) << 63, 8) == INT64_MIN);
}

/* All lengths around the strides, at odd addresses, and all widths. */
static void test_changes_are_found(void **state) {
    static uint8_t old[2000], new[2000];
    uint32_t places[1000];
    uint64_t seed = 1;

    (void)state;
    for (unsigned width = 1; width <= 8; width *= 2) {
        for (size_t elements = 0; elements < 200; elements++) {
            const size_t at = elements % 3;
            size_t expected = 0, found;

            for (size_t i = 0; i < sizeof old; i++)
                old[i] = new[i] = (uint8_t)next_random(&seed);
            for (unsigned i = 0; i < elements % 7; i++)
                new[at + next_random(&seed) % (elements * width)] ^= 16;
            found = study_changes(old + at, new + at, width, elements, places);
            for (size_t i = 0; i < elements; i++) {
                if (memcmp(old + at + i * width, new + at + i *width, width) != 0) {
                    assert_true(expected < found);
                    assert_int_equal(places[expected], i);
                    expected++;
                }
            }
            assert_int_equal(found, expected);
        }
    }
}

/* 70 000 elements, so that there is more than one block. */
#define ELEMENTS 70000u

static void test_counts_beside_the_plainest_way(void **state) {
    static uint16_t before[ELEMENTS], old[ELEMENTS], new[ELEMENTS];
    struct study_counts *counts = study_counts_new(code_kind_of("BF16", 16));
    uint64_t seed = 7, elements[EXPONENT_CELLS] = {0}, changed = 0, again = 0, same = 0;
    struct study_recurrence found;

    (void)state;
    assert_non_null(counts);
    for (size_t i = 0; i < ELEMENTS; i++) {
        const uint64_t dice = next_random(&seed);

        before[i] = (uint16_t)(next_random(&seed) % 65536);
        old[i] = (uint16_t)(before[i] + (dice % 5 == 0) * (dice / 5 % 61) - (dice % 7 == 0));
        new[i] = (uint16_t)(old[i] + (dice % 3 == 0) - 2 * (dice % 11 == 0));
    }
    study_count(counts, before, old, new, ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++) {
        const int16_t move = (int16_t)(uint16_t)(old[i] - before[i]);
        const int16_t step = (int16_t)(uint16_t)(new[i] - old[i]);

        elements[code_cell(&counts->kind, old[i])]++;
        changed += step != 0;
        again += step && move;
        same += (step > 0 && move > 0) || (step < 0 && move < 0);
    }
    assert_memory_equal(counts->elements, elements, sizeof elements);
    assert_memory_equal(counts->told, elements, sizeof elements);
    assert_true(study_changed(counts) == changed);
    found = study_recurrence(counts);
    assert_true(found.of == changed && found.again == again && found.same == same);
    free(counts);
}

/* Two exponents: in one of them a quarter changes, by steps of two sizes alike; in the other none. */
static void test_floor_of_a_known_source(void **state) {
    static uint16_t old[4096], new[4096];
    struct study_counts *counts = study_counts_new(code_kind_of("BF16", 16));
    struct study_floor floor;
    const double place = 2048 * (2 - 0.75 * log2(3)); /* entropy of a quarter */

    (void)state;
    assert_non_null(counts);
    for (unsigned i = 0; i < 4096; i++) {
        old[i] = (uint16_t)(i % 2 ? 0x3c00 : 0x3e00);
        new[i] = (uint16_t)(old[i] + (i % 8 == 1) + (i % 16 == 1));
    }
    study_count(counts, NULL, old, new, 4096);
    floor = study_floor(counts);
    assert_true(floor.changes == 512 && floor.changes_after == 0);
    assert_true(fabs(floor.place_bits - place) < 1e-6);
    assert_true(fabs(floor.step_bits - 512) < 1e-6);
    assert_true(fabs(study_floor_stateless(&floor) - (place + 512) / 512) < 1e-9);
    assert_true(isnan(study_floor_history(&floor)));
    free(counts);
}

TEST_MAIN(test_symbols, test_steps_wrap_at_the_width, test_changes_are_found,
          test_counts_beside_the_plainest_way, test_floor_of_a_known_source)
