// SPDX-License-Identifier: Apache-2.0
#include "sync/memory_seen.h"

#include "base/log.h"

enum ulp_status memory_seen_take(struct holder *holder, const struct ulp_run_options *options) {
    enum ulp_status status =
        options->seen ? log_entry_parse(options->seen, options->seen_bytes, &holder->seen) : ULP_OK;

    holder->kept = holder->seen.record.sequence;
    return status;
}

enum ulp_status memory_seen_keep(const struct holder *holder,
                                 const struct ulp_run_options *options) {
    return options->keep_seen
               ? options->keep_seen(options->keep_user, holder->seen.bytes, holder->seen.byte_count)
               : ULP_OK;
}

void memory_seen_evidence(const struct holder *holder, const struct log_entry *culprit) {
    log_message(ULP_LOG_WARN, "record %llu contradicts record %llu, which was seen before",
                (unsigned long long)culprit->record.sequence,
                (unsigned long long)holder->seen.record.sequence);
}
