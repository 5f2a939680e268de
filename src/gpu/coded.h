// SPDX-License-Identifier: Apache-2.0
/*
 * The chunks of a patch as the device wants them: what their headers and directories say, as the
 * arrays of cuda/decode.h, made in the host's memory and copied in one go. First everything is
 * measured, then there is room for it, then it is filled in.
 */
#ifndef GPU_CODED_H
#define GPU_CODED_H

#include "code/segment.h"
#include "gpu/device_weights.h"
#include "patch/decode.h"
#include "patch/patch.h"

/* A chunk of a patch, which is the segment of that number in the plan. */
struct coded_chunk {
    uint32_t part;                /* which of the patches */
    size_t number;                /* in that patch */
    size_t at;                    /* where its bytes are, of all that go to the device */
    struct code_segment *segment; /* parsed, of those bytes; NULL: it has none */
    bool on_host;                 /* plain or dense: decoded by the CPU, into ... */
    struct decoded_chunk decoded; /* ... this */
    uint64_t first, values;       /* where its changes and their values are */
};

struct coded_sizes {
    uint32_t models, segments, counts, blocks;
    uint64_t shares, changes, value_bytes;
    struct decode_range ranges[DECODE_WIDTHS];
};

/* The arrays that are filled in here and copied there, and where each begins in both. */
struct coded_arrays {
    size_t models, shares, segments, blocks, counts;
    size_t bytes; /* of all */
};

/* ULP_E_CODE for payloads that are longer than any can be; ULP_E_LIMIT for too much of anything.
 * Chunks that the host decodes have been. Sets `first` and `values` of the chunks. */
enum ulp_status coded_measure(const struct device_plan *plan, struct coded_chunk *chunks,
                              struct coded_sizes *ret_sizes);

struct coded_arrays coded_layout(const struct coded_sizes *sizes);

/* `payload` is where the bytes of all chunks begin in memory; `moves` is NULL without history. */
void coded_fill(const struct device_plan *plan, const struct coded_chunk *chunks,
                const struct coded_sizes *sizes, const struct coded_arrays *arrays,
                const uint8_t *payload, const struct device_moves *moves, uint8_t *to);

#endif
