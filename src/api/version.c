// SPDX-License-Identifier: Apache-2.0
#include "scan/scan.h"

#include <ulpsync/ulpsync.h>

const char *ulp_version(void) {
    return ULPSYNC_VERSION;
}

const char *ulp_cpu(void) {
    return scan_twin_name();
}
