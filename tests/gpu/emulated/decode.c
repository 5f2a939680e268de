// SPDX-License-Identifier: Apache-2.0
/* Patches that the CPU made, applied by the kernels: the same weights, sums and moves as the CPU's,
 * step after step, with and without history, and back again. */
#include "tests/gpu/emulated/device.h"

/* A follower on the CPU and one on the device. */
struct followers {
    struct state live; /* the CPU's */
    struct on_device device;
    struct ulp_weights *host;
    struct device_weights *on_device;
    unsigned with_history, flipped; /* segments met so far that are coded so */
};

static struct followers followers_make(const struct state *state, size_t skew) {
    struct followers followers = {.live = state_copy(state), .device = device_copy(state, skew)};

    followers.host = weights_of(&followers.live);
    followers.on_device = device_weights_of(&followers.device);
    assert_same_weights(followers.on_device, followers.host);
    return followers;
}

static void followers_free(struct followers *followers) {
    assert_ok(device_weights_audit(followers->on_device));
    device_weights_forget(followers->on_device);
    assert_null(followers->on_device->weights->moves);
    device_weights_free(followers->on_device);
    ulp_weights_free(followers->host);
    device_release(&followers->device);
    state_free(&followers->live);
}

/* What the patch is made of, so that a test knows what it has tested. */
static void look_into(struct followers *followers, const struct ulp_patch *patch) {
    struct worker *worker = NULL;

    assert_ok(workers_take(followers->host->workers, 1, &worker));
    for (size_t i = 0; i < patch->table.grid.chunk_count; i++) {
        struct code_segment *segment = NULL;

        if (!patch->table.chunks[i].bytes)
            continue;
        assert_ok(patch_chunk(patch, i, worker, &segment));
        followers->with_history += code_needs_history(segment);
        if (code_coder_of(segment) < CODE_PLAIN)
            followers->flipped +=
                code_header(segment)->map.flipped < code_header(segment)->map.count;
        code_close(segment);
    }
    workers_give(followers->host->workers, worker);
}

/* Both go on to `next`; the device goes back once in between. */
static void follow(struct followers *followers, const struct state *next, enum ulp_coder coder,
                   int history) {
    const struct ulp_diff_options diff = {.coder = coder, .history = history};
    const struct ulp_apply_options options = {.remember = 1};
    struct bytes bytes = patch_to(followers->host, next, &diff);
    struct ulp_patch *patch = open_bytes(&bytes);
    struct device_apply *apply = NULL;
    struct ulp_apply_report report;

    look_into(followers, patch);
    assert_ok(device_apply_prepare(followers->on_device, patch, &options, &apply));
    assert_on_device(&followers->device, &followers->live);
    assert_same_weights(followers->on_device, followers->host);
    assert_ok(device_apply_commit(apply, &report));
    assert_on_device(&followers->device, next);
    assert_int_equal(report.changed, patch->table.changes);
    assert_ok(device_apply_undo(apply));
    assert_on_device(&followers->device, &followers->live);
    assert_same_weights(followers->on_device, followers->host);
    assert_ok(device_apply_commit(apply, NULL));
    assert_ok(ulp_apply(followers->host, patch, &options, NULL));
    assert_on_device(&followers->device, next);
    assert_same_weights(followers->on_device, followers->host);
    assert_int_equal(*followers->on_device->poisoned, 0);
    device_apply_free(apply);
    ulp_patch_free(patch);
    bytes_free(&bytes);
}

/* One step without history and some with, all of one coder. */
static struct followers chain(const struct form *forms, size_t count, unsigned per_mille,
                              enum ulp_coder coder, size_t skew, int steps) {
    struct state state = state_make(forms, count, 0);
    struct followers followers = followers_make(&state, skew);

    for (int step = 0; step < steps; step++) {
        state_step(&state, per_mille);
        follow(&followers, &state, coder, step > 0);
    }
    state_free(&state);
    return followers;
}

