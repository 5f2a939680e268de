// SPDX-License-Identifier: Apache-2.0
/* Two states on the device: patches go into the one that is not in use, which then is. The one in use is
 * the CPU's after each step; the other is what was in use before, bit for bit, until the next
 * commit; and back again, in any order. */
#include "tests/gpu/emulated/device.h"

#include "gpu/device_second.h"

#include <limits.h>

/* A follower on the CPU and one on the device with two states. */
struct pair {
    struct state live; /* the CPU's */
    struct on_device sets[2];
    struct ulp_weights *host;
    struct device_weights *weights;
    uint32_t front; /* as others see it */
};

static void fill(const struct on_device *device, int byte) {
    for (size_t i = 0; i < device->count; i++) {
        if (device->tensors[i].bytes)
            memset(device->tensors[i].data, byte, (size_t)device->tensors[i].bytes);
    }
}

static void pair_attach(struct pair *pair, const struct state *state) {
    fill(&pair->sets[1], 0xa5);
    assert_ok(device_second_attach(pair->weights, pair->sets[1].tensors, pair->sets[1].count,
                                   &pair->front));
    assert_on_device(&pair->sets[0], state);
    assert_on_device(&pair->sets[1], state);
}

static struct pair pair_make(const struct state *state, size_t skew, size_t second_skew) {
    struct pair pair = {.live = state_copy(state),
                        .sets = {device_copy(state, skew), device_copy(state, second_skew)}};

    pair.host = weights_of(&pair.live);
    pair.weights = device_weights_of(&pair.sets[0]);
    return pair;
}

static void pair_free(struct pair *pair) {
    assert_ok(device_weights_audit(pair->weights));
    device_weights_free(pair->weights);
    ulp_weights_free(pair->host);
    device_release(&pair->sets[0]);
    device_release(&pair->sets[1]);
    state_free(&pair->live);
}

/* What is in use, and what is beside it; NULL is not looked at. */
static void assert_pair(const struct pair *pair, uint32_t front, const struct state *used,
                        const struct state *beside) {
    assert_int_equal(pair->weights->second->front, front);
    assert_int_equal(pair->front, front);
    assert_on_device(&pair->sets[front], used);
    if (beside)
        assert_on_device(&pair->sets[1 - front], beside);
    assert_int_equal(*pair->weights->poisoned, 0);
}

/* ---- step after step ---- */

/* Both go on to `next`; the device goes back once in between. */
static void follow(struct pair *pair, const struct state *next, const struct state *before,
                   enum ulp_coder coder, int history) {
    const struct ulp_diff_options diff = {.coder = coder, .history = history};
    const struct ulp_apply_options options = {.remember = 1};
    const uint32_t front = pair->front;
    struct bytes bytes = patch_to(pair->host, next, &diff);
    struct ulp_patch *patch = open_bytes(&bytes);
    struct device_apply *apply = NULL;

    assert_ok(device_apply_prepare(pair->weights, patch, &options, &apply));
    assert_pair(pair, front, &pair->live, before);
    assert_same_weights(pair->weights, pair->host);
    assert_ok(device_apply_commit(apply, NULL));
    assert_pair(pair, 1 - front, next, &pair->live);
    assert_ok(device_apply_undo(apply));
    assert_pair(pair, front, &pair->live, next);
    assert_same_weights(pair->weights, pair->host);
    assert_ok(device_weights_audit(pair->weights));
    assert_ok(device_apply_commit(apply, NULL));
    assert_pair(pair, 1 - front, next, &pair->live);
    assert_ok(ulp_apply(pair->host, patch, &options, NULL));
    assert_same_weights(pair->weights, pair->host);
    assert_ok(device_weights_audit(pair->weights));
    device_apply_free(apply);
    ulp_patch_free(patch);
    bytes_free(&bytes);
}

static void chain(const struct form *forms, size_t count, unsigned per_mille, enum ulp_coder coder,
                  size_t skew) {
    struct state state = state_make(forms, count, 0), before = state_copy(&state);
    struct pair pair = pair_make(&state, skew, 2 - skew);

    pair_attach(&pair, &state);
    for (int step = 0; step < 4; step++) {
        struct state last = state_copy(&state);

        state_step(&state, step == 2 ? 0 : per_mille); /* once nothing changes */
        follow(&pair, &state, &before, coder, step > 0);
        state_free(&before);
        before = last;
    }
    pair_free(&pair);
    state_free(&before);
    state_free(&state);
}

static void test_every_dtype(void **unused) {
    static const struct {
        enum ulp_coder coder;
        unsigned per_mille;
    } cases[] = {{ULP_CODER_BEST, 100}, {ULP_CODER_CONTEXT, 30}, {ULP_CODER_DENSE, 900}};

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++)
        chain(every_form, every_form_count, cases[i].per_mille, cases[i].coder, i);
}

