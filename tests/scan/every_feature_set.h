// SPDX-License-Identifier: Apache-2.0
/* Runs a test under every subset of the instruction sets that this CPU has, in one process. */
#ifndef TESTS_SCAN_EVERY_FEATURE_SET_H
#define TESTS_SCAN_EVERY_FEATURE_SET_H

#include "base/cpu.h"
#include "tests/test.h"

static inline void with_every_feature_set(void (*test)(void)) {
    uint32_t there, subset;

    cpu_allow(CPU_ALL);
    there = cpu_features();
    subset = there;
    for (;;) { /* all subsets of `there`, down to none */
        cpu_allow(subset);
        assert_int_equal(cpu_features(), subset);
        test();
        if (!subset)
            break;
        subset = (subset - 1) & there;
    }
    cpu_allow(CPU_ALL);
}

#endif
