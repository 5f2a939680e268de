// SPDX-License-Identifier: Apache-2.0
#include "gpu/windows.h"

#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/window_fill.h"

#define ALIGNMENT ((size_t)16) /* kernels load so much at once */

/* An encoder takes memory for each block, however small: where tensors are, windows have fewer bytes. */
#define WINDOW_BLOCKS ((size_t)1024)
#define WINDOW_BLOCKS_THERE ((size_t)16384)

/* Changes on their way, in thousandths of a window: one element of BF16 in twenty. */
#define WINDOW_SHARE 200u

static size_t block_bytes(const struct cuda_block *block, const struct cuda_segment *segment) {
    return ((size_t)block->elements * segment->kind.width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t chunk_bytes(const struct device_plan *plan, size_t chunk) {
    const struct cuda_segment *segment = &plan->segments[chunk];
    size_t bytes = 0;

    for (uint32_t b = 0; b < segment->blocks; b++)
        bytes += block_bytes(&plan->blocks[segment->first_block + b], segment);
    return bytes;
}

/* ---- making ---- */

/* A small state takes windows of its own size. */
static void measure(struct windows *windows, size_t bytes) {
    const struct device_plan *plan = windows->plan;
    size_t largest = 0, all = 0;

    for (size_t i = 0; i < plan->device.segment_count; i++) {
        const size_t here = chunk_bytes(plan, i);

        largest = here > largest ? here : largest;
        all += here;
    }
    bytes = bytes ? bytes : windows->there ? WINDOW_BYTES_THERE : WINDOW_BYTES;
    bytes = bytes < all ? bytes : all;
    windows->bytes = bytes > largest ? bytes : largest;
}

enum ulp_status windows_new(const struct ulp_weights *snapshot, const struct device_plan *plan,
                            bool there, size_t bytes, struct windows **ret_windows) {
    struct windows *windows = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *windows, &windows);

    if (!status)
        status = mem_zeroed(snapshot->count, sizeof *windows->pinned, &windows->pinned);
    if (status) {
        windows_free(windows);
        return status;
    }
    windows->snapshot = snapshot;
    windows->plan = plan;
    windows->there = there;
    measure(windows, bytes);
    for (size_t i = 0; !there && i < snapshot->count; i++)
        windows->pinned[i] =
            cuda_is_pinned(snapshot->tensors[i].data, (size_t)snapshot->tensors[i].bytes) != 0;
    *ret_windows = windows;
    return ULP_OK;
}

static void window_trim(struct window *window) {
    room_release(&window->old);
    room_release(&window->staged);
    room_release(&window->history);
    room_release(&window->staged_history);
    cuda_encoder_free(window->encoder);
    window->encoder = NULL;
    cuda_stream_free(window->stream);
    window->stream = NULL;
}

void windows_trim(struct windows *windows) {
    for (size_t i = 0; i < WINDOWS; i++)
        window_trim(&windows->window[i]);
    room_release(&windows->sums);
    cuda_stream_free(windows->aside);
    windows->aside = NULL;
}

void windows_free(struct windows *windows) {
    if (!windows)
        return;
    windows_trim(windows);
    for (size_t i = 0; i < WINDOWS; i++) {
        mem_free(windows->window[i].segments);
        mem_free(windows->window[i].blocks);
        mem_free(windows->window[i].stretches);
    }
    mem_free(windows->pinned);
    mem_free(windows);
}

void windows_stop(struct windows *windows) {
    for (size_t i = 0; i < WINDOWS; i++) {
        if (windows->window[i].encoder)
            (void)cuda_wait(windows->window[i].stream);
    }
    if (windows->aside)
        (void)cuda_wait(windows->aside);
}

size_t windows_bytes(const struct windows *windows) {
    size_t bytes = windows->sums.bytes;

    for (size_t i = 0; i < WINDOWS; i++) {
        const struct window *window = &windows->window[i];

        bytes += window->old.bytes + window->history.bytes;
        bytes += window->encoder ? cuda_encoder_bytes(window->encoder) : 0;
    }
    return bytes;
}

/* ---- sums ---- */

enum ulp_status windows_begin(struct windows *windows, void *stream) {
    const size_t bytes = windows->plan->device.piece_count * sizeof(struct ulp_sum);
    enum ulp_status status = ULP_OK;

    if (!windows->aside)
        status = cuda_stream_new(1, &windows->aside);
    if (!status && !windows->sums.memory)
        status = room_take(&(struct room){0}, bytes, false, &windows->sums);
    if (!status)
        status = cuda_copy_in(windows->sums.memory, windows->snapshot->sums, bytes, stream);
    return device_status(status ? status : cuda_wait(stream), "taking the sums of the weights");
}

enum ulp_status windows_end(struct windows *windows, void *stream, struct ulp_sum *ret_sums) {
    const size_t bytes = windows->plan->device.piece_count * sizeof *ret_sums;
    enum ulp_status status = cuda_copy_out(ret_sums, windows->sums.memory, bytes, stream);

    return device_status(status ? status : cuda_wait(stream), "comparing weights");
}

/* ---- what a window shows ---- */

static enum ulp_status make_room(void *array, size_t wanted, size_t size, size_t *room) {
    enum ulp_status status = wanted > *room ? mem_resize(array, wanted, size) : ULP_OK;

    if (!status && wanted > *room)
        *room = wanted;
    return status;
}

/* As many chunks as fit, and at least one. */
static enum ulp_status choose_chunks(const struct windows *windows, struct window *window,
                                     size_t first) {
    const struct device_plan *plan = windows->plan;
    const size_t most = windows->there ? WINDOW_BLOCKS_THERE : WINDOW_BLOCKS;
    size_t bytes = 0, blocks = 0, chunks = 0;
    enum ulp_status status;

    while (first + chunks < plan->device.segment_count) {
        const size_t here = chunk_bytes(plan, first + chunks);
        const size_t blocks_here = plan->segments[first + chunks].blocks;

        if (chunks && (bytes + here > windows->bytes || blocks + blocks_here > most))
            break;
        bytes += here;
        blocks += blocks_here;
        chunks++;
    }
    window->first = first;
    window->chunks = chunks;
    status = make_room(&window->segments, chunks, sizeof *window->segments, &window->segment_room);
    if (!status)
        status = make_room(&window->blocks, blocks, sizeof *window->blocks, &window->block_room);
    return status ? status
                  : make_room(&window->stretches, blocks, sizeof *window->stretches,
                              &window->stretch_room);
}

static void add_stretch(struct window *window, struct stretch next) {
    struct stretch *last =
        window->stretch_count ? &window->stretches[window->stretch_count - 1] : NULL;

    if (last && last->tensor == next.tensor && last->from + last->bytes == next.from &&
        last->at + last->bytes == next.at)
        last->bytes += next.bytes;
    else
        window->stretches[window->stretch_count++] = next;
}

/* Chunks and blocks as the plan has them, but counted from the window's first. */
static void lay_out(const struct windows *windows, struct window *window) {
    const struct device_plan *plan = windows->plan;
    uint32_t to = 0;
    size_t at = 0;

    window->stretch_count = 0;
    for (size_t i = 0; i < window->chunks; i++) {
        const struct cuda_segment *segment = &plan->segments[window->first + i];

        window->segments[i] = *segment;
        window->segments[i].first_block = to;
        for (uint32_t b = 0; b < segment->blocks; b++) {
            struct cuda_block *block = &window->blocks[to++];

            *block = plan->blocks[segment->first_block + b];
            block->segment = (uint32_t)i;
            if (windows->there)
                continue;
            add_stretch(window, (struct stretch){
                                    block->old, at, (size_t)block->elements * segment->kind.width,
                                    piece_region(&windows->snapshot->grid, block->piece)->tensor});
            block->old = window->old.memory + at;
            at += block_bytes(block, segment);
        }
    }
}

struct cuda_plan window_plan(const struct windows *windows, const struct window *window) {
    const struct cuda_segment *last = &window->segments[window->chunks - 1];

    return (struct cuda_plan){.segments = window->segments,
                              .blocks = window->blocks,
                              .segment_count = (uint32_t)window->chunks,
                              .block_count = last->first_block + last->blocks,
                              .piece_count = windows->plan->device.piece_count};
}

/* ---- comparing ---- */

/* The plan goes to the device first: small copies that are not pinned wait for what is in front of
 * them on their stream. */
static enum ulp_status give_plan(const struct windows *windows, struct window *window) {
    const struct cuda_encoder_options copied = {.memory_share = WINDOW_SHARE, .pipeline = 1};
    const struct cuda_plan plan = window_plan(windows, window);
    enum ulp_status status = ULP_OK;

    if (!window->encoder)
        status = cuda_encoder_new(&plan, windows->there ? NULL : &copied, &window->encoder);
    if (!status)
        status = cuda_encoder_plan(window->encoder, &plan, window->stream);
    return device_status(status, "comparing weights");
}

static enum ulp_status take_memory(const struct windows *windows, struct window *window) {
    enum ulp_status status = ULP_OK;

    if (!window->stream)
        status = device_status(cuda_stream_new(0, &window->stream), "comparing weights");
    if (!status && !windows->there && !window->old.memory)
        status = room_take(&(struct room){0}, windows->bytes, false, &window->old);
    return status;
}

/* The same from the window's first block on. */
static struct cuda_journal journal_from(const struct device_journal *journal, size_t block) {
    struct cuda_journal from = journal->device;

    from.first += block;
    from.value += block;
    from.count += block;
    return from;
}

enum ulp_status window_open(struct windows *windows, struct window *window, size_t first,
                            const struct window_extras *extras) {
    struct cuda_moves moves = {NULL, NULL, NULL};
    struct cuda_journal journal;
    enum ulp_status status = choose_chunks(windows, window, first);

    if (!status)
        status = take_memory(windows, window);
    if (status)
        return status;
    lay_out(windows, window);
    status = give_plan(windows, window);
    if (!status && extras->history)
        status = windows->there ? window_find_moves(windows, window, extras->moves, &moves)
                                : window_copy_moves(windows, window, extras->pool, &moves);
    if (!status && !windows->there)
        status = window_copy_old(windows, window, extras->pool);
    if (!status && extras->journal)
        journal = journal_from(extras->journal, windows->plan->segments[first].first_block);
    if (!status)
        status = device_status(cuda_encoder_start(window->encoder, window->blocks, &moves,
                                                  extras->journal ? &journal : NULL,
                                                  (uint64_t *)(void *)windows->sums.memory,
                                                  window->stream),
                               "comparing weights");
    return status;
}

enum ulp_status window_finish(struct window *window, struct cuda_segment_report *ret_reports,
                              const uint8_t **ret_output) {
    return device_status(cuda_encoder_finish(window->encoder, ret_reports, ret_output),
                         "comparing weights");
}
