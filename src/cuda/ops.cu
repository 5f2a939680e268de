// SPDX-License-Identifier: Apache-2.0
#include "cuda/ops.h"

#include "cuda/memory.cuh"

static enum ulp_status memory_new(size_t bytes, void **ret_memory) {
    return cuda_status(cudaMalloc(ret_memory, bytes ? bytes : 1), "taking device memory");
}

static void memory_free(void *memory) {
    cudaFree(memory);
}

static enum ulp_status host_new(size_t bytes, void **ret_memory) {
    return cuda_status(cudaMallocHost(ret_memory, bytes ? bytes : 1), "taking pinned memory");
}

static void host_free(void *memory) {
    if (memory)
        cudaFreeHost(memory);
}

static enum ulp_status copy(void *to, const void *from, size_t bytes, void *stream) {
    return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream), "copying");
}

static enum ulp_status zero(void *memory, size_t bytes, void *stream) {
    return cuda_status(cudaMemsetAsync(memory, 0, bytes, (cudaStream_t)stream), "clearing device memory");
}

static enum ulp_status wait(void *stream) {
    return cuda_status(cudaStreamSynchronize((cudaStream_t)stream), "waiting for the GPU");
}

extern "C" enum ulp_status ulp_cuda_ops(const struct cuda_ops **ret_ops) {
    static const struct cuda_ops ops = {
        CUDA_OPS_VERSION, memory_new,        memory_free,       host_new,           host_free,        copy,
        zero,             wait,              cuda_encoder_new,  cuda_encoder_free,  cuda_encoder_bytes, cuda_encoder_run,
    };
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);

    if (error != cudaSuccess || !devices)
        return ulp_fail(ULP_E_DEVICE, "no GPU can be used: %s",
                        error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
    *ret_ops = &ops;
    return ULP_OK;
}
