// SPDX-License-Identifier: Apache-2.0
/*
 * All that libulpsync asks of a GPU, as one table: libulpsync_cuda.so exports a function that returns
 * it, and is loaded when somebody first uses <ulpsync/cuda.h>. Streams are cudaStream_t; all work of a
 * call is enqueued on its stream, and is done when a function says that it waits.
 */
#ifndef CUDA_OPS_H
#define CUDA_OPS_H

#include "cuda/encode.h"

/* Both sides must agree on all of this; it grows with every change of the table. */
#define CUDA_OPS_VERSION 1u

struct cuda_ops {
    uint32_t version;

    /* Device memory, and memory of the host that copies run to at full speed. */
    enum ulp_status (*memory_new)(size_t bytes, void **ret_memory);
    void (*memory_free)(void *memory);
    enum ulp_status (*host_new)(size_t bytes, void **ret_memory);
    void (*host_free)(void *memory);
    enum ulp_status (*copy)(void *to, const void *from, size_t bytes, void *stream); /* either way */
    enum ulp_status (*zero)(void *memory, size_t bytes, void *stream);
    enum ulp_status (*wait)(void *stream);

    enum ulp_status (*encoder_new)(const struct cuda_plan *plan,
                                   const struct cuda_encoder_options *options,
                                   struct cuda_encoder **ret_encoder);
    void (*encoder_free)(struct cuda_encoder *encoder);
    size_t (*encoder_bytes)(const struct cuda_encoder *encoder);
    enum ulp_status (*encoder_run)(struct cuda_encoder *encoder, const struct cuda_block *blocks,
                                   const struct cuda_moves *moves, uint64_t *sums, void *stream,
                                   struct cuda_segment_report *ret_reports,
                                   const uint8_t **ret_output);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The table; ULP_E_DEVICE where there is no GPU. */
enum ulp_status ulp_cuda_ops(const struct cuda_ops **ret_ops);

#ifdef __cplusplus
}
#endif

#endif
