// SPDX-License-Identifier: Apache-2.0
#include "sync/fetch.h"

#include "base/memory.h"
#include "patch/patch.h"
#include "sync/holder.h"
#include "sync/parts.h"

void fetched_release(struct fetched *fetched) {
    for (size_t i = 0; i < fetched->count; i++) {
        if (fetched->patches)
            patch_free(fetched->patches[i]);
        if (fetched->spools)
            spool_release(&fetched->spools[i]);
    }
    mem_free(fetched->patches);
    mem_free(fetched->spools);
    *fetched = (struct fetched){0};
}

/* What is longer than any publisher makes it would fill the disk of who believes it. */
static enum ulp_status get_part(struct ulp_store *store, const char *run, const struct part *part,
                                struct spool *spool) {
    if (part->bytes > PART_BYTES)
        return fail(ULP_E_PART, "a part of a patch of %llu bytes; there are none above %zu",
                    (unsigned long long)part->bytes, PART_BYTES);
    return part_get(store, run, part, spool);
}

/* All patches of a way together are in memory up to a limit. */
static enum ulp_status fetch_patch(struct ulp_store *store, const char *run,
                                   const struct stored_patch *stored, size_t memory_bytes,
                                   struct fetched *fetched) {
    const size_t index = fetched->count++;
    struct spool *spool = &fetched->spools[index];
    const uint8_t *data = NULL;
    size_t bytes = 0;
    enum ulp_status status = spool_open(spool, memory_bytes, NULL);

    for (size_t i = 0; !status && i < stored->part_count; i++)
        status = get_part(store, run, &stored->parts[i], spool);
    if (!status)
        status = spool_view(spool, &data, &bytes);
    if (!status)
        status = patch_open_memory(data, bytes, &fetched->patches[index]);
    fetched->bytes += bytes;
    fetched->objects += (unsigned)stored->part_count;
    return status;
}

enum ulp_status fetch_way(struct ulp_store *store, const char *run, const struct way *way,
                          struct fetched *ret_fetched) {
    struct fetched fetched = {0};
    enum ulp_status status = mem_zeroed(way->patch_count, sizeof *fetched.spools, &fetched.spools);

    if (!status)
        status = mem_zeroed(way->patch_count, sizeof(struct ulp_patch *), &fetched.patches);
    for (size_t i = 0; !status && i < way->patch_count; i++) {
        if (way->patches[i].part_count)
            status =
                fetch_patch(store, run, &way->patches[i], WORK_BYTES / way->patch_count, &fetched);
    }
    if (status)
        fetched_release(&fetched);
    else
        *ret_fetched = fetched;
    return status;
}

/* ---- ahead ---- */

/* Whether the next one may be fetched now: there is always room for one. */
static bool has_room(const struct ahead *ahead) {
    return ahead->ready == ahead->taken ||
           add_bytes(ahead->waiting, way_bytes(ahead->ways[ahead->ready])) <= ahead->budget;
}

/* Fetches one; false when that was the last that can be had. */
static bool fetch_next(struct ahead *ahead) {
    struct fetched fetched = {0};
    const struct way *way;
    enum ulp_status status;

    lock_take(&ahead->lock);
    while (!ahead->stop && ahead->ready < ahead->count && !has_room(ahead))
        lock_wait(&ahead->lock);
    if (ahead->stop || ahead->ready == ahead->count) {
        lock_give(&ahead->lock);
        return false;
    }
    way = ahead->ways[ahead->ready];
    lock_give(&ahead->lock);
    status = fetch_way(ahead->store, ahead->run, way, &fetched);
    lock_take(&ahead->lock);
    ahead->status = status;
    if (status) {
        error_save(&ahead->note);
    } else {
        ahead->waiting += fetched.bytes;
        ahead->fetched[ahead->ready++] = fetched;
    }
    lock_wake(&ahead->lock);
    lock_give(&ahead->lock);
    return !status;
}

static void fetch_all(void *user) {
    while (fetch_next(user))
        ;
}

enum ulp_status ahead_start(struct ahead *ahead, struct ulp_store *store, const char *run,
                            const struct plan *plan, uint64_t budget) {
    enum ulp_status status;

    *ahead = (struct ahead){
        .store = store, .run = run, .ways = plan->ways, .count = plan->way_count, .budget = budget};
    status = mem_zeroed(ahead->count, sizeof *ahead->fetched, &ahead->fetched);
    if (status)
        return status;
    lock_make(&ahead->lock);
    status = ahead->count > 1 ? thread_start(&ahead->thread, fetch_all, ahead) : ULP_OK;
    if (status) {
        lock_destroy(&ahead->lock);
        mem_free(ahead->fetched);
        *ahead = (struct ahead){0};
    }
    return status;
}

enum ulp_status ahead_take(struct ahead *ahead, struct fetched *ret_fetched) {
    enum ulp_status status;

    if (!ahead->thread.started) { /* a single one needs no thread */
        status = fetch_way(ahead->store, ahead->run, ahead->ways[ahead->taken], ret_fetched);
        ahead->taken += !status;
        return status;
    }
    lock_take(&ahead->lock);
    while (ahead->ready == ahead->taken && !ahead->status)
        lock_wait(&ahead->lock);
    status = ahead->ready == ahead->taken ? ahead->status : ULP_OK;
    if (!status) {
        *ret_fetched = ahead->fetched[ahead->taken];
        ahead->fetched[ahead->taken++] = (struct fetched){0};
        ahead->waiting -= ret_fetched->bytes;
        lock_wake(&ahead->lock);
    }
    lock_give(&ahead->lock);
    if (status)
        error_restore(&ahead->note);
    return status;
}

void ahead_stop(struct ahead *ahead) {
    if (!ahead->fetched)
        return;
    lock_take(&ahead->lock);
    ahead->stop = true;
    lock_wake(&ahead->lock);
    lock_give(&ahead->lock);
    thread_join(&ahead->thread);
    for (size_t i = ahead->taken; i < ahead->ready; i++)
        fetched_release(&ahead->fetched[i]);
    lock_destroy(&ahead->lock);
    mem_free(ahead->fetched);
    *ahead = (struct ahead){0};
}
