// SPDX-License-Identifier: Apache-2.0
/* The root digest of a model on disk: digest MODEL */
#include <stdio.h>
#include <ulpsync/ulpsync.h>

int main(int argc, char **argv) {
    struct ulp_model *model = NULL;
    struct ulp_pool *pool = NULL;
    struct ulp_root root;
    char hex[ULP_ROOT_HEX_BYTES];
    enum ulp_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: digest MODEL\n");
        return ULP_E_USAGE;
    }
    status = ulp_model_open(argv[1], &model);
    if (!status)
        status = ulp_pool_new(0, &pool); /* one thread per CPU */
    if (!status)
        status = ulp_state_digest(ulp_model_tensors(model), ulp_model_count(model), pool, NULL,
                                  NULL, &root);
    if (status) {
        fprintf(stderr, "%s\n", ulp_last_error());
    } else {
        ulp_root_hex(&root, hex);
        printf("%s\n", hex);
    }
    ulp_pool_free(pool);
    ulp_model_free(model);
    return (int)status;
}
