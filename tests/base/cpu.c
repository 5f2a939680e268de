// SPDX-License-Identifier: Apache-2.0
/* Taking features away works one by one, and giving them back restores all. */
#include "tests/test.h"

#include "base/cpu.h"

static void test_only_known_features_are_reported(void **state) {
    (void)state;
    assert_int_equal(cpu_features() & ~CPU_ALL, 0);
    assert_int_equal(cpu_features(), cpu_features());
}

static void test_every_subset_is_honoured(void **state) {
    uint32_t all = cpu_features();

    (void)state;
    for (uint32_t mask = 0; mask <= CPU_ALL; mask++) {
        cpu_allow(mask);
        assert_int_equal(cpu_features(), all & mask);
    }
    cpu_allow(CPU_ALL);
    assert_int_equal(cpu_features(), all);
}

static void test_allowing_everything_invents_nothing(void **state) {
    uint32_t all = cpu_features();

    (void)state;
    cpu_allow(UINT32_MAX);
    assert_int_equal(cpu_features(), all);
    cpu_allow(CPU_ALL);
}

static void test_the_name_follows_the_features(void **state) {
    uint32_t all = cpu_features();

    (void)state;
    cpu_allow(0);
    assert_string_equal(ulp_cpu(), "portable");
    cpu_allow(CPU_AVX2 | CPU_POPCNT | CPU_BMI);
    assert_string_equal(ulp_cpu(), all & CPU_AVX2 ? "avx2" : "portable");
    cpu_allow(CPU_ALL & ~(uint32_t)CPU_AVX512F);
    assert_null(strstr(ulp_cpu(), "avx512"));
    cpu_allow(CPU_NEON);
    assert_string_equal(ulp_cpu(), all & CPU_NEON ? "neon" : "portable");
    cpu_allow(CPU_ALL);
}

TEST_MAIN(test_only_known_features_are_reported, test_every_subset_is_honoured,
          test_allowing_everything_invents_nothing, test_the_name_follows_the_features)
