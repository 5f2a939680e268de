// SPDX-License-Identifier: Apache-2.0
#include "scan/scan.h"

#include "base/cpu.h"
#include "scan/scan_twins.h"

#include <assert.h>

static enum scan_width width_index(unsigned width) {
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    return (enum scan_width)__builtin_ctz(width);
}

const struct scan_kernels *scan_kernels(unsigned width) {
    static const struct scan_twin *const best_first[] = {
#if defined(__x86_64__)
        &scan_avx512,
        &scan_avx2,
#elif defined(__aarch64__)
        &scan_neon,
#endif
        &scan_portable,
    };
    const size_t last = sizeof best_first / sizeof best_first[0] - 1;
    const uint32_t features = cpu_features();
    size_t i = 0;

    while (i < last && (best_first[i]->needs & ~features))
        i++;
    return &best_first[i]->kernels[width_index(width)];
}
