// SPDX-License-Identifier: Apache-2.0
/* The kernels are in a library of their own, which is loaded when somebody first asks for a GPU. */
#ifndef GPU_LOADER_H
#define GPU_LOADER_H

#include <ulpsync/status.h>

/* ULP_E_DEVICE, saying what to do, where the library is missing, of another build, or finds no GPU.
 * Nothing in the room cuda may be called before this succeeded. */
enum ulp_status cuda_load(void);

#endif
