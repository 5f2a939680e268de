// SPDX-License-Identifier: Apache-2.0
/*
 * What the running CPU can do. Kernels name the features they need; tests take features away to
 * walk through every choice in one process.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdint.h>

enum cpu_feature {
    CPU_POPCNT = 1u << 0,
    CPU_AVX2 = 1u << 1,
    CPU_AVX512F = 1u << 2,
    CPU_AVX512BW = 1u << 3,
    CPU_AVX512DQ = 1u << 4,
    CPU_BMI = 1u << 5,
    CPU_NEON = 1u << 6,
    CPU_BMI2 = 1u << 7,
    CPU_AVX512VBMI = 1u << 8,
    CPU_AVX512VPOPCNT = 1u << 9
};

#define CPU_ALL 0x3ffu

/* Features that are both there and allowed. */
uint32_t cpu_features(void);

/* For tests, before any other thread runs: CPU_ALL allows everything again. */
void cpu_allow(uint32_t features);

#endif
