// SPDX-License-Identifier: Apache-2.0
/* Partial patches and tiles on the device, on fibers: emulated_parts SCALE. */
#include "tests/gpu/gpu_cases.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    const uint64_t scale = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

    part_cases(scale);
    if (scale)
        part_piece_cases();
    return 0;
}
