// SPDX-License-Identifier: Apache-2.0
#include "gpu/casting.h"

#include "base/memory.h"
#include "cuda/memory.h"

/* Entries that there is room for at once: one for each 128 elements, or a quarter more than last time. */
#define POOL_SHARE 128u
#define POOL_FOR_MORE 5 / 4

/* ---- what it needs on the device ---- */

/* The masters of all blocks. */
static enum ulp_status list_blocks(struct casting *casting, const void *const *masters) {
    const struct device_plan *plan = &casting->weights->plan;
    const struct grid *grid = &casting->weights->weights->grid;
    const struct ulp_tensor *tensors = casting->weights->weights->tensors;
    const uint32_t blocks = plan->device.block_count;
    enum ulp_status status = mem_zeroed(blocks, sizeof *casting->blocks, &casting->blocks);

    if (!status)
        status = mem_zeroed(blocks, sizeof *casting->first, &casting->first);
    if (!status)
        status = mem_zeroed(blocks, sizeof *casting->count, &casting->count);
    for (uint32_t b = 0; !status && b < blocks; b++) {
        const struct cuda_block *block = &plan->blocks[b];
        const uint32_t width = plan->segments[block->segment].kind.width;
        const uint32_t tensor = piece_region(grid, block->piece)->tensor;
        const size_t before = (size_t)(block->old - (const uint8_t *)tensors[tensor].data) / width;

        casting->first[b] = casting->pages;
        if (!masters[tensor])
            continue;
        casting->blocks[b] = (const float *)masters[tensor] + before;
        casting->pages += (block->elements + JOURNAL_PAGE - 1) / JOURNAL_PAGE;
        casting->elements += block->elements;
        casting->wide |= width == sizeof(float);
    }
    return status;
}

static uint32_t pool_entries(const struct casting *casting) {
    const uint64_t last = casting->last * POOL_FOR_MORE;
    const uint64_t share = casting->elements / POOL_SHARE;
    const uint64_t ends = casting->weights->plan.device.block_count * (uint64_t)JOURNAL_PAGE / 2;
    uint64_t entries = (last > share ? last : share) + ends;

    if (entries > casting->elements)
        entries = casting->elements;
    if (casting->weights->cast_pool)
        entries = casting->weights->cast_pool;
    if (entries < CAST_POOL_LEAST)
        entries = CAST_POOL_LEAST;
    return entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries;
}

/* Counters and counts lie together, so that one copy brings both. */
static enum ulp_status take_room(struct casting *casting, uint32_t entries) {
    const uint32_t blocks = casting->weights->plan.device.block_count;
    const uint32_t stride = casting->wide ? 4 : 2;
    size_t bytes = 0;
    const size_t masters = room_place(&bytes, blocks, sizeof(void *));
    const size_t first = room_place(&bytes, blocks, sizeof(uint64_t));
    const size_t done = room_place(&bytes, blocks, sizeof(uint32_t));
    const size_t pages = room_place(&bytes, (size_t)casting->pages, sizeof(uint32_t));
    const size_t positions = room_place(&bytes, entries, sizeof(uint32_t));
    const size_t values = room_place(&bytes, entries, stride);
    enum ulp_status status;

    casting->counters = room_place(&bytes, 2, sizeof(uint64_t));
    const size_t counts = room_place(&bytes, blocks, sizeof(uint32_t));

    status = room_take(&casting->weights->spare, bytes, false, &casting->room);
    if (status)
        return status;
    uint8_t *memory = casting->room.memory;

    casting->device = (struct cuda_cast){
        .plan = casting->weights->plan.device,
        .masters = (const uint32_t *const *)(void *)(memory + masters),
        .done = (uint32_t *)(void *)(memory + done),
        .counts = (uint32_t *)(void *)(memory + counts),
        .first = (const uint64_t *)(void *)(memory + first),
        .pages = (uint32_t *)(void *)(memory + pages),
        .positions = (uint32_t *)(void *)(memory + positions),
        .values = memory + values,
        .stride = stride,
        .limit = entries,
        .used = (unsigned long long *)(void *)(memory + casting->counters),
        .stopped = (uint32_t *)(void *)(memory + casting->counters + sizeof(uint64_t))};
    status = cuda_copy_in(memory + masters, casting->blocks, blocks * sizeof *casting->blocks,
                          casting->weights->stream);
    if (!status)
        status = cuda_copy_in(memory + first, casting->first, blocks * sizeof *casting->first,
                              casting->weights->stream);
    if (!status)
        status = cuda_clear(memory + done, blocks * sizeof(uint32_t), casting->weights->stream);
    return device_status(status, "casting weights");
}

/* Fewer entries at once are slower, and do. */
static enum ulp_status take_some_room(struct casting *casting) {
    uint32_t entries = pool_entries(casting);
    enum ulp_status status = take_room(casting, entries);

    while (status == ULP_E_NOMEM && !casting->room.memory && entries > CAST_POOL_LEAST) {
        entries = entries / 2 > CAST_POOL_LEAST ? entries / 2 : CAST_POOL_LEAST;
        status = take_room(casting, entries);
    }
    return status;
}

enum ulp_status casting_begin(struct casting *casting, const void *const *masters) {
    enum ulp_status status = list_blocks(casting, masters);

    return status || !casting->elements ? status : take_some_room(casting);
}

void casting_end(struct casting *casting) {
    room_give(&casting->weights->spare, &casting->room);
    mem_free(casting->blocks);
    mem_free(casting->first);
    mem_free(casting->count);
}

/* ---- casting ---- */

enum ulp_status casting_launch(struct casting *casting, uint32_t *ret_stopped) {
    struct device_weights *weights = casting->weights;
    const size_t count_bytes = weights->plan.device.block_count * sizeof *casting->count;
    uint8_t *counters = casting->room.memory + casting->counters;
    const size_t cleared = (size_t)((uint8_t *)casting->device.counts - counters) + count_bytes;
    enum ulp_status status = cuda_clear(counters, cleared, weights->stream);

    if (status)
        return device_status(status, "casting weights");
    status = cuda_cast_run(&casting->device, weights->stream);
    if (!status)
        status = cuda_copy_out(ret_stopped, casting->device.stopped, sizeof *ret_stopped,
                               weights->stream);
    if (!status)
        status =
            cuda_copy_out(casting->count, casting->device.counts, count_bytes, weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    if (status == ULP_E_NOMEM) /* for who casts that would be: nothing is written */
        status = ULP_E_DEVICE;
    return device_status(status, "casting weights, which are neither old nor new now and are "
                                 "marked so");
}

struct journal_part casting_listed(const struct casting *casting) {
    const struct cuda_cast *device = &casting->device;

    return (struct journal_part){{.positions = device->positions,
                                  .values = device->values,
                                  .first = device->first,
                                  .count = device->counts,
                                  .pages = device->pages,
                                  .stride = device->stride},
                                 casting->count};
}
