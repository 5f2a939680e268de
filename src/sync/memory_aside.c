// SPDX-License-Identifier: Apache-2.0
#include "sync/memory_aside.h"

#include "base/clock.h"
#include "base/memory.h"
#include "patch/table.h"
#include "patch/weights.h"

#include <string.h>

/* ---- fetching ---- */

static enum ulp_status fetch_files(struct aside *aside, const struct work *work,
                                   const struct anchor *anchor) {
    const size_t memory_bytes = anchor->file_count ? WORK_BYTES / anchor->file_count : 0;
    enum ulp_status status = mem_zeroed(anchor->file_count, sizeof *aside->files, &aside->files);

    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        if (!holds_tensors(anchor->files[i].name))
            continue;
        status =
            shard_fetch(work, &anchor->files[i], memory_bytes, &aside->files[aside->file_count]);
        aside->file_count += !status;
    }
    return status;
}

/* ---- whether it fits ---- */

static enum ulp_status match(struct aside *aside, const struct ulp_weights *weights) {
    struct ulp_tensor *all = NULL;
    size_t count = 0, at = 0;
    enum ulp_status status;

    for (size_t i = 0; i < aside->file_count; i++)
        count += aside->files[i].shard.count;
    status = mem_zeroed(count, sizeof *all, &all);
    for (size_t i = 0; !status && i < aside->file_count; i++) {
        for (size_t k = 0; k < aside->files[i].shard.count; k++)
            all[at++] = aside->files[i].shard.tensors[k];
    }
    if (!status)
        status = weights_match(weights, all, count, &aside->arena, &aside->tensors);
    mem_free(all);
    return status;
}

static enum ulp_status digest(struct aside *aside, const struct work *work,
                              const struct ulp_weights *weights) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status =
        mem_zeroed(weights->grid.piece_count, sizeof *aside->sums, &aside->sums);

    if (!status)
        status =
            weights_digest(&weights->grid, aside->tensors, work->options->pool, NULL, aside->sums);
    if (!status)
        status = table_root(&weights->grid, aside->sums, &aside->root);
    work_spent(&work->report->phases.digest_ns, started);
    return status;
}

enum ulp_status aside_load(struct aside *aside, const struct work *work,
                           const struct anchor *anchor, const struct ulp_weights *weights) {
    enum ulp_status status;

    aside_release(aside);
    status = fetch_files(aside, work, anchor);
    if (!status)
        status = match(aside, weights);
    if (!status)
        status = digest(aside, work, weights);
    if (status)
        aside_release(aside);
    return status;
}

/* ---- the moment ---- */

void aside_settle(struct aside *aside, struct ulp_weights *weights) {
    struct ulp_sum *sums = weights->sums;

    weights->sums = aside->sums;
    aside->sums = sums;
    weights->root = aside->root;
    moves_free(weights->moves);
    weights->moves = NULL;
    aside_release(aside);
}

void aside_show(struct aside *aside, struct ulp_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        if (weights->tensors[i].bytes)
            memcpy(weights->tensors[i].data, aside->tensors[i].data, weights->tensors[i].bytes);
    }
    aside_settle(aside, weights);
}

void aside_release(struct aside *aside) {
    for (size_t i = 0; i < aside->file_count; i++)
        fetched_shard_release(&aside->files[i]);
    mem_free(aside->files);
    mem_free(aside->sums);
    arena_release(&aside->arena);
    *aside = (struct aside){0};
}
