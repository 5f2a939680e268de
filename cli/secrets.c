// SPDX-License-Identifier: Apache-2.0
#include "cli/secrets.h"

#include <sys/resource.h>

void secrets_keep(void) {
    struct rlimit limit;

    if (!getrlimit(RLIMIT_CORE, &limit)) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
}
