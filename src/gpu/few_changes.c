// SPDX-License-Identifier: Apache-2.0
#include "gpu/few_changes.h"

#include "base/memory.h"
#include "cuda/list_changes.h"
#include "cuda/memory.h"
#include "gpu/device_journal.h"

#include <stdlib.h>
#include <string.h>

/* A list, and the same in the order of the stream. */
struct listed {
    struct cuda_change changes[CODE_FEW_CHANGES];
    uint32_t places[CODE_FEW_CHANGES];
    uint8_t values[CODE_FEW_CHANGES * 8];
    uint32_t count;
};

/* What goes to the device and comes back. */
struct listing {
    const struct few_changes *few;
    const struct round *round;
    struct cuda_block *blocks; /* of the segments, which they name by their number in `few` */
    uint32_t *found;
    struct cuda_change *changes; /* CODE_FEW_CHANGES for each segment */
    uint32_t *first;             /* of each segment its first block; and behind the last */
    struct room room;
    size_t at_blocks, at_found, at_changes;
};

bool few_changes_in(const struct making *making, const struct cuda_segment_report *report) {
    return making->coder == ULP_CODER_BEST && !report->elsewhere && report->changes &&
           report->changes <= CODE_FEW_CHANGES;
}

/* ---- on the device ---- */

static const struct cuda_segment *segment_of(const struct listing *listing, size_t i) {
    return &listing->round->plan->segments[listing->few->segments[i]];
}

static enum ulp_status take_room(struct listing *listing, struct device_weights *weights) {
    const size_t count = listing->few->count;
    size_t bytes = 0;
    enum ulp_status status = mem_zeroed(count + 1, sizeof *listing->first, &listing->first);

    for (size_t i = 0; !status && i < count; i++)
        listing->first[i + 1] = listing->first[i] + segment_of(listing, i)->blocks;
    if (!status)
        status = mem_zeroed(listing->first[count], sizeof *listing->blocks, &listing->blocks);
    if (!status)
        status = mem_zeroed(count, sizeof *listing->found, &listing->found);
    if (!status)
        status = mem_zeroed(count, CODE_FEW_CHANGES * sizeof *listing->changes, &listing->changes);
    if (status)
        return status;
    listing->at_blocks = room_place(&bytes, listing->first[count], sizeof *listing->blocks);
    listing->at_found = room_place(&bytes, count, sizeof *listing->found);
    listing->at_changes = room_place(&bytes, count, CODE_FEW_CHANGES * sizeof *listing->changes);
    return room_take(&weights->spare, bytes, false, &listing->room);
}

static void release(struct listing *listing, struct device_weights *weights) {
    room_give(&weights->spare, &listing->room);
    mem_free(listing->first);
    mem_free(listing->blocks);
    mem_free(listing->found);
    mem_free(listing->changes);
}

static void name_blocks(struct listing *listing) {
    for (size_t i = 0; i < listing->few->count; i++) {
        const struct cuda_segment *segment = segment_of(listing, i);

        for (uint32_t b = 0; b < segment->blocks; b++) {
            struct cuda_block *to = &listing->blocks[listing->first[i] + b];

            *to = listing->round->plan->blocks[segment->first_block + b];
            to->segment = (uint32_t)i;
            to->index = b;
        }
    }
}

/* Segments of one width that follow each other, from `i` on. */
static size_t run_of_width(const struct listing *listing, size_t i) {
    const uint32_t width = segment_of(listing, i)->kind.width;
    size_t end = i + 1;

    while (end < listing->few->count && segment_of(listing, end)->kind.width == width)
        end++;
    return end;
}

static enum ulp_status compare(const struct listing *listing, void *stream) {
    const struct cuda_block *blocks =
        (const struct cuda_block *)(const void *)(listing->room.memory + listing->at_blocks);
    enum ulp_status status = ULP_OK;

    for (size_t i = 0, end; !status && i < listing->few->count; i = end) {
        end = run_of_width(listing, i);
        status = cuda_list_changes(
            blocks + listing->first[i], listing->first[end] - listing->first[i],
            segment_of(listing, i)->kind.width, CODE_FEW_CHANGES,
            (struct cuda_change *)(void *)(listing->room.memory + listing->at_changes),
            (uint32_t *)(void *)(listing->room.memory + listing->at_found), stream);
    }
    return status;
}

/* The journal's blocks are those of the weights' plan. */
static enum ulp_status read_journal(const struct listing *listing, const struct making *making) {
    const struct device_plan *plan = &making->weights->plan;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < listing->few->count; i++) {
        const struct cuda_segment *segment =
            &plan->segments[listing->round->first + listing->few->segments[i]];

        status = cuda_journal_list(
            &plan->device, &making->journal->device, segment->first_block, segment->blocks,
            CODE_FEW_CHANGES,
            (struct cuda_change *)(void *)(listing->room.memory + listing->at_changes) +
                i * CODE_FEW_CHANGES,
            (uint32_t *)(void *)(listing->room.memory + listing->at_found) + i,
            listing->round->stream);
    }
    return status;
}

