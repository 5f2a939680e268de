// SPDX-License-Identifier: Apache-2.0
// What CUDA says, as a status; its text is kept for cuda_error_text().
#pragma once

#include "cuda/device.cuh"
#include "cuda/memory.h"

enum ulp_status cuda_status(cudaError_t error);
