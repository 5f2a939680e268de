// SPDX-License-Identifier: Apache-2.0
/* Two states in memory: a patch from one to the other, and its way back in: diff_apply FILE */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

#define ELEMENTS 4096

/* The trainer: the patch from the last published weights to the new ones. */
static enum ulp_status publish(const struct ulp_tensor *old, const struct ulp_tensor *new,
                               const char *path) {
    struct ulp_weights *weights = NULL;
    struct ulp_diff_report report;
    enum ulp_status status = ulp_weights_new(old, 1, NULL, NULL, &weights);

    if (!status)
        status = ulp_diff_file(weights, new, 1, NULL, path, ULP_COMMIT_REPLACE, &report);
    if (!status)
        printf("%.0f changes, %.0f bytes\n", (double)report.changed, (double)report.patch_bytes);
    ulp_weights_free(weights);
    return status;
}

/* The worker, with the same old weights: nothing is written unless everything fits. */
static enum ulp_status follow(const struct ulp_tensor *mine, const char *path) {
    struct ulp_weights *weights = NULL;
    struct ulp_patch *patch = NULL;
    enum ulp_status status = ulp_weights_new(mine, 1, NULL, NULL, &weights);

    if (!status)
        status = ulp_patch_open(path, &patch);
    if (!status)
        status = ulp_apply(weights, patch, NULL, NULL);
    ulp_patch_free(patch);
    ulp_weights_free(weights);
    return status;
}

int main(int argc, char **argv) {
    static uint16_t old[ELEMENTS], new[ELEMENTS], mine[ELEMENTS];
    static const uint64_t shape[] = {ELEMENTS};
    struct ulp_tensor a = {"w", "BF16", shape, 1, 0, 0, 0, old}, b = a, c = a;
    struct ulp_root roots[2];

    b.data = new;
    c.data = mine;
    for (unsigned i = 0; i < ELEMENTS; i++) /* one weight in a hundred moves by one ulp */
        mine[i] = old[i] = (uint16_t)(0x3c00 + i % 512), new[i] = (uint16_t)(old[i] + !(i % 100));
    if (argc != 2 || ulp_tensor_measure(&a) || ulp_tensor_measure(&b) || ulp_tensor_measure(&c) ||
        publish(&a, &b, argv[1]) || follow(&c, argv[1]) ||
        ulp_state_digest(&b, 1, NULL, NULL, NULL, &roots[0]) ||
        ulp_state_digest(&c, 1, NULL, NULL, NULL, &roots[1])) {
        fprintf(stderr, "diff_apply FILE: %s\n", ulp_last_error());
        return 1;
    }
    puts(memcmp(&roots[0], &roots[1], sizeof roots[0]) ? "roots differ" : "roots are equal");
    return memcmp(new, mine, sizeof new) != 0;
}
