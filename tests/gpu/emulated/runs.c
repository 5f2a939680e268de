// SPDX-License-Identifier: Apache-2.0
/* Publishers and followers on a device: among those in memory and in directories nobody can tell them
 * apart, neither by what is stored nor by where they arrive. What holds for all of them is tested by
 * the tests of runs in memory, which run on a device too (emulated_run_*). */
#include "tests/gpu/emulated/on_device.h"
#include "tests/sync/live.h"

static const struct ulp_run_options often = {.anchor_every = 8};

/* Fibers under a sanitizer are slow: so many steps, where history begins anew after 8. */
#if defined(__SANITIZE_ADDRESS__)
#define STEPS 10u
#else
#define STEPS 20u
#endif

/* Enough changes for the kernels, and small and odd tensors. */
static const struct form forms[] = {{"embed", "BF16", {20, 1024}, 2, 0},
                                    {"none", "BF16", {0, 7}, 2, 0},
                                    {"norm", "F32", {301}, 1, 0},
                                    {"step", "I64", {0}, 0, 0}};

static struct trainer larger_trainer(bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);

    state_free(&t.state);
    t.state = state_make(forms, COUNT(forms), 0);
    return t;
}

static struct ulp_publisher *device_publisher(const struct trainer *t,
                                              const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;

    assert_ok(ulp_publisher_open_cuda(t->store, RUN, NULL, 0, NULL, options, &publisher));
    return publisher;
}

/* A follower on a device, with what is given to begin with. */
static struct worker device_worker(const struct trainer *t, int known, uint32_t *poisoned,
                                   const struct ulp_run_options *options) {
    struct worker worker = {.state = state_copy(&t->state)};

    if (!known)
        memset(worker.state.data, 0x5a, worker.state.bytes);
    assert_ok(ulp_follower_open_cuda(t->store, RUN, worker.state.tensors, worker.state.count,
                                     poisoned, NULL, options, &worker.follower));
    return worker;
}

/* Between tensors there is memory that is nobody's. */
static void assert_same_tensors(const struct state *a, const struct state *b) {
    for (size_t i = 0; i < a->count; i++) {
        if (a->tensors[i].bytes)
            assert_memory_equal(a->tensors[i].data, b->tensors[i].data, a->tensors[i].bytes);
    }
}

static void assert_parts_are_those_of(struct ulp_store *a, struct ulp_store *b) {
    struct objects of_a = objects_of(a), of_b = objects_of(b);
    size_t parts = 0;

    assert_int_equal(of_a.count, of_b.count);
    for (size_t i = 0; i < of_a.count; i++) {
        if (!strstr(of_a.list[i].key, "/part/"))
            continue; /* records carry times, and the run's random name */
        assert_string_equal(of_a.list[i].key, of_b.list[i].key);
        assert_same_bytes(&of_a.list[i].bytes, &of_b.list[i].bytes);
        parts++;
    }
    assert_true(parts > 0);
    objects_free(&of_a);
    objects_free(&of_b);
}

/* ---- streams ---- */

