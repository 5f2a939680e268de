// SPDX-License-Identifier: Apache-2.0
/* The cases that a GPU runs too, on fibers. */
#include "tests/gpu/gpu_cases.h"

int main(void) {
    encode_cases(1);
    second_cases(1);
    trace_cases(TRACE_DIRECTORY);
    return 0;
}
