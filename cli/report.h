// SPDX-License-Identifier: Apache-2.0
/* Results that several verbs show in the same words. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/output.h"

/* 0 / 0 is NaN, which JSON shows as null. */
double report_share(double part, double whole);

/* Elements, changes, bytes and roots; the object stays open. */
void report_diff_json(struct json_out *out, const struct ulp_diff_report *report);
void report_diff_text(const struct ulp_diff_report *report, double seconds);

/* Where the time went: what the verb measured itself, beside what the report says. */
struct diff_times {
    double open_s, digest_s, history_s, total_s;
};
void report_diff_times_json(struct json_out *out, const struct ulp_diff_report *report,
                            const struct diff_times *times);

/* "root      <hex>" */
void report_root_text(const char *what, const struct ulp_root *root);

/* ulp_weights_new() with progress on the terminal. */
enum ulp_status report_weights(const struct ulp_tensor *tensors, size_t count,
                               struct ulp_pool *pool, struct ulp_weights **ret_weights);

/* Seconds since *lap, which becomes now. */
double lap_seconds(uint64_t *lap);

#endif
