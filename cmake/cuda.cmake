# SPDX-License-Identifier: Apache-2.0
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "ULPSYNC_CUDA is ON, which needs nvcc: install the CUDA toolkit and put nvcc on "
                        "the PATH, or configure with -DULPSYNC_CUDA=OFF")
endif()
# Ampere, Hopper, and what comes after through PTX.
if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
endif()
enable_language(CUDA)
add_subdirectory(src/cuda)
add_subdirectory(tests/gpu)
