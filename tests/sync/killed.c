// SPDX-License-Identifier: Apache-2.0
/*
 * kill -9 on entry to and on exit from every system call of following and of publishing: `current`
 * is not there or leads to a complete version (I2), the log has no gaps and no half records, every
 * version in it can be reached (I6), and the next call goes on from there (I8).
 */
#include "tests/patch/tracer.h"
#include "tests/sync/trainer.h"

#include <sys/stat.h>
#include <unistd.h>

/* Stops after which the whole of what is left is looked at, not only whether it goes on. */
#define THOROUGH 8u

/* With a sanitizer everything takes longer, and its own calls, which come and go, are of no
 * interest. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 11u
#else
#define STRIDE 1u
#endif

struct work {
    struct trainer *trainer;
    const char *store, *directory; /* below its top */
};

static struct ulp_store *open_store(const struct work *work) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_open(below(work->trainer, work->store).text, &store));
    return store;
}

static int do_follow(const void *user) {
    const struct work *work = user;
    struct ulp_store *store = NULL;
    struct path directory = below(work->trainer, work->directory);
    int failed = ulp_store_open(below(work->trainer, work->store).text, &store) ||
                 ulp_follow(store, RUN, directory.text, NULL, NULL);

    ulp_store_free(store);
    return failed;
}

static int do_publish(const void *user) {
    const struct work *work = user;
    struct ulp_store *store = NULL;
    struct path directory = below(work->trainer, work->directory);
    int failed =
        ulp_store_open(below(work->trainer, work->store).text, &store) ||
        ulp_publish(store, RUN, directory.text, model_of(work->trainer).text, 1, NULL, NULL);

    ulp_store_free(store);
    return failed;
}

/* The version that `current` leads to, which is complete; -1 if it leads nowhere. */
static int version_at(const struct work *work) {
    struct path current = path_of(below(work->trainer, work->directory).text, "current");
    char target[64] = "";
    unsigned version;

    if (readlink(current.text, target, sizeof target - 1) < 0)
        return -1;
    version = (unsigned)strtoul(target + strlen("versions/"), NULL, 10);
    assert_true(version < work->trainer->count);
    assert_at(work->trainer, work->directory, version);
    return (int)version;
}

struct seen {
    unsigned long stops, by_version[3]; /* nothing, the old one, the new one */
};

static void print_seen(const char *what, const struct seen *seen) {
    print_message("%s: %lu stops: %lu nothing, %lu old, %lu new\n", what, seen->stops,
                  seen->by_version[0], seen->by_version[1], seen->by_version[2]);
}

/* ---- following ---- */

static struct seen kill_follower(struct work *work, const char *before) {
    struct seen seen = {0};
    struct path directory = below(work->trainer, work->directory);
    bool killed = true;

    while (killed) {
        int version;

        if (before)
            tree_copy(below(work->trainer, before).text, directory.text);
        else
            tree_remove(directory.text);
        killed = killed_at(1 + STRIDE * seen.stops++, do_follow, work);
        version = version_at(work);
        assert_true(killed || version == 1);
        assert_true(version >= (before ? 0 : -1));
        seen.by_version[version + 1] += killed;
        if (killed)
            assert_int_equal(do_follow(work), 0);
        assert_at(work->trainer, work->directory, 1);
        assert_int_equal(entries_in(path_of(directory.text, "versions").text), 2);
        assert_int_equal(entries_in(directory.text), 4); /* current, versions, seen, lock */
    }
    seen.stops--;
    return seen;
}

static struct trainer two_versions(void) {
    struct trainer t = trainer_make(2, false);

    trainer_publish(&t, NULL);
    assert_follows(&t, "old");
    trainer_publish(&t, NULL);
    return t;
}

static void test_follow_from_an_anchor(void **unused) {
    struct trainer t = two_versions();
    struct work work = {&t, "store", "f"};
    struct seen seen = kill_follower(&work, NULL);

    (void)unused;
    print_seen("from an anchor", &seen);
    assert_true(seen.by_version[0] > 400 / STRIDE);
    assert_int_equal(seen.by_version[1], 0); /* what is only on the way is not shown */
    assert_true(seen.by_version[2] + STRIDE > 10);
    trainer_free(&t);
}

