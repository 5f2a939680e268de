// SPDX-License-Identifier: Apache-2.0
/* Making patches on the device, on fibers: emulated_encode [host]. */
#include "tests/gpu/gpu_cases.h"

#include <string.h>

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "host") == 0) {
        host_cases(1);
        return 0;
    }
    encode_cases(1);
    second_cases(1);
    trace_cases(TRACE_DIRECTORY);
    return 0;
}
