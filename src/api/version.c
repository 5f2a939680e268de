// SPDX-License-Identifier: Apache-2.0
#include <ulpsync/ulpsync.h>

const char *ulp_version(void) {
    return ULPSYNC_VERSION;
}