static void test_two_blocks(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {CODE_BLOCK_MAX + 8192 + 5}, 1, 0},
                                        {"b", "F32", {20003}, 1, 0}};

    (void)unused;
    chain(forms, COUNT(forms), 13, ULP_CODER_BEST, 1);
}

/* ---- states of two tensors, and all the ways between them ---- */

static const struct form two_forms[] = {{"a", "BF16", {901}, 1, 0}, {"b", "F32", {77}, 1, 0}};

#define STATES 4

/* States 0 to 3, with a patch from each to the next, and one from 0 to 3. */
struct story {
    struct state states[STATES];
    struct bytes bytes[STATES];
    struct ulp_patch *patches[STATES];
    struct pair pair;
    struct device_apply *applies[STATES];
};

static struct story story_make(void) {
    struct story story = {.states = {state_make(two_forms, COUNT(two_forms), 0)}};

    for (int i = 1; i < STATES; i++) {
        story.states[i] = state_copy(&story.states[i - 1]);
        state_step(&story.states[i], 200);
    }
    for (int i = 0; i < STATES; i++) {
        const int to = (i + 1) % STATES, from = to ? i : 0;

        story.bytes[i] = patch_between(&story.states[from], &story.states[to ? to : 3], NULL);
        story.patches[i] = open_bytes(&story.bytes[i]);
    }
    story.pair = pair_make(&story.states[0], 0, 0);
    return story;
}

static void story_free(struct story *story) {
    for (int i = 0; i < STATES; i++) {
        ulp_patch_free(story->patches[i]);
        bytes_free(&story->bytes[i]);
        device_apply_free(story->applies[i]);
    }
    pair_free(&story->pair);
    for (int i = 0; i < STATES; i++)
        state_free(&story->states[i]);
}

static void take(struct story *story, int patch) {
    assert_ok(device_apply_prepare(story->pair.weights, story->patches[patch], NULL,
                                   &story->applies[patch]));
    assert_ok(device_apply_commit(story->applies[patch], NULL));
}

static void assert_at(const struct story *story, int used, int beside) {
    assert_pair(&story->pair, story->pair.weights->second->front, &story->states[used],
                beside < 0 ? NULL : &story->states[beside]);
    assert_ok(device_weights_audit(story->pair.weights));
}

/* All the way back, and there again, with the handles that are left. */
static void test_undo_after_undo(void **unused) {
    struct story story = story_make();

    (void)unused;
    pair_attach(&story.pair, &story.states[0]);
    for (int i = 0; i < 3; i++) {
        take(&story, i);
        assert_at(&story, i + 1, i);
    }
    assert_fails(device_apply_undo(story.applies[0]), ULP_E_WRONG_BASE, "have changed since");
    assert_fails(device_apply_commit(story.applies[2], NULL), ULP_E_USAGE, "already");
    for (int round = 0; round < 2; round++) {
        for (int i = 2; i >= 0; i--) {
            assert_ok(device_apply_undo(story.applies[i]));
            assert_at(&story, i, i + 1);
        }
        assert_fails(device_apply_undo(story.applies[0]), ULP_E_USAGE, "nothing to undo");
        for (int i = 0; i < 3; i++) {
            assert_ok(device_apply_commit(story.applies[i], NULL));
            assert_at(&story, i + 1, i);
        }
    }
    device_apply_free(story.applies[1]); /* the middle one first */
    story.applies[1] = NULL;
    assert_ok(device_apply_undo(story.applies[2]));
    device_apply_free(story.applies[2]);
    story.applies[2] = NULL;
    assert_at(&story, 2, 3);
    story_free(&story);
}

/* Two ways from one state, taken in turn; the same way prepared twice. */
static void test_branches(void **unused) {
    struct story story = story_make();
    struct device_apply *again = NULL;
    struct ulp_apply_report report;
    uint32_t front;

    (void)unused;
    pair_attach(&story.pair, &story.states[0]);
    for (int i = 0; i < STATES; i += 3) /* from 0 to 1, and from 0 to 3 */
        assert_ok(
            device_apply_prepare(story.pair.weights, story.patches[i], NULL, &story.applies[i]));
    assert_ok(device_apply_prepare(story.pair.weights, story.patches[0], NULL, &again));
    for (int round = 0; round < 3; round++) {
        struct device_apply *first = round == 1 ? again : story.applies[0];

        assert_ok(device_apply_commit(first, NULL));
        assert_at(&story, 1, 0);
        assert_fails(device_apply_commit(story.applies[3], NULL), ULP_E_WRONG_BASE, "since");
        assert_ok(device_apply_undo(first));
        assert_at(&story, 0, 1);
        assert_ok(device_apply_commit(story.applies[3], NULL));
        assert_at(&story, 3, 0);
        assert_ok(device_apply_undo(story.applies[3]));
    }
    assert_ok(device_apply_commit(story.applies[0], NULL));
    device_apply_free(again);
    front = story.pair.front; /* there is nothing to do, so nothing changes */
    assert_ok(device_apply_prepare(story.pair.weights, story.patches[0], NULL, &again));
    assert_ok(device_apply_commit(again, &report));
    assert_ok(device_apply_undo(again));
    assert_int_equal(report.already, 1);
    assert_int_equal(story.pair.front, front);
    assert_at(&story, 1, 0);
    device_apply_free(again);
    take(&story, 1); /* before the handle that led here is freed, and those that lead nowhere */
    assert_at(&story, 2, 1);
    story_free(&story);
}

