// SPDX-License-Identifier: Apache-2.0
/* Partial patches and tiles on the device, on fibers. */
#include "tests/gpu/gpu_cases.h"

int main(void) {
    part_cases(1);
    part_piece_cases();
    return 0;
}
