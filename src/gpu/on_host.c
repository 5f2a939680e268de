// SPDX-License-Identifier: Apache-2.0
#include "gpu/on_host.h"

#include "base/memory.h"
#include "gpu/bring.h"

static enum ulp_status take_room(const struct grid_chunk *chunk, uint64_t changes,
                                 struct decoded_chunk *into) {
    enum ulp_status status = mem_zeroed(chunk->blocks, sizeof *into->counts, &into->counts);

    if (!status)
        status = mem_zeroed((size_t)changes, sizeof *into->positions, &into->positions);
    if (!status)
        status = mem_zeroed((size_t)changes, chunk->kind.width, &into->values);
    return status;
}

void on_host_release(struct decoded_chunk *decoded) {
    mem_free(decoded->counts);
    mem_free(decoded->positions);
    mem_free(decoded->values);
    *decoded = (struct decoded_chunk){0};
}

enum ulp_status on_host_decode(struct device_weights *weights, const struct device_plan *plan,
                               size_t segment, const struct ulp_patch *patch, size_t chunk,
                               const struct sum_target *target, struct decoded_chunk *ret_into) {
    const struct grid_chunk *of = &patch->table.grid.chunks[chunk];
    struct workers *workers = weights->weights->workers;
    struct decode_job job = {.patch = patch, .target = *target};
    struct decoded_chunk into = {0};
    struct decode_times times = {0};
    struct worker *worker = NULL;
    uint8_t *elements = NULL;
    enum ulp_status status = mem_zeroed(of->words, of->kind.width, &elements);

    if (!status)
        status = bring_elements(weights, plan, segment, BRING_OLD, elements);
    if (!status)
        status = take_room(of, patch->table.chunks[chunk].changes, &into);
    if (!status)
        status = workers_take(workers, of->words, &worker);
    job.elements = elements;
    if (!status)
        status = decode_chunk(&job, chunk, worker, &into, &times);
    workers_give(workers, worker);
    mem_free(elements);
    if (status) {
        on_host_release(&into);
        return status;
    }
    *ret_into = into;
    return ULP_OK;
}
