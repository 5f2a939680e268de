// SPDX-License-Identifier: Apache-2.0
#include "cuda/memory.cuh"

enum ulp_status cuda_status(cudaError_t error, const char *doing) {
    if (error == cudaSuccess)
        return ULP_OK;
    return ulp_fail(error == cudaErrorMemoryAllocation ? ULP_E_NOMEM : ULP_E_DEVICE, "%s: the GPU says: %s", doing,
                    cudaGetErrorString(error));
}
