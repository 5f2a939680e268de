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

/* A store that keeps objects below a directory. */
enum ulp_status store_directory_new(const char *path, struct ulp_store **ret_store);

#endif
