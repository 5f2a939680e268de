// SPDX-License-Identifier: Apache-2.0
/* Runs on a GPU: gpu_runs_check [SCALE]. Exit code 77 where there is none. */
#include "cuda/memory.h"
#include "gpu_cases.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (cuda_find_device()) {
        fprintf(stderr, "gpu_runs_check: no GPU\n");
        return 77;
    }
    run_cases(argc > 1 ? strtoull(argv[1], NULL, 10) : 20);
    return 0;
}
