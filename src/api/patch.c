// SPDX-License-Identifier: Apache-2.0
/* Public entry points on patches: argument checks, then one internal call. */
#include "base/status.h"
#include "patch/apply.h"
#include "patch/diff.h"
#include "patch/fit.h"
#include "patch/inspect.h"
#include "patch/model_files.h"
#include "patch/squash.h"

#include <ulpsync/patch.h>

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_weights_new(const struct ulp_tensor *tensors, size_t count,
                                struct ulp_pool *pool, const struct ulp_progress *progress,
                                struct ulp_weights **ret_weights) {
    if ((count && !tensors) || !ret_weights)
        return missing(__func__);
    return weights_new(tensors, count, pool, progress, ret_weights);
}

enum ulp_status ulp_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                     const struct ulp_region *regions, size_t region_count,
                                     const struct ulp_root *state, struct ulp_pool *pool,
                                     const struct ulp_progress *progress,
                                     struct ulp_weights **ret_weights) {
    if ((count && !tensors) || (region_count && !regions) || !state || !ret_weights)
        return missing(__func__);
    return weights_new_tile(tensors, count, regions, region_count, state, pool, progress,
                            ret_weights);
}

void ulp_weights_free(struct ulp_weights *weights) {
    weights_free(weights);
}

void ulp_weights_root(const struct ulp_weights *weights, struct ulp_root *ret_root) {
    *ret_root = weights->root;
}

void ulp_weights_trim(struct ulp_weights *weights) {
    workers_trim(weights->workers);
}

enum ulp_status ulp_weights_remember(struct ulp_weights *weights, const struct ulp_tensor *before,
                                     size_t count, struct ulp_pool *pool,
                                     const struct ulp_progress *progress) {
    if (!weights || (count && !before))
        return missing(__func__);
    return weights_remember(weights, before, count, pool, progress);
}

void ulp_weights_forget(struct ulp_weights *weights) {
    moves_free(weights->moves);
    weights->moves = NULL;
}

int ulp_weights_remembers(const struct ulp_weights *weights, struct ulp_root *ret_before) {
    if (weights->moves && ret_before)
        *ret_before = weights->moves->before;
    return weights->moves != NULL;
}

enum ulp_status ulp_diff(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                         size_t count, const struct ulp_diff_options *options,
                         const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    if (!weights || (count && !tensors) || !sink || !sink->write)
        return missing(__func__);
    return diff(weights, tensors, count, options, sink, ret_report);
}

enum ulp_status ulp_diff_file(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                              size_t count, const struct ulp_diff_options *options,
                              const char *path, enum ulp_commit commit,
                              struct ulp_diff_report *ret_report) {
    if (!weights || (count && !tensors) || !path)
        return missing(__func__);
    return diff_file(weights, tensors, count, options, path, commit, ret_report);
}

enum ulp_status ulp_patch_open(const char *path, struct ulp_patch **ret_patch) {
    return path && ret_patch ? patch_open(path, ret_patch) : missing(__func__);
}

enum ulp_status ulp_patch_open_memory(const void *data, size_t bytes,
                                      struct ulp_patch **ret_patch) {
    return data && ret_patch ? patch_open_memory(data, bytes, ret_patch) : missing(__func__);
}

enum ulp_status ulp_patch_open_source(const struct ulp_source *source,
                                      struct ulp_patch **ret_patch) {
    return source && source->read && ret_patch ? patch_open_source(source, ret_patch)
                                               : missing(__func__);
}

void ulp_patch_free(struct ulp_patch *patch) {
    patch_free(patch);
}

void ulp_patch_info(const struct ulp_patch *patch, struct ulp_patch_info *ret_info) {
    const struct table *table = &patch->table;

    *ret_info = (struct ulp_patch_info){.version = PATCH_VERSION,
                                        .history = table->history,
                                        .partial = !table->grid.whole,
                                        .parent = table->parent,
                                        .child = table->child,
                                        .before = table->before,
                                        .bytes = patch->source.bytes,
                                        .elements = table->grid.words,
                                        .changed = table->changes,
                                        .tensors = table->tensor_count,
                                        .chunks = table->grid.chunk_count};
    for (size_t i = 0; i < table->grid.chunk_count; i++)
        ret_info->dense_bytes +=
            (uint64_t)table->grid.chunks[i].words * table->grid.chunks[i].kind.width;
}

const struct ulp_tensor *ulp_patch_tensors(const struct ulp_patch *patch) {
    return patch->table.tensors;
}

