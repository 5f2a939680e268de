// SPDX-License-Identifier: Apache-2.0
/* The store that fails as it is told to. */
#include "tests/store/stores.h"

struct plan {
    enum ulp_store_op op;
    enum ulp_fault fault;
};

static enum ulp_fault decide(void *user, enum ulp_store_op op, const char *key) {
    const struct plan *plan = user;

    (void)key;
    return op == plan->op ? plan->fault : ULP_FAULT_NONE;
}

static int count_one(void *user, const char *key, uint64_t bytes) {
    (void)key;
    (void)bytes;
    ++*(unsigned *)user;
    return 0;
}

/* Holds "a" = "12345678" and "b". */
static void wrap(struct place *place, struct plan *plan) {
    assert_ok(ulp_store_fault(place->store, decide, plan, &place->store));
    put_text(place->store, "a", "12345678");
    put_text(place->store, "b", "");
}

static void reading(struct place *place) {
    struct plan plan = {ULP_STORE_READ, ULP_FAULT_NONE};
    uint64_t total = 77;
    size_t got = 77;
    char data[9];

    wrap(place, &plan);
    assert_object(place->store, "a", "12345678");
    for (int i = 0; i < 2; i++) {
        plan.fault = i ? ULP_FAULT_AFTER : ULP_FAULT_BEFORE;
        assert_fails(ulp_store_read(place->store, "a", 0, data, 8, &got, &total), ULP_E_IO, "'a'");
    }
    plan.fault = ULP_FAULT_STALE;
    assert_fails(ulp_store_read(place->store, "a", 0, data, 8, &got, &total), ULP_E_NOT_FOUND, "a");
    assert_true(got == 77 && total == 77);
    plan.fault = ULP_FAULT_TRUNCATE;
    assert_ok(ulp_store_read(place->store, "a", 1, data, 8, &got, &total));
    assert_true(got == 3 && total == 4);
    plan.op = ULP_STORE_STAT;
    assert_ok(ulp_store_stat(place->store, "a", &total));
    assert_int_equal(total, 4);
    plan.fault = ULP_FAULT_STALE;
    assert_fails(ulp_store_stat(place->store, "a", &total), ULP_E_NOT_FOUND, "a");
}

static void creating(struct place *place) {
    struct plan plan = {ULP_STORE_CREATE, ULP_FAULT_BEFORE};

    wrap(place, &plan);
    assert_fails(ulp_store_create(place->store, "c", "1234", 4), ULP_E_IO, "'c'");
    assert_absent(place->store, "c");
    plan.fault = ULP_FAULT_AFTER;
    assert_fails(ulp_store_create(place->store, "c", "1234", 4), ULP_E_IO, "'c'");
    assert_object(place->store, "c", "1234");
    assert_fails(ulp_store_create(place->store, "c", "1234", 4), ULP_E_EXISTS, "c");
    plan.fault = ULP_FAULT_TRUNCATE;
    assert_ok(ulp_store_create(place->store, "d", "1234", 4));
    assert_object(place->store, "d", "12");
}

static void putting(struct place *place) {
    static const enum ulp_store_op ops[] = {ULP_STORE_PUT_BEGIN, ULP_STORE_PUT_WRITE,
                                            ULP_STORE_PUT_END};
    struct plan plan = {ULP_STORE_PUT_END, ULP_FAULT_NONE};

    wrap(place, &plan);
    for (size_t i = 0; i < COUNT(ops); i++) {
        plan = (struct plan){ops[i], ULP_FAULT_BEFORE};
        assert_fails(ulp_store_put(place->store, "a", "new", 3), ULP_E_IO, "'a'");
        assert_object(place->store, "a", "12345678");
    }
    plan.fault = ULP_FAULT_AFTER;
    assert_fails(ulp_store_put(place->store, "a", "new!", 4), ULP_E_IO, "'a'");
    assert_object(place->store, "a", "new!");
    plan = (struct plan){ULP_STORE_PUT_WRITE, ULP_FAULT_TRUNCATE};
    put_text(place->store, "a", "half");
    assert_object(place->store, "a", "ha");
}

static void listing_and_removing(struct place *place) {
    struct plan plan = {ULP_STORE_LIST, ULP_FAULT_STALE};
    unsigned count = 0;

    wrap(place, &plan);
    assert_int_equal(listed(place->store, "", "").count, 0);
    plan.fault = ULP_FAULT_TRUNCATE;
    assert_string_equal(listed(place->store, "", "").text, "a ");
    plan.fault = ULP_FAULT_AFTER;
    assert_fails(ulp_store_list(place->store, "", "", count_one, &count), ULP_E_IO, "");
    assert_int_equal(count, 2);
    plan = (struct plan){ULP_STORE_REMOVE, ULP_FAULT_BEFORE};
    assert_fails(ulp_store_remove(place->store, "a"), ULP_E_IO, "'a'");
    assert_object(place->store, "a", "12345678");
    plan.fault = ULP_FAULT_AFTER;
    assert_fails(ulp_store_remove(place->store, "a"), ULP_E_IO, "'a'");
    assert_absent(place->store, "a");
}

TEST_EACH(reading)
TEST_EACH(creating)
TEST_EACH(putting)
TEST_EACH(listing_and_removing)

TEST_MAIN(test_reading, test_creating, test_putting, test_listing_and_removing)
