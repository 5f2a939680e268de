// SPDX-License-Identifier: Apache-2.0
#include "sync/slice.h"

#include "base/memory.h"
#include "base/quote.h"
#include "base/word.h"
#include "digest/root.h"
#include "patch/grid.h"
#include "patch/layout.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum ulp_status slice_make(const struct ulp_tiling *tiling, unsigned tile, bool common,
                           struct slice *ret_slice) {
    if (!tiling)
        return fail(ULP_E_USAGE, "a tile without a tiling");
    if (!tile || tile > tiling_count(tiling))
        return fail(ULP_E_USAGE, "tile %u of %u: tiles are numbered from 1", tile,
                    tiling_count(tiling));
    *ret_slice = (struct slice){tiling, tile, common};
    return ULP_OK;
}

/* ---- regions ---- */

/* A tensor is common or cut, so no two regions are of one. */
static int by_tensor(const void *a, const void *b) {
    return strcmp(((const struct ulp_region *)a)->tensor, ((const struct ulp_region *)b)->tensor);
}

enum ulp_status slice_regions(const struct slice *slice, const struct ulp_tensor *tensors,
                              size_t count, struct ulp_region **ret_regions, size_t *ret_count) {
    struct ulp_region *common = NULL, *own = NULL;
    size_t common_count = 0, own_count = 0;
    enum ulp_status status =
        tiling_regions(slice->tiling, tensors, count, slice->tile, &own, &own_count);

    if (!status && slice->common)
        status = tiling_regions(slice->tiling, tensors, count, 0, &common, &common_count);
    if (!status && common_count)
        status = mem_resize(&own, own_count + common_count, sizeof *own);
    if (!status && common_count) {
        memcpy(own + own_count, common, common_count * sizeof *own);
        own_count += common_count;
        qsort(own, own_count, sizeof *own, by_tensor);
    }
    mem_free(common);
    if (status) {
        mem_free(own);
        return status;
    }
    *ret_regions = own;
    *ret_count = own_count;
    return ULP_OK;
}

enum ulp_status region_each_stretch(const struct ulp_tensor *tensor,
                                    const struct ulp_region *region, region_stretch fn,
                                    void *user) {
    const unsigned width = word_bytes_of(tensor->bits);
    uint64_t rows, pitch, first, bytes;
    enum ulp_status status = ULP_OK;

    grid_view(tensor, &rows, &pitch);
    first = (region->row * pitch + region->column) * width;
    bytes = region->columns * width;
    if (region->columns == pitch)
        return fn(user, first, (size_t)(bytes * region->rows));
    for (uint64_t row = 0; !status && row < region->rows; row++)
        status = fn(user, first + row * pitch * width, (size_t)bytes);
    return status;
}

struct copying {
    const uint8_t *from;
    uint8_t *to;
};

static enum ulp_status copy_stretch(void *user, uint64_t offset, size_t bytes) {
    const struct copying *copying = user;

    memcpy(copying->to + offset, copying->from + offset, bytes);
    return ULP_OK;
}

enum ulp_status regions_copy(const struct ulp_region *regions, size_t region_count,
                             const struct ulp_tensor *from, size_t from_count,
                             const struct ulp_tensor *to, size_t to_count) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < region_count; i++) {
        const struct ulp_tensor *source = tensor_find(from, from_count, regions[i].tensor);
        const struct ulp_tensor *target = tensor_find(to, to_count, regions[i].tensor);

        status =
            layout_compare(target, target != NULL, source, source != NULL, "memory", "the run");
        if (!status) {
            struct copying copying = {source->data, target->data};

            status = region_each_stretch(source, &regions[i], copy_stretch, &copying);
        }
    }
    return status;
}

/* ---- the root of what is not kept ---- */

static enum ulp_status add_sum(struct sums *sums, const char *name, const struct ulp_sum *sum) {
    struct tensor_sum entry = {.sum = *sum};
    enum ulp_status status = mem_grow(&sums->list, sums->count, sizeof *sums->list, &sums->room);

    if (!status)
        status = arena_text(&sums->arena, name, strlen(name), &entry.name);
    if (!status)
        sums->list[sums->count++] = entry;
    return status;
}

enum ulp_status sums_add(struct sums *sums, const struct ulp_tensor *tensors, size_t count,
                         struct ulp_pool *pool) {
    struct ulp_sum *each = NULL;
    struct ulp_root unused;
    enum ulp_status status = mem_zeroed(count, sizeof *each, &each);

    if (!status)
        status = state_digest(tensors, count, pool, NULL, each, &unused);
    for (size_t i = 0; !status && i < count; i++)
        status = add_sum(sums, tensors[i].name, &each[i]);
    mem_free(each);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct tensor_sum *)a)->name, ((const struct tensor_sum *)b)->name);
}

static enum ulp_status match_names(const struct sums *sums, const struct ulp_tensor *tensors,
                                   size_t count) {
    if (sums->count != count)
        return fail(ULP_E_LAYOUT, "the run has %zu tensors, and memory %zu", sums->count, count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sums->list[i].name, tensors[i].name) != 0)
            return fail(ULP_E_LAYOUT, "the run has a tensor %s where memory has %s",
                        quote(sums->list[i].name).text, quote(tensors[i].name).text);
    }
    return ULP_OK;
}

enum ulp_status sums_root(struct sums *sums, const struct ulp_tensor *tensors, size_t count,
                          struct ulp_root *ret_root) {
    struct ulp_sum *in_order = NULL;
    size_t *order = NULL;
    enum ulp_status status;

    if (sums->count)
        qsort(sums->list, sums->count, sizeof *sums->list, by_name);
    status = match_names(sums, tensors, count);
    if (!status)
        status = mem_zeroed(count, sizeof *in_order, &in_order);
    if (!status)
        status = mem_zeroed(count, sizeof *order, &order);
    for (size_t i = 0; !status && i < count; i++) {
        in_order[i] = sums->list[i].sum;
        order[i] = i;
    }
    if (!status)
        status = root_of_sums(tensors, order, count, in_order, ret_root);
    mem_free(in_order);
    mem_free(order);
    return status;
}

void sums_release(struct sums *sums) {
    mem_free(sums->list);
    arena_release(&sums->arena);
    *sums = (struct sums){0};
}
