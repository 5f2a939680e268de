// SPDX-License-Identifier: Apache-2.0
#include "sync/holder.h"

#include "base/clock.h"

void holder_free(struct holder *holder) {
    if (!holder)
        return;
    log_entry_release(&holder->seen);
    holder->ops->free(holder);
}

void work_spent(uint64_t *phase, uint64_t started) {
    *phase += clock_monotonic_ns() - started;
}
