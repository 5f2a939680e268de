// SPDX-License-Identifier: Apache-2.0
/*
 * A device that fails in the middle of a run. Each piece of its memory is refused once: that is said,
 * nothing was changed, and what failed works when it is tried again. Then everything fails from some
 * call on, as when a device is lost: that is said too, all memory is given back, and whoever starts
 * anew arrives. The functions of the room cuda are wrapped by the linker.
 */
#include "cuda/memory.h"
#include "sync/device_holder.h"
#include "sync/publisher.h"
#include "tests/sync/live.h"

/* With a sanitizer everything takes longer. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 5u
#else
#define STRIDE 1u
#endif

static struct {
    uint64_t calls, fail_at; /* those that are counted; UINT64_MAX: none fails */
    bool lost;               /* all of them, from there on; else only memory, once */
    long taken;              /* pieces of memory */
} device;

static void device_fails(uint64_t at, bool lost) {
    device.calls = 0;
    device.fail_at = at;
    device.lost = lost;
}

static bool fails_now(bool memory) {
    if (!memory && !device.lost)
        return false;
    return device.lost ? device.calls++ >= device.fail_at : device.calls++ == device.fail_at;
}

/* ---- what is wrapped ---- */

enum ulp_status __real_cuda_memory_new(size_t bytes, void **ret_memory);
enum ulp_status __wrap_cuda_memory_new(size_t bytes, void **ret_memory);
void __real_cuda_memory_free(void *memory);
void __wrap_cuda_memory_free(void *memory);
enum ulp_status __real_cuda_pinned_new(size_t bytes, void **ret_memory);
enum ulp_status __wrap_cuda_pinned_new(size_t bytes, void **ret_memory);
void __real_cuda_pinned_free(void *memory);
void __wrap_cuda_pinned_free(void *memory);
enum ulp_status __real_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __wrap_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __real_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __wrap_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __real_cuda_wait(void *stream);
enum ulp_status __wrap_cuda_wait(void *stream);

enum ulp_status __wrap_cuda_memory_new(size_t bytes, void **ret_memory) {
    enum ulp_status status =
        fails_now(true) ? ULP_E_NOMEM : __real_cuda_memory_new(bytes, ret_memory);

    device.taken += !status;
    return status;
}

void __wrap_cuda_memory_free(void *memory) {
    device.taken -= memory != NULL;
    __real_cuda_memory_free(memory);
}

enum ulp_status __wrap_cuda_pinned_new(size_t bytes, void **ret_memory) {
    enum ulp_status status =
        fails_now(true) ? ULP_E_NOMEM : __real_cuda_pinned_new(bytes, ret_memory);

    device.taken += !status;
    return status;
}

void __wrap_cuda_pinned_free(void *memory) {
    device.taken -= memory != NULL;
    __real_cuda_pinned_free(memory);
}

enum ulp_status __wrap_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream) {
    return fails_now(false) ? ULP_E_DEVICE : __real_cuda_copy_in(to, from, bytes, stream);
}

enum ulp_status __wrap_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream) {
    return fails_now(false) ? ULP_E_DEVICE : __real_cuda_copy_out(to, from, bytes, stream);
}

enum ulp_status __wrap_cuda_wait(void *stream) {
    return fails_now(false) ? ULP_E_DEVICE : __real_cuda_wait(stream);
}

/* ---- calls that may fail ---- */

struct scene {
    struct trainer t;
    struct state start, memory; /* of a follower: what it begins with, and what it has */
    bool known;                 /* that is a version of the run, so it is in use from the start */
    struct ulp_run_options options;
    unsigned failures;
};

/* Whether a call is to be made once more. */
static bool again(struct scene *s, enum ulp_status status) {
    if (!status)
        return false;
    s->failures++;
    if ((status != ULP_E_NOMEM && status != ULP_E_DEVICE) || !ulp_last_error()[0])
        fail_msg("call %llu: %s: %s", (unsigned long long)device.fail_at, ulp_status_name(status),
                 ulp_last_error());
    return !device.lost && s->failures == 1;
}

static enum ulp_status try_publish(struct scene *s, struct ulp_publisher *publisher,
                                   uint64_t step) {
    enum ulp_status status;

    do
        status = ulp_publisher_publish(publisher, s->t.state.tensors, s->t.state.count, step, NULL);
    while (again(s, status));
    if (status)
        return status;
    do
        status = ulp_publisher_anchor(publisher, NULL);
    while (again(s, status));
    return status;
}

/* Polls or applies; a failure to poll changes no weights that are in use. */
static enum ulp_status go(struct scene *s, struct ulp_follower *follower, bool apply, bool in_use,
                          struct ulp_run_report *report) {
    struct state before = state_copy(&s->memory);
    enum ulp_status status;

    do {
        status = (apply ? ulp_follower_apply : ulp_follower_poll)(follower, report);
        if (!apply && in_use)
            assert_same_state(&s->memory, &before);
    } while (again(s, status));
    state_free(&before);
    return status;
}

/* ---- two sides ---- */

