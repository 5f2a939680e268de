# SPDX-License-Identifier: Apache-2.0
# Compiled by nvcc for GPUs, and by a C++ compiler for tests/gpu/emulate.
set(cuda_sources
    digest.cu
    encode_classes.cu
    encode_models.cu
    encode_payload.cu
    encode_scan.cu
    encode_segment.cu
    encode_sort.cu
    encoder.cu
    memory.cu
    ops.cu)
