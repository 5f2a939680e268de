// SPDX-License-Identifier: Apache-2.0
#include "sync/anchor_shard.h"

#include "base/clock.h"
#include "sync/parts.h"

#include <string.h>

bool holds_tensors(const char *file_name) {
    static const char end[] = ".safetensors";
    const size_t length = strlen(file_name), tail = sizeof end - 1;

    return length >= tail && !strcmp(file_name + length - tail, end);
}

void fetched_shard_release(struct fetched_shard *shard) {
    shard_release(&shard->shard);
    spool_release(&shard->spool);
    *shard = (struct fetched_shard){0};
}

enum ulp_status shard_fetch(const struct work *work, const struct anchor_file *file,
                            size_t memory_bytes, struct fetched_shard *ret_shard) {
    struct fetched_shard shard = {0};
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = spool_open(&shard.spool, memory_bytes, NULL);

    if (!status)
        status = part_get(work->store, work->run, &file->part, &shard.spool);
    work_spent(&work->report->phases.fetch_ns, started);
    if (!status)
        status = spool_view(&shard.spool, &shard.data, &shard.bytes);
    if (!status)
        status = shard_parse(file->name, shard.data, shard.bytes, &shard.shard);
    if (status) {
        fetched_shard_release(&shard);
        return status;
    }
    work->report->fetched_bytes += shard.bytes;
    work->report->anchor_bytes += shard.bytes;
    work->report->fetched_objects++;
    *ret_shard = shard;
    return ULP_OK;
}

enum ulp_status anchor_each_shard(const struct work *work, const struct anchor *anchor,
                                  anchor_shard fn, void *user) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        struct fetched_shard fetched = {0};

        if (!holds_tensors(anchor->files[i].name))
            continue;
        status = shard_fetch(work, &anchor->files[i], WORK_BYTES, &fetched);
        if (!status)
            status = fn(user, &anchor->files[i], &fetched);
        fetched_shard_release(&fetched);
    }
    return status;
}