/* Everybody follows one publisher, who is on a device or is not. */
static void check_stream(bool on_device, bool store_in_memory) {
    struct trainer t = larger_trainer(store_in_memory);
    struct ulp_publisher *publisher = NULL;
    struct worker there = device_worker(&t, 0, NULL, NULL), late, here = worker_make(&t, NULL);

    if (on_device)
        publisher = device_publisher(&t, &often);
    else
        assert_ok(ulp_publisher_open(t.store, RUN, NULL, &often, &publisher));
    for (unsigned i = 0; i < STEPS; i++) {
        struct ulp_run_report report = live_publish(&t, publisher);

        assert_int_equal(report.head.history, i && (i - 1) % 8 != 0);
        assert_ok(ulp_publisher_anchor(publisher, &report));
        assert_int_equal(report.fresh, i && i % 8 == 0);
        assert_worker_follows(&there, &t);
        assert_same_tensors(&there.state, &t.state);
        if (i % 3 == 0) {
            assert_worker_follows(&here, &t);
            assert_follows(&t, "f");
        }
    }
    assert_worker_follows(&here, &t);
    assert_same_tensors(&here.state, &t.state);
    assert_follows(&t, "f");
    late = device_worker(&t, 0, NULL, NULL);
    assert_worker_follows(&late, &t);
    assert_same_tensors(&late.state, &t.state);
    worker_free(&late);
    worker_free(&here);
    worker_free(&there);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_streams(void **unused) {
    (void)unused;
    check_stream(true, false);
    check_stream(false, true);
}

/* ---- the same bytes ---- */

struct twins {
    struct trainer t; /* its store is the device's */
    struct ulp_store *other;
    struct ulp_publisher *device, *memory;
};

static void publish_to_both(struct twins *w, uint64_t step, int fresh) {
    struct ulp_run_report a = {0}, b = {0};

    assert_ok(ulp_publisher_publish(w->device, w->t.state.tensors, w->t.state.count, step, &a));
    assert_ok(ulp_publisher_publish(w->memory, w->t.state.tensors, w->t.state.count, step, &b));
    assert_int_equal(a.fresh, fresh);
    assert_int_equal(b.fresh, fresh);
    assert_int_equal(a.head.sequence, b.head.sequence);
    assert_int_equal(a.head.history, b.head.history);
    assert_int_equal(a.stored_bytes, b.stored_bytes);
    assert_int_equal(a.stored_objects, b.stored_objects);
    assert_same_root(&a.head.root, &b.head.root);
    assert_ok(ulp_publisher_anchor(w->device, &a));
    assert_ok(ulp_publisher_anchor(w->memory, &b));
    assert_int_equal(a.fresh, b.fresh);
    assert_int_equal(a.stored_bytes, b.stored_bytes);
}

static void close_both(struct twins *w) {
    ulp_publisher_close(w->device);
    ulp_publisher_close(w->memory);
}

static void open_both(struct twins *w, const struct ulp_run_options *options) {
    w->device = device_publisher(&w->t, options);
    assert_ok(ulp_publisher_open(w->other, RUN, NULL, options, &w->memory));
}

/* Whatever the steps are: none, a few, all elements, the same again; and both are killed and go on. */
static void check_same_bytes(const struct ulp_run_options *options, unsigned steps, bool restarts) {
    struct twins w = {.t = larger_trainer(true)};
    unsigned per_mille[] = {30, 10, 30, 0, 30, 1, 30, 30, 30, 200, 30, 5, 30, 0, 30, 60, 30, 30};

    assert_true(steps <= COUNT(per_mille));
    assert_ok(ulp_store_memory(&w.other));
    open_both(&w, options);
    publish_to_both(&w, 0, 1);
    for (unsigned i = 0; i < steps; i++) {
        if (i == 10)
            state_scramble(&w.t.state, 900);
        else if (per_mille[i])
            state_step(&w.t.state, per_mille[i]);
        publish_to_both(&w, i + 1, 1);
        if (i % 6 == 3)
            publish_to_both(&w, i + 1, 0);
        if (restarts && (i == 4 || i == 12)) {
            close_both(&w);
            open_both(&w, options);
        }
    }
    assert_parts_are_those_of(w.t.store, w.other);
    close_both(&w);
    ulp_store_free(w.other);
    trainer_free(&w.t);
}

static void test_the_same_bytes(void **unused) {
    static const struct ulp_run_options by_name = {.reference = "example/base", .anchor_every = 8};
    struct ulp_run_options with_pool = {.pool = pool_of(2), .anchor_every = 8};

    (void)unused;
    check_same_bytes(&often, STEPS - 2, false);
    check_same_bytes(&with_pool, STEPS - 6, true);
    check_same_bytes(&by_name, 2, false);
    ulp_pool_free(with_pool.pool);
}

/* Publishers take turns with those in memory and in directories, each of which goes on. */
static void test_taking_turns(void **unused) {
    struct trainer t = larger_trainer(true);
    struct worker worker = device_worker(&t, 0, NULL, NULL);

    (void)unused;
    for (unsigned i = 0; i < STEPS / 2; i++) {
        struct ulp_publisher *publisher = NULL;

        if (i % 3)
            assert_ok(ulp_publisher_open(t.store, RUN, i % 3 == 1 ? NULL : below(&t, "state").text,
                                         &often, &publisher));
        else
            publisher = device_publisher(&t, &often);
        live_publish(&t, publisher);
        assert_int_equal(live_publish(&t, publisher).fetched_objects, 0);
        assert_ok(ulp_publisher_anchor(publisher, NULL));
        ulp_publisher_close(publisher);
        if (i % 2)
            assert_worker_follows(&worker, &t);
    }
    assert_worker_follows(&worker, &t);
    assert_same_tensors(&worker.state, &t.state);
    assert_follows(&t, "f");
    worker_free(&worker);
    trainer_free(&t);
}

/* Somebody tends the run, so that who lags takes long ways, which are without history. */
static void test_long_ways(void **unused) {
    struct trainer t = larger_trainer(true);
    struct ulp_publisher *publisher = device_publisher(&t, NULL);
    struct worker worker = device_worker(&t, 0, NULL, NULL);
    struct ulp_run_report report;

    (void)unused;
    live_publish(&t, publisher);
    assert_worker_follows(&worker, &t);
    for (unsigned i = 0; i < 19; i++)
        live_publish(&t, publisher);
    assert_ok(ulp_run_tend(t.store, RUN, below(&t, "tender").text, NULL, NULL));
    report = worker_catch_up(&worker);
    assert_int_equal(report.fetched_anchors, 0);
    assert_int_equal(report.fetched_patches, 2 + 3); /* to 8, to 16, and one by one */
    assert_worker_at(&worker, &t, 19);
    live_publish(&t, publisher); /* the tender's record is taken in; history goes on */
    assert_worker_follows(&worker, &t);
    worker_free(&worker);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

/* ---- the publisher's copy ---- */

/* In memory of the caller, who keeps it when the publisher goes. */
static void test_memory_of_the_caller(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct state copy = state_copy(&t.state);
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_report report;

    (void)unused;
    memset(copy.data, 0x77, copy.bytes);
    for (unsigned round = 0; round < 2; round++) {
        assert_ok(ulp_publisher_open_cuda(t.store, RUN, copy.tensors, copy.count, NULL, &often,
                                          &publisher));
        for (unsigned i = round ? 1 : 0; i <= 8;
             i++) { /* up to a multiple of 8, of which one can start */
            report = live_publish(&t, publisher);
            assert_int_equal(report.fetched_bytes, 0); /* it is found in the memory */
            assert_same_tensors(&copy, &t.state);
        }
        assert_fails(ulp_publisher_publish(publisher, copy.tensors, copy.count, 99, NULL),
                     ULP_E_OVERLAP, "publish");
        ulp_publisher_close(publisher);
    }
    assert_follows(&t, "f");
    state_free(&copy);
    trainer_free(&t);
}

static void test_first_from_its_own_memory(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;

    (void)unused;
    assert_ok(ulp_publisher_open_cuda(t.store, RUN, t.state.tensors, t.state.count, NULL, NULL,
                                      &publisher));
    assert_fails(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, 0, NULL),
                 ULP_E_OVERLAP, "publish");
    assert_int_equal(ulp_run_head(t.store, RUN, &(struct ulp_run_record){0}), ULP_E_NO_RUN);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_a_model_on_disk(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = device_publisher(&t, NULL);

    (void)unused;
    trainer_step(&t);
    assert_fails(ulp_publisher_publish_model(publisher, model_of(&t).text, 0, NULL), ULP_E_USAGE,
                 "on disk");
    t.count = 0;
    live_publish(&t, publisher);
    assert_fails(ulp_publisher_publish_model(publisher, model_of(&t).text, 0, NULL), ULP_E_USAGE,
                 "on disk");
    live_publish(&t, publisher);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

/* ---- poison ---- */

static void test_poisoned_from_the_start(void **unused) {
    struct trainer t = trainer_make(1, true);
    uint32_t poisoned = 1;
    struct worker worker;

    (void)unused;
    live_versions(&t, 3, NULL);
    worker = device_worker(&t, 0, &poisoned, NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_POISONED, "anew");
        assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_USAGE, "nothing");
    }
    poisoned = 0;
    assert_worker_follows(&worker, &t);
    assert_int_equal(poisoned, 0);
    worker_free(&worker);
    trainer_free(&t);
}

/* Between two calls, with a patch staged, or an anchor that lies aside. */
static void check_poisoned_between(bool aside) {
    static const struct ulp_run_options only_one = {.anchor_every = 8, .keep_anchors = 1};
    struct trainer t = trainer_make(1, true);
    uint32_t poisoned = 0;
    struct worker worker;
    struct ulp_run_report report = {0};

    live_versions(&t, 3, NULL);
    worker = device_worker(&t, 0, &poisoned, NULL);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 6, NULL);
    if (aside)
        live_anchor(&t, &only_one);
    assert_ok(ulp_follower_poll(worker.follower, &report));
    assert_true(report.ready);
    assert_int_equal(report.fetched_anchors, aside);
    poisoned = 1;
    for (unsigned i = 0; i < 2; i++) {
        assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_POISONED, "anew");
        assert_worker_at(&worker, &t, 2);
    }
    poisoned = 0;
    assert_worker_follows(&worker, &t);
    assert_int_equal(poisoned, 0);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_poisoned_between(void **unused) {
    (void)unused;
    check_poisoned_between(false);
    check_poisoned_between(true);
}

