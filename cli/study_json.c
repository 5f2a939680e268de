// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/report.h"
#include "cli/study_show.h"

#include <stdlib.h>
#include <string.h>

static void print_floor(struct json_out *out, const struct study_floor *floor) {
    const double changes = (double)floor->changes, after = (double)floor->changes_after;

    json_out_begin(out, "floor", '{');
    json_out_real(out, "stateless", study_floor_stateless(floor));
    json_out_real(out, "history", study_floor_history(floor));
    json_out_real(out, "place", report_share(floor->place_bits, changes));
    json_out_real(out, "step", report_share(floor->step_bits, changes));
    json_out_real(out, "place_history", report_share(floor->place_bits_after, after));
    json_out_real(out, "step_history", report_share(floor->step_bits_after, after));
    json_out_real(out, "place_without_context", report_share(floor->place_bits_alone, changes));
    json_out_end(out, '}');
}

static void print_recurrence(struct json_out *out, const struct study_recurrence *found) {
    json_out_begin(out, "recurrence", '{');
    json_out_u64(out, "changes", found->of);
    json_out_u64(out, "again", found->again);
    json_out_u64(out, "same_direction", found->same);
    json_out_real(out, "share", report_share((double)found->again, (double)found->of));
    json_out_real(out, "share_same_direction",
                  report_share((double)found->same, (double)found->again));
    json_out_end(out, '}');
}

static void print_sizes(struct json_out *out, const struct study_interval *interval) {
    json_out_begin(out, "sizes", '[');
    for (unsigned i = 0; i < STUDY_ENCODINGS; i++) {
        const struct study_encoding encoding = study_encoding(interval, i);

        json_out_begin(out, NULL, '{');
        json_out_text(out, "name", encoding.key);
        json_out_text(out, "title", encoding.title);
        json_out_text(out, "users", encoding.users);
        json_out_text(out, "basis", wire_basis_name(encoding.basis));
        json_out_real(out, "bytes", encoding.bytes);
        json_out_real(out, "bits_per_change", report_share(8 * encoding.bytes, encoding.changed));
        json_out_real(out, "ratio", report_share(encoding.dense, encoding.bytes));
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_exponents(struct json_out *out, const struct study *study,
                            const struct study_counts *counts) {
    unsigned first, last;

    json_out_begin(out, "exponents", '[');
    if (study_cells(counts, &first, &last)) {
        for (unsigned cell = first; cell <= last; cell++) {
            const uint64_t changed = study_total(counts->steps[cell], STUDY_SYMBOLS);
            const int power = study_cell_power(study, &counts->kind, cell);

            json_out_begin(out, NULL, '{');
            json_out_real(out, "power", power);
            json_out_u64(out, "elements", counts->elements[cell]);
            json_out_u64(out, "changed", changed);
            json_out_real(out, "p", report_share((double)changed, (double)counts->elements[cell]));
            json_out_end(out, '}');
        }
    }
    json_out_end(out, ']');
}

static void print_dtypes(struct json_out *out, const struct study *study,
                         const struct study_interval *interval) {
    json_out_begin(out, "dtypes", '[');
    for (size_t k = 0; k < interval->kind_count; k++) {
        const struct study_counts *counts = interval->kinds[k];

        json_out_begin(out, NULL, '{');
        json_out_text(out, "dtype", study_kind_label(study, &counts->kind).text);
        json_out_u64(out, "elements", study_total(counts->elements, EXPONENT_CELLS));
        json_out_u64(out, "changed", study_changed(counts));
        print_exponents(out, study, counts);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_steps(struct json_out *out, const struct study_interval *interval) {
    const struct study_histogram histogram = study_histogram(interval);

    json_out_begin(out, "steps", '[');
    for (unsigned b = 0; b < histogram.used; b++) {
        json_out_begin(out, NULL, '{');
        json_out_u64(out, "from", b ? (UINT64_C(1) << (b - 1)) + 1 : 1);
        json_out_u64(out, "to", UINT64_C(1) << b);
        json_out_u64(out, "up", histogram.up[b]);
        json_out_u64(out, "down", histogram.down[b]);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_groups(struct json_out *out, const char *key, const struct group *groups,
                         size_t count, bool with_bits) {
    json_out_begin(out, key, '[');
    for (size_t i = 0; i < count; i++) {
        const struct ulp_tensor_report *total = &groups[i].total;
        char *name = strndup(groups[i].name, groups[i].length);

        json_out_begin(out, NULL, '{');
        json_out_text(out, "name", name ? name : "");
        json_out_u64(out, "tensors", groups[i].tensors);
        json_out_u64(out, "elements", total->elements);
        json_out_u64(out, "changed", total->changed);
        json_out_real(out, "density",
                      report_share((double)total->changed, (double)total->elements));
        if (with_bits)
            json_out_real(out, "bits_per_change",
                          report_share((double)total->bits, (double)total->changed));
        json_out_end(out, '}');
        free(name);
    }
    json_out_end(out, ']');
}

static void print_patches(struct json_out *out, const struct study *study,
                          const struct study_interval *interval) {
    json_out_begin(out, "patches", '[');
    for (size_t i = 0; i < interval->count; i++) {
        const struct study_patch *patch = &interval->patches[i];

        json_out_begin(out, NULL, '{');
        json_out_u64(out, "from", patch->from);
        json_out_u64(out, "to", patch->to);
        json_out_u64(out, "changed", patch->changed);
        json_out_real(out, "density",
                      report_share((double)patch->changed * (double)interval->count,
                                   (double)interval->elements));
        print_floor(out, &patch->floor);
        print_recurrence(out, &patch->recurrence);
        if (!study->quick) {
            json_out_u64(out, "ulpsync_bytes", patch->bytes);
            if (patch->after)
                json_out_u64(out, "ulpsync_history_bytes", patch->history_bytes);
            else
                json_out_null(out, "ulpsync_history_bytes");
        }
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_interval(struct json_out *out, const struct study *study,
                           const struct study_interval *interval) {
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "k", interval->k);
    json_out_u64(out, "elements", interval->elements);
    json_out_u64(out, "changed", interval->changed);
    json_out_real(out, "density",
                  report_share((double)interval->changed, (double)interval->elements));
    print_floor(out, &interval->floor);
    print_recurrence(out, &interval->recurrence);
    if (!study->quick)
        print_sizes(out, interval);
    print_steps(out, interval);
    print_dtypes(out, study, interval);
    print_groups(out, "layers", interval->layers, interval->layer_count, !study->quick);
    print_groups(out, "kinds", interval->parts, interval->part_count, !study->quick);
    print_patches(out, study, interval);
    json_out_end(out, '}');
}

void study_print_json(const struct study *study) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_begin(&out, "checkpoints", '[');
    for (unsigned i = 0; i < study->count; i++)
        json_out_text(&out, NULL, study->paths[i]);
    json_out_end(&out, ']');
    json_out_u64(&out, "tensors", ulp_model_count(study->first));
    json_out_u64(&out, "dense_bytes", ulp_model_bytes(study->first));
    json_out_begin(&out, "intervals", '[');
    for (unsigned i = 0; i < study->interval_count; i++)
        print_interval(&out, study, &study->intervals[i]);
    json_out_end(&out, ']');
    json_out_real(&out, "seconds", study->seconds);
    json_out_end(&out, '}');
}
