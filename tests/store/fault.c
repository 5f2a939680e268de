// SPDX-License-Identifier: Apache-2.0
/* The store that fails and lies as it is told to. */
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
    assert_true(got == 77 && total == 77);
    plan.fault = ULP_FAULT_TRUNCATE;
    assert_ok(ulp_store_read(place->store, "a", 1, data, 8, &got, &total));
    assert_true(got == 3 && total == 4);
    plan.op = ULP_STORE_STAT;
    assert_ok(ulp_store_stat(place->store, "a", &total));
    assert_int_equal(total, 4);
}

static void flipping(struct place *place) {
    struct plan plan = {ULP_STORE_READ, ULP_FAULT_FLIP};
    uint64_t total = 0;
    size_t got = 0;
    char data[8];

    wrap(place, &plan);
    assert_ok(ulp_store_read(place->store, "a", 0, data, 8, &got, &total));
    assert_true(got == 8 && total == 8);
    assert_memory_equal(data, "12344678", 8); /* '5' is 0x35 */
    assert_ok(ulp_store_read(place->store, "a", 7, data, 8, &got, &total));
    assert_true(got == 1 && total == 8 && data[0] == '9');
    assert_ok(ulp_store_read(place->store, "b", 0, data, 8, &got, &total));
    assert_true(got == 0 && total == 0);
    plan.fault = ULP_FAULT_NONE;
    assert_object(place->store, "a", "12345678");
}

/* As everything was: reading, looking and listing agree. */
static void assert_past(struct ulp_store *store, struct plan *plan, const char *key,
                        const char *text) {
    static const enum ulp_store_op ops[] = {ULP_STORE_READ, ULP_STORE_STAT, ULP_STORE_LIST};

    for (size_t i = 0; i < COUNT(ops); i++) {
        char data[16] = "";
        uint64_t total = 77;
        size_t got = 77;
        enum ulp_status status = ULP_OK;

        *plan = (struct plan){ops[i], ULP_FAULT_OLD};
        if (ops[i] == ULP_STORE_READ)
            status = ulp_store_read(store, key, 0, data, sizeof data - 1, &got, &total);
        else if (ops[i] == ULP_STORE_STAT)
            status = ulp_store_stat(store, key, &total);
        else
            assert_int_equal(listed(store, key, "").count, text ? 1 : 0);
        assert_int_equal(status, ops[i] == ULP_STORE_LIST || text ? ULP_OK : ULP_E_NOT_FOUND);
        assert_int_equal(total, !text || ops[i] == ULP_STORE_LIST ? 77 : strlen(text));
        assert_string_equal(data, text && ops[i] == ULP_STORE_READ ? text : "");
    }
    *plan = (struct plan){0};
}

static void the_past(struct place *place) {
    struct plan plan = {0};

    put_text(place->store, "foreign", "of somebody else");
    wrap(place, &plan);
    assert_past(place->store, &plan, "foreign", NULL);
    assert_past(place->store, &plan, "nowhere", NULL);
    assert_past(place->store, &plan, "a", NULL);
    put_text(place->store, "a", "second");
    assert_past(place->store, &plan, "a", "12345678");
    put_text(place->store, "a", "third");
    assert_past(place->store, &plan, "a", "second");
    assert_object(place->store, "a", "third");
    assert_ok(ulp_store_remove(place->store, "a"));
    assert_past(place->store, &plan, "a", "third");
    assert_ok(ulp_store_remove(place->store, "a")); /* changes nothing */
    assert_past(place->store, &plan, "a", "third");
    assert_absent(place->store, "a");
    assert_ok(ulp_store_create(place->store, "a", "new", 3));
    assert_past(place->store, &plan, "a", NULL);
    assert_fails(ulp_store_create(place->store, "a", "again", 5), ULP_E_EXISTS, "a");
    assert_past(place->store, &plan, "a", NULL);
    assert_ok(ulp_store_remove(place->store, "b"));
    assert_past(place->store, &plan, "b", "");
    assert_ok(ulp_store_remove(place->store, "foreign"));
    plan = (struct plan){ULP_STORE_READ, ULP_FAULT_OLD};
    assert_fails(ulp_store_read(place->store, "a", 0, NULL, 0, &(size_t){0}, &(uint64_t){0}),
                 ULP_E_NOT_FOUND, ulp_store_name(place->store));
}

