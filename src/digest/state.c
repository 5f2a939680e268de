// SPDX-License-Identifier: Apache-2.0
/* Digesting a whole state on a pool of threads. */
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "digest/root.h"
#include "scan/digest_sum.h"

#include <stdatomic.h>

/* Long enough that taking a task costs nothing, short enough that threads end together. */
#define TASK_WORDS (UINT64_C(4) << 20 >> 3)

struct atomic_sum {
    atomic_uint_fast64_t lane[2];
};

/* All tensors laid end to end, in words; a task is a stretch of that line. */
struct line {
    const struct ulp_tensor *tensors;
    size_t count;
    uint64_t *starts; /* of each tensor, and the end */
    struct atomic_sum *sums;
};

static uint64_t words_of(uint64_t bytes) {
    return bytes / DIGEST_WORD_BYTES + (bytes % DIGEST_WORD_BYTES != 0);
}

/* The last tensor that starts at or before `word`. */
static size_t tensor_at(const struct line *line, uint64_t word) {
    size_t low = 0, high = line->count - 1;

    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;

        if (line->starts[middle] <= word)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Adds the part of tensor `index` that lies in [begin, end) of the line. */
static void add_part(const struct line *line, size_t index, uint64_t begin, uint64_t end) {
    const struct ulp_tensor *tensor = &line->tensors[index];
    uint64_t start = line->starts[index], stop = line->starts[index + 1];
    uint64_t first = (begin > start ? begin : start) - start;
    uint64_t last = (end < stop ? end : stop) - start;
    uint64_t at = first * DIGEST_WORD_BYTES, until = last * DIGEST_WORD_BYTES;
    struct ulp_sum sum = {{0, 0}};

    if (until > tensor->bytes)
        until = tensor->bytes;
    if (at >= until)
        return;
    digest_add((const uint8_t *)tensor->data + at, (size_t)(until - at), first, &sum);
    for (int lane = 0; lane < 2; lane++)
        atomic_fetch_add_explicit(&line->sums[index].lane[lane], sum.lane[lane],
                                  memory_order_relaxed);
}

static enum ulp_status digest_task(void *user, uint64_t task) {
    const struct line *line = user;
    uint64_t begin = task * TASK_WORDS, end = begin + TASK_WORDS;

    for (size_t i = tensor_at(line, begin); i < line->count && line->starts[i] < end; i++)
        add_part(line, i, begin, end);
    return ULP_OK;
}

static enum ulp_status lay_out(struct line *line) {
    enum ulp_status status = mem_zeroed(line->count + 1, sizeof *line->starts, &line->starts);

    if (!status)
        status = mem_zeroed(line->count, sizeof *line->sums, &line->sums);
    for (size_t i = 0; !status && i < line->count; i++) {
        if (add_overflows(line->starts[i], words_of(line->tensors[i].bytes), &line->starts[i + 1]))
            status = fail(ULP_E_LIMIT, "the tensors add up to more than 2^64 bytes");
    }
    return status;
}

/* Tensors in the caller's order; progress in tasks becomes progress in bytes only roughly, which is
 * all that a progress bar needs. */
static enum ulp_status sum_all(struct line *line, struct ulp_pool *pool,
                               const struct ulp_progress *progress, struct ulp_sum *sums) {
    uint64_t words, tasks;
    enum ulp_status status;

    log_message(ULP_LOG_DEBUG, "digesting on %u threads", ulp_pool_threads(pool));
    words = line->starts[line->count];
    tasks = words / TASK_WORDS + (words % TASK_WORDS != 0);
    status = ulp_pool_run(pool, tasks, digest_task, line, progress);
    for (size_t i = 0; !status && i < line->count; i++) {
        for (int lane = 0; lane < 2; lane++)
            sums[i].lane[lane] = atomic_load(&line->sums[i].lane[lane]);
    }
    return status;
}

enum ulp_status state_digest(const struct ulp_tensor *tensors, size_t count, struct ulp_pool *pool,
                             const struct ulp_progress *progress, struct ulp_sum *ret_sums,
                             struct ulp_root *ret_root) {
    struct line line = {.tensors = tensors, .count = count};
    struct ulp_sum *sums = NULL;
    size_t *order = NULL;
    enum ulp_status status = mem_zeroed(count, sizeof *order, &order);

    if (!status)
        status = root_order(tensors, count, order);
    if (!status)
        status = mem_zeroed(count, sizeof *sums, &sums);
    if (!status)
        status = lay_out(&line);
    if (!status)
        status = sum_all(&line, pool, progress, sums);
    if (!status)
        status = root_of_sums(tensors, order, count, sums, ret_root);
    for (size_t i = 0; !status && ret_sums && i < count; i++)
        ret_sums[i] = sums[i];
    mem_free(line.starts);
    mem_free(line.sums);
    mem_free(sums);
    mem_free(order);
    return status;
}
