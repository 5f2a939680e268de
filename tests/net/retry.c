// SPDX-License-Identifier: Apache-2.0
/* Trying again, by a clock that does not really wait. */
#include "net/retry.h"

#include "base/clock.h"
#include "tests/test.h"

#define MS UINT64_C(1000000)

static struct {
    uint64_t now, slept[100];
    size_t count;
} fake;

static uint64_t now(void *user) {
    (void)user;
    return fake.now;
}

static void rest(void *user, uint64_t duration) {
    (void)user;
    fake.slept[fake.count++] = duration;
    fake.now += duration;
}

static const struct clock_hooks hooks = {now, now, rest, NULL};

static void begin(uint64_t at) {
    fake.now = at;
    fake.count = 0;
    clock_install(&hooks);
}

static void test_pauses_grow_and_end(void **state) {
    const struct retry_limits limits = {.attempts = 6, .first_ns = 100 * MS, .most_ns = 500 * MS};
    const uint64_t longest[] = {100, 200, 400, 500, 500};
    uint64_t most[5] = {0}, least[5];

    (void)state;
    memset(least, 0xff, sizeof least);
    for (uint64_t round = 0; round < 2000; round++) {
        struct retry retry;
        unsigned made = 1;

        begin(1000000 + round);
        retry = retry_begin(&limits);
        while (retry_again(&retry, 0))
            made++;
        assert_int_equal(made, 6);
        assert_int_equal(fake.count, 5);
        for (size_t i = 0; i < 5; i++) {
            assert_in_range(fake.slept[i], 0, longest[i] * MS);
            most[i] = fake.slept[i] > most[i] ? fake.slept[i] : most[i];
            least[i] = fake.slept[i] < least[i] ? fake.slept[i] : least[i];
        }
    }
    for (size_t i = 0; i < 5; i++) { /* the whole range is used */
        assert_true(most[i] > longest[i] * MS * 95 / 100);
        assert_true(least[i] < longest[i] * MS * 5 / 100);
    }
    clock_install(NULL);
}

static void test_what_a_server_asks_for(void **state) {
    const struct retry_limits limits = {.attempts = 4, .first_ns = MS, .most_ns = 20000 * MS};
    struct retry retry;

    (void)state;
    begin(5);
    retry = retry_begin(&limits);
    assert_true(retry_again(&retry, 3));
    assert_in_range(fake.slept[0], 3000 * MS, 3001 * MS);
    assert_true(retry_again(&retry, 1000000)); /* up to a cap */
    assert_int_equal(fake.slept[1], 20000 * MS);
    assert_true(retry_again(&retry, UINT64_MAX));
    assert_int_equal(fake.slept[2], 20000 * MS);
    assert_false(retry_again(&retry, 1));
    clock_install(NULL);
}

static void test_time_ends_it(void **state) {
    const struct retry_limits limits = {.attempts = 1000, .total_ns = 1000 * MS};
    struct retry retry;

    (void)state;
    begin(5);
    retry = retry_begin(&limits);
    while (retry_again(&retry, 0))
        fake.now += 50 * MS; /* what an attempt takes */
    assert_in_range(fake.now - 5, 0, 1051 * MS);
    assert_in_range(fake.count, 1, 30);
    fake.now += 10000 * MS;
    assert_false(retry_again(&retry, 0));
    retry_refresh(&retry);
    assert_true(retry_again(&retry, 0));
    clock_install(NULL);
}

static void test_defaults_end(void **state) {
    const struct retry_limits limits = {0};
    struct retry retry;

    (void)state;
    begin(5);
    retry = retry_begin(&limits);
    while (retry_again(&retry, 0))
        continue;
    assert_int_equal(fake.count, 7);
    assert_true(fake.now < 60000 * MS);
    clock_install(NULL);
}

static void test_codes(void **state) {
    (void)state;
    for (unsigned code = 0; code < 1000; code++) {
        bool expected = code == 408 || code == 429 || code == 500 || (code >= 502 && code <= 504);

        assert_int_equal(retry_code(code), expected);
    }
}

TEST_MAIN(test_pauses_grow_and_end, test_what_a_server_asks_for, test_time_ends_it,
          test_defaults_end, test_codes)
