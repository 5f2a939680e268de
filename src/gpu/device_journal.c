// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_journal.h"

#include "base/memory.h"
#include "cuda/memory.h"

#include <string.h>

/* More than is needed now, since the next one will hardly have the same length. */
#define ROOM_FOR_MORE 8u /* an eighth */

/* Values of a block begin at a multiple of this. */
#define VALUE_ALIGNMENT 8u

/* Where everything is in the room. */
struct places {
    size_t count, first, value, positions, values, bytes;
};

static struct places lay_out(uint32_t blocks, uint64_t entries, uint64_t value_bytes) {
    struct places places = {0};

    places.count = room_place(&places.bytes, blocks, sizeof(uint32_t));
    places.first = room_place(&places.bytes, blocks, sizeof(uint64_t));
    places.value = room_place(&places.bytes, blocks, sizeof(uint64_t));
    places.positions = room_place(&places.bytes, (size_t)entries, sizeof(uint32_t));
    places.values = room_place(&places.bytes, 1, (size_t)value_bytes);
    return places;
}

struct journal_part journal_part_of(const struct device_journal *journal) {
    return (struct journal_part){journal->device, journal->count};
}

/* ---- how many entries ---- */

static enum ulp_status count_merged(const struct device_plan *plan,
                                    const struct device_journal *older,
                                    const struct journal_part *newer, void *stream,
                                    struct device_journal *journal) {
    const size_t bytes = plan->device.block_count * sizeof(uint32_t);
    uint32_t *counts =
        (uint32_t *)(void *)(journal->room.memory + lay_out(plan->device.block_count, 0, 0).count);
    enum ulp_status status =
        cuda_journal_count(&plan->device, &older->device, &newer->device, counts, stream);

    if (!status)
        status = cuda_copy_out(journal->count, counts, bytes, stream);
    if (!status)
        status = cuda_wait(stream);
    return device_status(status, "counting what weights were");
}

/* Returns the bytes of all values. */
static uint64_t find_places(const struct device_plan *plan, struct device_journal *journal) {
    uint64_t value = 0;

    journal->entries = 0;
    for (uint32_t b = 0; b < plan->device.block_count; b++) {
        const uint32_t width = plan->segments[plan->blocks[b].segment].kind.width;

        journal->first[b] = journal->entries;
        journal->value[b] = value;
        journal->entries += journal->count[b];
        value += ((uint64_t)journal->count[b] * width + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT *
                 VALUE_ALIGNMENT;
    }
    return value;
}

/* ---- merging ---- */

static enum ulp_status upload(const struct device_plan *plan, const struct places *places,
                              void *stream, const struct device_journal *journal) {
    const uint32_t blocks = plan->device.block_count;
    uint8_t *memory = journal->room.memory;
    enum ulp_status status = cuda_copy_in(memory + places->count, journal->count,
                                          blocks * sizeof *journal->count, stream);

    if (!status)
        status = cuda_copy_in(memory + places->first, journal->first,
                              blocks * sizeof *journal->first, stream);
    if (!status)
        status = cuda_copy_in(memory + places->value, journal->value,
                              blocks * sizeof *journal->value, stream);
    return status;
}

static enum ulp_status fill(const struct device_plan *plan, const struct device_journal *older,
                            const struct journal_part *newer, const struct places *places,
                            void *stream, struct device_journal *journal) {
    uint8_t *memory = journal->room.memory;
    const struct cuda_journal_room to = {(uint32_t *)(void *)(memory + places->positions),
                                         memory + places->values,
                                         (const uint64_t *)(void *)(memory + places->first),
                                         (const uint64_t *)(void *)(memory + places->value)};
    enum ulp_status status = upload(plan, places, stream, journal);

    if (!status && older)
        status = cuda_journal_merge(&plan->device, &older->device, &newer->device, &to, stream);
    else if (!status && journal->entries)
        status = cuda_journal_copy(&plan->device, &newer->device, &to, stream);
    if (!status)
        status = cuda_wait(stream);
    journal->device =
        (struct cuda_journal){.positions = to.positions,
                              .values = to.values,
                              .first = to.first,
                              .value = to.value,
                              .count = (const uint32_t *)(void *)(memory + places->count)};
    return device_status(status, "keeping what weights were");
}

static enum ulp_status merge(const struct device_plan *plan, const struct device_journal *older,
                             const struct journal_part *newer, struct room *spare, void *stream,
                             struct device_journal *journal) {
    const uint32_t blocks = plan->device.block_count;
    struct places places = lay_out(blocks, 0, 0);
    enum ulp_status status = room_take(spare, places.bytes, false, &journal->room);

    if (!status && older)
        status = count_merged(plan, older, newer, stream, journal);
    else if (!status && blocks)
        memcpy(journal->count, newer->count, blocks * sizeof *journal->count);
    if (status)
        return status;
    const uint64_t value_bytes = find_places(plan, journal);

    places = lay_out(blocks, journal->entries, value_bytes);
    if (places.bytes > journal->room.bytes) {
        room_release(&journal->room);
        status =
            room_take(spare, places.bytes + places.bytes / ROOM_FOR_MORE, false, &journal->room);
    }
    return status ? status : fill(plan, older, newer, &places, stream, journal);
}

enum ulp_status device_journal_merge(const struct device_plan *plan,
                                     const struct device_journal *older,
                                     const struct journal_part *newer, struct room *spare,
                                     void *stream, struct device_journal **ret_journal) {
    const uint32_t blocks = plan->device.block_count;
    struct device_journal *journal = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *journal, &journal);

    if (status)
        return status;
    status = mem_zeroed(blocks, sizeof *journal->first, &journal->first);
    if (!status)
        status = mem_zeroed(blocks, sizeof *journal->value, &journal->value);
    if (!status)
        status = mem_zeroed(blocks, sizeof *journal->count, &journal->count);
    if (!status)
        status = merge(plan, older && older->entries ? older : NULL, newer, spare, stream, journal);
    if (status) {
        device_journal_free(journal, spare);
        return status;
    }
    *ret_journal = journal;
    return ULP_OK;
}