static void test_every_dtype(void **unused) {
    static const struct {
        enum ulp_coder coder;
        unsigned per_mille;
    } cases[] = {{ULP_CODER_BEST, 100},  {ULP_CODER_CONTEXT, 100}, {ULP_CODER_PLAIN, 100},
                 {ULP_CODER_DENSE, 100}, {ULP_CODER_CONTEXT, 970}, {ULP_CODER_CONTEXT, 3}};

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct followers followers =
            chain(every_form, every_form_count, cases[i].per_mille, cases[i].coder, i % 3, 2);

        if (cases[i].coder == ULP_CODER_CONTEXT)
            assert_true(followers.with_history >= 5);
        if (cases[i].per_mille > 500)
            assert_true(followers.flipped >= 5);
        followers_free(&followers);
    }
}

/* Blocks of several tiles, of which the last is not full; two blocks; any alignment. */
static void test_tiles(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {20003}, 1, 0},
                                        {"b", "F8_E4M3", {16385}, 1, 0},
                                        {"c", "F32", {8191}, 1, 0},
                                        {"d", "F64", {8192 + 33}, 1, 0}};

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        static const unsigned per_mille[] = {12, 120, 300};
        struct followers followers =
            chain(forms, COUNT(forms), per_mille[i], ULP_CODER_CONTEXT, i, 2);

        assert_int_equal(followers.with_history, COUNT(forms));
        followers_free(&followers);
    }
}

static void test_two_blocks(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {CODE_BLOCK_MAX + 8192 + 5}, 1, 0}};
    struct followers followers = chain(forms, COUNT(forms), 13, ULP_CODER_BEST, 0, 2);

    (void)unused;
    assert_int_equal(followers.with_history, 1);
    followers_free(&followers);
}

/* Patterns of all exponents, so of many classes; they step as weights do, the smaller the more. */
static void step_by_exponent(struct state *state) {
    for (size_t i = 0; i < state->count; i++) {
        uint16_t *elements = (uint16_t *)(uintptr_t)state->tensors[i].data;

        for (uint64_t k = 0; k < state->tensors[i].bytes / 2; k++) {
            const unsigned exponent = elements[k] >> 7 & 255;
            const uint64_t draw = test_random();

            if (draw % 128 >= exponent % 120)
                elements[k] =
                    (uint16_t)(elements[k] + (draw >> 32 & 1 ? 1 : -1) *
                                                 (int)(1 + (draw >> 40) % (1 + exponent % 7)));
        }
    }
}

static void test_many_classes(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {40000}, 1, 0}};
    struct state state = state_make(forms, COUNT(forms), 0);
    struct followers followers;

    (void)unused;
    state_scramble(&state, 1000);
    followers = followers_make(&state, 0);
    for (int step = 0; step < 2; step++) {
        step_by_exponent(&state);
        follow(&followers, &state, ULP_CODER_CONTEXT, step > 0);
    }
    assert_true(followers.flipped == 2);
    followers_free(&followers);
    state_free(&state);
}

/* Moves of all sizes, so that history has many buckets: who moved far moves again. */
static void test_far_moves(void **unused) {
    static const struct form forms[] = {{"a", "I16", {20000}, 1, 0}};
    static int16_t moved[20000];
    struct state state = state_make(forms, COUNT(forms), 0);
    struct followers followers = followers_make(&state, 0);
    uint16_t *elements = (uint16_t *)(uintptr_t)state.tensors[0].data;

    (void)unused;
    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < COUNT(moved); i++) {
            const uint64_t draw = test_random();
            const int size = (int)(1 + (draw >> 32) % 32),
                      before = moved[i] < 0 ? -moved[i] : moved[i];

            moved[i] = 0;
            if (draw % 100 < (before > 24 ? 95u : before > 8 ? 60u : before > 2 ? 30u : 10u))
                moved[i] = (int16_t)(draw >> 60 & 1 ? size : -size);
            elements[i] = (uint16_t)(elements[i] + moved[i]);
        }
        follow(&followers, &state, ULP_CODER_CONTEXT, step > 0);
    }
    assert_int_equal(followers.with_history, 2);
    followers_free(&followers);
    state_free(&state);
}

