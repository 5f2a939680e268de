// SPDX-License-Identifier: Apache-2.0
/* A tensor of more than 2^32 bytes and elements, almost all of it pages of zeros that nobody wrote.
 * */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "tests/patch/state.h"

#include <sys/mman.h>

/* Also built with single bytes as elements, which is slower: then there are more than 2^32 of them.
 * */
#ifndef ELEMENT_BYTES
#define ELEMENT_BYTES 2
#define DTYPE "BF16"
#endif

#define HUGE_BYTES ((UINT64_C(4) << 30) + (UINT64_C(1) << 24) + 6)

static const uint64_t places[] = {0,
                                  2,
                                  (UINT64_C(1) << 24) - 1,
                                  UINT64_C(1) << 24,
                                  UINT64_C(1) << 31,
                                  (UINT64_C(1) << 32) - 1,
                                  UINT64_C(1) << 32,
                                  (UINT64_C(1) << 32) + 12345,
                                  HUGE_BYTES - 1};

static uint8_t *map_zeros(void) {
    void *memory = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        skip();
    madvise(memory, HUGE_BYTES, MADV_HUGEPAGE); /* the zeros are mapped by the 2 MiB */
    return memory;
}

static struct ulp_tensor make(uint8_t *data) {
    static const uint64_t shape[] = {HUGE_BYTES / ELEMENT_BYTES};
    struct ulp_tensor tensor = {
        .name = "huge", .dtype = DTYPE, .shape = shape, .rank = 1, .data = data};

    assert_ok(ulp_tensor_measure(&tensor));
    return tensor;
}

static void test_changes_beyond_four_gibibytes(void **unused) {
    uint8_t *old = map_zeros(), *new = map_zeros();
    struct ulp_tensor base = make(old), next = make(new);
    struct ulp_pool *pool = pool_of(2);
    const struct ulp_diff_options options = {.pool = pool};
    const struct ulp_apply_options apply_options = {.pool = pool};
    struct ulp_weights *weights = NULL;
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);
    struct ulp_diff_report made;
    struct ulp_apply_report applied;
    struct ulp_patch *patch;

    (void)unused;
    for (size_t i = 0; i < COUNT(places); i++)
        new[places[i]] = (uint8_t)(i + 1);
    assert_ok(ulp_weights_new(&base, 1, pool, NULL, &weights));
    assert_ok(ulp_diff(weights, &next, 1, &options, &sink, &made));
    assert_int_equal(made.changed, COUNT(places));
    assert_true(bytes.used < 32768);
    patch = open_bytes(&bytes);
    assert_ok(ulp_apply(weights, patch, &apply_options, &applied));
    for (size_t i = 0; i < COUNT(places); i++) {
        assert_int_equal(old[places[i]], i + 1);
        if (i && places[i] - 1 != places[i - 1])
            assert_int_equal(old[places[i] - 1], 0);
    }
    assert_same_root(&applied.child, &made.child);
    ulp_patch_free(patch);
    ulp_weights_free(weights);
    bytes_free(&bytes);
    ulp_pool_free(pool);
    munmap(old, HUGE_BYTES);
    munmap(new, HUGE_BYTES);
}

TEST_MAIN(test_changes_beyond_four_gibibytes)
