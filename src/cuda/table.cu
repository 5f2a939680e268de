// SPDX-License-Identifier: Apache-2.0
#include "cuda/table.h"

extern "C" __attribute__((visibility("default"))) const struct cuda_table *ulpsync_cuda_table(void) {
#define CUDA_ENTRY(type, name, parameters, arguments, give) cuda_##name,
    static const struct cuda_table table = {CUDA_TABLE_VERSION, sizeof table, CUDA_CALLS(CUDA_ENTRY)};
#undef CUDA_ENTRY

    return &table;
}
