// SPDX-License-Identifier: Apache-2.0
/* A chunk that fails stops those behind it alone: so the failure that is reported is its own. */
#include "tests/patch/state.h"

#include "patch/diff.h"

static const struct form forms[] = {
    {"a", "BF16", {10}, 1, 0}, {"b", "F32", {10}, 1, 0}, {"c", "U8", {10}, 1, 0}};

static enum ulp_status count_bytes(void *user, const void *data, size_t bytes) {
    (void)data;
    *(size_t *)user += bytes;
    return ULP_OK;
}

static void test_chunks_in_front_of_a_failure_go_out(void **unused) {
    struct state state = state_make(forms, COUNT(forms), 0);
    struct ulp_weights *weights = weights_of(&state);
    struct patch_output output;
    struct table table = {0};
    size_t written = 0;
    const struct ulp_sink sink = {count_bytes, &written};

    (void)unused;
    assert_ok(table_for(weights, NULL, 0, &table));
    assert_int_equal(table.grid.chunk_count, 3);
    assert_ok(output_begin(&sink, &table, &output));
    output_fail(&output, 2);
    output_fail(&output, 1);
    output_fail(&output, 2);
    assert_ok(output_chunk(&output, 0, "12345", 5, 1));
    assert_int_equal(written, PATCH_HEADER_BYTES + 5);
    assert_fails(output_chunk(&output, 2, "12345", 5, 1), ULP_E_CANCELLED, "another chunk failed");
    assert_int_equal(written, PATCH_HEADER_BYTES + 5);
    output_release(&output);
    ulp_weights_free(weights);
    state_free(&state);
}

TEST_MAIN(test_chunks_in_front_of_a_failure_go_out)
