// SPDX-License-Identifier: Apache-2.0
/* Pieces of an arena are aligned, zeroed, apart from each other, and go together. */
#include "tests/test.h"

#include "base/arena.h"

#define CHUNK 65536u /* pieces around this size take the path of the big ones */

static void test_pieces_are_aligned_and_zeroed(void **state) {
    struct arena arena = {0};

    (void)state;
    for (size_t bytes = 0; bytes < 1000; bytes++) {
        uint8_t *piece = NULL;

        assert_ok(arena_zeroed(&arena, 1, bytes, &piece));
        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % sizeof(uint64_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(piece[i], 0);
        if (bytes)
            memset(piece, 0xff, bytes);
    }
    arena_release(&arena);
}

static void test_many_pieces_do_not_touch_each_other(void **state) {
    enum { PIECES = 20000 };
    static uint64_t *pieces[PIECES];
    struct arena arena = {0};

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    for (uint64_t i = 0; i < PIECES; i++) {
        assert_ok(arena_zeroed(&arena, i % 7 + 1, sizeof *pieces[i], &pieces[i]));
        for (uint64_t j = 0; j <= i % 7; j++)
            pieces[i][j] = i;
    }
    for (uint64_t i = 0; i < PIECES; i++) {
        for (uint64_t j = 0; j <= i % 7; j++)
            assert_int_equal(pieces[i][j], i);
    }
    arena_release(&arena);
    assert_in_range(failing_allocator_stop(), 2, 20); /* few allocations for many pieces */
}

static void test_pieces_around_a_whole_chunk(void **state) {
    static const size_t sizes[] = {CHUNK - 8, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5000000};
    struct arena arena = {0};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *small = NULL, *big = NULL, *behind = NULL;

        assert_ok(arena_zeroed(&arena, 3, 1, &small));
        assert_ok(arena_zeroed(&arena, sizes[i], 1, &big));
        assert_ok(arena_zeroed(&arena, 3, 1, &behind));
        memset(small, 1, 3);
        memset(big, 2, sizes[i]);
        memset(behind, 3, 3);
        assert_int_equal(small[2], 1);
        assert_int_equal(big[0], 2);
        assert_int_equal(big[sizes[i] - 1], 2);
        assert_int_equal(behind[0], 3);
    }
    arena_release(&arena);
}

static void test_text_is_copied_and_ends_with_nul(void **state) {
    struct arena arena = {0};
    const char *name = NULL, *empty = NULL, *part = NULL;
    char source[] = "weight.0";

    (void)state;
    assert_ok(arena_text(&arena, source, strlen(source), &name));
    assert_ok(arena_text(&arena, "", 0, &empty));
    assert_ok(arena_text(&arena, source, 6, &part));
    memset(source, 'x', sizeof source - 1);
    assert_string_equal(name, "weight.0");
    assert_string_equal(empty, "");
    assert_string_equal(part, "weight");
    arena_release(&arena);
}

static void test_sizes_too_large_are_refused(void **state) {
    static const size_t cases[][2] = {{SIZE_MAX, 2},
                                      {SIZE_MAX, 1},
                                      {SIZE_MAX / 2 + 1, 1},
                                      {SIZE_MAX / 2, 1},
                                      {(size_t)1 << 32, (size_t)1 << 32}};
    struct arena arena = {0};
    char here = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *piece = &here;

        assert_fails(arena_zeroed(&arena, cases[i][0], cases[i][1], &piece), ULP_E_NOMEM,
                     "out of memory");
        assert_ptr_equal(piece, &here);
        assert_null(arena.newest);
    }
}

static void test_a_failed_allocation_keeps_earlier_pieces(void **state) {
    struct arena arena = {0};
    const char *first = NULL, *second = NULL;
    char *big = NULL;

    (void)state;
    failing_allocator_start(1, 1);
    assert_ok(arena_text(&arena, "first", 5, &first));
    assert_fails(arena_zeroed(&arena, CHUNK, 1, &big), ULP_E_NOMEM, "out of memory");
    assert_null(big);
    assert_ok(arena_text(&arena, "second", 6, &second));
    assert_string_equal(first, "first");
    assert_string_equal(second, "second");
    arena_release(&arena);
    failing_allocator_stop();
}

static void test_release_twice_and_use_again(void **state) {
    struct arena arena = {0};
    const char *text = NULL;

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    arena_release(&arena);
    for (int round = 0; round < 3; round++) {
        assert_ok(arena_text(&arena, "text", 4, &text));
        assert_string_equal(text, "text");
        arena_release(&arena);
        arena_release(&arena);
        assert_null(arena.newest);
    }
    assert_int_equal(failing_allocator_stop(), 3);
}

TEST_MAIN(test_pieces_are_aligned_and_zeroed, test_many_pieces_do_not_touch_each_other,
          test_pieces_around_a_whole_chunk, test_text_is_copied_and_ends_with_nul,
          test_sizes_too_large_are_refused, test_a_failed_allocation_keeps_earlier_pieces,
          test_release_twice_and_use_again)
