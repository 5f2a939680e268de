// SPDX-License-Identifier: Apache-2.0
#include "sync/holder.h"

#include "base/clock.h"

void holder_free(struct holder *holder) {
    if (!holder)
        return;
    log_entry_release(&holder->seen);
    holder->ops->free(holder);
}

enum ulp_status holder_keep(struct holder *holder) {
    const uint64_t sequence = holder->seen.record.sequence;
    enum ulp_status status = holder->kept == sequence ? ULP_OK : holder->ops->keep(holder);

    if (!status)
        holder->kept = sequence;
    return status;
}

enum ulp_status holder_show(struct holder *holder, const struct work *work) {
    enum ulp_status status = holder_keep(holder);

    return status ? status : holder->ops->show(holder, work);
}

void work_spent(uint64_t *phase, uint64_t started) {
    *phase += clock_monotonic_ns() - started;
}
