// SPDX-License-Identifier: Apache-2.0
#include "scan/scan.h"

#include "base/cpu.h"
#include "scan/scan_twins.h"

#include <assert.h>

static const struct scan_twin *best_twin(void) {
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
    return best_first[i];
}

const struct scan_kernels *scan_kernels(unsigned width) {
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    return &best_twin()->kernels[__builtin_ctz(width)];
}

const char *scan_twin_name(void) {
    return best_twin()->name;
}