/* What was prepared or written before there was a second state. */
static void test_attached_later(void **unused) {
    struct story story = story_make();

    (void)unused;
    take(&story, 0);
    assert_ok(device_apply_prepare(story.pair.weights, story.patches[1], NULL, &story.applies[1]));
    pair_attach(&story.pair, &story.states[1]);
    assert_ok(device_apply_commit(story.applies[1], NULL));
    assert_at(&story, 2, 1);
    assert_ok(device_apply_undo(story.applies[1]));
    assert_ok(device_apply_undo(story.applies[0]));
    assert_at(&story, 0, 1);
    assert_int_equal(story.pair.front, 1);
    device_weights_trim(story.pair.weights);
    assert_ok(device_apply_commit(story.applies[0], NULL));
    assert_ok(device_apply_commit(story.applies[1], NULL));
    assert_at(&story, 2, 1);
    story_free(&story);
}

/* ---- what goes wrong ---- */

/* A bit of the state that is not in use: found, and gone with the next commit or undo. */
static void test_damage_beside(void **unused) {
    struct story story = story_make();
    uint8_t *beside, *used;

    (void)unused;
    pair_attach(&story.pair, &story.states[0]);
    take(&story, 0);
    for (int undo = 0; undo < 2; undo++) {
        beside = (uint8_t *)story.pair.sets[1 - story.pair.front].tensors[1].data + 301;
        used = (uint8_t *)story.pair.sets[story.pair.front].tensors[1].data + 301;
        *used ^= 0x10;
        assert_fails(device_weights_audit(story.pair.weights), ULP_E_WRONG_BASE,
                     "'b' is not what it was");
        *used ^= 0x10;
        assert_ok(device_weights_audit(story.pair.weights));
        *beside ^= 0x10;
        for (int k = 0; k < 2; k++)
            assert_fails(device_weights_audit(story.pair.weights), ULP_E_WRONG_BASE,
                         "'b' of the state that is not in use");
        if (undo) {
            assert_ok(device_apply_undo(story.applies[1]));
            assert_at(&story, 1, 2);
        } else {
            take(&story, 1);
            assert_at(&story, 2, 1);
        }
    }
    story_free(&story);
}

/* As if a write had failed: what is there is not trusted. */
static void test_torn(void **unused) {
    struct story story = story_make();

    (void)unused;
    pair_attach(&story.pair, &story.states[0]);
    take(&story, 0);
    fill(&story.pair.sets[1 - story.pair.front], 0x3c);
    story.pair.weights->second->whole = false;
    take(&story, 1);
    assert_at(&story, 2, 1);
    fill(&story.pair.sets[1 - story.pair.front], 0x3c);
    story.pair.weights->second->whole = false;
    assert_ok(device_apply_undo(story.applies[1]));
    assert_at(&story, 1, 2);
    story_free(&story);
}

/* The device refuses a launch, each in turn: what is in use stays, what was prepared is spent. */
static void test_failing_device(void **unused) {
    enum ulp_status status = ULP_E_DEVICE;

    (void)unused;
    for (unsigned launches = 0; status; launches++) {
        struct story story = story_make();
        struct device_apply *apply = NULL;

        pair_attach(&story.pair, &story.states[0]);
        take(&story, 0);
        assert_ok(device_apply_prepare(story.pair.weights, story.patches[1], NULL, &apply));
        emulate_launches_left = launches;
        status = device_apply_commit(apply, NULL);
        emulate_launches_left = UINT_MAX;
        assert_true(status == ULP_E_DEVICE || (status == ULP_OK && launches == 5));
        if (status) {
            assert_pair(&story.pair, 1, &story.states[1], NULL);
            assert_fails(device_apply_commit(apply, NULL), ULP_E_USAGE, "prepared anew");
            take(&story, 1);
        }
        assert_at(&story, 2, 1);
        device_apply_free(apply);
        story_free(&story);
    }
}

