// SPDX-License-Identifier: Apache-2.0
#include "patch/workers.h"

#include "base/lock.h"
#include "base/memory.h"
#include "patch/place.h"

struct workers {
    struct lock lock;
    struct worker *idle;
};

enum ulp_status workers_new(struct workers **ret_workers) {
    struct workers *workers = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *workers, &workers);

    if (status)
        return status;
    lock_make(&workers->lock);
    *ret_workers = workers;
    return ULP_OK;
}

static void worker_free(struct worker *worker) {
    code_encoder_free(worker->encoder);
    code_scratch_free(worker->scratch);
    mem_free(worker->old);
    mem_free(worker->new);
    mem_free(worker->positions);
    mem_free(worker->values);
    mem_free(worker->blocks);
    mem_free(worker->sizes);
    moves_list_release(&worker->moves);
    buffer_release(&worker->bytes);
    buffer_release(&worker->old_copy);
    buffer_release(&worker->new_copy);
    mem_free(worker);
}

static struct worker *take_idle(struct workers *workers) {
    struct worker *worker;

    lock_take(&workers->lock);
    worker = workers->idle;
    if (worker)
        workers->idle = worker->next;
    lock_give(&workers->lock);
    return worker;
}

void workers_trim(struct workers *workers) {
    struct worker *worker;

    while ((worker = take_idle(workers)))
        worker_free(worker);
}

void workers_free(struct workers *workers) {
    if (!workers)
        return;
    workers_trim(workers);
    lock_destroy(&workers->lock);
    mem_free(workers);
}

static enum ulp_status worker_new(struct worker **ret_worker) {
    struct worker *worker = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *worker, &worker);

    if (status)
        return status;
    worker->bytes = worker->old_copy = worker->new_copy = BUFFER(CHUNK_BYTES_MAX);
    status = code_scratch_new(&worker->scratch);
    if (status) {
        worker_free(worker);
        return status;
    }
    *ret_worker = worker;
    return ULP_OK;
}

static enum ulp_status make_room(struct worker *worker, size_t words) {
    enum ulp_status status;

    words = words < CODE_BLOCK_MAX ? words : CODE_BLOCK_MAX;
    if (words <= worker->words)
        return ULP_OK;
    status = mem_resize(&worker->old, words, PLACE_WORD_BYTES);
    if (!status)
        status = mem_resize(&worker->new, words, PLACE_WORD_BYTES);
    if (!status)
        status = mem_resize(&worker->values, words, PLACE_WORD_BYTES);
    if (!status)
        status = mem_resize(&worker->positions, words, sizeof *worker->positions);
    if (!status)
        worker->words = words;
    return status;
}

enum ulp_status workers_take(struct workers *workers, uint32_t words, struct worker **ret_worker) {
    struct worker *worker = take_idle(workers);
    enum ulp_status status = worker ? ULP_OK : worker_new(&worker);

    if (!status)
        status = make_room(worker, words);
    if (status) {
        workers_give(workers, worker);
        return status;
    }
    *ret_worker = worker;
    return ULP_OK;
}

void workers_give(struct workers *workers, struct worker *worker) {
    if (!worker)
        return;
    lock_take(&workers->lock);
    worker->next = workers->idle;
    workers->idle = worker;
    lock_give(&workers->lock);
}

enum ulp_status worker_blocks(struct worker *worker, size_t count) {
    enum ulp_status status = ULP_OK;

    if (count <= worker->block_room)
        return ULP_OK;
    status = mem_resize(&worker->blocks, count, sizeof *worker->blocks);
    if (!status)
        status = mem_resize(&worker->sizes, count, sizeof *worker->sizes);
    if (!status)
        worker->block_room = count;
    return status;
}

enum ulp_status worker_encoder(struct worker *worker) {
    return worker->encoder ? ULP_OK : code_encoder_new(&worker->encoder);
}
