// SPDX-License-Identifier: Apache-2.0
/*
 * A worker that is busy: all the work is done ahead, beside the running model; the pause is the
 * short commit; and if the new weights do no good, undo brings the old ones back. The patch never
 * touches disk.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

#define ELEMENTS 65536

/* What came over the network. */
static uint8_t bytes[ELEMENTS * 4];
static size_t received;

static enum ulp_status receive(void *user, const void *data, size_t count) {
    (void)user;
    if (count > sizeof bytes - received)
        return ulp_fail(ULP_E_LIMIT, "more bytes than expected");
    memcpy(bytes + received, data, count);
    received += count;
    return ULP_OK;
}

int main(void) {
    static uint32_t live[ELEMENTS], new[ELEMENTS];
    static const uint64_t shape[] = {256, 256};
    struct ulp_tensor now = {"w", "F32", shape, 2, 0, 0, 0, live}, next = now;
    struct ulp_sink network = {receive, NULL};
    struct ulp_apply_options options = {.remember = 1}; /* the next patch may use history */
    struct ulp_weights *weights = NULL;
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    struct ulp_apply_report report;

    next.data = new;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        live[i] = UINT32_C(0x3d000000) + i * 97, new[i] = live[i] + (i % 64 == 0);
    if (ulp_tensor_measure(&now) || ulp_tensor_measure(&next) ||
        ulp_weights_new(&now, 1, NULL, NULL, &weights) ||
        ulp_diff(weights, &next, 1, NULL, &network, NULL) || /* elsewhere, of course */
        ulp_patch_open_memory(bytes, received, &patch) ||
        ulp_apply_prepare(weights, patch, &options, &apply) || /* `live` is used meanwhile */
        ulp_apply_commit(apply, NULL, &report)) {              /* only this needs a pause */
        fprintf(stderr, "%s\n", ulp_last_error());
        return 1;
    }
    printf("%llu weights of %zu bytes of patch, written in %.6f s\n",
           (unsigned long long)report.changed, received, report.write_seconds);
    if (memcmp(live, new, sizeof live) != 0 || ulp_apply_undo(apply) || live[64] == new[64])
        return 1;
    puts("undone: the old weights are back");
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    ulp_weights_free(weights);
    return 0;
}
