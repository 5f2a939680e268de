// SPDX-License-Identifier: Apache-2.0
#include "patch/fit.h"

#include "base/memory.h"
#include "base/quote.h"
#include "digest/root.h"
#include "patch/layout.h"

#include <stdlib.h>
#include <string.h>

bool same_root(const struct ulp_root *a, const struct ulp_root *b) {
    return !memcmp(a->bytes, b->bytes, ULP_ROOT_BYTES);
}

struct short_root short_root(const struct ulp_root *root) {
    struct short_root text;

    ulp_root_hex(root, text.hex);
    text.hex[16] = 0;
    return text;
}

enum ulp_status fit_history(const struct ulp_weights *weights, const struct ulp_patch *patch) {
    const struct table *table = &patch->table;

    if (!table->history)
        return ULP_OK;
    if (!weights->moves)
        return fail(ULP_E_NEEDS_HISTORY,
                    "%s is coded with history: it needs state %s..., which came before its base. "
                    "Name that one, or go on from a patch or checkpoint that needs no history",
                    quote(patch->name).text, short_root(&table->before).hex);
    if (!same_root(&weights->moves->before, &table->before))
        return fail(
            ULP_E_NEEDS_HISTORY,
            "%s is coded with the history from state %s..., but the one given is from %s...",
            quote(patch->name).text, short_root(&table->before).hex,
            short_root(&weights->moves->before).hex);
    return ULP_OK;
}

enum ulp_status fit_base(const struct ulp_weights *weights, const struct ulp_patch *patch) {
    enum ulp_status status = layout_compare(weights->tensors, weights->count, patch->table.tensors,
                                            patch->table.tensor_count, "the model", "the patch");

    if (status)
        return status;
    if (!same_root(&weights->root, &patch->table.parent))
        return fail(ULP_E_WRONG_BASE, "%s starts from state %s..., but these weights are %s...",
                    quote(patch->name).text, short_root(&patch->table.parent).hex,
                    short_root(&weights->root).hex);
    return fit_history(weights, patch);
}

enum ulp_status fit_held(const struct ulp_weights *weights, const struct ulp_patch *patch) {
    size_t *first = NULL;
    enum ulp_status status;

    if (weights->grid.whole)
        return ULP_OK;
    if (patch->table.grid.whole)
        return fail(ULP_E_REGIONS,
                    "%s is a whole patch, but these weights are a tile; take the patch of the tile",
                    quote(patch->name).text);
    status = grid_find_regions(&weights->grid, &patch->table.grid, &first);
    mem_free(first);
    return status;
}

/* Regions do not overlap, and each is one that is held: so their number says whether these are all.
 * A region that was left out would not be the child's. */
static enum ulp_status check_covered(const struct ulp_weights *weights,
                                     const struct ulp_patch *const *parts, size_t count) {
    size_t regions = 0;

    for (size_t i = 0; i < count; i++)
        regions += parts[i]->table.grid.region_count;
    if (weights->grid.whole || regions == weights->region_count)
        return ULP_OK;
    return fail(ULP_E_REGIONS, "the patch covers %zu of %zu regions that the weights hold", regions,
                weights->region_count);
}

static enum ulp_status check_apart(const struct ulp_patch *const *parts, size_t count);

enum ulp_status fit_check(const struct ulp_weights *weights, const struct ulp_patch *const *parts,
                          size_t count, const struct ulp_root *child, bool *ret_already) {
    const bool whole = count == 1 && parts[0]->table.grid.whole;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++) {
        if (parts[i]->table.grid.whole != whole)
            return fail(ULP_E_REGIONS,
                        "%s is a whole patch; it cannot be applied together with others",
                        quote(parts[i]->name).text);
        status = layout_compare(weights->tensors, weights->count, parts[i]->table.tensors,
                                parts[i]->table.tensor_count, "the model", "the patch");
        if (!status)
            status = fit_held(weights, parts[i]);
    }
    if (!status && !whole)
        status = check_apart(parts, count);
    if (!status)
        status = check_covered(weights, parts, count);
    if (status)
        return status;
    /* a step in which nothing moved is made all the same: it is what is remembered afterwards */
    *ret_already = same_root(&weights->root, child) && !same_root(child, &parts[0]->table.parent);
    for (size_t i = 0; !status && i < count && !*ret_already; i++)
        status = fit_base(weights, parts[i]);
    return status;
}

/* ---- parts ---- */

static int by_place(const void *a, const void *b) {
    const struct ulp_region *x = a, *y = b;
    int order = strcmp(x->tensor, y->tensor);

    if (!order)
        order = x->row < y->row ? -1 : x->row > y->row;
    return order ? order : x->column < y->column ? -1 : x->column > y->column;
}

