// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

static uint32_t allowed = CPU_ALL;

#if defined(__x86_64__)
/* The compiler's runtime also checks that the system saves the wide registers. */
static uint32_t detect(void) {
    uint32_t found = 0;

    __builtin_cpu_init();
    found |= __builtin_cpu_supports("popcnt") ? CPU_POPCNT : 0u;
    found |= __builtin_cpu_supports("avx2") ? CPU_AVX2 : 0u;
    found |= __builtin_cpu_supports("avx512f") ? CPU_AVX512F : 0u;
    found |= __builtin_cpu_supports("avx512bw") ? CPU_AVX512BW : 0u;
    found |= __builtin_cpu_supports("avx512dq") ? CPU_AVX512DQ : 0u;
    found |= __builtin_cpu_supports("bmi") ? CPU_BMI : 0u;
    found |= __builtin_cpu_supports("bmi2") ? CPU_BMI2 : 0u;
    found |= __builtin_cpu_supports("avx512vbmi") ? CPU_AVX512VBMI : 0u;
    found |= __builtin_cpu_supports("avx512vpopcntdq") ? CPU_AVX512VPOPCNT : 0u;
    return found;
}
#elif defined(__aarch64__)
static uint32_t detect(void) {
    return CPU_NEON; /* part of the architecture */
}
#else
static uint32_t detect(void) {
    return 0;
}
#endif

uint32_t cpu_features(void) {
    return detect() & allowed;
}

void cpu_allow(uint32_t features) {
    allowed = features;
}
