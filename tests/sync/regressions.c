// SPDX-License-Identifier: Apache-2.0
/* What the simulator found, or looking for what it should find, or reading; each test would have
 * failed. */
#include "tests/sync/career.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ulpsync/run.h>

static struct ulp_follower *follower_of(const struct career *c, const struct state *memory) {
    struct ulp_follower *follower = NULL;

    assert_ok(
        ulp_follower_open_memory(c->store, "rl", memory->tensors, memory->count, NULL, &follower));
    return follower;
}

/* To the newest version; says what the first poll fetched. */
static struct ulp_run_report catch_up(const struct career *c, struct ulp_follower *follower,
                                      const struct state *memory) {
    struct ulp_run_report report = {0}, first;
    struct ulp_root root;

    assert_ok(ulp_follower_poll(follower, &report));
    first = report;
    while (report.ready) {
        assert_ok(ulp_follower_apply(follower, &report));
        assert_ok(ulp_follower_poll(follower, &report));
    }
    assert_int_equal(report.version, c->versions - 1);
    root = root_of(memory);
    assert_same_root(&root, &c->roots[c->versions - 1]);
    return first;
}

static int remove_it(void *user, const char *key, uint64_t bytes) {
    (void)bytes;
    snprintf(user, ULP_KEY_BYTES_MAX + 1, "%s", key);
    return 1;
}

static void remove_parts(struct ulp_store *store) {
    char key[ULP_KEY_BYTES_MAX + 1] = "";

    while (ulp_store_list(store, "rl/part/", "", remove_it, key) == ULP_E_CANCELLED)
        assert_ok(ulp_store_remove(store, key));
}

/* Seed 8: whoever lags so far that it starts anew from an anchor had its weights overwritten by the
 * poll, while it said that it held the old version. */
static void test_an_anchor_waits_for_apply(void **state) {
    static const struct ulp_run_options options = {.anchor_every = 8, .keep_anchors = 1};
    struct career c = career_make(&options);
    struct ulp_run_report report = {0};
    struct state memory, before;
    struct ulp_follower *follower;

    (void)state;
    career_publish(&c, 3);
    memory = state_copy(&c.state);
    follower = follower_of(&c, &memory);
    catch_up(&c, follower, &memory);
    before = state_copy(&memory);
    career_publish(&c, 15);
    assert_ok(ulp_follower_poll(follower, &report));
    assert_true(report.ready && report.anchor_bytes);
    assert_int_equal(report.version, 2);
    assert_same_state(&memory, &before);
    catch_up(&c, follower, &memory);

    state_free(&before);
    before = state_copy(&memory);
    career_publish(&c, 16);
    remove_parts(c.store);
    assert_fails(ulp_follower_poll(follower, &report), ULP_E_PART_MISSING, "missing");
    assert_same_state(&memory, &before);
    ulp_follower_close(follower);
    state_free(&before);
    state_free(&memory);
    career_free(&c);
}

/* Seed 1476: whoever came with the newest version in memory was taken to be there, and then stuck,
 * because the next patch needed history. */
static void test_memory_that_leads_nowhere(void **state) {
    static const struct ulp_run_options options = {.anchor_every = 1000, .anchor_share = 1000000};
    struct career c = career_make(&options);
    struct state memory;
    struct ulp_follower *follower;

    (void)state;
    career_publish(&c, 4);
    memory = state_copy(&c.state);
    follower = follower_of(&c, &memory);
    assert_true(catch_up(&c, follower, &memory).anchor_bytes);
    career_publish(&c, 1);
    catch_up(&c, follower, &memory);
    ulp_follower_close(follower);
    state_free(&memory);

    career_publish(&c, 4); /* version 8 */
    memory = state_copy(&c.state);
    follower = follower_of(&c, &memory);
    assert_int_equal(catch_up(&c, follower, &memory).fetched_bytes, 0);
    ulp_follower_close(follower);
    state_free(&memory);
    career_free(&c);
}

/* A disk that is full for a moment. */
struct shaky {
    unsigned failures, kept;
};

