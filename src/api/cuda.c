// SPDX-License-Identifier: Apache-2.0
/* Public entry points on device memory: argument checks, the kernels, then one internal call. A public
 * handle is the internal one under another name. */
#include "base/status.h"
#include "gpu/device_apply.h"
#include "gpu/device_cast.h"
#include "gpu/device_diff.h"
#include "gpu/device_second.h"
#include "gpu/loader.h"

#include <ulpsync/cuda.h>

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

static struct device_weights *inner(struct ulp_cuda_weights *weights) {
    return (struct device_weights *)(void *)weights;
}

static struct device_apply *inner_apply(struct ulp_cuda_apply *apply) {
    return (struct device_apply *)(void *)apply;
}

enum ulp_status ulp_cuda_available(void) {
    return cuda_load();
}

enum ulp_status ulp_cuda_weights_new(const struct ulp_tensor *tensors, size_t count,
                                     uint32_t *poisoned, void *stream,
                                     struct ulp_cuda_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status;

    if ((count && !tensors) || !ret_weights)
        return missing(__func__);
    status = cuda_load();
    if (!status)
        status = device_weights_new(tensors, count, poisoned, stream, &weights);
    if (!status)
        *ret_weights = (struct ulp_cuda_weights *)(void *)weights;
    return status;
}

enum ulp_status ulp_cuda_weights_on_host(const struct ulp_weights *snapshot, void *stream,
                                         struct ulp_cuda_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status;

    if (!snapshot || !ret_weights)
        return missing(__func__);
    status = cuda_load();
    if (!status)
        status = device_weights_on_host(snapshot, 0, stream, &weights);
    if (!status)
        *ret_weights = (struct ulp_cuda_weights *)(void *)weights;
    return status;
}

enum ulp_status ulp_cuda_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                          const struct ulp_region *regions, size_t region_count,
                                          const struct ulp_root *state, uint32_t *poisoned,
                                          void *stream, struct ulp_cuda_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status;

    if ((count && !tensors) || (region_count && !regions) || !state || !ret_weights)
        return missing(__func__);
    status = cuda_load();
    if (!status)
        status = device_weights_new_tile(tensors, count, regions, region_count, state, poisoned,
                                         stream, &weights);
    if (!status)
        *ret_weights = (struct ulp_cuda_weights *)(void *)weights;
    return status;
}

void ulp_cuda_weights_free(struct ulp_cuda_weights *weights) {
    device_weights_free(inner(weights));
}

enum ulp_status ulp_cuda_weights_double(struct ulp_cuda_weights *weights,
                                        const struct ulp_tensor *second, size_t count,
                                        uint32_t *front) {
    if (!weights || (count && !second))
        return missing(__func__);
    return device_second_attach(inner(weights), second, count, front);
}

unsigned ulp_cuda_weights_front(const struct ulp_cuda_weights *weights) {
    const struct device_weights *of = (const struct device_weights *)(const void *)weights;

    return of->second ? of->second->front : 0;
}

void ulp_cuda_weights_root(const struct ulp_cuda_weights *weights, struct ulp_root *ret_root) {
    *ret_root = ((const struct device_weights *)(const void *)weights)->weights->root;
}

enum ulp_status ulp_cuda_weights_audit(struct ulp_cuda_weights *weights) {
    return weights ? device_weights_audit(inner(weights)) : missing(__func__);
}

void ulp_cuda_weights_trim(struct ulp_cuda_weights *weights) {
    device_weights_trim(inner(weights));
}

enum ulp_status ulp_cuda_diff(struct ulp_cuda_weights *weights, const struct ulp_tensor *tensors,
                              size_t count, const struct ulp_diff_options *options,
                              const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    if (!weights || (count && !tensors) || !sink || !sink->write)
        return missing(__func__);
    return device_diff(inner(weights), tensors, count, options, sink, ret_report);
}

enum ulp_status ulp_cuda_apply_prepare(struct ulp_cuda_weights *weights,
                                       const struct ulp_patch *patch,
                                       const struct ulp_apply_options *options,
                                       struct ulp_cuda_apply **ret_apply) {
    struct device_apply *apply = NULL;
    enum ulp_status status;

    if (!weights || !patch || !ret_apply)
        return missing(__func__);
    status = device_apply_prepare(inner(weights), patch, options, &apply);
    if (!status)
        *ret_apply = (struct ulp_cuda_apply *)(void *)apply;
    return status;
}

/* An array of patches without holes. */
static int all_there(const struct ulp_patch *const *patches, size_t count) {
    for (size_t i = 0; patches && i < count; i++) {
        if (!patches[i])
            return 0;
    }
    return patches && count;
}

enum ulp_status ulp_cuda_apply_prepare_parts(struct ulp_cuda_weights *weights,
                                             const struct ulp_patch *const *parts, size_t count,
                                             const struct ulp_root *child,
                                             const struct ulp_apply_options *options,
                                             struct ulp_cuda_apply **ret_apply) {
    struct device_apply *apply = NULL;
    enum ulp_status status;

    if (!weights || !all_there(parts, count) || !ret_apply)
        return missing(__func__);
    status = device_apply_prepare_parts(inner(weights), parts, count, child, options, &apply);
    if (!status)
        *ret_apply = (struct ulp_cuda_apply *)(void *)apply;
    return status;
}

enum ulp_status ulp_cuda_apply_commit(struct ulp_cuda_apply *apply,
                                      struct ulp_apply_report *ret_report) {
    return apply ? device_apply_commit(inner_apply(apply), ret_report) : missing(__func__);
}

enum ulp_status ulp_cuda_apply_undo(struct ulp_cuda_apply *apply) {
    return apply ? device_apply_undo(inner_apply(apply)) : missing(__func__);
}

void ulp_cuda_apply_free(struct ulp_cuda_apply *apply) {
    device_apply_free(inner_apply(apply));
}

enum ulp_status ulp_cuda_apply(struct ulp_cuda_weights *weights, const struct ulp_patch *patch,
                               const struct ulp_apply_options *options,
                               struct ulp_apply_report *ret_report) {
    struct ulp_cuda_apply *apply = NULL;
    enum ulp_status status = ulp_cuda_apply_prepare(weights, patch, options, &apply);

    if (!status)
        status = ulp_cuda_apply_commit(apply, ret_report);
    ulp_cuda_apply_free(apply);
    return status;
}

enum ulp_status ulp_cuda_cast(struct ulp_cuda_weights *weights, const struct ulp_tensor *masters,
                              size_t count) {
    if (!weights || (count && !masters))
        return missing(__func__);
    return device_cast(inner(weights), masters, count);
}

enum ulp_status ulp_cuda_cast_diff(struct ulp_cuda_weights *weights,
                                   const struct ulp_diff_options *options,
                                   const struct ulp_sink *sink,
                                   struct ulp_diff_report *ret_report) {
    if (!weights || !sink || !sink->write)
        return missing(__func__);
    return device_cast_diff(inner(weights), options, sink, ret_report);
}

enum ulp_status ulp_cuda_cast_commit(struct ulp_cuda_weights *weights) {
    return weights ? device_cast_commit(inner(weights)) : missing(__func__);
}

enum ulp_status ulp_cuda_cast_undo(struct ulp_cuda_weights *weights) {
    return weights ? device_cast_undo(inner(weights)) : missing(__func__);
}
