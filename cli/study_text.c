// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/report.h"
#include "cli/study_show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR_WIDTH 24u

/* A model of many loose tensors has as many groups; --json has them all. */
#define GROUPS_SHOWN 200u

#define TITLE_WIDTH 32

/* ---- a row for each figure, a column for each interval ---- */

typedef double (*figure)(const struct study_interval *interval);

static double density(const struct study_interval *interval) {
    return report_share((double)interval->changed, (double)interval->elements);
}

static double floor_stateless(const struct study_interval *interval) {
    return study_floor_stateless(&interval->floor);
}

static double floor_history(const struct study_interval *interval) {
    return study_floor_history(&interval->floor);
}

static double bits_stateless(const struct study_interval *interval) {
    return report_share(8 * (double)interval->bytes, (double)interval->changed);
}

static double bits_history(const struct study_interval *interval) {
    return report_share(8 * (double)interval->history_bytes, (double)interval->changed_after);
}

static double again(const struct study_interval *interval) {
    return report_share((double)interval->recurrence.again, (double)interval->recurrence.of);
}

static double same_direction(const struct study_interval *interval) {
    return report_share((double)interval->recurrence.same, (double)interval->recurrence.again);
}

static double by_one(const struct study_interval *interval) {
    const struct study_histogram histogram = study_histogram(interval);

    return report_share((double)(histogram.up[0] + histogram.down[0]), (double)interval->changed);
}

static void print_row(const struct study *study, const char *title, figure figure, bool percent) {
    printf("%-*s", TITLE_WIDTH, title);
    for (unsigned i = 0; i < study->interval_count; i++) {
        const double value = figure(&study->intervals[i]);

        if (!isfinite(value))
            printf(" %11s", "-");
        else if (percent)
            printf(" %9.3f %%", 100 * value);
        else
            printf(" %11.3f", value);
    }
    putchar('\n');
}

static void print_figures(const struct study *study) {
    printf("%-*s", TITLE_WIDTH, "checkpoints from patch to patch");
    for (unsigned i = 0; i < study->interval_count; i++)
        printf(" %11u", study->intervals[i].k);
    printf("\n%-*s", TITLE_WIDTH, "patches");
    for (unsigned i = 0; i < study->interval_count; i++)
        printf(" %11zu", study->intervals[i].count);
    putchar('\n');
    print_row(study, "elements that change", density, true);
    print_row(study, "changes by one ulp", by_one, true);
    print_row(study, "changed in the patch before, too", again, true);
    print_row(study, "... in the same direction", same_direction, true);
    puts("\nbits per change");
    if (!study->quick) {
        print_row(study, "ulpsync", bits_stateless, false);
        print_row(study, "ulpsync, with history", bits_history, false);
    }
    print_row(study, "entropy floor", floor_stateless, false);
    print_row(study, "entropy floor, with history", floor_history, false);
}

/* ---- sizes ---- */

static void print_sizes(const struct study *study) {
    printf("\n%-*s", TITLE_WIDTH, "bytes of a patch, on average");
    for (unsigned i = 0; i < study->interval_count; i++)
        printf(" %8s %2u", "every", study->intervals[i].k);
    printf(" %8s  how\n", "bits");
    for (unsigned e = 0; e < STUDY_ENCODINGS; e++) {
        const struct study_encoding first = study_encoding(&study->intervals[0], e);

        printf("%-*s", TITLE_WIDTH, first.title);
        for (unsigned i = 0; i < study->interval_count; i++) {
            const double bytes = study_encoding(&study->intervals[i], e).bytes;

            printf(" %11s", isfinite(bytes) ? readable_bytes((uint64_t)llround(bytes)).text : "-");
        }
        if (isfinite(first.bytes) && first.changed > 0)
            printf(" %8.2f", 8 * first.bytes / first.changed);
        else
            printf(" %8s", "-");
        printf("  %s%s%s\n", wire_basis_name(first.basis), *first.users ? "; " : "", first.users);
    }
}