static enum ulp_status keep_shakily(void *user, const void *record, size_t bytes) {
    struct shaky *shaky = user;

    (void)record;
    (void)bytes;
    if (shaky->failures) {
        shaky->failures--;
        return ulp_fail(ULP_E_NO_SPACE, "the disk is full");
    }
    shaky->kept++;
    return ULP_OK;
}

/* Seed 15: what could not be kept was used all the same by the next poll. */
static void test_what_was_seen_is_kept_first(void **state) {
    struct career c = career_make(NULL);
    struct shaky shaky = {.failures = 2};
    const struct ulp_run_options options = {.keep_seen = keep_shakily, .keep_user = &shaky};
    struct ulp_run_report report = {0};
    struct ulp_follower *follower = NULL;
    struct state memory;

    (void)state;
    career_publish(&c, 1);
    memory = state_copy(&c.state);
    assert_ok(
        ulp_follower_open_memory(c.store, "rl", memory.tensors, memory.count, &options, &follower));
    for (unsigned i = 0; i < 2; i++)
        assert_fails(ulp_follower_poll(follower, &report), ULP_E_NO_SPACE, "full");
    assert_int_equal(shaky.kept, 0);
    catch_up(&c, follower, &memory);
    assert_int_equal(shaky.kept, 1);
    ulp_follower_close(follower);
    state_free(&memory);
    career_free(&c);
}

/* ---- parts that are let go ---- */

struct hook {
    struct ulp_store *store;
    bool armed;
};

/* When a part is about to be stored, somebody announces a deletion. */
static enum ulp_fault announce(void *user, enum ulp_store_op op, const char *key) {
    static const struct ulp_collect_options options = {.keep_anchors = 1};
    struct hook *hook = user;
    struct ulp_collect_report report = {0};

    (void)key;
    if (!hook->armed || op != ULP_STORE_PUT_END)
        return ULP_FAULT_NONE;
    hook->armed = false;
    assert_ok(ulp_run_collect(hook->store, "rl", &options, &report));
    assert_true(report.announced);
    return ULP_FAULT_NONE;
}

static void publish_model(struct career *c, struct ulp_publisher *publisher) {
    char name[32];
    struct path model;
    FILE *file;

    snprintf(name, sizeof name, "model-%u", (unsigned)c->versions);
    model = path_of(c->top, name);
    state_step(&c->state, 20);
    assert_ok(ulp_model_save(model.text, c->state.tensors, c->state.count, NULL, 0, 1, NULL));
    file = fopen(path_of(model.text, "config.json").text, "w");
    assert_true(file && fputs("{}", file) >= 0 && !fclose(file));
    assert_ok(ulp_publisher_publish_model(publisher, model.text, c->versions++, NULL));
}

/* An anchor named a file of an older one, which the map had let go of while it was made. */
static void test_a_file_that_was_let_go(void **state) {
    static const struct ulp_run_options options = {.anchor_every = 8, .keep_anchors = 2};
    static const struct ulp_collect_options now = {.now = 1};
    struct career c = career_make(&options);
    struct hook hook = {0};
    struct ulp_publisher *on_disk = NULL;
    struct ulp_run_report report = {0};
    struct ulp_run_health health = {0};
    struct path directory = path_of(c.top, "state");

    (void)state;
    ulp_publisher_close(c.publisher);
    assert_ok(ulp_store_fault(c.store, announce, &hook, &c.store));
    hook.store = c.store;
    assert_ok(ulp_publisher_open(c.store, "rl", directory.text, &options, &on_disk));
    publish_model(&c, on_disk);
    ulp_publisher_close(on_disk);
    assert_ok(ulp_publisher_open(c.store, "rl", NULL, &options, &c.publisher));
    career_publish(&c, 8); /* and an anchor of version 8, of weights alone */
    assert_ok(ulp_publisher_open(c.store, "rl", directory.text, &options, &on_disk));
    for (unsigned i = 0; i < 8; i++)
        publish_model(&c, on_disk);

    hook.armed = true;
    assert_ok(ulp_publisher_anchor(on_disk, &report));
    assert_false(hook.armed);
    assert_false(report.fresh);
    assert_ok(ulp_publisher_anchor(on_disk, &report));
    assert_true(report.fresh);
    assert_ok(ulp_run_collect(c.store, "rl", &now, NULL));
    assert_ok(ulp_run_check(c.store, "rl", NULL, NULL, &health));
    assert_true(health.reachable && !health.damaged);
    ulp_publisher_close(on_disk);
    career_free(&c);
}

