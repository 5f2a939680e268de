// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include "cli/terminal.h"

#include <math.h>

double report_share(double part, double whole) {
    return whole > 0 ? part / whole : NAN;
}

double lap_seconds(uint64_t *lap) {
    uint64_t before = *lap;

    *lap = now_ns();
    return (double)(*lap - before) / 1e9;
}

void report_root_text(const char *what, const struct ulp_root *root) {
    char hex[ULP_ROOT_HEX_BYTES];

    ulp_root_hex(root, hex);
    printf("%-9s %s\n", what, hex);
}

void report_diff_json(struct json_out *out, const struct ulp_diff_report *report) {
    const double changed = (double)report->changed, patch = (double)report->patch_bytes;

    json_out_u64(out, "elements", report->elements);
    json_out_u64(out, "changed", report->changed);
    json_out_real(out, "density", report_share(changed, (double)report->elements));
    json_out_u64(out, "patch_bytes", report->patch_bytes);
    json_out_u64(out, "dense_bytes", report->dense_bytes);
    json_out_real(out, "bits_per_change", report_share(8 * patch, changed));
    json_out_real(out, "ratio", report_share((double)report->dense_bytes, patch));
    json_out_root(out, "parent_root", &report->parent);
    json_out_root(out, "child_root", &report->child);
    json_out_bool(out, "history", report->history);
}

void report_diff_text(const struct ulp_diff_report *report, double seconds) {
    const double changed = (double)report->changed, patch = (double)report->patch_bytes;

    printf("changed   %llu of %llu elements", (unsigned long long)report->changed,
           (unsigned long long)report->elements);
    if (report->changed)
        printf(" (%.3f %%), %.3f bits each", 100 * changed / (double)report->elements,
               8 * patch / changed);
    printf("\npatch     %llu bytes (%s)", (unsigned long long)report->patch_bytes,
           readable_bytes(report->patch_bytes).text);
    if (report->dense_bytes > report->patch_bytes)
        printf(", 1/%.1f of %s", (double)report->dense_bytes / patch,
               readable_bytes(report->dense_bytes).text);
    printf("%s\n", report->history ? ", needs history" : "");
    report_root_text("from", &report->parent);
    report_root_text("to", &report->child);
    printf("time      %.3f s, %.2f GB/s\n", seconds, (double)report->dense_bytes / seconds / 1e9);
}

enum ulp_status report_weights(const struct ulp_tensor *tensors, size_t count,
                               struct ulp_pool *pool, struct ulp_weights **ret_weights) {
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t bytes = 0;
    enum ulp_status status;

    for (size_t i = 0; i < count; i++)
        bytes += tensors[i].bytes;
    progress = progress_begin(&line, "digest", bytes);
    status = ulp_weights_new(tensors, count, pool, &progress, ret_weights);
    progress_end(&line);
    return status;
}

void report_diff_times_json(struct json_out *out, const struct ulp_diff_report *report,
                            const struct diff_times *times) {
    json_out_begin(out, "seconds", '{');
    json_out_real(out, "open", times->open_s);
    json_out_real(out, "digest", times->digest_s);
    json_out_real(out, "history", times->history_s);
    json_out_real(out, "encode", report->encode_seconds);
    json_out_real(out, "keep_root", report->digest_seconds);
    json_out_real(out, "write", report->write_seconds);
    json_out_real(out, "total", times->total_s);
    json_out_end(out, '}');
}
