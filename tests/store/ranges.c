// SPDX-License-Identifier: Apache-2.0
/* Parts of objects, and how long these are. */
#include "tests/store/stores.h"

#include "base/memory.h"

static const char text[] = "0123456789";

static void assert_range(struct ulp_store *store, uint64_t offset, size_t bytes,
                         const char *expected) {
    char data[32];
    uint64_t total = 0;
    size_t got = 77;

    memset(data, '~', sizeof data);
    assert_ok(ulp_store_read(store, "a/object", offset, data, bytes, &got, &total));
    assert_int_equal(got, strlen(expected));
    assert_int_equal(total, 10);
    assert_memory_equal(data, expected, got);
    for (size_t i = got; i < sizeof data; i++)
        assert_int_equal(data[i], '~');
}

static void ranges(struct place *place) {
    put_text(place->store, "a/object", text);
    for (uint64_t offset = 0; offset <= 10; offset++) {
        for (size_t bytes = 0; bytes <= 12; bytes++) {
            size_t left = 10 - (size_t)offset;
            char expected[16] = "";

            memcpy(expected, text + offset, bytes < left ? bytes : left);
            assert_range(place->store, offset, bytes, expected);
        }
    }
    assert_range(place->store, 11, 5, "");
    assert_range(place->store, 11, 0, "");
    assert_range(place->store, UINT32_MAX, 5, "");
    assert_range(place->store, INT64_MAX, 5, "");
    assert_range(place->store, UINT64_MAX, 5, "");
    assert_range(place->store, UINT64_MAX, 0, "");
}

/* Who wants no bytes needs no place for them. */
static void nothing(struct place *place) {
    uint64_t total = 0;
    size_t got = 77;

    put_text(place->store, "a/object", text);
    assert_ok(ulp_store_read(place->store, "a/object", 3, NULL, 0, &got, &total));
    assert_int_equal(got, 0);
    assert_int_equal(total, 10);
}

static void assert_empty(struct ulp_store *store, const char *key) {
    uint64_t total = 77;
    size_t got = 77;
    char byte = '~';

    assert_ok(ulp_store_read(store, key, 0, &byte, 1, &got, &total));
    assert_true(got == 0 && total == 0 && byte == '~');
    assert_ok(ulp_store_read(store, key, 1, &byte, 1, &got, &total));
    assert_true(got == 0 && total == 0);
    assert_ok(ulp_store_stat(store, key, &total));
    assert_int_equal(total, 0);
}

static void empty_objects(struct place *place) {
    struct ulp_store_writer *writer = NULL;

    assert_ok(ulp_store_create(place->store, "created", NULL, 0));
    assert_ok(ulp_store_put(place->store, "put", NULL, 0));
    assert_ok(ulp_store_put_begin(place->store, "written", &writer));
    assert_ok(ulp_store_put_end(writer, 1));
    assert_empty(place->store, "created");
    assert_empty(place->store, "put");
    assert_empty(place->store, "written");
    assert_string_equal(listed(place->store, "", "").text, "created put written ");
    assert_fails(ulp_store_create(place->store, "put", "x", 1), ULP_E_EXISTS, "put");
    assert_empty(place->store, "put");
}

enum { LARGE = 5 * 1024 * 1024 + 13 };

static void write_in_odd_pieces(struct ulp_store *store, const uint8_t *data) {
    struct ulp_store_writer *writer = NULL;

    assert_ok(ulp_store_put_begin(store, "large", &writer));
    for (size_t done = 0, piece = 0; done < LARGE; done += piece) {
        piece = (size_t)test_random() % 300007;
        piece = piece < LARGE - done ? piece : LARGE - done;
        assert_ok(ulp_store_put_write(writer, data + done, piece));
        assert_absent(store, "large");
    }
    assert_ok(ulp_store_put_end(writer, 1));
}

static void large_objects(struct place *place) {
    uint8_t *data = NULL, *back = NULL;
    uint64_t total = 0;
    size_t got = 0;

    assert_ok(mem_zeroed(LARGE, 1, &data));
    assert_ok(mem_zeroed(LARGE, 1, &back));
    test_random_bytes(data, LARGE);
    write_in_odd_pieces(place->store, data);
    assert_ok(read_whole(place->store, "large", back, LARGE, &got));
    assert_int_equal(got, LARGE);
    assert_memory_equal(back, data, LARGE);
    assert_ok(ulp_store_read(place->store, "large", 3000001, back, LARGE, &got, &total));
    assert_int_equal(got, LARGE - 3000001);
    assert_memory_equal(back, data + 3000001, got);
    mem_free(data);
    mem_free(back);
}

static void not_found(struct place *place) {
    assert_absent(place->store, "nothing");
    assert_absent(place->store, "no/such/thing");
    put_text(place->store, "a/b", text);
    assert_absent(place->store, "a/bb");
    assert_absent(place->store, "a/c/d");
    assert_absent(place->store, "a/b/c"); /* a part of the way is an object */
}

TEST_EACH(ranges)
TEST_EACH(nothing)
TEST_EACH(empty_objects)
TEST_EACH(large_objects)
TEST_EACH(not_found)

TEST_MAIN(test_ranges, test_nothing, test_empty_objects, test_large_objects, test_not_found)
