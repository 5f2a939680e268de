// SPDX-License-Identifier: Apache-2.0
#include "cli/stores.h"

#include "cli/secrets.h"

#include <string.h>
#include <ulpsync/ulpsync.h>

static enum ulp_status open_with(const char *url, const struct ulp_store_options *options,
                                 struct ulp_store **ret_store) {
    if (!strncmp(url, "s3://", 5)) /* which comes with credentials */
        secrets_keep();
    return ulp_store_open_with(url, options, ret_store);
}

enum ulp_status store_open(const struct cli_args *args, const char *url,
                           struct ulp_store **ret_store) {
    const struct ulp_store_options options = {.endpoint = option_text(args, "endpoint"),
                                              .region = option_text(args, "region")};

    return open_with(url, &options, ret_store);
}

enum ulp_status store_open_hasty(const struct cli_args *args, const char *url,
                                 struct ulp_store **ret_store) {
    const struct ulp_store_options options = {.endpoint = option_text(args, "endpoint"),
                                              .region = option_text(args, "region"),
                                              .timeout_ms = 5000,
                                              .attempts = 3,
                                              .give_up_ms = 5000};

    return open_with(url, &options, ret_store);
}
