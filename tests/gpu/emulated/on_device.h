// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of tests/sync whose publishers and followers in memory are on a device instead: they are
 * compiled with the names of the functions that open them replaced by those here.
 */
#ifndef TESTS_GPU_EMULATED_ON_DEVICE_H
#define TESTS_GPU_EMULATED_ON_DEVICE_H

#include <ulpsync/ulpsync.h>

enum ulp_status follower_on_device(struct ulp_store *store, const char *run,
                                   const struct ulp_tensor *tensors, size_t count,
                                   const struct ulp_run_options *options,
                                   struct ulp_follower **ret_follower);

/* With a directory, it is that of any other publisher. */
enum ulp_status publisher_on_device(struct ulp_store *store, const char *run, const char *directory,
                                    const struct ulp_run_options *options,
                                    struct ulp_publisher **ret_publisher);

#endif