static enum ulp_status publish_some(struct scene *s) {
    struct holder *holder = NULL;
    struct ulp_publisher *publisher = NULL;
    enum ulp_status status;

    assert_ok(device_holder_open(NULL, 0, NULL, NULL, &s->options, &holder));
    assert_ok(publisher_new(s->t.store, RUN, &s->options, holder, &publisher));
    memcpy(s->t.state.data, s->start.data, s->start.bytes);
    test_random_seed(5);
    status = try_publish(s, publisher, 0);
    for (unsigned i = 1; !status && i <= 8; i++) {
        state_step(&s->t.state, 30);
        status = try_publish(s, publisher, i);
    }
    ulp_publisher_close(publisher);
    return status;
}

/* The log is whole, and somebody in memory gets where it leads. */
static void check_published(struct scene *s, enum ulp_status status) {
    struct ulp_run_health health = {0};
    struct ulp_run_record head = {0};
    struct worker worker;

    if (ulp_run_head(s->t.store, RUN, &head) == ULP_E_NO_RUN) {
        assert_true(status);
        return;
    }
    assert_ok(ulp_run_check(s->t.store, RUN, NULL, NULL, &health));
    assert_true(health.reachable && !health.damaged);
    if (!status)
        assert_int_equal(head.version, 8);
    worker = worker_make(&s->t, NULL);
    assert_int_equal(worker_catch_up(&worker).version, head.version);
    worker_free(&worker);
}

static enum ulp_status follow_all(struct scene *s) {
    struct holder *holder = NULL;
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status;

    assert_ok(
        device_holder_open(s->memory.tensors, s->memory.count, NULL, NULL, &s->options, &holder));
    assert_ok(follower_new(s->t.store, RUN, &s->options, holder, &follower));
    status = go(s, follower, false, s->known, &report);
    if (!status && s->known)
        assert_int_equal(report.fetched_anchors, 1); /* it waits aside */
    while (!status && report.ready) {
        status = go(s, follower, true, true, &report);
        if (!status)
            status = go(s, follower, false, true, &report);
    }
    ulp_follower_close(follower);
    return status;
}

static void check_followed(struct scene *s, enum ulp_status status) {
    const bool known = s->known;
    struct ulp_root root;

    if (status) {
        s->known =
            false; /* they may stand between two versions, where a new follower begins anew */
        assert_ok(follow_all(s));
        s->known = known;
    }
    root = root_of(&s->memory);
    assert_same_root(&root, &s->t.roots[s->t.count - 1]);
}

/* ---- everywhere ---- */

static void fail_everywhere(struct scene *s, enum ulp_status (*work)(struct scene *),
                            void (*check)(struct scene *, enum ulp_status)) {
    struct objects before = objects_of(s->t.store);

    for (unsigned lost = 0; lost < 2; lost++) {
        uint64_t at = 0;

        do {
            enum ulp_status status;

            objects_restore(s->t.store, &before);
            memcpy(s->memory.data, s->start.data, s->start.bytes);
            s->failures = 0;
            device_fails(at, lost);
            status = work(s);
            if (status && !lost)
                fail_msg("call %llu: %s", (unsigned long long)at, ulp_last_error());
            device_fails(UINT64_MAX, false);
            assert_int_equal(device.taken, 0);
            check(s, status);
            assert_int_equal(device.taken, 0);
            at += lost ? 3 * STRIDE : STRIDE;
        } while (s->failures);
        assert_true(at > 3);
    }
    objects_free(&before);
}

static struct scene scene_make(void) {
    struct scene s = {.t = trainer_make(1, true), .options = {.anchor_every = 8}};

    return s;
}

static void scene_free(struct scene *s) {
    state_free(&s->start);
    state_free(&s->memory);
    trainer_free(&s->t);
}

static void test_publishing(void **unused) {
    struct scene s = scene_make();

    (void)unused;
    s.start = state_copy(&s.t.state);
    s.memory = state_copy(&s.t.state);
    fail_everywhere(&s, publish_some, check_published);
    scene_free(&s);
}

static void test_following(void **unused) {
    struct scene s = scene_make();

    (void)unused;
    live_versions(&s.t, 4, NULL);
    s.start = state_copy(&s.t.state);
    memset(s.start.data, 0x77, s.start.bytes);
    s.memory = state_copy(&s.start);
    fail_everywhere(&s, follow_all, check_followed);
    scene_free(&s);
}

/* What is held at first is an anchor that the map still has; from there another is nearer. */
static void test_a_newer_anchor(void **unused) {
    struct scene s = scene_make();

    (void)unused;
    s.known = true;
    live_versions(&s.t, 1, NULL);
    s.start = state_copy(&s.t.state);
    s.memory = state_copy(&s.start);
    for (unsigned i = 0; i < 8; i++) {
        state_scramble(&s.t.state, 900); /* patches are longer than an anchor */
        live_versions(&s.t, 1, NULL);
    }
    live_anchor(&s.t, &s.options);
    live_versions(&s.t, 1, NULL);
    fail_everywhere(&s, follow_all, check_followed);
    scene_free(&s);
}

TEST_MAIN(test_publishing, test_following, test_a_newer_anchor)
