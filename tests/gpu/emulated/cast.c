// SPDX-License-Identifier: Apache-2.0
/* Patches at the cast, on fibers. */
#include "tests/gpu/gpu_cases.h"

int main(void) {
    cast_cases(1);
    return 0;
}
