# SPDX-License-Identifier: Apache-2.0
# Compiled by nvcc for GPUs, and by a C++ compiler for tests/gpu/emulated.
set(cuda_sources
    cast.cu
    decode_apply.cu
    decode_payload.cu
    decode_scan.cu
    decode_second.cu
    decode_tables.cu
    digest.cu
    digest_blocks.cu
    encode_classes.cu
    encode_models.cu
    encode_payload.cu
    encode_scan.cu
    encode_segment.cu
    encode_sort.cu
    encoder.cu
    encoder_waves.cu
    gather_blocks.cu
    journal.cu
    list_changes.cu
    memory.cu
    place.cu
    table.cu)