void device_journal_free(struct device_journal *journal, struct room *spare) {
    if (!journal)
        return;
    room_give(spare, &journal->room);
    mem_free(journal->first);
    mem_free(journal->value);
    mem_free(journal->count);
    mem_free(journal);
}

/* ---- for chunks that the CPU codes ---- */

/* Entries of one chunk; those of its blocks lie end to end. */
struct brought {
    uint32_t *positions;
    uint8_t *values;
};

static enum ulp_status bring(const struct device_journal *journal, const struct cuda_segment *of,
                             void *stream, struct brought *ret_brought) {
    const uint32_t last = of->first_block + of->blocks - 1;
    const uint64_t first = journal->first[of->first_block], value = journal->value[of->first_block];
    const size_t entries = (size_t)(journal->first[last] + journal->count[last] - first);
    const size_t bytes =
        (size_t)(journal->value[last] - value) + (size_t)journal->count[last] * of->kind.width;
    enum ulp_status status =
        mem_zeroed(entries, sizeof *ret_brought->positions, &ret_brought->positions);

    if (!status)
        status = mem_zeroed(bytes, 1, &ret_brought->values);
    if (!status && entries)
        status = cuda_copy_out(ret_brought->positions, journal->device.positions + first,
                               entries * sizeof *ret_brought->positions, stream);
    if (!status && entries)
        status = cuda_copy_out(ret_brought->values, journal->device.values + value, bytes, stream);
    if (!status)
        status = cuda_wait(stream);
    return device_status(status, "bringing what weights were");
}

enum ulp_status device_journal_overlay(const struct device_journal *journal,
                                       const struct device_plan *plan, size_t chunk, void *stream,
                                       uint8_t *elements) {
    const struct cuda_segment *of = &plan->segments[chunk];
    const size_t width = of->kind.width;
    struct brought brought = {NULL, NULL};
    enum ulp_status status = of->blocks ? bring(journal, of, stream, &brought) : ULP_OK;

    for (uint32_t b = of->first_block; !status && b < of->first_block + of->blocks; b++) {
        const uint32_t *positions =
            brought.positions + (journal->first[b] - journal->first[of->first_block]);
        const uint8_t *values =
            brought.values + (journal->value[b] - journal->value[of->first_block]);

        for (uint32_t i = 0; i < journal->count[b]; i++)
            memcpy(elements + positions[i] * width, values + i * width, width);
        elements += plan->blocks[b].elements * width;
    }
    mem_free(brought.positions);
    mem_free(brought.values);
    return status;
}
