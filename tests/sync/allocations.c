// SPDX-License-Identifier: Apache-2.0
/*
 * Each allocation of publishing and of following fails once, and then all from there on: a failure
 * that says so, no leak, nothing that anybody sees has changed, and what failed once works when it is
 * tried again, with the same object.
 */
#define _XOPEN_SOURCE 700 /* readlink */
#include "tests/sync/live.h"

#include <unistd.h>

/* With a sanitizer everything takes longer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 7u
#else
#define STRIDE 1u
#endif

struct scene {
    struct trainer t;
    const char *directory;      /* of the publisher or follower; NULL: memory */
    struct state start, memory; /* of a worker: what it begins with, and what it has */
    bool known;                 /* that is a version of the run, so it is in use from the start */
    struct ulp_store *store;
    bool persistent;
    unsigned failures;
    bool wrong; /* a failure that was none of memory, or changed something */
};

/* Whether a call is to be made once more. Nothing is asserted while the allocator fails. */
static bool again(struct scene *s, enum ulp_status status) {
    if (!status)
        return false;
    s->failures++;
    s->wrong = s->wrong || status != ULP_E_NOMEM || !ulp_last_error()[0];
    return !s->persistent && s->failures == 1;
}

static enum ulp_status open_store(struct scene *s) {
    struct path path = below(&s->t, "store");
    enum ulp_status status;

    do
        status = ulp_store_open(path.text, &s->store);
    while (again(s, status));
    return status;
}

typedef enum ulp_status (*work)(struct scene *scene);

/* ---- publishing ---- */

static enum ulp_status publish(struct scene *s) {
    struct path state = below(&s->t, s->directory ? s->directory : "none");
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status = open_store(s);

    if (!status) {
        do
            status = ulp_publisher_open(s->store, RUN, s->directory ? state.text : NULL, NULL,
                                        &publisher);
        while (again(s, status));
    }
    if (!status) {
        do
            status = ulp_publisher_publish(publisher, s->t.state.tensors, s->t.state.count,
                                           s->t.count, &report);
        while (again(s, status));
    }
    ulp_publisher_close(publisher);
    ulp_store_free(s->store);
    s->store = NULL;
    return status;
}

/* Whatever failed: the version is in the log once, as a whole, or not yet; then it is published. */
static void check_published(struct scene *s, enum ulp_status status) {
    struct ulp_run_record head = {0};
    struct ulp_run_health health = {0};
    struct ulp_store *store = NULL; /* of its own: the directory is another one each time */
    enum ulp_status found;

    assert_ok(ulp_store_open(below(&s->t, "store").text, &store));
    found = ulp_run_head(store, RUN, &head);
    assert_true(!found || (found == ULP_E_NO_RUN && !s->t.count));
    assert_true(head.sequence == s->t.count + 1 || (status && head.sequence == s->t.count));
    s->persistent = false;
    s->failures = 1;
    assert_ok(publish(s));
    assert_ok(ulp_run_head(store, RUN, &head));
    assert_int_equal(head.sequence, s->t.count + 1);
    assert_same_root(&head.root, &s->t.roots[s->t.count]);
    assert_ok(ulp_run_check(store, RUN, NULL, NULL, &health));
    assert_true(health.reachable && !health.damaged);
    ulp_store_free(store);
}

/* ---- following ---- */

static void read_current(const struct scene *s, char target[64]) {
    struct path current = path_of(below(&s->t, "f").text, "current");

    memset(target, 0, 64);
    if (readlink(current.text, target, 63) < 0)
        target[0] = 0;
}

/* Polls or applies; a failure has changed neither memory that is in use nor `current`. */
static enum ulp_status go(struct scene *s, struct ulp_follower *follower, bool apply,
                          struct ulp_run_report *report, bool in_use) {
    uint8_t *before = malloc(s->memory.bytes + 1);
    char link[64], later[64];
    enum ulp_status status = ULP_E_INTERNAL;

    if (!before)
        return status;
    do {
        memcpy(before, s->memory.data, s->memory.bytes);
        read_current(s, link);
        status = (apply ? ulp_follower_apply : ulp_follower_poll)(follower, report);
        read_current(s, later);
        if (status || !apply)
            s->wrong = s->wrong || strcmp(link, later) != 0 ||
                       (in_use && memcmp(before, s->memory.data, s->memory.bytes) != 0);
    } while (again(s, status));
    free(before);
    return status;
}

static enum ulp_status follow(struct scene *s) {
    struct path directory = below(&s->t, "f");
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status = open_store(s);

