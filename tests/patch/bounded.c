// SPDX-License-Identifier: Apache-2.0
/* Memory for making a patch is that of one chunk for each thread, however long the model is. */
#include "tests/patch/state.h"

#include "base/memory.h"
#include "patch/table.h"

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

/* A table of a hundred bytes that names a tensor of 2^45 elements, and a region of all of it or none. */
static size_t announce_much(uint8_t *file, int partial) {
    static const uint8_t layout[] = "\1\1\1\2U8\0\1\200\200\200\200\200\200\10\0\0\1a\0";
    static const uint8_t region[] = "\1\0\0\1\0\200\200\200\200\200\200\10";
    size_t used = PATCH_HEADER_BYTES + 1 + (partial ? 1 : 2) * (size_t)ULP_ROOT_BYTES;
    uint64_t checksum;

    memcpy(file, PATCH_MAGIC, PATCH_HEADER_BYTES - 1);
    file[PATCH_HEADER_BYTES] = partial ? 2 : 0;
    memcpy(file + used, layout, sizeof layout - 1);
    used += sizeof layout - 1;
    if (partial)
        memcpy(file + used, region, sizeof region - 1);
    used += partial ? sizeof region - 1 : 0;
    checksum = patch_checksum(file + PATCH_HEADER_BYTES, used - PATCH_HEADER_BYTES);
    memcpy(file + used, &checksum, 8);
    file[used + 8] = (uint8_t)(used - PATCH_HEADER_BYTES);
    memcpy(file + used + 12, PATCH_END_MAGIC, 4);
    return used + PATCH_TRAILER_BYTES;
}

static void test_a_small_table_takes_little_memory(void **unused) {
    static const struct mem_hooks hooks = {measured_resize, measured_release, NULL};

    (void)unused;
    for (int partial = 0; partial < 2; partial++) {
        uint8_t file[256] = {0};
        size_t bytes = announce_much(file, partial);
        struct ulp_patch *patch = NULL;

        atomic_store(&alive, 0);
        atomic_store(&peak, 0);
        mem_install(&hooks);
        assert_fails(ulp_patch_open_memory(file, bytes, &patch), ULP_E_TABLE, "sums");
        mem_install(NULL);
        assert_int_equal(atomic_load(&alive), 0);
        assert_true(atomic_load(&peak) < 1 << 20);
    }
}

TEST_MAIN(test_memory_does_not_grow_with_the_model, test_a_small_table_takes_little_memory)
