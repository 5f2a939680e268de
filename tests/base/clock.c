// SPDX-License-Identifier: Apache-2.0
/* Time comes through hooks that a test can hold still. */
#include "tests/test.h"

#include "base/clock.h"

struct fake {
    uint64_t monotonic, wall, slept;
    unsigned sleeps;
};

static uint64_t fake_monotonic(void *user) {
    return ((struct fake *)user)->monotonic;
}

static uint64_t fake_wall(void *user) {
    return ((struct fake *)user)->wall;
}

static void fake_sleep(void *user, uint64_t duration_ns) {
    struct fake *fake = user;

    fake->monotonic += duration_ns;
    fake->slept = duration_ns;
    fake->sleeps++;
}

static void install(struct fake *fake) {
    struct clock_hooks hooks = {fake_monotonic, fake_wall, fake_sleep, fake};

    clock_install(&hooks); /* copied: `hooks` goes away here */
}

static void test_hooks_replace_both_clocks(void **state) {
    struct fake fake = {.monotonic = 7, .wall = UINT64_MAX};

    (void)state;
    install(&fake);
    assert_int_equal(clock_monotonic_ns(), 7);
    assert_int_equal(clock_wall_ns(), UINT64_MAX);
    fake.monotonic = 8;
    assert_int_equal(clock_monotonic_ns(), 8);
    clock_install(NULL);
}

/* An hour passes in no time. */
static void test_sleep_uses_the_hook(void **state) {
    const uint64_t hour = UINT64_C(3600000000000);
    struct fake fake = {.monotonic = 1};

    (void)state;
    install(&fake);
    clock_sleep_ns(hour);
    assert_int_equal(fake.slept, hour);
    assert_int_equal(fake.sleeps, 1);
    assert_int_equal(clock_monotonic_ns(), hour + 1);
    clock_install(NULL);
}

static void test_null_restores_the_system_clock(void **state) {
    const uint64_t year_2020 = UINT64_C(1577836800000000000);
    struct fake fake = {.monotonic = 7, .wall = 9};

    (void)state;
    install(&fake);
    clock_install(NULL);
    assert_true(clock_wall_ns() > year_2020);
    assert_true(clock_monotonic_ns() != 7);
    clock_sleep_ns(1);
    assert_int_equal(fake.sleeps, 0);
}

static void test_monotonic_time_never_runs_backwards(void **state) {
    uint64_t before = clock_monotonic_ns();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_monotonic_ns();

        assert_true(now >= before);
        before = now;
    }
}

static void test_sleep_lasts_at_least_as_long_as_asked(void **state) {
    static const uint64_t durations[] = {0, 1, 1000, 2000000, 20000000};

    (void)state;
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        uint64_t before = clock_monotonic_ns();

        clock_sleep_ns(durations[i]);
        assert_true(clock_monotonic_ns() - before >= durations[i]);
    }
}

TEST_MAIN(test_hooks_replace_both_clocks, test_sleep_uses_the_hook,
          test_null_restores_the_system_clock, test_monotonic_time_never_runs_backwards,
          test_sleep_lasts_at_least_as_long_as_asked)