    if (!status) {
        do
            status = s->directory
                         ? ulp_follower_open(s->store, RUN, directory.text, NULL, &follower)
                         : ulp_follower_open_memory(s->store, RUN, s->memory.tensors,
                                                    s->memory.count, NULL, &follower);
        while (again(s, status));
    }
    if (!status)
        status = go(s, follower, false, &report, s->known);
    while (!status && report.ready) {
        status = go(s, follower, true, &report, true);
        if (!status)
            status = go(s, follower, false, &report, true);
    }
    ulp_follower_close(follower);
    ulp_store_free(s->store);
    s->store = NULL;
    return status;
}

/* Whoever starts again arrives. */
static void check_followed(struct scene *s, enum ulp_status status) {
    const unsigned newest = s->t.count - 1;

    if (status) {
        s->persistent = false;
        s->failures = 1;
        assert_ok(follow(s));
    }
    if (s->directory) {
        assert_at(&s->t, "f", newest);
    } else {
        struct ulp_root root = root_of(&s->memory);

        assert_same_root(&root, &s->t.roots[newest]);
    }
}

/* ---- all of them ---- */

static void put_back(struct scene *s) {
    tree_copy(below(&s->t, "kept-store").text, below(&s->t, "store").text);
    tree_remove(below(&s->t, "f").text);
    tree_remove(below(&s->t, "state").text);
    if (s->start.bytes)
        memcpy(s->memory.data, s->start.data, s->start.bytes);
    s->failures = 0;
    s->wrong = false;
}

static void fail_everywhere(struct scene *s, work run,
                            void (*check)(struct scene *, enum ulp_status)) {
    const size_t open_files = entries_in("/proc/self/fd");

    tree_copy(below(&s->t, "store").text, below(&s->t, "kept-store").text);
    for (unsigned persistent = 0; persistent < 2; persistent++) {
        uint64_t at = 0;
        unsigned failures = 1;

        for (; failures; at += STRIDE) {
            enum ulp_status status;

            put_back(s);
            s->persistent = persistent;
            failing_allocator_start(at, (int)persistent);
            status = run(s);
            failing_allocator_stop();
            failures = s->failures;
            if (s->wrong || (status && !persistent))
                fail_msg("allocation %llu: %s: %s", (unsigned long long)at, ulp_status_name(status),
                         ulp_last_error());
            check(s, status);
        }
        print_message("%llu allocations\n", (unsigned long long)at);
        assert_true(at > 50);
    }
    assert_int_equal(entries_in("/proc/self/fd"), open_files);
}

static struct scene scene_make(unsigned versions, const char *directory, unsigned scrambled) {
    struct scene s = {.t = trainer_make(1, false), .directory = directory};
    const struct ulp_run_options options = {.anchor_every = 8};

    for (unsigned i = 0; i < versions; i++) {
        if (scrambled)
            state_scramble(&s.t.state, scrambled);
        live_versions(&s.t, 1, &options);
        if (i % 8 == 0 && i)
            live_anchor(&s.t, &options);
        if (i == 8 && scrambled) {
            s.start = state_copy(&s.t.state);
            s.known = true;
        }
    }
    if (!s.known) {
        s.start = state_copy(&s.t.state);
        memset(s.start.data, 0x77, s.start.bytes);
    }
    s.memory = state_copy(&s.start);
    return s;
}

static void scene_free(struct scene *s) {
    state_free(&s->start);
    state_free(&s->memory);
    trainer_free(&s->t);
}

static void check_publish(unsigned versions, const char *directory) {
    struct scene s = scene_make(versions, directory, 0);

    state_step(&s.t.state, 30);
    s.t.roots[s.t.count] = root_of(&s.t.state);
    fail_everywhere(&s, publish, check_published);
    scene_free(&s);
}

static void test_publish_first(void **unused) {
    (void)unused;
    check_publish(0, NULL);
    check_publish(0, "state");
}

static void test_publish_next(void **unused) {
    (void)unused;
    check_publish(2, NULL);
    check_publish(2, "state");
}

static void check_follow(unsigned versions, const char *directory, unsigned scrambled) {
    struct scene s = scene_make(versions, directory, scrambled);

    fail_everywhere(&s, follow, check_followed);
    scene_free(&s);
}

static void test_follow_into_a_directory(void **unused) {
    (void)unused;
    check_follow(3, "f", 0);
}

static void test_follow_into_memory(void **unused) {
    (void)unused;
    check_follow(3, NULL, 0);
}

/* Memory holds version 8, and an anchor of 16 is cheaper than all the patches there. */
static void test_follow_by_a_newer_anchor(void **unused) {
    (void)unused;
    check_follow(18, NULL, 1000);
}

TEST_MAIN(test_publish_first, test_publish_next, test_follow_into_a_directory,
          test_follow_into_memory, test_follow_by_a_newer_anchor)
