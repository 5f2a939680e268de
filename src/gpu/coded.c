// SPDX-License-Identifier: Apache-2.0
#include "gpu/coded.h"

#include <string.h>

_Static_assert(DECODE_CLASSES == CLASSES_MAX, "classes");
_Static_assert(DECODE_BLOCK_MAX == CODE_BLOCK_MAX,
               "elements of a block"); /* NOLINT: that they are equal is the point */
_Static_assert(DECODE_STATES == TANS_STATES, "states");
_Static_assert(DECODE_GAP_SYMBOLS == GAP_SYMBOLS, "gaps");
_Static_assert(DECODE_VALUE_SYMBOLS == VALUE_SYMBOLS, "values");

static uint32_t log2_width(struct code_kind kind) {
    return (uint32_t)__builtin_ctz(kind.width);
}

/* A block without bytes has no changes. But where classes are flipped it must not have elements of
 * those either, and only the scan can tell. */
static bool is_decoded(const struct stream_header *header, const struct block_entry *entry) {
    return entry->bytes || header->map.flipped < header->map.count;
}

/* ---- measuring ---- */

static enum ulp_status measure_coded(const struct cuda_segment *chunk, struct coded_chunk *coded,
                                     struct coded_sizes *sizes) {
    const struct stream_header *header = code_header(coded->segment);
    const uint32_t classes = header->map.count;

    for (uint32_t k = 0; k < classes; k++) {
        sizes->models += header->models[k].used + header->models[k].changes;
        sizes->shares += header->models[k].changes ? header->models[k].top_value + 1u : 0;
    }
    for (size_t b = 0; b < chunk->blocks; b++) {
        const struct block_entry *entry = code_entry(coded->segment, b);

        if (entry->bytes > DECODE_PAYLOAD_MAX)
            return fail(ULP_E_CODE, "a block is damaged: its payload is too long or too short");
        if (!is_decoded(header, entry))
            continue;
        sizes->ranges[log2_width(chunk->kind)].coded++;
        sizes->counts += 2 * classes;
        sizes->changes += block_changes(entry, classes);
    }
    sizes->segments++;
    return ULP_OK;
}

static void measure_decoded(const struct cuda_segment *chunk, const struct coded_chunk *coded,
                            struct coded_sizes *sizes) {
    for (size_t b = 0; b < chunk->blocks; b++)
        sizes->ranges[log2_width(chunk->kind)].all += coded->decoded.counts[b] != 0;
    sizes->changes += coded->decoded.changes;
}

/* Until here `all` has counted the blocks of the host. */
static void order_ranges(struct coded_sizes *sizes) {
    for (uint32_t w = 0; w < DECODE_WIDTHS; w++) {
        sizes->ranges[w].first = sizes->blocks;
        sizes->ranges[w].all += sizes->ranges[w].coded;
        sizes->blocks += sizes->ranges[w].all;
    }
}

enum ulp_status coded_measure(const struct device_plan *plan, struct coded_chunk *chunks,
                              struct coded_sizes *ret_sizes) {
    struct coded_sizes sizes = {0};
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; i < plan->device.segment_count && !status; i++) {
        const uint64_t changes = sizes.changes;

        if (!chunks[i].segment)
            continue;
        chunks[i].first = changes;
        chunks[i].values = sizes.value_bytes;
        if (chunks[i].on_host)
            measure_decoded(&plan->segments[i], &chunks[i], &sizes);
        else
            status = measure_coded(&plan->segments[i], &chunks[i], &sizes);
        sizes.value_bytes += ((sizes.changes - changes) * plan->segments[i].kind.width + 7) / 8 * 8;
        if (!status && sizes.counts > UINT32_MAX / 2)
            status = fail(ULP_E_LIMIT, "a patch of too many blocks for one device");
    }
    if (!status) {
        order_ranges(&sizes);
        *ret_sizes = sizes;
    }
    return status;
}

struct coded_arrays coded_layout(const struct coded_sizes *sizes) {
    struct coded_arrays arrays = {0};

    arrays.models = room_place(&arrays.bytes, sizes->models, sizeof(struct decode_model));
    arrays.shares = room_place(&arrays.bytes, (size_t)sizes->shares, sizeof(uint16_t));
    arrays.segments = room_place(&arrays.bytes, sizes->segments, sizeof(struct decode_segment));
    arrays.blocks = room_place(&arrays.bytes, sizes->blocks, sizeof(struct decode_block));
    arrays.counts = room_place(&arrays.bytes, sizes->counts, sizeof(uint32_t));
    return arrays;
}

/* ---- filling in ---- */

