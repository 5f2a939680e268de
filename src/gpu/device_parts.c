// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_parts.h"

#include "base/memory.h"
#include "base/quote.h"
#include "gpu/part_plan.h"
#include "patch/fit.h"

/* ---- where they go ---- */

static enum ulp_status find_pieces(struct device_parts *parts) {
    const struct grid *held = &parts->weights->weights->grid;
    enum ulp_status status = ULP_OK;

    if (held->whole)
        return grid_first_pieces(held, &parts->first_piece);
    status = mem_zeroed(parts->count, sizeof *parts->first_held, &parts->first_held);
    for (size_t i = 0; !status && i < parts->count; i++)
        status = grid_find_regions(held, &parts->patches[i]->table.grid, &parts->first_held[i]);
    return status;
}

static enum ulp_status plan_regions(struct device_parts *parts) {
    struct part_view view = {.count = parts->count,
                             .tensors = parts->weights->weights->tensors,
                             .pieces = parts->weights->weights->grid.piece_count};
    const struct grid **grids = NULL;
    enum ulp_status status = find_pieces(parts);

    if (!status)
        status = mem_zeroed(parts->count, sizeof *grids, &grids);
    if (!status) {
        for (size_t i = 0; i < parts->count; i++)
            grids[i] = &parts->patches[i]->table.grid;
        view.grids = grids;
        view.first_piece = parts->first_piece;
        view.first_held = parts->first_held;
        status = part_plan_make(&view, &parts->own);
    }
    parts->plan = &parts->own;
    mem_free(grids);
    return status;
}

enum ulp_status device_parts_make(struct device_weights *weights,
                                  const struct ulp_patch *const *patches, size_t count,
                                  struct device_parts *ret_parts) {
    struct device_parts *parts = ret_parts;
    enum ulp_status status;

    *parts = (struct device_parts){.weights = weights, .count = count, .plan = &weights->plan};
    status = mem_zeroed(count, sizeof *parts->patches, &parts->patches);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        parts->patches[i] = patches[i];
        parts->changes += patches[i]->table.changes;
    }
    return patches[0]->table.grid.whole ? ULP_OK : plan_regions(parts);
}

void device_parts_release(struct device_parts *parts) {
    if (!parts->weights)
        return;
    room_give(&parts->weights->spare_plan, &parts->own.room);
    device_plan_release(&parts->own);
    for (size_t i = 0; parts->first_held && i < parts->count; i++)
        mem_free(parts->first_held[i]);
    mem_free(parts->first_held);
    mem_free(parts->first_piece);
    mem_free(parts->patches);
    *parts = (struct device_parts){0};
}

/* ---- chunks ---- */

/* Those of a patch follow each other from its header on. */
enum ulp_status device_parts_chunks(const struct device_parts *parts,
                                    struct coded_chunk **ret_chunks, size_t *ret_bytes) {
    struct coded_chunk *chunks = NULL;
    size_t at = 0, bytes = PATCH_HEADER_BYTES;
    enum ulp_status status = mem_zeroed(parts->plan->device.segment_count, sizeof *chunks, &chunks);

    for (size_t i = 0; !status && i < parts->count; i++) {
        const struct table *table = &parts->patches[i]->table;

        for (size_t c = 0; c < table->grid.chunk_count; c++) {
            chunks[at++] = (struct coded_chunk){.part = (uint32_t)i, .number = c, .at = bytes};
            bytes += (size_t)table->chunks[c].bytes;
        }
    }
    if (!status) {
        *ret_chunks = chunks;
        *ret_bytes = bytes;
    }
    return status;
}

struct sum_target device_parts_target(const struct device_parts *parts, uint32_t part,
                                      struct ulp_sum *sums, struct lock *lock) {
    return (struct sum_target){.sums = sums,
                               .first_piece = parts->first_piece,
                               .lock = lock,
                               .first_held = parts->first_held ? parts->first_held[part] : NULL};
}

/* ---- decoding ---- */

