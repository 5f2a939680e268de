// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader.h"

#include "base/quote.h"
#include "base/status.h"
#include "cuda/table.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifndef ULPSYNC_CUDA_LIBRARY
#define ULPSYNC_CUDA_LIBRARY "libulpsync_cuda.so"
#endif

/* Where else to look, for who did not install it. */
#define LIBRARY_VARIABLE "ULPSYNC_CUDA_LIBRARY"

static _Atomic(const struct cuda_table *) table;

static enum ulp_status find_table(const char *path, const struct cuda_table **ret_table) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    union {
        void *object;
        cuda_table_fn function;
    } symbol = {NULL};

    if (!library)
        return fail(ULP_E_DEVICE,
                    "cannot load %s (%s); it is built with -DULPSYNC_CUDA=ON, and " LIBRARY_VARIABLE
                    " may say where it is",
                    quote(path).text, quote(dlerror()).text);
    symbol.object = dlsym(library, CUDA_TABLE_FUNCTION);
    if (!symbol.object)
        return fail(ULP_E_DEVICE, "%s is another library", quote(path).text);
    *ret_table = symbol.function();
    if ((*ret_table)->version != CUDA_TABLE_VERSION || (*ret_table)->bytes != sizeof **ret_table)
        return fail(ULP_E_DEVICE, "%s is of another build than this library: install both together",
                    quote(path).text);
    return ULP_OK;
}

/* What was loaded stays: it is in use. Threads that come here at once find the same. */
enum ulp_status cuda_load(void) {
    const struct cuda_table *found = NULL;
    const char *path = getenv(LIBRARY_VARIABLE);
    enum ulp_status status;

    if (atomic_load(&table))
        return ULP_OK;
    status = find_table(path && *path ? path : ULPSYNC_CUDA_LIBRARY, &found);
    if (!status && found->find_device())
        status = fail(ULP_E_DEVICE, "no GPU can be used: %s", found->error_text());
    if (!status)
        atomic_store(&table, found);
    return status;
}

#define CUDA_FORWARD(type, name, parameters, arguments, give)                                      \
    type cuda_##name parameters {                                                                  \
        give atomic_load(&table)->name arguments;                                                  \
    }
CUDA_CALLS(CUDA_FORWARD)
