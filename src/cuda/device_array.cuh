// SPDX-License-Identifier: Apache-2.0
// Device memory for some things of one type; released with its owner.
#pragma once

#include "cuda/status.cuh"

#include <cstddef>

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
        enum ulp_status status = cuda_status(cudaMalloc(&data, wanted * sizeof(T)));

        if (status == ULP_OK)
            count = wanted;
        return status;
    }
};
