// SPDX-License-Identifier: Apache-2.0
/* The one door to the heap: zeroed, bounded, replaceable, and harmless when it says no. */
#include "tests/test.h"

#include "base/memory.h"

struct odd {
    uint8_t bytes[24];
};

/* Fills memory, so that zeros are ours and not the system's. */
static void *dirty_resize(void *user, void *old, size_t bytes) {
    uint8_t *fresh = old ? realloc(old, bytes) : malloc(bytes);

    if (fresh && !old)
        memset(fresh, 0xee, bytes);
    ++*(unsigned *)user;
    return fresh;
}

static void dirty_release(void *user, void *pointer) {
    ++*(unsigned *)user;
    free(pointer);
}

static void test_zeroed_memory_is_zero_to_its_last_byte(void **state) {
    unsigned calls = 0;
    struct mem_hooks hooks = {dirty_resize, dirty_release, &calls};

    (void)state;
    mem_install(&hooks);
    for (size_t count = 0; count < 100; count++) {
        struct odd *array = NULL;

        assert_ok(mem_zeroed(count, sizeof *array, &array));
        assert_non_null(array);
        for (size_t i = 0; i < count * sizeof *array; i++)
            assert_int_equal(((uint8_t *)array)[i], 0);
        mem_free(array);
    }
    mem_install(NULL);
    assert_int_equal(calls, 200);
}

static void test_null_restores_the_c_library(void **state) {
    unsigned calls = 0;
    struct mem_hooks hooks = {dirty_resize, dirty_release, &calls};
    char *text = NULL;

    (void)state;
    mem_install(&hooks);
    mem_install(NULL);
    assert_ok(mem_copy_text("text", &text));
    mem_free(text);
    assert_int_equal(calls, 0);
}

static void test_products_too_large_are_refused(void **state) {
    static const size_t cases[][2] = {
        {SIZE_MAX, 2}, {SIZE_MAX / 2 + 1, 2},        {(size_t)1 << 32, (size_t)1 << 32},
        {SIZE_MAX, 1}, {(size_t)PTRDIFF_MAX + 1, 1}, {SIZE_MAX, SIZE_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char here = 0, *pointer = &here, *old = NULL;

        failing_allocator_start(UINT64_MAX, 0);
        assert_fails(mem_zeroed(cases[i][0], cases[i][1], &pointer), ULP_E_NOMEM, "out of memory");
        assert_ptr_equal(pointer, &here);
        assert_fails(mem_resize(&old, cases[i][0], cases[i][1]), ULP_E_NOMEM, "out of memory");
        assert_null(old);
        assert_int_equal(failing_allocator_stop(), 0); /* never even asked */
    }
}

static void test_the_message_says_how_much(void **state) {
    char *pointer = NULL;

    (void)state;
    failing_allocator_start(0, 1);
    assert_fails(mem_zeroed(7, 24, &pointer), ULP_E_NOMEM, "7 elements of 24 bytes");
    failing_allocator_stop();
    assert_null(pointer);
}

static void test_a_failed_copy_leaves_its_output_alone(void **state) {
    char here = 0, *copy = &here;

    (void)state;
    failing_allocator_start(0, 0);
    assert_fails(mem_copy_text("abc", &copy), ULP_E_NOMEM, "4 elements of 1 bytes");
    failing_allocator_stop();
    assert_ptr_equal(copy, &here);
    assert_ok(mem_copy_text("abc", &copy));
    assert_string_equal(copy, "abc");
    mem_free(copy);
}

static void test_a_failed_resize_keeps_the_old(void **state) {
    uint8_t *pointer = NULL, *before;

    (void)state;
    failing_allocator_start(1, 1);
    assert_ok(mem_resize(&pointer, 100, 1));
    memset(pointer, 0x5a, 100);
    before = pointer;
    assert_fails(mem_resize(&pointer, 1000000, 1), ULP_E_NOMEM, "1000000 elements");
    assert_ptr_equal(pointer, before);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(pointer[i], 0x5a);
    mem_free(pointer);
    assert_int_equal(failing_allocator_stop(), 2);
}

static void test_resize_keeps_contents_both_ways(void **state) {
    uint32_t *array = NULL;

    (void)state;
    assert_ok(mem_resize(&array, 10, sizeof *array));
    for (uint32_t i = 0; i < 10; i++)
        array[i] = i * i;
    assert_ok(mem_resize(&array, 100000, sizeof *array));
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(array[i], i * i);
    assert_ok(mem_resize(&array, 3, sizeof *array));
    assert_int_equal(array[2], 4);
    assert_ok(mem_resize(&array, 0, sizeof *array));
    assert_non_null(array);
    mem_free(array);
}

static void test_grow_asks_rarely_and_always_has_room(void **state) {
    uint64_t *array = NULL, calls;
    size_t room = 0;

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    for (size_t count = 0; count < 10000; count++) {
        assert_ok(mem_grow(&array, count, sizeof *array, &room));
        assert_true(room > count);
        array[count] = count;
    }
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(array[i], i);
    mem_free(array);
    calls = failing_allocator_stop();
    assert_in_range(calls, 2, 20);
}

static void test_a_failed_grow_keeps_array_and_room(void **state) {
    uint64_t *array = NULL, *before;
    size_t room = 0;

    (void)state;
    failing_allocator_start(1, 0);
    assert_ok(mem_grow(&array, 0, sizeof *array, &room));
    before = array;
    array[0] = 42;
    assert_fails(mem_grow(&array, room, sizeof *array, &room), ULP_E_NOMEM, "out of memory");
    assert_ptr_equal(array, before);
    assert_int_equal(room, 16);
    assert_int_equal(array[0], 42);
    assert_ok(mem_grow(&array, room, sizeof *array, &room));
    assert_int_equal(room, 32);
    assert_int_equal(array[0], 42);
    mem_free(array);
    failing_allocator_stop();
}

static void test_free_accepts_null(void **state) {
    unsigned calls = 0;
    struct mem_hooks hooks = {dirty_resize, dirty_release, &calls};

    (void)state;
    mem_install(&hooks);
    mem_free(NULL);
    mem_install(NULL);
    assert_int_equal(calls, 0);
}

TEST_MAIN(test_zeroed_memory_is_zero_to_its_last_byte, test_null_restores_the_c_library,
          test_products_too_large_are_refused, test_the_message_says_how_much,
          test_a_failed_copy_leaves_its_output_alone, test_a_failed_resize_keeps_the_old,
          test_resize_keeps_contents_both_ways, test_grow_asks_rarely_and_always_has_room,
          test_a_failed_grow_keeps_array_and_room, test_free_accepts_null)
