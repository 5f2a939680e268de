// SPDX-License-Identifier: Apache-2.0
/* A required argument that is NULL is a mistake of the caller, and not a crash. */
#include "tests/store/stores.h"

#define assert_usage(call) assert_fails(call, ULP_E_USAGE, "a required argument is NULL")

static int ignore(void *user, const char *key, uint64_t bytes) {
    (void)user;
    (void)key;
    (void)bytes;
    return 0;
}

static void operations(struct place *place) {
    struct ulp_store *store = place->store;
    struct ulp_store_writer *writer = NULL;
    uint64_t total = 0;
    size_t got = 0;
    char byte = 0;

    assert_usage(ulp_store_read(NULL, "a", 0, &byte, 1, &got, &total));
    assert_usage(ulp_store_read(store, NULL, 0, &byte, 1, &got, &total));
    assert_usage(ulp_store_read(store, "a", 0, NULL, 1, &got, &total));
    assert_usage(ulp_store_read(store, "a", 0, &byte, 1, NULL, &total));
    assert_usage(ulp_store_read(store, "a", 0, &byte, 1, &got, NULL));
    assert_usage(ulp_store_create(NULL, "a", "", 0));
    assert_usage(ulp_store_create(store, NULL, "", 0));
    assert_usage(ulp_store_create(store, "a", NULL, 1));
    assert_usage(ulp_store_put(NULL, "a", "", 0));
    assert_usage(ulp_store_put(store, NULL, "", 0));
    assert_usage(ulp_store_put(store, "a", NULL, 1));
    assert_usage(ulp_store_stat(NULL, "a", &total));
    assert_usage(ulp_store_stat(store, NULL, &total));
    assert_usage(ulp_store_stat(store, "a", NULL));
    assert_usage(ulp_store_list(NULL, "", "", ignore, NULL));
    assert_usage(ulp_store_list(store, NULL, "", ignore, NULL));
    assert_usage(ulp_store_list(store, "", NULL, ignore, NULL));
    assert_usage(ulp_store_list(store, "", "", NULL, NULL));
    assert_usage(ulp_store_remove(NULL, "a"));
    assert_usage(ulp_store_remove(store, NULL));
    assert_usage(ulp_store_put_begin(NULL, "a", &writer));
    assert_usage(ulp_store_put_begin(store, NULL, &writer));
    assert_usage(ulp_store_put_begin(store, "a", NULL));
    assert_usage(ulp_store_put_write(NULL, "", 0));
    assert_usage(ulp_store_put_end(NULL, 1));
    assert_int_equal(listed(store, "", "").count, 0);
}

/* Nothing to write needs no address, and nothing to read either. */
static void no_bytes(struct place *place) {
    struct ulp_store_writer *writer = NULL;
    uint64_t total = 0;
    size_t got = 77;

    assert_ok(ulp_store_create(place->store, "a", NULL, 0));
    assert_object(place->store, "a", "");
    assert_ok(ulp_store_put_begin(place->store, "b", &writer));
    assert_usage(ulp_store_put_write(writer, NULL, 1));
    assert_ok(ulp_store_put_write(writer, "x", 1));
    assert_ok(ulp_store_put_write(writer, NULL, 0));
    assert_ok(ulp_store_put_end(writer, 1));
    assert_object(place->store, "b", "x");
    assert_ok(ulp_store_read(place->store, "b", 0, NULL, 0, &got, &total));
    assert_true(got == 0 && total == 1);
}

TEST_EACH(operations)
TEST_EACH(no_bytes)

static void heard(void *user, const struct ulp_store_event *event) {
    (void)user;
    (void)event;
}

static enum ulp_fault decide(void *user, enum ulp_store_op op, const char *key) {
    (void)user;
    (void)op;
    (void)key;
    return ULP_FAULT_NONE;
}

static struct ulp_store *memory(void) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_memory(&store));
    return store;
}

/* What is wrapped is taken over in any case; a sanitizer sees what is not freed. */
static void test_makers(void **state) {
    struct ulp_store *store = NULL;

    (void)state;
    assert_usage(ulp_store_new(NULL, NULL, "name", &store));
    assert_usage(ulp_store_open(NULL, &store));
    assert_usage(ulp_store_open("/", NULL));
    assert_usage(ulp_store_memory(NULL));
    assert_usage(ulp_store_trace(NULL, heard, NULL, &store));
    assert_usage(ulp_store_trace(memory(), NULL, NULL, &store));
    assert_usage(ulp_store_trace(memory(), heard, NULL, NULL));
    assert_usage(ulp_store_fault(NULL, decide, NULL, &store));
    assert_usage(ulp_store_fault(memory(), NULL, NULL, &store));
    assert_usage(ulp_store_fault(memory(), decide, NULL, NULL));
    assert_null(store);
    assert_string_equal(ulp_store_name(NULL), "");
    ulp_store_free(NULL);
}

TEST_MAIN(test_operations, test_no_bytes, test_makers)
