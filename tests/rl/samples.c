// SPDX-License-Identifier: Apache-2.0
/* Samples through a store, there and back; and what somebody else put there. */
#include "tests/test.h"

#include "examples/rl/samples.h"
#include "examples/rl/task.h"

#include <math.h>

#define KEY "rl-samples/00000000000000000003/worker-0"

static void make(struct sequence *sequences, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct random random = random_stream(1, 2, i);

        task_ask(&random, &sequences[i]);
        for (size_t said = 0; said <= i % 4; said++) {
            sequences[i].tokens[sequences[i].length] = (uint8_t)('0' + said);
            sequences[i].log_chance[sequences[i].length++] = -0.25f * (float)(i + said);
        }
    }
}

static struct ulp_store *store_with(const struct samples *samples) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_memory(&store));
    assert_ok(samples_put(store, KEY, samples));
    return store;
}

static void test_there_and_back(void **state) {
    struct sequence sequences[6] = {0};
    struct samples back = {0};
    struct ulp_store *store;

    (void)state;
    make(sequences, 6);
    store = store_with(&(struct samples){3, 2, 3, sequences});
    assert_ok(samples_get(store, KEY, &back));
    assert_int_equal(back.version, 3);
    assert_int_equal(back.groups, 2);
    assert_int_equal(back.size, 3);
    for (size_t i = 0; i < 6; i++)
        assert_memory_equal(&back.sequences[i], &sequences[i], sizeof sequences[i]);
    samples_release(&back);
    assert_int_equal(samples_get(store, "rl-samples/none", &back), ULP_E_NOT_FOUND);
    ulp_store_free(store);
}

static void test_somebody_who_said_nothing(void **state) {
    struct sequence sequences[2] = {0};
    struct samples back = {0};
    struct ulp_store *store;

    (void)state;
    make(sequences, 2);
    sequences[1].length = sequences[1].prompt;
    store = store_with(&(struct samples){3, 1, 2, sequences});
    assert_fails(samples_get(store, KEY, &back), ULP_E_SCHEMA, "malformed");
    ulp_store_free(store);
}

/* Whatever one byte becomes, and wherever it ends, it is refused or is samples that make sense. */
static void test_damage(void **state) {
    struct sequence sequences[4] = {0};
    uint8_t whole[4096], changed[4096];
    size_t bytes = 0, refused = 0;
    uint64_t total;
    struct ulp_store *store;

    (void)state;
    make(sequences, 4);
    store = store_with(&(struct samples){3, 2, 2, sequences});
    assert_ok(ulp_store_read(store, KEY, 0, whole, sizeof whole, &bytes, &total));
    for (size_t at = 0; at < bytes * 256; at++) {
        struct samples back = {0};

        memcpy(changed, whole, bytes);
        changed[at / 256] = (uint8_t)at;
        assert_ok(ulp_store_put(store, KEY, changed, bytes));
        refused += samples_get(store, KEY, &back) != ULP_OK;
        for (size_t i = 0; i < back.groups * back.size; i++)
            assert_true(back.sequences[i].length <= TOKENS_MAX &&
                        back.sequences[i].prompt < back.sequences[i].length);
        samples_release(&back);
    }
    assert_true(refused > bytes);
    for (size_t shorter = 0; shorter < bytes; shorter++) {
        struct samples back = {0};

        assert_ok(ulp_store_put(store, KEY, whole, shorter));
        assert_fails(samples_get(store, KEY, &back), ULP_E_SCHEMA, KEY);
    }
    ulp_store_free(store);
}

TEST_MAIN(test_there_and_back, test_somebody_who_said_nothing, test_damage)