/* The blocks of the plan from `first` to `end` as decode->ranges has them: in each they ascend. */
static void cut_ranges(const struct cuda_decode *decode, const struct decode_block *blocks,
                       uint32_t first, uint32_t end, struct decode_range *ret_ranges) {
    for (uint32_t w = 0; w < DECODE_WIDTHS; w++) {
        const struct decode_range all = decode->ranges[w];
        uint32_t from = all.first, to;

        while (from < all.first + all.coded && blocks[from].block < first)
            from++;
        for (to = from; to < all.first + all.coded && blocks[to].block < end;)
            to++;
        ret_ranges[w] = (struct decode_range){from, to - from, to - from};
    }
}

/* Columns are copied together, round by round into the same memory. */
static enum ulp_status scan_round(const struct device_parts *parts,
                                  const struct cuda_decode *decode,
                                  const struct decode_block *blocks, uint32_t first, uint32_t end) {
    void *stream = parts->weights->stream;
    struct cuda_decode round = *decode;
    enum ulp_status status = ULP_OK;

    if (parts->packed.memory)
        status = part_plan_pack(&parts->own, first, end - first, false, stream);
    cut_ranges(decode, blocks, first, end, round.ranges);
    if (!status)
        status = cuda_decode_scan(&round, stream);
    if (!status && parts->packed.memory)
        status = cuda_decode_sums(&round, stream);
    return status;
}

enum ulp_status device_parts_scan(const struct device_parts *parts,
                                  const struct cuda_decode *decode,
                                  const struct decode_block *blocks) {
    const uint32_t count = parts->plan->device.block_count;
    enum ulp_status status = ULP_OK;

    if (parts->plan != &parts->own)
        return cuda_decode_scan(decode, parts->weights->stream);
    for (uint32_t first = 0, end = 0; !status && first < count; first = end) {
        part_plan_round(parts->plan, first, parts->weights->packed_most, &end);
        status = scan_round(parts, decode, blocks, first, end);
    }
    return status;
}

/* All rounds use the same memory. */
enum ulp_status device_parts_upload(struct device_parts *parts) {
    struct device_weights *weights = parts->weights;
    const uint32_t count = parts->plan->device.block_count;
    size_t bytes = 0;
    enum ulp_status status = ULP_OK;

    if (parts->plan != &parts->own)
        return ULP_OK;
    for (uint32_t first = 0, end = 0; first < count; first = end) {
        const size_t here = part_plan_round(&parts->own, first, weights->packed_most, &end);

        bytes = here > bytes ? here : bytes;
    }
    if (bytes)
        status = room_take(&weights->spare_packed, bytes, false, &parts->packed);
    for (uint32_t first = 0, end = 0; !status && bytes && first < count; first = end) {
        part_plan_round(&parts->own, first, weights->packed_most, &end);
        part_plan_point(&parts->own, first, end - first, parts->packed.memory, NULL);
    }
    return status ? status : part_plan_upload(&parts->own, &weights->spare_plan, weights->stream);
}

void device_parts_decoded(struct device_parts *parts) {
    if (parts->weights)
        room_give(&parts->weights->spare_packed, &parts->packed);
}

/* ---- the result ---- */

static enum ulp_status check_sums(const struct device_parts *parts, struct ulp_sum *sums) {
    enum ulp_status status = ULP_OK;

    for (uint32_t i = 0; i < parts->count; i++) {
        const struct sum_target target = device_parts_target(parts, i, sums, NULL);
        const size_t chunks = parts->patches[i]->table.grid.chunk_count;

        for (size_t c = 0; !status && c < chunks; c++)
            status = decode_check(parts->patches[i], c, &target);
    }
    return status;
}

enum ulp_status device_parts_check(const struct device_parts *parts, struct ulp_sum *sums,
                                   const struct ulp_root *child) {
    struct ulp_root root;
    enum ulp_status status;

    if (!parts->first_piece)
        return check_sums(parts, sums);
    status = table_root(&parts->weights->weights->grid, sums, &root);
    if (!status && !same_root(&root, child))
        status =
            fail(ULP_E_WRONG_RESULT, "%s would lead to state %s..., not to %s...",
                 quote(parts->patches[0]->name).text, short_root(&root).hex, short_root(child).hex);
    return status;
}