/* ---- what is refused ---- */

static void test_tiles(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_run_options options = {.tile = 1};
    struct ulp_tiling *tiling = NULL;
    struct ulp_publisher *publisher = NULL;
    struct ulp_follower *follower = NULL;
    struct worker worker = device_worker(&t, 0, NULL, NULL);

    (void)unused;
    assert_ok(ulp_tiling_new("", 2, &tiling));
    options.tiling = tiling;
    assert_fails(ulp_publisher_open_cuda(t.store, RUN, NULL, 0, NULL, &options, &publisher),
                 ULP_E_REGIONS, "tiles");
    assert_fails(ulp_follower_open_cuda(t.store, RUN, t.state.tensors, t.state.count, NULL, NULL,
                                        &options, &follower),
                 ULP_E_REGIONS, "tiles");
    options.tile = 0;
    live_versions(&t, 1, &options);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 1, &options);
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_REGIONS, "tiles");
    assert_worker_at(&worker, &t, 0);
    worker_free(&worker);
    ulp_tiling_free(tiling);
    trainer_free(&t);
}

static void test_arguments(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    struct ulp_follower *follower = NULL;

    (void)unused;
    assert_fails(ulp_publisher_open_cuda(NULL, RUN, NULL, 0, NULL, NULL, &publisher), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_publisher_open_cuda(t.store, NULL, NULL, 0, NULL, NULL, &publisher),
                 ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_open_cuda(t.store, RUN, NULL, 1, NULL, NULL, &publisher),
                 ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_open_cuda(t.store, RUN, NULL, 0, NULL, NULL, NULL), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_follower_open_cuda(NULL, RUN, t.state.tensors, 1, NULL, NULL, NULL, &follower),
                 ULP_E_USAGE, "NULL");
    assert_fails(ulp_follower_open_cuda(t.store, RUN, NULL, 0, NULL, NULL, NULL, &follower),
                 ULP_E_USAGE, "NULL");
    assert_fails(ulp_follower_open_cuda(t.store, RUN, t.state.tensors, 1, NULL, NULL, NULL, NULL),
                 ULP_E_USAGE, "NULL");
    assert_null(publisher);
    assert_null(follower);
    trainer_free(&t);
}

/* This comes first: a library that was loaded stays. */
static void test_without_a_device(void **unused) {
    char *good = strdup(getenv("ULPSYNC_CUDA_LIBRARY"));
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    struct ulp_follower *follower = NULL;

    (void)unused;
    setenv("ULPSYNC_CUDA_LIBRARY", "/nowhere/libulpsync_cuda.so", 1);
    assert_fails(ulp_publisher_open_cuda(t.store, RUN, NULL, 0, NULL, NULL, &publisher),
                 ULP_E_DEVICE, "/nowhere");
    assert_fails(ulp_follower_open_cuda(t.store, RUN, t.state.tensors, t.state.count, NULL, NULL,
                                        NULL, &follower),
                 ULP_E_DEVICE, "/nowhere");
    setenv("ULPSYNC_CUDA_LIBRARY", good, 1);
    free(good);
    trainer_free(&t);
}

TEST_MAIN(test_without_a_device, test_streams, test_the_same_bytes, test_taking_turns,
          test_long_ways, test_memory_of_the_caller, test_first_from_its_own_memory,
          test_a_model_on_disk, test_poisoned_from_the_start, test_poisoned_between, test_tiles,
          test_arguments)
