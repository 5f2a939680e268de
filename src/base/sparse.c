// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "base/sparse.h"

#include <sys/mman.h>

enum ulp_status sparse_take(struct sparse *ret_sparse, size_t bytes) {
    void *data;

    if (!bytes) {
        *ret_sparse = (struct sparse){0};
        return ULP_OK;
    }
    data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    if (data == MAP_FAILED)
        return fail(ULP_E_NOMEM, "the system gives no address space for %zu bytes", bytes);
    *ret_sparse = (struct sparse){data, bytes};
    return ULP_OK;
}

void sparse_release(struct sparse *sparse) {
    if (sparse->data)
        munmap(sparse->data, sparse->bytes);
    *sparse = (struct sparse){0};
}
