// SPDX-License-Identifier: Apache-2.0
/* Patches at the cast, on fibers: emulated_cast [SCALE]. */
#include "tests/gpu/gpu_cases.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    cast_cases(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    return 0;
}
