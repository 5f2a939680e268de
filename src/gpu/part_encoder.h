// SPDX-License-Identifier: Apache-2.0
/* Encoders of partial patches, kept for the next one of the same regions: their memory costs more to
 * take than a small patch does. */
#ifndef GPU_PART_ENCODER_H
#define GPU_PART_ENCODER_H

#include "cuda/encode.h"
#include "gpu/device_plan.h"

/* Those that none of so many patches needed are let go of. */
#define PART_ENCODER_PATCHES 4u

struct part_encoder {
    struct cuda_encoder *encoder;
    struct cuda_segment *segments; /* what it was made for */
    uint32_t *elements;            /* of each block */
    struct cuda_plan counts;       /* how many of everything */
    uint64_t used;                 /* by this patch */
};

/* Zeroed means none. */
struct part_encoders {
    struct part_encoder *list;
    size_t count;
    uint64_t patches; /* so far */
};

/* One for a plan like this, made or kept. */
enum ulp_status part_encoder_for(struct part_encoders *kept, const struct device_plan *plan,
                                 struct cuda_encoder **ret_encoder);

/* A patch is done. */
void part_encoders_next(struct part_encoders *kept);
void part_encoders_release(struct part_encoders *kept);

#endif
