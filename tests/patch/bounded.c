// SPDX-License-Identifier: Apache-2.0
/* Memory for making a patch is that of one chunk for each thread, however long the model is. */
#include "tests/patch/state.h"

#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>

#define CHUNK_ELEMENTS (UINT64_C(1) << 24)

static atomic_int_fast64_t alive, peak;

static void *measured_resize(void *user, void *old, size_t bytes) {
    int_fast64_t before = old ? (int_fast64_t)malloc_usable_size(old) : 0, now, most;
    void *fresh = realloc(old, bytes);

    (void)user;
    now = fresh ? (int_fast64_t)malloc_usable_size(fresh) - before : 0;
    now += atomic_fetch_add(&alive, now);
    for (most = atomic_load(&peak); now > most;) {
        if (atomic_compare_exchange_weak(&peak, &most, now))
            break;
    }
    return fresh;
}

static void measured_release(void *user, void *pointer) {
    (void)user;
    if (pointer)
        atomic_fetch_sub(&alive, (int_fast64_t)malloc_usable_size(pointer));
    free(pointer);
}

static enum ulp_status swallow(void *user, const void *data, size_t bytes) {
    (void)user;
    (void)data;
    (void)bytes;
    return ULP_OK;
}

/* A hundredth of the elements change; the most bytes held at once. */
static int64_t peak_of(uint64_t chunks) {
    static const struct mem_hooks hooks = {measured_resize, measured_release, NULL};
    static const struct ulp_sink sink = {swallow, NULL};
    const size_t bytes = (size_t)(chunks * CHUNK_ELEMENTS);
    uint8_t *old = calloc(bytes, 1), *new = calloc(bytes, 1);
    struct ulp_tensor base = {.name = "w",
                              .dtype = "F8_E4M3",
                              .shape = (const uint64_t[]){bytes},
                              .rank = 1,
                              .data = old};
    struct ulp_tensor next;
    struct ulp_weights *weights = NULL;

    assert_true(old && new);
    for (size_t i = 0; i + 100 <= bytes; i += 100)
        new[i + i / 100 % 99] = 1;
    assert_ok(ulp_tensor_measure(&base));
    next = base;
    next.data = new;
    atomic_store(&alive, 0);
    atomic_store(&peak, 0);
    mem_install(&hooks);
    assert_ok(ulp_weights_new(&base, 1, NULL, NULL, &weights));
    assert_ok(ulp_diff(weights, &next, 1, NULL, &sink, NULL));
    ulp_weights_free(weights);
    mem_install(NULL);
    assert_int_equal(atomic_load(&alive), 0);
    free(old);
    free(new);
    return atomic_load(&peak);
}

static void test_memory_does_not_grow_with_the_model(void **unused) {
    int64_t one = peak_of(1), four = peak_of(4);

    (void)unused;
    assert_true(one > 1 << 20); /* or nothing was measured */
    assert_true(one < 160 << 20);
    assert_true(four < one + (1 << 20));
}

TEST_MAIN(test_memory_does_not_grow_with_the_model)
