// SPDX-License-Identifier: Apache-2.0
// Device memory, and what CUDA says when something is wrong.
#pragma once

#include "cuda/device.cuh"

#include <cstddef>
#include <ulpsync/status.h>

// ULP_OK, or the status for what went wrong, with a message.
enum ulp_status cuda_status(cudaError_t error, const char *doing);

// Some things of one type; released with its owner.
template <typename T> struct DeviceArray {
    T *data = nullptr;
    size_t count = 0;

    DeviceArray() = default;
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;
    ~DeviceArray() { release(); }

    void release() {
        cudaFree(data);
        data = nullptr;
        count = 0;
    }

    size_t bytes() const { return count * sizeof(T); }

    // What was there is not kept.
    enum ulp_status reserve(size_t wanted) {
        if (wanted <= count)
            return ULP_OK;
        release();
        enum ulp_status status = cuda_status(cudaMalloc(&data, wanted * sizeof(T)), "taking device memory");

        if (status == ULP_OK)
            count = wanted;
        return status;
    }
};
