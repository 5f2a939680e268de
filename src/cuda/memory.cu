// SPDX-License-Identifier: Apache-2.0
#include "cuda/memory.h"

#include "cuda/status.cuh"

static thread_local const char *error_text = "";

enum ulp_status cuda_status(cudaError_t error) {
    if (error == cudaSuccess)
        return ULP_OK;
    error_text = cudaGetErrorString(error);
    cudaGetLastError(); // it is told here, and not once more by the next launch, as if that had failed
    return error == cudaErrorMemoryAllocation ? ULP_E_NOMEM : ULP_E_DEVICE;
}

extern "C" const char *cuda_error_text(void) {
    return error_text;
}

extern "C" enum ulp_status cuda_find_device(void) {
    int devices = 0;
    enum ulp_status status = cuda_status(cudaGetDeviceCount(&devices));

    if (status || devices)
        return status ? ULP_E_DEVICE : ULP_OK;
    error_text = "there is none";
    return ULP_E_DEVICE;
}

extern "C" enum ulp_status cuda_memory_new(size_t bytes, void **ret_memory) {
    void *memory = nullptr;
    enum ulp_status status = cuda_status(cudaMalloc(&memory, bytes ? bytes : 1));

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
    enum ulp_status status = cuda_status(cudaMallocHost(&memory, bytes ? bytes : 1));

    if (!status)
        *ret_memory = memory;
    return status;
}

extern "C" void cuda_pinned_free(void *memory) {
    if (memory)
        cudaFreeHost(memory);
}

static bool pinned_at(const void *memory) {
    cudaPointerAttributes attributes = {};
    const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);

    if (error != cudaSuccess)
        cudaGetLastError(); // an address that CUDA does not know was an error once
    return error == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

extern "C" int cuda_is_pinned(const void *memory, size_t bytes) {
    return bytes && pinned_at(memory) && pinned_at((const uint8_t *)memory + bytes - 1);
}

extern "C" enum ulp_status cuda_stream_new(int first, void **ret_stream) {
    cudaStream_t stream = nullptr;
    int lowest = 0, highest = 0;

    cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    enum ulp_status status =
        cuda_status(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, first ? highest : lowest));

    if (!status)
        *ret_stream = stream;
    return status;
}

extern "C" void cuda_stream_free(void *stream) {
    if (stream)
        cudaStreamDestroy((cudaStream_t)stream);
}

extern "C" enum ulp_status cuda_copy_in(void *device, const void *host, size_t bytes,
                                        void *stream) {
    return cuda_status(cudaMemcpyAsync(device, host, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

extern "C" enum ulp_status cuda_copy_out(void *host, const void *device, size_t bytes,
                                         void *stream) {
    return cuda_status(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

extern "C" enum ulp_status cuda_clear(void *device, size_t bytes, void *stream) {
    return bytes ? cuda_status(cudaMemsetAsync(device, 0, bytes, (cudaStream_t)stream)) : ULP_OK;
}

__global__ static void store_word(volatile uint32_t *word, uint32_t value) {
    *word = value;
}

extern "C" enum ulp_status cuda_set_word(uint32_t *word, uint32_t value, void *stream) {
    launch(store_word, 1, 1, 0, (cudaStream_t)stream, word, value);
    return cuda_status(cudaGetLastError());
}

extern "C" enum ulp_status cuda_wait(void *stream) {
    return cuda_status(cudaStreamSynchronize((cudaStream_t)stream));
}
