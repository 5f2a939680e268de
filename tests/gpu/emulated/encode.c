// SPDX-License-Identifier: Apache-2.0
/* Making patches on the device, on fibers: emulated_encode SCALE [host]. */
#include "tests/gpu/gpu_cases.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const uint64_t scale = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

    if (argc > 2 && strcmp(argv[2], "host") == 0) {
        host_cases(scale);
        return 0;
    }
    encode_cases(scale);
    if (scale) {
        second_cases(scale);
        trace_cases(TRACE_DIRECTORY);
    }
    return 0;
}
