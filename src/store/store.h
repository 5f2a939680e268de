// SPDX-License-Identifier: Apache-2.0
/* The one interface of stores, inside; <ulpsync/store.h> describes it. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/status.h"

#include <ulpsync/store.h>

/* ULP_E_NAME unless it is a key. */
enum ulp_status key_check(const char *key);

/* ULP_E_USAGE, in the name of a public function. */
enum ulp_status store_argument_missing(const char *function);

/* A stream made of reads. */
enum ulp_status store_stream_by_reads(const struct ulp_store_ops *ops, void *self, const char *key,
                                      uint64_t offset, uint64_t bytes, ulp_store_piece piece,
                                      void *user, uint64_t *ret_total);

/* A store that keeps objects below a directory. */
enum ulp_status store_directory_new(const char *path, struct ulp_store **ret_store);

/* Stores over a network, by the whole URL. */
enum ulp_status store_s3_new(const char *url, const struct ulp_store_options *options,
                             struct ulp_store **ret_store);
enum ulp_status store_http_new(const char *url, const struct ulp_store_options *options,
                               struct ulp_store **ret_store);

#endif