static enum ulp_status list_all(struct listing *listing, struct making *making) {
    const size_t count = listing->few->count;
    void *stream = listing->round->stream;
    enum ulp_status status =
        cuda_copy_in(listing->room.memory + listing->at_blocks, listing->blocks,
                     listing->first[count] * sizeof *listing->blocks, stream);

    if (!status)
        status = cuda_clear(listing->room.memory + listing->at_found,
                            count * sizeof *listing->found, stream);
    if (!status)
        status = making->journal ? read_journal(listing, making) : compare(listing, stream);
    if (!status)
        status = cuda_copy_out(listing->found, listing->room.memory + listing->at_found,
                               count * sizeof *listing->found, stream);
    if (!status)
        status = cuda_copy_out(listing->changes, listing->room.memory + listing->at_changes,
                               count * CODE_FEW_CHANGES * sizeof *listing->changes, stream);
    if (!status)
        status = cuda_wait(stream);
    return device_status(status, "listing changes");
}

/* ---- all of a round ---- */

static enum ulp_status choose(const struct making *making, const struct round *round,
                              struct few_changes *few) {
    const size_t segments = round->plan->device.segment_count;
    enum ulp_status status;

    for (size_t i = 0; i < segments; i++)
        few->count += few_changes_in(making, &round->reports[i]);
    status = mem_zeroed(few->count, sizeof *few->segments, &few->segments);
    if (!status)
        status = mem_zeroed(few->count, sizeof *few->lists, &few->lists);
    for (size_t i = 0, to = 0; !status && i < segments; i++) {
        if (few_changes_in(making, &round->reports[i]))
            few->segments[to++] = i;
    }
    return status;
}

static enum ulp_status take_lists(const struct listing *listing, struct few_changes *few) {
    for (size_t i = 0; i < few->count; i++) {
        if (listing->found[i] != listing->round->reports[few->segments[i]].changes)
            return fail(ULP_E_USAGE, "the new weights change while they are being compared");
        few->lists[i].count = listing->found[i];
        memcpy(few->lists[i].changes, listing->changes + i * CODE_FEW_CHANGES,
               sizeof few->lists[i].changes);
    }
    return ULP_OK;
}

enum ulp_status few_changes_list(struct making *making, const struct round *round,
                                 struct few_changes *ret_few) {
    struct listing listing = {.few = ret_few, .round = round};
    enum ulp_status status = choose(making, round, ret_few);

    if (status || !ret_few->count)
        return status;
    status = take_room(&listing, making->weights);
    if (!status) {
        name_blocks(&listing);
        status = list_all(&listing, making);
    }
    if (!status)
        status = take_lists(&listing, ret_few);
    release(&listing, making->weights);
    return status;
}

void few_changes_release(struct few_changes *few) {
    mem_free(few->segments);
    mem_free(few->lists);
    *few = (struct few_changes){0};
}

/* ---- coding ---- */

static int by_place(const void *a, const void *b) {
    const struct cuda_change *x = a, *y = b;

    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static void lay_out(const struct device_plan *plan, const struct cuda_segment *segment,
                    struct listed *listed, struct code_block *blocks) {
    const uint32_t width = segment->kind.width;
    uint32_t at = 0;

    qsort(listed->changes, listed->count, sizeof *listed->changes, by_place);
    for (uint32_t i = 0; i < listed->count; i++) {
        listed->places[i] = listed->changes[i].position;
        memcpy(listed->values + (size_t)i * width, &listed->changes[i].value, width);
    }
    for (uint32_t b = 0; b < segment->blocks; b++) {
        const uint32_t first = at;

        while (at < listed->count && listed->changes[at].block == b)
            at++;
        blocks[b] = (struct code_block){.elements = plan->blocks[segment->first_block + b].elements,
                                        .places = listed->places + first,
                                        .values = listed->values + (size_t)first * width,
                                        .place_count = at - first};
    }
}

static struct listed *find(struct few_changes *few, size_t segment) {
    size_t low = 0, high = few->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (few->segments[middle] < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return &few->lists[low];
}

enum ulp_status few_changes_code(struct few_changes *few, const struct round *round, size_t segment,
                                 struct worker *worker) {
    const struct cuda_segment *of = &round->plan->segments[segment];
    enum ulp_status status = worker_blocks(worker, of->blocks);

    if (!status)
        status = worker_encoder(worker);
    buffer_clear(&worker->bytes);
    if (status)
        return status;
    lay_out(round->plan, of, find(few, segment), worker->blocks);
    return code_encode(worker->encoder, of->kind, CODE_PLAIN, worker->blocks, of->blocks,
                       &worker->bytes);
}