static void test_follow_by_a_patch(void **unused) {
    struct trainer t = two_versions();
    struct work work = {&t, "store", "f"};
    struct seen seen = kill_follower(&work, "old");

    (void)unused;
    print_seen("by a patch", &seen);
    assert_int_equal(seen.by_version[0], 0);
    assert_true(seen.by_version[1] > 200 / STRIDE && seen.by_version[2] + STRIDE > 10);
    trainer_free(&t);
}

/* ---- publishing ---- */

/* All records can be read, none is missing, and each is what it was meant to be. */
static uint64_t check_log(const struct work *work) {
    struct ulp_store *store = open_store(work);
    struct ulp_run_record head = {0}, record;
    enum ulp_status status = ulp_run_head(store, RUN, &head);

    if (status)
        assert_int_equal(status, ULP_E_NO_RUN);
    for (uint64_t i = 1; i <= head.sequence; i++) {
        assert_ok(ulp_run_read(store, RUN, i, &record));
        assert_int_equal(record.version, i - 1);
    }
    assert_fails(ulp_run_read(store, RUN, head.sequence + 1, &record), ULP_E_NOT_FOUND, "");
    ulp_store_free(store);
    return head.sequence;
}

/* A follower that starts anew reaches the head, which holds the newest weights or those before. */
static void check_reachable(const struct work *work, bool published) {
    const struct trainer *t = work->trainer;
    struct work fresh = {work->trainer, work->store, "fresh"};

    tree_remove(below(t, "fresh").text);
    assert_int_equal(do_follow(&fresh), 0);
    assert_holds_root(below(t, "fresh/current").text, &t->roots[t->count - (published ? 1 : 2)]);
}

/* Whether the record had been written or not: the same model once more, and it is in the log
 * once. */
static void go_on(const struct work *work, uint64_t before, bool thorough) {
    assert_int_equal(do_publish(work), 0);
    assert_holds_root(path_of(below(work->trainer, work->directory).text, "current").text,
                      &work->trainer->roots[work->trainer->count - 1]);
    if (!thorough)
        return;
    assert_int_equal(check_log(work), before + 1);
    check_reachable(work, true);
}

/* From a store with `before` records, as they are in top/kept-store and top/kept-state. */
static void kill_publisher(struct trainer *t, uint64_t before) {
    struct work work = {t, "store", "state"};
    unsigned long stops = 0, unpublished = 0, published = 0;
    bool killed = true;

    while (killed) {
        uint64_t records;

        tree_copy(below(t, "kept-store").text, below(t, "store").text);
        tree_remove(below(t, "state").text);
        if (before)
            tree_copy(below(t, "kept-state").text, below(t, "state").text);
        killed = killed_at(1 + STRIDE * stops++, do_publish, &work);
        records = check_log(&work);
        assert_in_range(records, before, before + 1);
        (records == before ? &unpublished : &published)[0]++;
        if (records && stops % THOROUGH == 0)
            check_reachable(&work, records > before);
        if (killed)
            go_on(&work, before, stops % THOROUGH == 0);
        else
            assert_int_equal(records, before + 1);
    }
    print_message("%lu stops: %lu before the record was there, %lu after\n", stops - 1, unpublished,
                  published);
    assert_true(unpublished > 200 / STRIDE && published > 40 / STRIDE);
}

static void test_publish_first(void **unused) {
    struct trainer t = trainer_make(2, false);

    (void)unused;
    trainer_step(&t);
    tree_copy(below(&t, "store").text, below(&t, "kept-store").text);
    kill_publisher(&t, 0);
    trainer_free(&t);
}

static void test_publish_next(void **unused) {
    struct trainer t = trainer_make(2, false);

    (void)unused;
    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    tree_copy(below(&t, "store").text, below(&t, "kept-store").text);
    tree_copy(below(&t, "state").text, below(&t, "kept-state").text);
    trainer_step(&t);
    kill_publisher(&t, 2);
    trainer_free(&t);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_follow_from_an_anchor, test_follow_by_a_patch,
                                               test_publish_first, test_publish_next};

    if (!tracer_works()) {
        fprintf(stderr, "skipped: processes may not be traced here\n");
        return 77;
    }
    return test_run(tests, COUNT(tests),
                    "test_follow_from_an_anchor, test_follow_by_a_patch, test_publish_first, "
                    "test_publish_next");
}