enum ulp_status ulp_patch_verify(const struct ulp_patch *patch, struct ulp_pool *pool,
                                 const struct ulp_progress *progress) {
    return patch ? patch_verify(patch, pool, progress) : missing(__func__);
}

enum ulp_status ulp_patch_inspect(const struct ulp_patch *patch, const struct ulp_weights *base,
                                  struct ulp_pool *pool, const struct ulp_progress *progress,
                                  struct ulp_tensor_report *ret_reports) {
    if (!patch || (!ret_reports && patch->table.tensor_count))
        return missing(__func__);
    return patch_inspect(patch, base, pool, progress, ret_reports);
}

/* An array of patches without holes. */
static int all_there(const struct ulp_patch *const *patches, size_t count) {
    for (size_t i = 0; patches && i < count; i++) {
        if (!patches[i])
            return 0;
    }
    return patches && count;
}

enum ulp_status ulp_parts_root(const struct ulp_patch *const *parts, size_t count,
                               struct ulp_root *ret_child) {
    return all_there(parts, count) && ret_child ? parts_root(parts, count, ret_child)
                                                : missing(__func__);
}

enum ulp_status ulp_apply_prepare(struct ulp_weights *weights, const struct ulp_patch *patch,
                                  const struct ulp_apply_options *options,
                                  struct ulp_apply **ret_apply) {
    if (!weights || !patch || !ret_apply)
        return missing(__func__);
    return apply_prepare(weights, &patch, 1, NULL, options, ret_apply);
}

enum ulp_status ulp_apply_prepare_parts(struct ulp_weights *weights,
                                        const struct ulp_patch *const *parts, size_t count,
                                        const struct ulp_root *child,
                                        const struct ulp_apply_options *options,
                                        struct ulp_apply **ret_apply) {
    if (!weights || !all_there(parts, count) || !ret_apply)
        return missing(__func__);
    return apply_prepare(weights, parts, count, child, options, ret_apply);
}

enum ulp_status ulp_apply_commit(struct ulp_apply *apply, const struct ulp_progress *progress,
                                 struct ulp_apply_report *ret_report) {
    return apply ? apply_commit(apply, progress, ret_report) : missing(__func__);
}

enum ulp_status ulp_apply_undo(struct ulp_apply *apply) {
    return apply ? apply_undo(apply) : missing(__func__);
}

void ulp_apply_free(struct ulp_apply *apply) {
    apply_free(apply);
}

enum ulp_status ulp_apply(struct ulp_weights *weights, const struct ulp_patch *patch,
                          const struct ulp_apply_options *options,
                          struct ulp_apply_report *ret_report) {
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_apply_prepare(weights, patch, options, &apply);

    if (!status)
        status = apply_commit(apply, NULL, ret_report);
    apply_free(apply);
    return status;
}

enum ulp_status ulp_model_patch_in_place(const char *path, const struct ulp_patch *patch,
                                         const struct ulp_model *history,
                                         const struct ulp_apply_options *options,
                                         struct ulp_apply_report *ret_report) {
    return path && patch ? model_patch_in_place(path, patch, history, options, ret_report)
                         : missing(__func__);
}

enum ulp_status ulp_model_patch(const char *path, const struct ulp_patch *patch,
                                const struct ulp_model *history, const char *out,
                                const struct ulp_apply_options *options,
                                struct ulp_apply_report *ret_report) {
    return path && patch && out ? model_patch(path, &patch, 1, history, out, options, ret_report)
                                : missing(__func__);
}

enum ulp_status ulp_model_recover(const char *path, int *ret_recovered) {
    return path && ret_recovered ? model_recover(path, ret_recovered) : missing(__func__);
}

enum ulp_status ulp_squash(const struct ulp_weights *weights,
                           const struct ulp_patch *const *patches, size_t count,
                           const struct ulp_diff_options *options, const struct ulp_sink *sink,
                           struct ulp_diff_report *ret_report) {
    if (!weights || !all_there(patches, count) || !sink || !sink->write)
        return missing(__func__);
    return squash(weights, patches, count, options, sink, ret_report);
}

enum ulp_status ulp_squash_file(const struct ulp_weights *weights,
                                const struct ulp_patch *const *patches, size_t count,
                                const struct ulp_diff_options *options, const char *path,
                                enum ulp_commit commit, struct ulp_diff_report *ret_report) {
    if (!weights || !all_there(patches, count) || !path)
        return missing(__func__);
    return squash_file(weights, patches, count, options, path, commit, ret_report);
}