/* What is written next. */
struct filling {
    const struct device_plan *plan;
    const struct device_moves *moves;
    const uint8_t *payload;
    struct decode_model *models;
    uint16_t *shares;
    struct decode_segment *segments;
    struct decode_block *blocks;
    uint32_t *counts;
    uint32_t model, share, segment, count;
    uint32_t coded[DECODE_WIDTHS], decoded[DECODE_WIDTHS]; /* blocks */
};

static void fill_models(struct filling *to, const struct stream_header *header,
                        struct decode_segment *segment) {
    for (uint32_t k = 0; k < header->map.count; k++) {
        const struct class_model *model = &header->models[k];

        if (model->used) {
            segment->gap_table[k] = to->model;
            to->models[to->model++] =
                (struct decode_model){.rate = model->rate, .top = model->top_gap, .gaps = 1};
        }
        if (model->changes) {
            segment->value_table[k] = to->model;
            to->models[to->model++] =
                (struct decode_model){.shares = to->share, .top = model->top_value};
            memcpy(to->shares + to->share, model->values.share,
                   (model->top_value + 1u) * sizeof *to->shares);
            to->share += model->top_value + 1u;
        }
    }
}

static void fill_counts(struct filling *to, const struct block_entry *entry, uint32_t classes) {
    memcpy(to->counts + to->count, entry->events, classes * sizeof *to->counts);
    memcpy(to->counts + to->count + classes, entry->changes, classes * sizeof *to->counts);
    to->count += 2 * classes;
}

static void fill_coded(struct filling *to, size_t chunk, const struct coded_chunk *coded) {
    const struct cuda_segment *of_plan = &to->plan->segments[chunk];
    const struct stream_header *header = code_header(coded->segment);
    const bool history = header->coder == CODE_HISTORY && to->moves;
    struct decode_segment *segment = &to->segments[to->segment];
    uint64_t first = coded->first, values = coded->values;

    *segment = (struct decode_segment){
        .classes = header->map.count, .flipped = header->map.flipped, .kind = of_plan->kind};
    memcpy(segment->class_of, header->map.of, sizeof segment->class_of);
    fill_models(to, header, segment);
    for (uint32_t b = 0; b < of_plan->blocks; b++) {
        const struct block_entry *entry = code_entry(coded->segment, b);
        const uint32_t block = of_plan->first_block + b;
        const uint32_t changes = block_changes(entry, header->map.count);

        if (!is_decoded(header, entry))
            continue;
        to->blocks[to->coded[log2_width(of_plan->kind)]++] = (struct decode_block){
            .payload = (uint64_t)(code_payload(coded->segment, b) - to->payload),
            .payload_bytes = entry->bytes,
            .first = first,
            .values = values,
            .changes = changes,
            .moves = history ? to->moves->first[block] : 0,
            .move_count = history ? to->moves->count[block] : 0,
            .counts = to->count,
            .segment = to->segment,
            .block = block};
        fill_counts(to, entry, header->map.count);
        first += changes;
        values += (uint64_t)changes * of_plan->kind.width;
    }
    to->segment++;
}

static void fill_decoded(struct filling *to, size_t chunk, const struct coded_chunk *coded) {
    const struct cuda_segment *of_plan = &to->plan->segments[chunk];
    uint64_t first = coded->first, values = coded->values;

    for (uint32_t b = 0; b < of_plan->blocks; b++) {
        const uint32_t changes = coded->decoded.counts[b];

        if (!changes)
            continue;
        to->blocks[to->decoded[log2_width(of_plan->kind)]++] =
            (struct decode_block){.first = first,
                                  .values = values,
                                  .changes = changes,
                                  .block = of_plan->first_block + b};
        first += changes;
        values += (uint64_t)changes * of_plan->kind.width;
    }
}

void coded_fill(const struct device_plan *plan, const struct coded_chunk *chunks,
                const struct coded_sizes *sizes, const struct coded_arrays *arrays,
                const uint8_t *payload, const struct device_moves *moves, uint8_t *to) {
    struct filling filling = {.plan = plan,
                              .moves = moves,
                              .payload = payload,
                              .models = (struct decode_model *)(void *)(to + arrays->models),
                              .shares = (uint16_t *)(void *)(to + arrays->shares),
                              .segments = (struct decode_segment *)(void *)(to + arrays->segments),
                              .blocks = (struct decode_block *)(void *)(to + arrays->blocks),
                              .counts = (uint32_t *)(void *)(to + arrays->counts)};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++) {
        filling.coded[w] = sizes->ranges[w].first;
        filling.decoded[w] = sizes->ranges[w].first + sizes->ranges[w].coded;
    }
    for (size_t i = 0; i < plan->device.segment_count; i++) {
        if (chunks[i].segment && chunks[i].on_host)
            fill_decoded(&filling, i, &chunks[i]);
        else if (chunks[i].segment)
            fill_coded(&filling, i, &chunks[i]);
    }
}