/* All boxes of all parts, as one list in the order that a grid wants. */
static enum ulp_status collect_boxes(const struct ulp_patch *const *parts, size_t count,
                                     struct ulp_region **ret_boxes, size_t *ret_count) {
    struct ulp_region *boxes = NULL;
    size_t total = 0, at = 0;
    enum ulp_status status;

    for (size_t i = 0; i < count; i++)
        total += parts[i]->table.grid.region_count;
    status = mem_zeroed(total, sizeof *boxes, &boxes);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        const struct grid *grid = &parts[i]->table.grid;

        for (size_t k = 0; k < grid->region_count; k++)
            boxes[at++] = grid->regions[k].box;
    }
    qsort(boxes, total, sizeof *boxes, by_place);
    *ret_boxes = boxes;
    *ret_count = total;
    return ULP_OK;
}

/* A grid of all regions refuses those that overlap. */
static enum ulp_status grid_of_parts(const struct ulp_patch *const *parts, size_t count,
                                     struct grid *ret_grid) {
    const struct table *first = &parts[0]->table;
    struct ulp_region *boxes = NULL;
    size_t box_count = 0;
    enum ulp_status status = collect_boxes(parts, count, &boxes, &box_count);

    if (!status)
        status = grid_make(first->tensors, first->tensor_count, boxes, box_count, ret_grid);
    mem_free(boxes);
    return status;
}

static enum ulp_status check_apart(const struct ulp_patch *const *parts, size_t count) {
    struct grid all = {0};
    enum ulp_status status = grid_of_parts(parts, count, &all);

    grid_release(&all);
    return status;
}

/* Regions do not overlap, so they tile when they have as many words as the tensors. */
static enum ulp_status check_tiling(const struct ulp_patch *const *parts, size_t count) {
    const struct table *first = &parts[0]->table;
    struct grid all = {0}, whole = {0};
    enum ulp_status status = grid_of_parts(parts, count, &all);

    if (!status)
        status = grid_make(first->tensors, first->tensor_count, NULL, 0, &whole);
    if (!status && all.words != whole.words)
        status = fail(ULP_E_REGIONS,
                      "the parts cover %llu of %llu elements; give the others, too, or the root "
                      "that these lead to",
                      (unsigned long long)all.words, (unsigned long long)whole.words);
    grid_release(&all);
    grid_release(&whole);
    return status;
}

static enum ulp_status root_of_parts(const struct ulp_patch *const *parts, size_t count,
                                     struct ulp_sum *totals, size_t *order,
                                     struct ulp_root *ret_child) {
    const struct table *first = &parts[0]->table;

    for (size_t i = 0; i < count; i++) {
        const struct table *table = &parts[i]->table;

        for (size_t k = 0; k < table->grid.piece_count; k++) {
            struct ulp_sum *total = &totals[piece_region(&table->grid, k)->tensor];

            total->lane[0] += table->sums[k].lane[0];
            total->lane[1] += table->sums[k].lane[1];
        }
    }
    for (size_t i = 0; i < first->tensor_count; i++)
        order[i] = i;
    return root_of_sums(first->tensors, order, first->tensor_count, totals, ret_child);
}

/* Parts made from different states are none of one patch, even where their regions fit together. */
static enum ulp_status check_sibling(const struct ulp_patch *first, const struct ulp_patch *part) {
    const struct table *one = &first->table, *other = &part->table;
    enum ulp_status status = layout_compare(other->tensors, other->tensor_count, one->tensors,
                                            one->tensor_count, "one part", "another");

    if (!status && !same_root(&one->parent, &other->parent))
        status = fail(ULP_E_WRONG_BASE, "%s starts from state %s..., but another part from %s...",
                      quote(part->name).text, short_root(&other->parent).hex,
                      short_root(&one->parent).hex);
    return status;
}

enum ulp_status parts_root(const struct ulp_patch *const *parts, size_t count,
                           struct ulp_root *ret_child) {
    struct ulp_sum *totals = NULL;
    size_t *order = NULL;
    enum ulp_status status = ULP_OK;

    if (!count)
        return fail(ULP_E_USAGE, "no parts were given");
    for (size_t i = 0; !status && i < count; i++)
        status = check_sibling(parts[0], parts[i]);
    if (!status)
        status = check_tiling(parts, count);
    if (!status)
        status = mem_zeroed(parts[0]->table.tensor_count, sizeof *totals, &totals);
    if (!status)
        status = mem_zeroed(parts[0]->table.tensor_count, sizeof *order, &order);
    if (!status)
        status = root_of_parts(parts, count, totals, order, ret_child);
    mem_free(totals);
    mem_free(order);
    return status;
}
