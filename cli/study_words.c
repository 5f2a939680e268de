// SPDX-License-Identifier: Apache-2.0
/* What text, JSON and HTML say alike. */
#include "cli/report.h"
#include "cli/study_run.h"

#include <stdio.h>
#include <string.h>

static bool has_kind(const struct ulp_tensor *tensor, const struct code_kind *kind) {
    const struct code_kind own = code_kind_of(tensor->dtype, tensor->bits);

    return own.width == kind->width && own.exponent_bits == kind->exponent_bits &&
           own.exponent_shift == kind->exponent_shift;
}

/* Whether `word` is in a list of words with commas between them. */
static bool listed(const char *list, const char *word) {
    const size_t length = strlen(word);

    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word)) {
        if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

struct study_label study_kind_label(const struct study *study, const struct code_kind *kind) {
    const struct ulp_tensor *tensors = ulp_model_tensors(study->first);
    struct study_label label = {""};
    size_t used = 0;

    for (size_t i = 0; i < ulp_model_count(study->first); i++) {
        const char *dtype = tensors[i].dtype;

        if (!has_kind(&tensors[i], kind) || listed(label.text, dtype))
            continue;
        if (used + strlen(dtype) + 8 > sizeof label.text) {
            snprintf(label.text + used, sizeof label.text - used, ", ...");
            break;
        }
        used += (size_t)snprintf(label.text + used, sizeof label.text - used, "%s%s",
                                 used ? ", " : "", dtype);
    }
    return label;
}

int study_cell_power(const struct study *study, const struct code_kind *kind, unsigned cell) {
    const bool unsigned_zero = strstr(study_kind_label(study, kind).text, "FNUZ") != NULL;
    const int bias = (1 << (kind->exponent_bits - 1)) - 1 + unsigned_zero;

    return (int)(cell + kind->lowest) - bias;
}

bool study_cells(const struct study_counts *counts, unsigned *ret_first, unsigned *ret_last) {
    unsigned first = 0, last = EXPONENT_CELLS - 1;

    if (!counts->kind.exponent_bits || !study_total(counts->elements, EXPONENT_CELLS))
        return false;
    while (!counts->elements[first])
        first++;
    while (!counts->elements[last])
        last--;
    *ret_first = first;
    *ret_last = last;
    return true;
}

struct study_histogram study_histogram(const struct study_interval *interval) {
    struct study_histogram histogram = {0};

    for (size_t k = 0; k < interval->kind_count; k++) {
        for (unsigned e = 0; e < EXPONENT_CELLS; e++) {
            for (unsigned s = 0; s < STUDY_SYMBOLS; s++) {
                const uint64_t count = interval->kinds[k]->steps[e][s];
                const unsigned bucket = study_symbol_bucket(s);

                (s < STUDY_SIZES ? histogram.up : histogram.down)[bucket] += count;
                if (count && bucket + 1 > histogram.used)
                    histogram.used = bucket + 1;
            }
        }
    }
    return histogram;
}

struct study_label study_bucket_label(unsigned bucket) {
    const unsigned long long first = bucket ? (1ull << (bucket - 1)) + 1 : 1, last = 1ull << bucket;
    struct study_label label;

    if (first == last)
        snprintf(label.text, sizeof label.text, "%llu", first);
    else if (last <= 1024)
        snprintf(label.text, sizeof label.text, "%llu-%llu", first, last);
    else
        snprintf(label.text, sizeof label.text, "to 2^%u", bucket);
    return label;
}

struct study_encoding study_encoding(const struct study_interval *interval, unsigned index) {
    const double count = (double)interval->count, after = (double)interval->count_after;
    struct study_encoding encoding = {.users = "",
                                      .basis = WIRE_ENCODED,
                                      .changed = report_share((double)interval->changed, count),
                                      .dense = report_share((double)interval->dense_bytes, count)};

    if (index == 0) {
        encoding.key = "ulpsync";
        encoding.title = "ulpsync";
        encoding.bytes = report_share((double)interval->bytes, count);
    } else if (index == 1) {
        encoding.key = "ulpsync_history";
        encoding.title = "ulpsync, with history";
        encoding.bytes = report_share((double)interval->history_bytes, after);
        encoding.changed = report_share((double)interval->changed_after, after);
    } else {
        const enum wire_format format = (enum wire_format)(index - 2);
        const struct wire_size *size = &interval->sizes.formats[format];

        encoding.key = wire_key(format);
        encoding.title = wire_title(format);
        encoding.users = wire_users(format);
        encoding.basis = size->basis;
        encoding.bytes = report_share(size->bytes, size->basis == WIRE_NOT_KNOWN ? 0 : count);
    }
    return encoding;
}