/* The same where only roles change: then both states stay whole. */
static void test_failing_undo(void **unused) {
    (void)unused;
    for (unsigned launches = 0; launches < 3; launches++) {
        struct story story = story_make();

        pair_attach(&story.pair, &story.states[0]);
        take(&story, 0);
        emulate_launches_left = launches;
        assert_fails(device_apply_undo(story.applies[0]), ULP_E_DEVICE, "what they were");
        emulate_launches_left = UINT_MAX;
        assert_at(&story, 1, 0);
        assert_fails(device_apply_undo(story.applies[0]), ULP_E_USAGE, "prepared anew");
        take(&story, 1);
        assert_at(&story, 2, 1);
        story_free(&story);
    }
}

static void test_bad_patch(void **unused) {
    struct story story = story_make();
    struct device_apply *apply = NULL;
    uint8_t *byte = story.bytes[1].data + story.patches[1]->table.chunks[0].offset + 9;

    (void)unused;
    pair_attach(&story.pair, &story.states[0]);
    take(&story, 0);
    *byte ^= 4;
    assert_true(device_apply_prepare(story.pair.weights, story.patches[1], NULL, &apply) != ULP_OK);
    assert_at(&story, 1, 0);
    assert_fails(device_apply_prepare(story.pair.weights, story.patches[2], NULL, &apply),
                 ULP_E_WRONG_BASE, "starts from state");
    assert_at(&story, 1, 0);
    *byte ^= 4;
    *story.pair.weights->poisoned = 1;
    assert_fails(device_apply_undo(story.applies[0]), ULP_E_POISONED, "Load them anew");
    *story.pair.weights->poisoned = 0;
    take(&story, 1);
    assert_at(&story, 2, 1);
    story_free(&story);
}

static void test_refusals(void **unused) {
    struct story story = story_make();
    struct device_weights *weights = story.pair.weights;
    struct ulp_tensor tensors[2], *good = story.pair.sets[1].tensors;
    struct state skewed = state_make(two_forms, COUNT(two_forms), 2);
    uint32_t two = 2;

    (void)unused;
    fill(&story.pair.sets[1], 0xa5);
    assert_fails(device_second_attach(weights, story.pair.sets[0].tensors, 2, NULL), ULP_E_OVERLAP,
                 "share memory");
    memcpy(tensors, good, sizeof tensors);
    tensors[1].data = (uint8_t *)tensors[0].data + 4;
    assert_fails(device_second_attach(weights, tensors, 2, NULL), ULP_E_OVERLAP, "share memory");
    assert_fails(device_second_attach(weights, good, 1, NULL), ULP_E_LAYOUT, "");
    memcpy(tensors, good, sizeof tensors);
    tensors[0].dtype = "F16";
    assert_fails(device_second_attach(weights, tensors, 2, NULL), ULP_E_LAYOUT, "");
    tensors[0] = good[0];
    tensors[0].data = NULL;
    assert_fails(device_second_attach(weights, tensors, 2, NULL), ULP_E_USAGE, "");
    assert_fails(device_second_attach(weights, skewed.tensors, 2, NULL), ULP_E_USAGE,
                 "not aligned");
    assert_fails(device_second_attach(weights, good, 2, &two), ULP_E_USAGE, "is 2");
    *weights->poisoned = 1;
    assert_fails(device_second_attach(weights, good, 2, NULL), ULP_E_POISONED, "");
    *weights->poisoned = 0;
    assert_null(weights->second);
    for (size_t i = 0; i < 901 * 2; i++)
        assert_int_equal(((uint8_t *)good[0].data)[i], 0xa5);
    tensors[0] = good[1]; /* in any order */
    tensors[1] = good[0];
    assert_ok(device_second_attach(weights, tensors, 2, NULL));
    assert_fails(device_second_attach(weights, good, 2, NULL), ULP_E_USAGE, "already");
    take(&story, 0);
    assert_on_device(&story.pair.sets[1], &story.states[1]);
    assert_int_equal(story.pair.front, 0); /* nobody was told of it */
    state_free(&skewed);
    story_free(&story);
}

static void test_no_memory(void **unused) {
    struct story story = story_make();
    enum ulp_status status = ULP_E_NOMEM;

    (void)unused;
    for (uint64_t at = 0; status; at++) {
        failing_allocator_start(at, 0);
        status = device_second_attach(story.pair.weights, story.pair.sets[1].tensors, 2,
                                      &story.pair.front);
        if (!status) {
            device_second_free(story.pair.weights->second);
            story.pair.weights->second = NULL;
        }
        failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        assert_true(status || at > 5);
        assert_null(story.pair.weights->second);
    }
    story_free(&story);
}

TEST_MAIN(test_every_dtype, test_two_blocks, test_undo_after_undo, test_branches,
          test_attached_later, test_damage_beside, test_torn, test_failing_device,
          test_failing_undo, test_bad_patch, test_refusals, test_no_memory)