/* Many of one to a few elements: one launch, whatever their number. */
static void test_tiny_tensors(void **unused) {
    static char names[120][8];
    struct form forms[COUNT(names)];

    (void)unused;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(names[i], sizeof names[i], "t%03zu", i);
        forms[i] = (struct form){names[i], i % 5 ? "BF16" : "F32", {1 + i % 7}, 1, 0};
    }
    for (int coder = ULP_CODER_BEST; coder <= ULP_CODER_CONTEXT; coder++) {
        struct followers followers =
            chain(forms, COUNT(forms), 200, (enum ulp_coder)coder, 1, 1 + coder);

        followers_free(&followers);
    }
}

/* One element of all; then none; then all, which are more than are sorted at once. */
static void test_one_none_all(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {9001}, 1, 0},
                                        {"b", "F16", {77}, 1, 0},
                                        {"c", "F32", {8300}, 1, 0},
                                        {"d", "F64", {5200}, 1, 0},
                                        {"e", "F8_E4M3", {5200}, 1, 0}};
    struct state state = state_make(forms, COUNT(forms), 0);
    struct followers followers = followers_make(&state, 0);

    (void)unused;
    ((uint16_t *)(uintptr_t)state.tensors[0].data)[9000] ^= 1;
    follow(&followers, &state, ULP_CODER_CONTEXT, 0);
    follow(&followers, &state, ULP_CODER_CONTEXT, 1);
    state_step(&state, 1000);
    follow(&followers, &state, ULP_CODER_CONTEXT, 1);
    state_scramble(&state, 1000);
    follow(&followers, &state, ULP_CODER_CONTEXT, 1);
    followers_free(&followers);
    state_free(&state);
}

static void test_audit(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {9001}, 1, 0}, {"b", "F16", {77}, 1, 0}};
    struct state state = state_make(forms, COUNT(forms), 0);
    struct on_device device = device_copy(&state, 0);
    struct device_weights *weights = device_weights_of(&device), *again = NULL;
    uint8_t *last = (uint8_t *)(uintptr_t)device.tensors[1].data + 153;
    uint32_t poisoned = 0;

    (void)unused;
    assert_ok(device_weights_audit(weights));
    *last ^= 0x10;
    assert_fails(device_weights_audit(weights), ULP_E_WRONG_BASE, "'b'");
    *last ^= 0x10;
    assert_ok(device_weights_audit(weights));
    *weights->poisoned = 1;
    assert_fails(device_weights_audit(weights), ULP_E_POISONED, "between two states");
    device_weights_free(weights);
    poisoned = 1; /* by somebody who shares the memory */
    assert_fails(device_weights_new(device.tensors, device.count, &poisoned, NULL, &again),
                 ULP_E_POISONED, "");
    poisoned = 0;
    assert_ok(device_weights_new(device.tensors, device.count, &poisoned, NULL, &again));
    device_weights_trim(again);
    device_weights_free(again);
    device_release(&device);
    state_free(&state);
}

/* ---- what is refused, and what there is nothing to do for ---- */

static const struct form two_forms[] = {{"a", "BF16", {901}, 1, 0}, {"b", "F32", {77}, 1, 0}};

