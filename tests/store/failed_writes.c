// SPDX-License-Identifier: Apache-2.0
/* An object of which a piece could not be written is never put into place, even by a caller who
 * asks for it. */
#include "tests/store/stores.h"

#include <signal.h>
#include <sys/resource.h>

/* Files may not grow behind 1000 bytes meanwhile, so nothing is asserted. */
static enum ulp_status write_too_much(struct ulp_store_writer *writer) {
    static const char data[2000];
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status = ULP_E_INTERNAL;

    if (!getrlimit(RLIMIT_FSIZE, &before)) {
        limit = before;
        limit.rlim_cur = 1000;
        if (!setrlimit(RLIMIT_FSIZE, &limit))
            status = ulp_store_put_write(writer, data, sizeof data);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    signal(SIGXFSZ, handler);
    return status;
}

static void test_a_full_disk(void **state) {
    struct place place = directory_place();
    struct ulp_store_writer *writer = NULL;

    (void)state;
    put_text(place.store, "a/b", "old");
    assert_ok(ulp_store_put_begin(place.store, "a/b", &writer));
    assert_int_equal(write_too_much(writer), ULP_E_NO_SPACE);
    assert_non_null(strstr(ulp_last_error(), path_in(place.directory, "a/b")));
    assert_fails(ulp_store_put_write(writer, "more", 4), ULP_E_NO_SPACE, "a/b");
    assert_fails(ulp_store_put_end(writer, 1), ULP_E_NO_SPACE, "a/b");
    assert_object(place.store, "a/b", "old");
    assert_int_equal(entries_in(path_in(place.directory, "a")), 1);
    place_free(&place);
}

static void test_more_than_memory_holds(void **state) {
    struct ulp_store *store = NULL;
    struct ulp_store_writer *writer = NULL;
    enum ulp_status begun, written, ended, found;
    uint64_t bytes;

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    begun = ulp_store_memory(&store);
    if (!begun)
        begun = ulp_store_put_begin(store, "a", &writer);
    written = ulp_store_put_write(writer, "x", (size_t)1 << 41); /* refused before it is read */
    ended = ulp_store_put_end(writer, 1);
    found = ulp_store_stat(store, "a", &bytes);
    ulp_store_free(store);
    failing_allocator_stop();
    assert_int_equal(begun, ULP_OK);
    assert_int_not_equal(written, ULP_OK);
    assert_int_equal(ended, written);
    assert_int_equal(found, ULP_E_NOT_FOUND);
}

TEST_MAIN(test_a_full_disk, test_more_than_memory_holds)
