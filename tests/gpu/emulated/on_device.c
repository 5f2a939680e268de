// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/emulated/on_device.h"

enum ulp_status follower_on_device(struct ulp_store *store, const char *run,
                                   const struct ulp_tensor *tensors, size_t count,
                                   const struct ulp_run_options *options,
                                   struct ulp_follower **ret_follower) {
    return ulp_follower_open_cuda(store, run, tensors, count, NULL, NULL, options, ret_follower);
}

enum ulp_status publisher_on_device(struct ulp_store *store, const char *run, const char *directory,
                                    const struct ulp_run_options *options,
                                    struct ulp_publisher **ret_publisher) {
    return directory ? ulp_publisher_open(store, run, directory, options, ret_publisher)
                     : ulp_publisher_open_cuda(store, run, NULL, 0, NULL, options, ret_publisher);
}
