// SPDX-License-Identifier: Apache-2.0
/* The store that tells: of everything, once, in order, and otherwise it is the store within. */
#include "tests/store/stores.h"

struct told {
    char text[2048];
    uint64_t longest_ns;
};

static void hear(void *user, const struct ulp_store_event *event) {
    static const char *const names[] = {"read", "create", "begin", "write",
                                        "end",  "stat",   "list",  "remove"};
    struct told *told = user;
    size_t used = strlen(told->text);

    snprintf(told->text + used, sizeof told->text - used, "%s %s %d %d; ", names[event->op],
             event->key, (int)event->bytes, (int)event->status);
    told->longest_ns =
        event->duration_ns > told->longest_ns ? event->duration_ns : told->longest_ns;
    ulp_fail(ULP_E_INTERNAL, "a message of the listener");
}

static void tells(struct place *place) {
    struct told told = {0};
    struct ulp_store_writer *writer = NULL;
    char data[2], name[4096];
    uint64_t total = 0;
    size_t got = 0;

    snprintf(name, sizeof name, "%s", ulp_store_name(place->store));
    assert_ok(ulp_store_trace(place->store, hear, &told, &place->store));
    assert_string_equal(ulp_store_name(place->store), name);
    assert_ok(ulp_store_create(place->store, "a/b", "abc", 3));
    assert_fails(ulp_store_create(place->store, "a/b", "abc", 3), ULP_E_EXISTS, "a/b");
    assert_ok(ulp_store_read(place->store, "a/b", 0, data, 2, &got, &total));
    assert_fails(ulp_store_stat(place->store, "a/c", &total), ULP_E_NOT_FOUND, "a/c");
    put_text(place->store, "p", "12345");
    assert_ok(ulp_store_put_begin(place->store, "q", &writer));
    assert_ok(ulp_store_put_end(writer, 0));
    assert_string_equal(listed(place->store, "a", "").text, "a/b ");
    assert_ok(ulp_store_remove(place->store, "p"));
    assert_string_equal(told.text, "create a/b 3 0; create a/b 0 21; read a/b 2 0; stat a/c 0 20; "
                                   "begin p 0 0; write p 5 0; end p 5 0; begin q 0 0; end q 0 0; "
                                   "list a 0 0; remove p 0 0; ");
    assert_in_range(told.longest_ns, 1, UINT64_C(60000000000));
}

TEST_EACH(tells)

static void test_failing_allocations(void **state) {
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t at;

    (void)state;
    for (at = 0; status && at < 100; at++) {
        struct told told = {0};
        struct ulp_store *store = NULL;

        failing_allocator_start(at, 0);
        status = ulp_store_memory(&store);
        if (!status)
            status = ulp_store_trace(store, hear, &told, &store);
        if (!status) {
            status = ulp_store_put(store, "a", "x", 1);
            ulp_store_free(store);
        }
        failing_allocator_stop();
    }
    assert_in_range(at, 8, 99);
}

TEST_MAIN(test_tells, test_failing_allocations)
