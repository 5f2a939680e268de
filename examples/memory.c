// SPDX-License-Identifier: Apache-2.0
/* Weights in memory: name them, digest them, write them as a safetensors file: memory FILE */
#include <stdint.h>
#include <stdio.h>
#include <ulpsync/ulpsync.h>

int main(int argc, char **argv) {
    static uint16_t weight[2][3] = {{0x3f80, 0x4000, 0x4040}, {0xbf80, 0x8000, 0x7fc0}};
    static uint64_t shape[2] = {2, 3};
    struct ulp_tensor tensor = {
        .name = "layer.weight", .dtype = "BF16", .shape = shape, .rank = 2, .data = weight};
    struct ulp_text_pair metadata = {"format", "pt"};
    struct ulp_writer *writer = NULL;
    struct ulp_root root;
    char hex[ULP_ROOT_HEX_BYTES];
    enum ulp_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: memory FILE\n");
        return ULP_E_USAGE;
    }
    status = ulp_tensor_measure(&tensor); /* fills in bits, elements, bytes */
    if (!status)
        status = ulp_state_digest(&tensor, 1, NULL, NULL, NULL, &root);
    if (!status)
        status = ulp_writer_create(argv[1], &tensor, 1, &metadata, 1, &writer);
    if (!status)
        status = ulp_writer_put(writer, 0, 0, tensor.data, tensor.bytes);
    if (!status)
        status = ulp_writer_commit(writer, ULP_COMMIT_REPLACE); /* only now the file appears */
    if (status) {
        fprintf(stderr, "%s\n", ulp_last_error());
    } else {
        ulp_root_hex(&root, hex);
        printf("%s\n", hex);
    }
    ulp_writer_free(writer);
    return (int)status;
}
