// SPDX-License-Identifier: Apache-2.0
/* The check of a store: which promises it finds broken. */
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

static void good(struct place *place) {
    struct ulp_store_report report;

    assert_ok(ulp_store_check(place->store, &report));
    assert_string_equal(report.why, "");
    assert_true(report.writes && report.reads_own && report.ranges && report.refuses_second &&
                report.one_of_many && report.lists && report.removes);
    assert_int_equal(report.verdict, ULP_STORE_SEVERAL_PUBLISHERS);
    assert_string_equal(ulp_store_verdict_name(report.verdict), "several publishers");
    assert_int_equal(listed(place->store, "", "").count, 0); /* nothing stays */
}

TEST_EACH(good)

static struct ulp_store_report check_with(enum ulp_store_op op, enum ulp_fault fault) {
    struct plan plan = {op, fault};
    struct ulp_store *store = NULL;
    struct ulp_store_report report;

    assert_ok(ulp_store_memory(&store));
    assert_ok(ulp_store_fault(store, decide, &plan, &store));
    assert_ok(ulp_store_check(store, &report));
    assert_true(*report.why || report.verdict == ULP_STORE_SEVERAL_PUBLISHERS);
    ulp_store_free(store);
    return report;
}

static void test_broken_promises(void **state) {
    (void)state;
    assert_int_equal(check_with(ULP_STORE_CREATE, ULP_FAULT_FORCE).verdict,
                     ULP_STORE_ONE_PUBLISHER);
    assert_int_equal(check_with(ULP_STORE_CREATE, ULP_FAULT_LOSE).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_CREATE, ULP_FAULT_BEFORE).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_CREATE, ULP_FAULT_INVERT).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_CREATE, ULP_FAULT_TRUNCATE).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_PUT_END, ULP_FAULT_LOSE).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_READ, ULP_FAULT_OLD).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_READ, ULP_FAULT_FLIP).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_READ, ULP_FAULT_BEFORE).verdict, ULP_STORE_UNFIT);
    assert_int_equal(check_with(ULP_STORE_STAT, ULP_FAULT_TRUNCATE).verdict, ULP_STORE_UNFIT);
    assert_false(check_with(ULP_STORE_LIST, ULP_FAULT_TRUNCATE).lists);
    assert_int_equal(check_with(ULP_STORE_LIST, ULP_FAULT_TRUNCATE).verdict,
                     ULP_STORE_SEVERAL_PUBLISHERS); /* a listing decides nothing */
    assert_false(check_with(ULP_STORE_REMOVE, ULP_FAULT_LOSE).removes);
}

/* A store that lets two create the same object only if they do so at the same moment. */
static enum ulp_fault sometimes(void *user, enum ulp_store_op op, const char *key) {
    (void)user;
    return op == ULP_STORE_CREATE && strstr(key, "/race3") ? ULP_FAULT_FORCE : ULP_FAULT_NONE;
}

static void test_a_race_that_is_lost_rarely(void **state) {
    struct ulp_store *store = NULL;
    struct ulp_store_report report;

    (void)state;
    assert_ok(ulp_store_memory(&store));
    assert_ok(ulp_store_fault(store, sometimes, NULL, &store));
    assert_ok(ulp_store_check(store, &report));
    assert_true(report.refuses_second && !report.one_of_many);
    assert_int_equal(report.verdict, ULP_STORE_ONE_PUBLISHER);
    assert_non_null(strstr(report.why, "same moment"));
    ulp_store_free(store);
}

static void test_what_cannot_be_tried(void **state) {
    struct plan plan = {ULP_STORE_PUT_BEGIN, ULP_FAULT_BEFORE};
    struct ulp_store *store = NULL;
    struct ulp_store_report report = {.writes = 77};

    (void)state;
    assert_ok(ulp_store_memory(&store));
    assert_ok(ulp_store_fault(store, decide, &plan, &store));
    assert_fails(ulp_store_check(store, &report), ULP_E_IO, "injected");
    assert_int_equal(report.writes, 77);
    assert_fails(ulp_store_check(store, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_store_check(NULL, &report), ULP_E_USAGE, "NULL");
    ulp_store_free(store);
}

TEST_MAIN(test_good, test_broken_promises, test_a_race_that_is_lost_rarely,
          test_what_cannot_be_tried)