/* ---- what a review found ---- */

static enum ulp_status always_there(void *self, const char *key, uint64_t *ret_bytes) {
    (void)self;
    (void)key;
    *ret_bytes = 5;
    return ULP_OK;
}

static enum ulp_status always_hello(void *self, const char *key, uint64_t offset, void *data,
                                    size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    (void)self;
    (void)key;
    (void)offset;
    memcpy(data, "hello", bytes < 5 ? bytes : 5);
    *ret_read = bytes < 5 ? bytes : 5;
    *ret_total = 5;
    return ULP_OK;
}

static enum ulp_status lists_nothing(void *self, const char *prefix, const char *after,
                                     ulp_store_entry entry, void *user) {
    (void)self;
    (void)prefix;
    (void)after;
    (void)entry;
    (void)user;
    return ULP_E_UNSUPPORTED;
}

static void free_nothing(void *self) {
    (void)self;
}

/* A web server that answers to every name with a page: looking for the last record never ended. */
static void test_everything_is_there(void **unused) {
    static const struct ulp_store_ops ops = {
        .read = always_hello, .stat = always_there, .list = lists_nothing, .free = free_nothing};
    char *top = temp_directory_make();
    struct ulp_store *store = NULL;

    (void)unused;
    assert_ok(ulp_store_new(&ops, NULL, "a page", &store));
    assert_fails(ulp_follow(store, "rl", path_of(top, "f").text, NULL, NULL), ULP_E_CHAIN,
                 "every record");
    ulp_store_free(store);
    temp_directory_remove(top);
}

/* An object with a huge number in the log made the check count up to it. */
static void test_a_stray_record(void **unused) {
    struct career c = career_make(NULL);
    struct ulp_run_health health = {0};

    (void)unused;
    career_publish(&c, 3);
    assert_ok(ulp_store_put(c.store, "rl/log/99999999999999999999", "x", 1));
    assert_ok(ulp_run_check(c.store, "rl", NULL, NULL, &health));
    assert_int_equal(health.damaged, 0);
    assert_ok(ulp_store_put(c.store, "rl/log/00000000000099999999", "x", 1));
    assert_ok(ulp_run_check(c.store, "rl", NULL, NULL, &health));
    assert_in_range(health.damaged, 1, 65536);
    career_free(&c);
}

/* Memory that the caller filled anew after a first poll was taken for what it held before. */
static void test_memory_is_looked_at_again(void **unused) {
    static const struct ulp_run_options by_reference = {.reference = "some/model"};
    struct career c = career_make(&by_reference);
    struct state first, memory;
    struct ulp_follower *follower;
    struct ulp_run_report report = {0};

    (void)unused;
    first = state_copy(&c.state);
    career_publish(&c, 3);
    memory = state_copy(&c.state);
    state_scramble(&memory, 500);
    follower = follower_of(&c, &memory);
    assert_int_equal(ulp_follower_poll(follower, &report), ULP_E_UNREACHABLE);
    memcpy(memory.data, first.data, first.bytes);
    catch_up(&c, follower, &memory);
    ulp_follower_close(follower);
    state_free(&first);
    state_free(&memory);
    career_free(&c);
}

TEST_MAIN(test_an_anchor_waits_for_apply, test_memory_that_leads_nowhere,
          test_what_was_seen_is_kept_first, test_a_file_that_was_let_go, test_everything_is_there,
          test_a_stray_record, test_memory_is_looked_at_again)