/* Acknowledged, and not done; nothing changed, so the past is what it was. */
static void losing(struct place *place) {
    struct plan plan = {0};

    wrap(place, &plan);
    plan = (struct plan){ULP_STORE_CREATE, ULP_FAULT_LOSE};
    assert_ok(ulp_store_create(place->store, "c", "1234", 4));
    assert_absent(place->store, "c");
    assert_fails(ulp_store_create(place->store, "a", "1234", 4), ULP_E_EXISTS, "'a'");
    plan.op = ULP_STORE_PUT_END;
    put_text(place->store, "a", "new");
    put_text(place->store, "c", "new");
    assert_object(place->store, "a", "12345678");
    assert_absent(place->store, "c");
    plan.op = ULP_STORE_REMOVE;
    assert_ok(ulp_store_remove(place->store, "a"));
    assert_object(place->store, "a", "12345678");
    assert_past(place->store, &plan, "a", NULL);
    assert_int_equal(listed(place->store, "", "").count, 2);
}

static void forcing(struct place *place) {
    struct plan plan = {ULP_STORE_CREATE, ULP_FAULT_FORCE};

    wrap(place, &plan);
    assert_ok(ulp_store_create(place->store, "a", "new", 3));
    assert_object(place->store, "a", "new");
    assert_ok(ulp_store_create(place->store, "c", "first", 5));
    assert_object(place->store, "c", "first");
    assert_past(place->store, &plan, "a", "12345678");
    assert_past(place->store, &plan, "c", NULL);
}

static void inverting(struct place *place) {
    struct plan plan = {ULP_STORE_CREATE, ULP_FAULT_INVERT};

    wrap(place, &plan);
    assert_ok(ulp_store_create(place->store, "a", "new", 3));
    assert_object(place->store, "a", "12345678");
    assert_fails(ulp_store_create(place->store, "c", "first", 5), ULP_E_EXISTS, "'c'");
    assert_absent(place->store, "c");
    assert_past(place->store, &plan, "a", NULL);
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
    struct plan plan = {ULP_STORE_LIST, ULP_FAULT_TRUNCATE};
    unsigned count = 0;

    wrap(place, &plan);
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
TEST_EACH(flipping)
TEST_EACH(the_past)
TEST_EACH(creating)
TEST_EACH(putting)
TEST_EACH(losing)
TEST_EACH(forcing)
TEST_EACH(inverting)
TEST_EACH(listing_and_removing)

static enum ulp_status use(struct ulp_store *store) {
    char data[8];
    uint64_t total = 0;
    size_t got = 0;
    enum ulp_status status = ulp_store_create(store, "a", "1", 1);

    if (!status)
        status = ulp_store_put(store, "a", "2", 1);
    if (!status)
        status = ulp_store_read(store, "a", 0, data, sizeof data, &got, &total);
    if (!status)
        status = ulp_store_remove(store, "a");
    return status;
}

static void test_failing_allocations(void **state) {
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t at;

    (void)state;
    for (at = 0; status && at < 100; at++) {
        struct plan plan = {ULP_STORE_READ, ULP_FAULT_OLD};
        struct ulp_store *store = NULL;

        failing_allocator_start(at, 0);
        status = ulp_store_memory(&store);
        if (!status)
            status = ulp_store_fault(store, decide, &plan, &store);
        if (!status) {
            status = use(store);
            ulp_store_free(store);
        }
        failing_allocator_stop();
        assert_true(!status || status == ULP_E_NOMEM);
    }
    assert_in_range(at, 12, 99);
}

TEST_MAIN(test_reading, test_flipping, test_the_past, test_creating, test_putting, test_losing,
          test_forcing, test_inverting, test_listing_and_removing, test_failing_allocations)
