// SPDX-License-Identifier: Apache-2.0
/* Opening stores, for all verbs. */
#ifndef CLI_STORES_H
#define CLI_STORES_H

#include "cli/options.h"

#define STORE_URL_HELP "a directory; s3://bucket/prefix; or https://host/path, for reading only."

/* What S3 needs to know; the environment says it otherwise. */
#define STORE_OPTIONS                                                                              \
    {"endpoint", 0, "URL", "The S3 server, instead of AWS; AWS_ENDPOINT_URL_S3 says the same."}, { \
        "region", 0, "NAME", "Its region; AWS_REGION says the same."                               \
    }

enum ulp_status store_open(const struct cli_args *args, const char *url,
                           struct ulp_store **ret_store);

/* For what is not worth waiting for: it fails after some ten seconds at most. */
enum ulp_status store_open_hasty(const struct cli_args *args, const char *url,
                                 struct ulp_store **ret_store);

#endif
