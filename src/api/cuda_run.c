// SPDX-License-Identifier: Apache-2.0
/* Public entry points on runs in device memory: argument checks, the kernels, then one internal
 * call. */
#include "gpu/loader.h"
#include "sync/device_holder.h"
#include "sync/publisher.h"

#include <ulpsync/cuda_run.h>

static const struct ulp_run_options plain_options;

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_publisher_open_cuda(struct ulp_store *store, const char *run,
                                        const struct ulp_tensor *published, size_t count,
                                        void *stream, const struct ulp_run_options *options,
                                        struct ulp_publisher **ret_publisher) {
    struct holder *holder = NULL;
    enum ulp_status status;

    if (!store || !run || (count && !published) || !ret_publisher)
        return missing(__func__);
    options = options ? options : &plain_options;
    status = cuda_load();
    if (!status)
        status = device_holder_open(published, count, NULL, stream, options, &holder);
    return status ? status : publisher_new(store, run, options, holder, ret_publisher);
}

enum ulp_status ulp_follower_open_cuda(struct ulp_store *store, const char *run,
                                       const struct ulp_tensor *tensors, size_t count,
                                       uint32_t *poisoned, void *stream,
                                       const struct ulp_run_options *options,
                                       struct ulp_follower **ret_follower) {
    struct holder *holder = NULL;
    enum ulp_status status;

    if (!store || !run || !tensors || !ret_follower)
        return missing(__func__);
    options = options ? options : &plain_options;
    status = cuda_load();
    if (!status)
        status = device_holder_open(tensors, count, poisoned, stream, options, &holder);
    return status ? status : follower_new(store, run, options, holder, ret_follower);
}
