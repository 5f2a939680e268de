// SPDX-License-Identifier: Apache-2.0
#include "cuda/memory.h"

#include "cuda/device.cuh"

static enum ulp_status status_of(cudaError_t error) {
    if (error == cudaSuccess)
        return ULP_OK;
    return error == cudaErrorMemoryAllocation ? ULP_E_NOMEM : ULP_E_UNSUPPORTED;
}

extern "C" enum ulp_status cuda_memory_new(size_t bytes, void **ret_memory) {
    void *memory = nullptr;
    enum ulp_status status = status_of(cudaMalloc(&memory, bytes ? bytes : 1));

    if (!status)
        *ret_memory = memory;
    return status;
}

extern "C" void cuda_memory_free(void *memory) {
    if (memory)
        cudaFree(memory);
}

extern "C" enum ulp_status cuda_pinned_new(size_t bytes, void **ret_memory) {
    void *memory = nullptr;
    enum ulp_status status = status_of(cudaMallocHost(&memory, bytes ? bytes : 1));

    if (!status)
        *ret_memory = memory;
    return status;
}

extern "C" void cuda_pinned_free(void *memory) {
    if (memory)
        cudaFreeHost(memory);
}

extern "C" enum ulp_status cuda_copy_in(void *device, const void *host, size_t bytes,
                                        void *stream) {
    return status_of(cudaMemcpyAsync(device, host, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

extern "C" enum ulp_status cuda_copy_out(void *host, const void *device, size_t bytes,
                                         void *stream) {
    return status_of(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

extern "C" enum ulp_status cuda_clear(void *device, size_t bytes, void *stream) {
    return bytes ? status_of(cudaMemsetAsync(device, 0, bytes, (cudaStream_t)stream)) : ULP_OK;
}

extern "C" enum ulp_status cuda_wait(void *stream) {
    return status_of(cudaStreamSynchronize((cudaStream_t)stream));
}
