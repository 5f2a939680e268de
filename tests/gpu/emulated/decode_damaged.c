// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/emulated/device.h"

static void test_nothing(void **unused) {
    (void)unused;
}

TEST_MAIN(test_nothing)
