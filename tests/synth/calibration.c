// SPDX-License-Identifier: Apache-2.0
/*
 * How close the synthetic runs come to the two recorded ones: prints a table (docs/synth.md shows
 * it) and fails where a figure strays. The figures of the recorded runs were measured on 6.3
 * million elements over 8 steps.
 */
#include "tests/synth/run.h"

#define STATES 9
#define BLOCKS 192 /* 3.1 million elements */
#define ELEMENTS ((size_t)BLOCKS * SYNTH_BLOCK_ELEMENTS)
#define EXPONENTS 7 /* 2^-16 to 2^-10, where changes happen */
#define FIRST_EXPONENT (127 - 16)

/* What is measured of a run. */
struct profile {
    double density;               /* share of elements that change in a step */
    double growth[3];             /* over k = 2, 4, 8 steps, as a multiple of that */
    double recurrence, same_sign; /* changed in the step before too; and in the same direction */
    double by_one;                /* share of changes by one ulp */
    double p[EXPONENTS];          /* P(change | exponent) */
};

struct figure {
    const char *name;
    double recorded, made;
    double slack; /* relative */
};

static uint16_t *states[STATES];

/* Bit patterns in the order of the numbers they stand for. */
static int ordered(uint16_t bits) {
    return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}

static double differing(int from, int to) {
    size_t count = 0;

    for (size_t i = 0; i < ELEMENTS; i++)
        count += states[from][i] != states[to][i];
    return (double)count / (double)ELEMENTS;
}

static double mean_differing(int k) {
    double sum = 0;

    for (int from = 0; from + k < STATES; from++)
        sum += differing(from, from + k);
    return sum / (STATES - k);
}

static void measure_moves(struct profile *profile) {
    size_t changes = 0, again = 0, same = 0, ones = 0;
    size_t seen[EXPONENTS] = {0}, changed[EXPONENTS] = {0};

    for (int step = 1; step + 1 < STATES; step++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            int old = ordered(states[step][i]);
            int move = ordered(states[step + 1][i]) - old;
            int before = old - ordered(states[step - 1][i]);
            int exponent = (states[step][i] >> 7 & 0xff) - FIRST_EXPONENT;

            if (exponent >= 0 && exponent < EXPONENTS) {
                seen[exponent]++;
                changed[exponent] += move != 0;
            }
            changes += move != 0;
            ones += move == 1 || move == -1;
            again += move && before;
            same += (move > 0 && before > 0) || (move < 0 && before < 0);
        }
    }
    profile->recurrence = (double)again / (double)changes;
    profile->same_sign = (double)same / (double)again;
    profile->by_one = (double)ones / (double)changes;
    for (int e = 0; e < EXPONENTS; e++)
        profile->p[e] = (double)changed[e] / (double)seen[e];
}

static struct profile measure(enum synth_regime regime, float lr) {
    struct profile profile = {0};

    run_make(regime, lr, BLOCKS, states, STATES);
    profile.density = mean_differing(1);
    for (int i = 0; i < 3; i++)
        profile.growth[i] = mean_differing(2 << i) / profile.density;
    measure_moves(&profile);
    run_free(states, STATES);
    return profile;
}

static void compare(const char *title, const struct figure *figures, size_t count) {
    unsigned strayed = 0;

    printf("\n%-42s recorded      made\n", title);
    for (size_t i = 0; i < count; i++) {
        const struct figure *f = &figures[i];
        double off = f->made / f->recorded - 1;
        int far = off > f->slack || off < -f->slack;

        printf("%-42s %8.4f  %8.4f  %+5.1f %%%s\n", f->name, f->recorded, f->made, 100 * off,
               far ? "  too far" : "");
        strayed += (unsigned)far;
    }
    assert_int_equal(strayed, 0);
}

static void test_master_run(void **state) {
    const struct profile p = measure(SYNTH_MASTER, 1e-6f);
    const struct figure figures[] = {
        {"density, %", 1.112, 100 * p.density, 0.03},
        {"growth over 2 steps", 1.773, p.growth[0], 0.02},
        {"growth over 4 steps", 3.086, p.growth[1], 0.02},
        {"growth over 8 steps", 5.231, p.growth[2], 0.02},
        {"changed in the step before too", 0.2084, p.recurrence, 0.04},
        {"... in the same direction", 0.8899, p.same_sign, 0.02},
        {"changes by one ulp", 0.9000, p.by_one, 0.02},
        {"P(change) at 2^-16", 0.83797, p.p[0], 0.05},
        {"P(change) at 2^-14", 0.44938, p.p[2], 0.05},
        {"P(change) at 2^-12", 0.11737, p.p[4], 0.05},
        {"P(change) at 2^-10", 0.02941, p.p[6], 0.05},
    };

    (void)state;
    compare("FP32 masters, lr 1e-6", figures, sizeof figures / sizeof figures[0]);
}

static void test_bf16_run(void **state) {
    const struct profile p = measure(SYNTH_BF16, 3e-6f);
    const struct figure figures[] = {
        {"density, %", 1.031, 100 * p.density, 0.03},
        {"growth over 2 steps", 1.156, p.growth[0], 0.02},
        {"growth over 4 steps", 1.345, p.growth[1], 0.02},
        {"growth over 8 steps", 1.569, p.growth[2], 0.02},
        {"changed in the step before too", 0.8419, p.recurrence, 0.04},
        {"... in the same direction", 0.9794, p.same_sign, 0.02},
        {"changes by one ulp", 0.6645, p.by_one, 0.04},
        {"P(change) at 2^-16", 0.94870, p.p[0], 0.05},
        {"P(change) at 2^-14", 0.79650, p.p[2], 0.05},
        {"P(change) at 2^-13", 0.60837, p.p[3], 0.05},
        {"P(change) at 2^-12", 0.29847, p.p[4], 0.05},
        {"P(change) at 2^-11", 0.02741, p.p[5], 0.40}, /* the far tail; see docs/synth.md */
    };

    (void)state;
    compare("weights in BF16, lr 3e-6", figures, sizeof figures / sizeof figures[0]);
    assert_true(p.p[6] < 0.001); /* nothing moves from 2^-10 up */
}

TEST_MAIN(test_master_run, test_bf16_run)
