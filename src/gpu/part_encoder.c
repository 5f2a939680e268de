// SPDX-License-Identifier: Apache-2.0
#include "gpu/part_encoder.h"

#include "base/memory.h"

#include <string.h>

static bool same_kind(struct code_kind a, struct code_kind b) {
    return a.width == b.width && a.exponent_shift == b.exponent_shift &&
           a.exponent_bits == b.exponent_bits && a.lowest == b.lowest;
}

static bool fits(const struct part_encoder *kept, const struct device_plan *plan) {
    if (!kept->encoder || kept->counts.segment_count != plan->device.segment_count ||
        kept->counts.block_count != plan->device.block_count ||
        kept->counts.piece_count != plan->device.piece_count)
        return false;
    for (uint32_t i = 0; i < plan->device.segment_count; i++) {
        if (kept->segments[i].blocks != plan->segments[i].blocks ||
            !same_kind(kept->segments[i].kind, plan->segments[i].kind))
            return false;
    }
    for (uint32_t i = 0; i < plan->device.block_count; i++) {
        if (kept->elements[i] != plan->blocks[i].elements)
            return false;
    }
    return true;
}

/* What it is made for. */
static enum ulp_status remember(struct part_encoder *kept, const struct device_plan *plan) {
    enum ulp_status status =
        mem_zeroed(plan->device.segment_count, sizeof *kept->segments, &kept->segments);

    if (!status)
        status = mem_zeroed(plan->device.block_count, sizeof *kept->elements, &kept->elements);
    if (status)
        return status;
    if (plan->device.segment_count)
        memcpy(kept->segments, plan->segments, plan->device.segment_count * sizeof *kept->segments);
    for (uint32_t i = 0; i < plan->device.block_count; i++)
        kept->elements[i] = plan->blocks[i].elements;
    kept->counts = plan->device;
    return ULP_OK;
}

static void release(struct part_encoder *kept) {
    cuda_encoder_free(kept->encoder);
    mem_free(kept->segments);
    mem_free(kept->elements);
    *kept = (struct part_encoder){0};
}

static enum ulp_status make(struct part_encoder *kept, const struct device_plan *plan) {
    const struct cuda_plan here = {plan->segments, plan->blocks, plan->device.segment_count,
                                   plan->device.block_count, plan->device.piece_count};
    enum ulp_status status = remember(kept, plan);

    if (!status)
        status = device_status(cuda_encoder_new(&here, NULL, &kept->encoder), "making an encoder");
    if (status)
        release(kept);
    return status;
}

/* A place in the list that is free. */
static enum ulp_status find_free(struct part_encoders *kept, struct part_encoder **ret_free) {
    struct part_encoder *list = NULL;
    enum ulp_status status;

    for (size_t i = 0; i < kept->count; i++) {
        if (!kept->list[i].encoder) {
            *ret_free = &kept->list[i];
            return ULP_OK;
        }
    }
    status = mem_zeroed(kept->count + 1, sizeof *list, &list);
    if (status)
        return status;
    if (kept->count)
        memcpy(list, kept->list, kept->count * sizeof *list);
    mem_free(kept->list);
    kept->list = list;
    *ret_free = &list[kept->count++];
    return ULP_OK;
}

enum ulp_status part_encoder_for(struct part_encoders *kept, const struct device_plan *plan,
                                 struct cuda_encoder **ret_encoder) {
    struct part_encoder *found = NULL;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; i < kept->count && !found; i++) {
        if (fits(&kept->list[i], plan))
            found = &kept->list[i];
    }
    if (!found) {
        status = find_free(kept, &found);
        if (!status)
            status = make(found, plan);
    }
    if (!status) {
        found->used = kept->patches;
        *ret_encoder = found->encoder;
    }
    return status;
}

void part_encoders_next(struct part_encoders *kept) {
    kept->patches++;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->list[i].used + PART_ENCODER_PATCHES < kept->patches)
            release(&kept->list[i]);
    }
}

void part_encoders_release(struct part_encoders *kept) {
    for (size_t i = 0; i < kept->count; i++)
        release(&kept->list[i]);
    mem_free(kept->list);
    *kept = (struct part_encoders){0};
}
