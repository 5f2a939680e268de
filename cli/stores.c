// SPDX-License-Identifier: Apache-2.0
#include "cli/stores.h"

#include <string.h>
#include <sys/resource.h>
#include <ulpsync/ulpsync.h>

/* Credentials are in the environment and in memory; a crash does not write them to a disk. */
static void keep_secrets(const char *url) {
    struct rlimit limit;

    if (!strncmp(url, "s3://", 5) && !getrlimit(RLIMIT_CORE, &limit)) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
}

enum ulp_status store_open(const struct cli_args *args, const char *url,
                           struct ulp_store **ret_store) {
    const struct ulp_store_options options = {.endpoint = option_text(args, "endpoint"),
                                              .region = option_text(args, "region")};

    keep_secrets(url);
    return ulp_store_open_with(url, &options, ret_store);
}