static void test_refusals(void **unused) {
    static const struct ulp_region regions[] = {{"a", 0, 1, 0, 100}};
    struct state state = state_make(two_forms, COUNT(two_forms), 0), next = state_copy(&state);
    struct followers followers = followers_make(&state, 0);
    struct bytes first, second, part;
    struct ulp_patch *to_next, *to_last, *partial;
    struct device_apply *apply = NULL, *again = NULL;
    struct ulp_apply_report report;

    (void)unused;
    part = patch_to(followers.host, &next,
                    &(struct ulp_diff_options){.regions = regions, .region_count = 1});
    state_step(&next, 100);
    first = patch_to(followers.host, &next, NULL);
    to_next = open_bytes(&first);
    assert_ok(ulp_apply(followers.host, to_next, &(struct ulp_apply_options){.remember = 1}, NULL));
    state_step(&next, 100);
    second = patch_to(followers.host, &next,
                      &(struct ulp_diff_options){.history = 1, .coder = ULP_CODER_CONTEXT});
    to_last = open_bytes(&second);
    partial = open_bytes(&part);

    assert_fails(device_apply_prepare(followers.on_device, partial, NULL, &apply), ULP_E_REGIONS,
                 "the parts cover");
    assert_fails(device_apply_prepare(followers.on_device, to_last, NULL, &apply), ULP_E_WRONG_BASE,
                 "starts from state");
    assert_ok(device_apply_prepare(followers.on_device, to_next, NULL, &apply));
    assert_ok(device_apply_prepare(followers.on_device, to_next, NULL, &again));
    assert_fails(device_apply_undo(apply), ULP_E_USAGE, "nothing to undo");
    assert_ok(device_apply_commit(apply, NULL));
    assert_fails(device_apply_commit(apply, NULL), ULP_E_USAGE, "already");
    assert_fails(device_apply_commit(again, NULL), ULP_E_WRONG_BASE, "have changed since");
    device_apply_free(again);
    assert_fails(device_apply_prepare(followers.on_device, to_last, NULL, &again),
                 ULP_E_NEEDS_HISTORY, "history"); /* nobody asked to remember */
    assert_ok(device_apply_prepare(followers.on_device, to_next, NULL, &again));
    assert_ok(device_apply_commit(again, &report));
    assert_int_equal(report.already, 1);
    device_apply_free(again);
    device_apply_free(apply);
    assert_on_device(&followers.device, &followers.live);

    *followers.on_device->poisoned = 1;
    assert_fails(device_apply_prepare(followers.on_device, to_next, NULL, &apply), ULP_E_POISONED,
                 "Load them anew");
    *followers.on_device->poisoned = 0;
    ulp_patch_free(to_next);
    ulp_patch_free(to_last);
    ulp_patch_free(partial);
    bytes_free(&first);
    bytes_free(&second);
    bytes_free(&part);
    followers_free(&followers);
    state_free(&state);
    state_free(&next);
}

static void test_not_aligned(void **unused) {
    struct state state = state_make(two_forms, COUNT(two_forms), 2); /* right for "a" alone */
    struct device_weights *weights = NULL;

    (void)unused;
    assert_fails(device_weights_new(state.tensors, state.count, NULL, NULL, &weights), ULP_E_USAGE,
                 "'b' is not aligned");
    state_free(&state);
}

/* Without memory at any point: a status, nothing lost, nothing written. */
static void test_no_memory(void **unused) {
    struct state state = state_make(two_forms, COUNT(two_forms), 0), next = state_copy(&state);
    struct followers followers = followers_make(&state, 0);
    const struct ulp_apply_options options = {.remember = 1};
    struct device_apply *apply = NULL;
    struct bytes bytes;
    struct ulp_patch *patch;
    enum ulp_status status = ULP_E_NOMEM;

    (void)unused;
    state_step(&next, 300);
    bytes = patch_to(followers.host, &next, NULL);
    patch = open_bytes(&bytes);
    for (uint64_t at = 0; status; at++) {
        failing_allocator_start(at, 0);
        status = device_apply_prepare(followers.on_device, patch, &options, &apply);
        if (!status)
            device_apply_free(apply);
        workers_trim(followers.on_device->weights->workers);
        failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        assert_true(status || at > 10);
        assert_on_device(&followers.device, &state);
    }
    ulp_patch_free(patch);
    bytes_free(&bytes);
    followers_free(&followers);
    state_free(&state);
    state_free(&next);
}

TEST_MAIN(test_every_dtype, test_tiles, test_two_blocks, test_many_classes, test_far_moves,
          test_tiny_tensors, test_one_none_all, test_audit, test_refusals, test_not_aligned,
          test_no_memory)
