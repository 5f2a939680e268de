// SPDX-License-Identifier: Apache-2.0
/* Patches that find nothing to do: a step in which nothing moved, and weights that are there
 * already. */
#include "tests/patch/disk.h"

#include "patch/journal.h"

#include <unistd.h>

static const struct ulp_diff_options with_history = {.history = 1};
static const struct ulp_apply_options remember = {.remember = 1};

/* Three states, the first two of which are the same, and the patches between them; the second is
 * coded with the history that the first makes. */
struct still {
    struct disk disk; /* on disk the first state; its patch is not used */
    struct bytes bytes[2];
    struct ulp_patch *step, *after;
};

static struct still still_make(void) {
    struct still still = {.disk = disk_make(DISK_SHARDS, 30)};
    struct ulp_weights *weights = weights_of(&still.disk.base);
    struct ulp_patch_info info;

    still.bytes[0] = patch_to(weights, &still.disk.base, NULL);
    assert_ok(
        ulp_weights_remember(weights, still.disk.base.tensors, still.disk.base.count, NULL, NULL));
    still.bytes[1] = patch_to(weights, &still.disk.next, &with_history);
    still.step = open_bytes(&still.bytes[0]);
    still.after = open_bytes(&still.bytes[1]);
    ulp_patch_info(still.step, &info);
    assert_int_equal(info.changed, 0);
    assert_same_root(&info.parent, &info.child);
    ulp_patch_info(still.after, &info);
    assert_true(info.history);
    ulp_weights_free(weights);
    return still;
}

static void still_free(struct still *still) {
    ulp_patch_free(still->step);
    ulp_patch_free(still->after);
    bytes_free(&still->bytes[0]);
    bytes_free(&still->bytes[1]);
    disk_free(&still->disk);
}

static void test_it_is_remembered(void **unused) {
    struct still still = still_make();
    struct state live = state_copy(&still.disk.base);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_apply_report report;
    struct ulp_root before;

    (void)unused;
    assert_fails(ulp_apply(weights, still.after, &remember, NULL), ULP_E_NEEDS_HISTORY, "");
    assert_ok(ulp_apply(weights, still.step, &remember, &report));
    assert_false(report.already);
    assert_int_equal(report.changed, 0);
    assert_int_equal(ulp_weights_remembers(weights, &before), 1);
    assert_same_root(&before, &still.disk.base_root);
    assert_ok(ulp_apply(weights, still.after, &remember, &report));
    assert_same_state(&live, &still.disk.next);
    assert_root_of(weights, &still.disk.next);
    ulp_weights_free(weights);
    state_free(&live);
    still_free(&still);
}

/* As a replay would: the moves that were remembered before are not those of the last step any
 * more. */
static void test_it_replaces_what_was_remembered(void **unused) {
    struct still still = still_make();
    struct state live = state_copy(&still.disk.base);
    struct ulp_weights *weights = weights_of(&live);

    (void)unused;
    assert_ok(
        ulp_weights_remember(weights, still.disk.next.tensors, still.disk.next.count, NULL, NULL));
    assert_fails(ulp_apply(weights, still.after, NULL, NULL), ULP_E_NEEDS_HISTORY, "");
    assert_ok(ulp_apply(weights, still.step, &remember, NULL));
    assert_ok(ulp_apply(weights, still.after, NULL, NULL));
    assert_same_state(&live, &still.disk.next);
    ulp_weights_free(weights);
    state_free(&live);
    still_free(&still);
}

static void test_on_disk(void **unused) {
    struct still still = still_make();
    const struct path same = path_of(still.disk.top, "same"), out = path_of(still.disk.top, "out");
    struct ulp_apply_report report;
    struct ulp_model *before = NULL;

    (void)unused;
    assert_ok(ulp_model_patch(still.disk.model, still.step, NULL, same.text, &remember, &report));
    assert_false(report.already);
    assert_holds_root(same.text, &still.disk.base_root);
    assert_ok(ulp_model_open(still.disk.model, &before));
    assert_ok(ulp_model_patch(same.text, still.after, before, out.text, NULL, NULL));
    assert_holds_root(out.text, &still.disk.next_root);
    assert_ok(ulp_model_patch_in_place(same.text, still.step, NULL, NULL, &report));
    assert_false(report.already);
    assert_holds_root(same.text, &still.disk.base_root);
    assert_ok(ulp_model_patch_in_place(same.text, still.after, before, NULL, NULL));
    assert_holds_root(same.text, &still.disk.next_root);
    ulp_model_free(before);
    still_free(&still);
}

/* A journal without a single block is finished like any other. */
static void test_interrupted(void **unused) {
    struct still still = still_make();
    struct ulp_weights *weights = weights_of(&still.disk.base);
    struct ulp_apply *apply = NULL;
    int recovered = 0;

    (void)unused;
    assert_ok(ulp_apply_prepare(weights, still.step, NULL, &apply));
    assert_ok(journal_write(journal_of(&still.disk).text, apply));
    ulp_apply_free(apply);
    ulp_weights_free(weights);
    assert_ok(ulp_model_recover(still.disk.model, &recovered));
    assert_int_equal(recovered, 1);
    assert_int_equal(access(journal_of(&still.disk).text, F_OK), -1);
    assert_holds_root(still.disk.model, &still.disk.base_root);
    still_free(&still);
}

/* ---- already there ---- */

/* Prepared when the weights were at its child; then they went on. */
static void test_already_is_true_at_commit(void **unused) {
    struct disk disk = disk_make(1, 30);
    struct state third = state_copy(&disk.next), live = state_copy(&disk.next);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_apply *apply = NULL;
    struct ulp_apply_report report;
    struct bytes bytes;
    struct ulp_patch *on;

    (void)unused;
    state_step(&third, 30);
    bytes = patch_to(weights, &third, NULL);
    on = open_bytes(&bytes);
    assert_ok(ulp_apply_prepare(weights, disk.patch, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, &report));
    assert_true(report.already);
    ulp_apply_free(apply);
    assert_ok(ulp_apply_prepare(weights, disk.patch, NULL, &apply));
    assert_ok(ulp_apply(weights, on, NULL, NULL));
    assert_fails(ulp_apply_commit(apply, NULL, &report), ULP_E_WRONG_BASE, "have changed since");
    assert_same_state(&live, &third);
    assert_root_of(weights, &third);
    ulp_apply_free(apply);
    ulp_patch_free(on);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    state_free(&live);
    state_free(&third);
    disk_free(&disk);
}

TEST_MAIN(test_it_is_remembered, test_it_replaces_what_was_remembered, test_on_disk,
          test_interrupted, test_already_is_true_at_commit)
