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
};

static struct followers followers_make(const struct state *state, size_t skew) {
    struct followers followers = {.live = state_copy(state), .device = device_copy(state, skew)};

    followers.host = weights_of(&followers.live);
    followers.on_device = device_weights_of(&followers.device);
    assert_same_weights(followers.on_device, followers.host);
    return followers;
}

static void followers_free(struct followers *followers) {
    device_weights_free(followers->on_device);
    ulp_weights_free(followers->host);
    device_release(&followers->device);
    state_free(&followers->live);
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

/* One step without history and two with, all of one coder. */
static void chain(const struct form *forms, size_t count, unsigned per_mille, enum ulp_coder coder,
                  size_t skew) {
    struct state state = state_make(forms, count, 0);
    struct followers followers = followers_make(&state, skew);

    for (int step = 0; step < 3; step++) {
        state_step(&state, per_mille);
        follow(&followers, &state, coder, step > 0);
    }
    assert_ok(device_weights_audit(followers.on_device));
    followers_free(&followers);
    state_free(&state);
}

static void test_every_dtype(void **unused) {
    static const enum ulp_coder coders[] = {ULP_CODER_BEST, ULP_CODER_CONTEXT, ULP_CODER_PLAIN,
                                            ULP_CODER_DENSE};

    (void)unused;
    for (size_t i = 0; i < COUNT(coders); i++)
        chain(every_form, every_form_count, 100, coders[i], i % 2);
    chain(every_form, every_form_count, 970, ULP_CODER_CONTEXT, 3);
    chain(every_form, every_form_count, 3, ULP_CODER_CONTEXT, 0);
}

TEST_MAIN(test_every_dtype)
