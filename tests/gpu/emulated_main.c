// SPDX-License-Identifier: Apache-2.0
/* All cases on fibers. */
#include "gpu_cases.h"

#include <stdio.h>

int main(void) {
    const struct cuda_ops *ops = NULL;

    if (ulp_cuda_ops(&ops))
        return 1;
    encode_cases(ops, 1);
    return 0;
}