/* ---- profiles of the first interval ---- */

static void print_exponents(const struct study *study, const struct study_counts *counts) {
    unsigned first, last;

    if (!study_cells(counts, &first, &last))
        return;
    printf("\n%s by exponent, step by step\n%10s %14s %14s  P(change)\n",
           study_kind_label(study, &counts->kind).text, "about", "elements", "changed");
    for (unsigned cell = first; cell <= last; cell++) {
        const uint64_t changed = study_total(counts->steps[cell], STUDY_SYMBOLS);
        const double p = report_share((double)changed, (double)counts->elements[cell]);

        if (!counts->elements[cell])
            continue;
        printf("%6s%-4d %14llu %14llu  ", "2^", study_cell_power(study, &counts->kind, cell),
               (unsigned long long)counts->elements[cell], (unsigned long long)changed);
        print_bar(p, BAR_WIDTH);
        printf(" %8.4f %%\n", 100 * p);
    }
}

static void print_steps(const struct study_interval *interval) {
    const struct study_histogram histogram = study_histogram(interval);

    if (!interval->changed)
        return;
    printf("\n%10s %14s %14s  step by step\n", "ulps", "down", "up");
    for (unsigned b = 0; b < histogram.used; b++) {
        const double share =
            (double)(histogram.up[b] + histogram.down[b]) / (double)interval->changed;

        printf("%10s %14llu %14llu  ", study_bucket_label(b).text,
               (unsigned long long)histogram.down[b], (unsigned long long)histogram.up[b]);
        print_bar(share, BAR_WIDTH);
        printf(" %8.4f %%\n", 100 * share);
    }
}

/* ---- where ---- */

static const struct group *groups_of(const struct study_interval *interval, bool layers) {
    return layers ? interval->layers : interval->parts;
}

static void print_group(const struct study *study, size_t index, bool layers) {
    const struct group *first = &groups_of(&study->intervals[0], layers)[index];
    char *name = strndup(first->name, first->length);

    for (unsigned i = 0; i < study->interval_count; i++) {
        const struct ulp_tensor_report *total =
            &groups_of(&study->intervals[i], layers)[index].total;

        printf("%9.3f %%",
               total->elements ? 100 * (double)total->changed / (double)total->elements : 0);
    }
    if (!study->quick && first->total.changed)
        printf(" %8.3f", (double)first->total.bits / (double)first->total.changed);
    else if (!study->quick)
        printf(" %8s", "-");
    fputs("  ", stdout);
    print_safely(stdout, name ? name : "");
    putchar('\n');
    free(name);
}

/* Names come last, because they may be anything. */
static void print_groups(const struct study *study, bool layers) {
    const size_t count = layers ? study->intervals[0].layer_count : study->intervals[0].part_count;

    printf("\nelements that change, by %s\n", layers ? "layer" : "kind of tensor");
    for (unsigned i = 0; i < study->interval_count; i++)
        printf("%8s %2u", "every", study->intervals[i].k);
    printf("%s  where\n", study->quick ? "" : "     bits");
    for (size_t i = 0; i < count && i < GROUPS_SHOWN; i++)
        print_group(study, i, layers);
    if (count > GROUPS_SHOWN)
        printf("  ... and %zu more; --json has them all\n", count - GROUPS_SHOWN);
}

void study_print_text(const struct study *study) {
    const struct study_interval *each = &study->intervals[0];

    printf("%u checkpoints of %s elements in %zu tensors, %s each\n\n", study->count,
           readable_count(each->elements / each->count).text, ulp_model_count(study->first),
           readable_bytes(ulp_model_bytes(study->first)).text);
    print_figures(study);
    if (!study->quick)
        print_sizes(study);
    for (size_t k = 0; k < each->kind_count; k++)
        print_exponents(study, each->kinds[k]);
    print_steps(each);
    print_groups(study, true);
    print_groups(study, false);
}
