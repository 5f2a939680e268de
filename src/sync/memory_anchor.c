// SPDX-License-Identifier: Apache-2.0
#include "sync/memory_anchor.h"

#include "base/clock.h"
#include "base/memory.h"
#include "sync/parts.h"

#include <string.h>

bool is_shard(const struct anchor_file *file) {
    static const char end[] = ".safetensors";
    const size_t length = strlen(file->name), tail = sizeof end - 1;

    return length >= tail && !strcmp(file->name + length - tail, end);
}

void fetched_shard_release(struct fetched_shard *shard) {
    shard_release(&shard->shard);
    spool_release(&shard->spool);
    *shard = (struct fetched_shard){0};
}

enum ulp_status shard_fetch(const struct work *work, const struct anchor_file *file,
                            size_t memory_bytes, struct fetched_shard *ret_shard) {
    struct fetched_shard shard = {0};
    const uint8_t *data = NULL;
    size_t bytes = 0;
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = spool_open(&shard.spool, memory_bytes, NULL);

    if (!status)
        status = part_get(work->store, work->run, &file->part, &shard.spool);
    work_spent(&work->report->phases.fetch_ns, started);
    if (!status)
        status = spool_view(&shard.spool, &data, &bytes);
    if (!status)
        status = shard_parse(file->name, data, bytes, &shard.shard);
    if (status) {
        fetched_shard_release(&shard);
        return status;
    }
    work->report->fetched_bytes += bytes;
    work->report->anchor_bytes += bytes;
    work->report->fetched_objects++;
    *ret_shard = shard;
    return ULP_OK;
}

static enum ulp_status add_tensors(struct fetched_anchor *anchor, const struct shard *shard) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < shard->count; i++) {
        status = mem_grow(&anchor->tensors, anchor->tensor_count, sizeof *anchor->tensors,
                          &anchor->room);
        if (!status)
            anchor->tensors[anchor->tensor_count++] = shard->tensors[i];
    }
    return status;
}

enum ulp_status anchor_fetch(const struct work *work, const struct anchor *anchor,
                             struct fetched_anchor *ret_anchor) {
    const size_t memory_bytes = anchor->file_count ? WORK_BYTES / anchor->file_count : 0;
    struct fetched_anchor fetched = {0};
    enum ulp_status status =
        mem_zeroed(anchor->file_count, sizeof *fetched.shards, &fetched.shards);

    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        if (!is_shard(&anchor->files[i]))
            continue;
        status = shard_fetch(work, &anchor->files[i], memory_bytes, &fetched.shards[fetched.count]);
        if (!status)
            status = add_tensors(&fetched, &fetched.shards[fetched.count++].shard);
    }
    if (status)
        fetched_anchor_release(&fetched);
    else
        *ret_anchor = fetched;
    return status;
}

void fetched_anchor_release(struct fetched_anchor *anchor) {
    for (size_t i = 0; i < anchor->count; i++)
        fetched_shard_release(&anchor->shards[i]);
    mem_free(anchor->shards);
    mem_free(anchor->tensors);
    *anchor = (struct fetched_anchor){0};
}
