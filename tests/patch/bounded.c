// SPDX-License-Identifier: Apache-2.0
/* Memory for making a patch is that of one chunk for each thread, however long the model is; for
 * opening one, in proportion to its table. */
#include "tests/patch/state.h"

#include "base/memory.h"
#include "patch/patch.h"

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

/* ---- what a forged table announces ---- */

/* A file of a table alone: its first bytes up to the layout are made here. */
static size_t wrap_table(uint8_t *file, int partial, const void *rest, size_t rest_bytes) {
    size_t used = PATCH_HEADER_BYTES + 1 + (partial ? 1 : 2) * (size_t)ULP_ROOT_BYTES;
    uint64_t checksum;

    header_write(file);
    file[PATCH_HEADER_BYTES] = partial ? 2 : 0;
    memcpy(file + used, rest, rest_bytes);
    used += rest_bytes;
    checksum = patch_checksum(file + PATCH_HEADER_BYTES, used - PATCH_HEADER_BYTES);
    memcpy(file + used, &checksum, 8);
    file[used + 8] = (uint8_t)(used - PATCH_HEADER_BYTES);
    memcpy(file + used + 12, PATCH_END_MAGIC, 4);
    return used + PATCH_TRAILER_BYTES;
}

static void measure_begin(void) {
    static const struct mem_hooks hooks = {measured_resize, measured_release, NULL};

    atomic_store(&alive, 0);
    atomic_store(&peak, 0);
    mem_install(&hooks);
}

static void measure_end(void) {
    mem_install(NULL);
    assert_int_equal(atomic_load(&alive), 0);
    assert_true(atomic_load(&peak) < 1 << 20);
}

static void refused(const void *table, size_t bytes, int partial, const char *text) {
    uint8_t file[256] = {0};
    struct ulp_patch *patch = NULL;
    size_t used = wrap_table(file, partial, table, bytes);

    measure_begin();
    assert_fails(ulp_patch_open_memory(file, used, &patch), ULP_E_TABLE, text);
    measure_end();
}

/* A tensor of 2^45 elements, and a region of all of it or none. */
static void test_a_small_table_takes_little_memory(void **unused) {
    static const char table[] = "\1\1\1\2U8\0\1\200\200\200\200\200\200\10\0\0\1a\0"
                                "\1\0\0\1\0\200\200\200\200\200\200\10";
    const size_t layout = 20;

    (void)unused;
    refused(table, layout, 0, "sums");
    refused(table, sizeof table - 1, 1, "sums");
}

/* Numbers of tensors, dtypes and forms, as many as there may be, and hardly anything behind. */
static void test_a_layout_that_announces_much(void **unused) {
    static const char tensors[] = "\200\200\40\1\1\4BF16\0\1\10";
    static const char dtypes[] = "\200\200\40\200\200\40\1\4BF16\0\1\10";
    static const char forms[] = "\200\200\40\1\200\200\40\4BF16\0\1\10";

    (void)unused;
    for (int partial = 0; partial < 2; partial++) {
        refused(tensors, sizeof tensors - 1, partial, "the number of tensors");
        refused(dtypes, sizeof dtypes - 1, partial, "the number of tensors");
        refused(forms, sizeof forms - 1, partial, "the number of tensors");
    }
}

/* ---- a chunk of four gigabytes, served from elsewhere ---- */

#define LONG_CHUNK UINT64_C(0xffffffff)

static struct {
    struct buffer tail; /* table and trailer */
    uint64_t bytes;
} elsewhere = {.tail = BUFFER(65536)};

static enum ulp_status serve(void *user, uint64_t offset, void *data, size_t bytes) {
    (void)user;
    memset(data, 0, bytes);
    if (!offset)
        header_write(data);
    else if (offset >= elsewhere.bytes - elsewhere.tail.used)
        memcpy(data, elsewhere.tail.data + (offset - (elsewhere.bytes - elsewhere.tail.used)),
               bytes);
    return ULP_OK;
}

/* A true patch but for the length of its chunk, so that all roots and checksums fit. */
static void forge_length(uint64_t length) {
    static const struct form form = {"w", "BF16", {800}, 1, 0};
    struct state base = state_make(&form, 1, 0), next = state_copy(&base);
    struct bytes bytes;
    struct ulp_patch *patch;

    state_step(&next, 100);
    bytes = patch_between(&base, &next, NULL);
    patch = open_bytes(&bytes);
    assert_int_equal(patch->table.grid.chunk_count, 1);
    patch->table.chunks[0].bytes = length;
    elsewhere.tail.used = 0;
    assert_ok(table_write(&patch->table, &elsewhere.tail));
    elsewhere.bytes = PATCH_HEADER_BYTES + length + elsewhere.tail.used;
    ulp_patch_free(patch);
    bytes_free(&bytes);
    state_free(&base);
    state_free(&next);
}

static void test_a_chunk_longer_than_any_coder_makes(void **unused) {
    struct ulp_source source = {.read = serve};
    struct ulp_patch *patch = NULL;

    (void)unused;
    for (uint64_t length = LONG_CHUNK; length > 1 << 20; length /= 16) {
        forge_length(length);
        source.bytes = elsewhere.bytes;
        measure_begin();
        assert_fails(ulp_patch_open_source(&source, &patch), ULP_E_TABLE, "the length of a chunk");
        measure_end();
    }
    forge_length(1000); /* which could be, so that it is a matter of the checksum */
    source.bytes = elsewhere.bytes;
    assert_ok(ulp_patch_open_source(&source, &patch));
    assert_fails(ulp_patch_verify(patch, NULL, NULL), ULP_E_CHECKSUM, "chunk 0");
    ulp_patch_free(patch);
    buffer_release(&elsewhere.tail);
}

TEST_MAIN(test_memory_does_not_grow_with_the_model, test_a_small_table_takes_little_memory,
          test_a_layout_that_announces_much, test_a_chunk_longer_than_any_coder_makes)
