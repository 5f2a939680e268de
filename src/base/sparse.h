// SPDX-License-Identifier: Apache-2.0
/*
 * Address space whose pages take memory when they are first written: for tensors of which only a
 * part is held. It reads as zeros. Zeroed means none; sparse_release() accepts it.
 */
#ifndef BASE_SPARSE_H
#define BASE_SPARSE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct sparse {
    uint8_t *data;
    size_t bytes;
};

/* ULP_E_NOMEM if the system gives none. */
enum ulp_status sparse_take(struct sparse *ret_sparse, size_t bytes);
void sparse_release(struct sparse *sparse);

#endif
