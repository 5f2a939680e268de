// SPDX-License-Identifier: Apache-2.0
#include "cli/groups.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR_WIDTH 40u
#define NARROW_BAR_WIDTH 16u

/* A model of many loose tensors has as many groups; a picture is no list. */
#define GROUPS_SHOWN 200u

struct view {
    struct ulp_patch *patch;
    struct ulp_patch_info info;
    struct ulp_model *base;
    struct ulp_pool *pool;
    struct history history;
    struct ulp_tensor_report *reports; /* of each tensor */
    struct ulp_tensor_report total;
    struct group *groups;
    size_t group_count;
};

static const char *const coder_names[4] = {"unchanged", "context", "plain", "dense"};

/* Without the base a dense chunk does not tell which of its elements changed. */
static bool is_exact(const struct view *view, const struct ulp_tensor_report *report) {
    return view->base || !report->chunks[3];
}

static uint64_t steps_known(const struct ulp_tensor_report *report) {
    uint64_t sum = 0;

    for (unsigned i = 0; i < ULP_STEP_BUCKETS; i++)
        sum += report->steps[i];
    return sum;
}

static uint64_t steps_unknown(const struct view *view) {
    uint64_t known = steps_known(&view->total);

    return view->info.changed > known ? view->info.changed - known : 0;
}

/* Bucket 0 is 1, 1 is 2, 2 is 3 to 4, 3 is 5 to 8; the last has no end. */
static uint64_t bucket_first(unsigned bucket) {
    return bucket ? (UINT64_C(1) << (bucket - 1)) + 1 : 1;
}

/* ---- JSON ---- */

static void print_report_json(struct json_out *out, const struct view *view,
                              const struct ulp_tensor_report *report) {
    json_out_u64(out, "elements", report->elements);
    json_out_u64(out, "changed", report->changed);
    json_out_bool(out, "exact", is_exact(view, report));
    json_out_real(out, "density", report_share((double)report->changed, (double)report->elements));
    json_out_real(out, "bits_per_change",
                  report_share((double)report->bits, (double)report->changed));
    json_out_begin(out, "chunks", '{');
    for (unsigned i = 0; i < 4; i++)
        json_out_u64(out, coder_names[i], report->chunks[i]);
    json_out_end(out, '}');
}

static void print_steps_json(struct json_out *out, const struct ulp_tensor_report *report) {
    json_out_begin(out, "steps", '[');
    for (unsigned i = 0; i < ULP_STEP_BUCKETS; i++) {
        json_out_begin(out, NULL, '{');
        json_out_u64(out, "from", bucket_first(i));
        if (i + 1 < ULP_STEP_BUCKETS)
            json_out_u64(out, "to", UINT64_C(1) << i);
        json_out_u64(out, "count", report->steps[i]);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_groups_json(struct json_out *out, const struct view *view) {
    json_out_begin(out, "groups", '[');
    for (size_t i = 0; i < view->group_count; i++) {
        const struct group *group = &view->groups[i];
        char *name = strndup(group->name, group->length);

        json_out_begin(out, NULL, '{');
        json_out_text(out, "name", name ? name : "");
        json_out_u64(out, "tensors", group->tensors);
        print_report_json(out, view, &group->total);
        json_out_end(out, '}');
        free(name);
    }
    json_out_end(out, ']');
}

static void print_tensors_json(struct json_out *out, const struct view *view) {
    const struct ulp_tensor *tensors = ulp_patch_tensors(view->patch);

    json_out_begin(out, "list", '[');
    for (size_t i = 0; i < view->info.tensors; i++) {
        json_out_begin(out, NULL, '{');
        json_out_text(out, "name", tensors[i].name);
        json_out_text(out, "dtype", tensors[i].dtype);
        json_out_begin(out, "shape", '[');
        for (uint32_t k = 0; k < tensors[i].rank; k++)
            json_out_u64(out, NULL, tensors[i].shape[k]);
        json_out_end(out, ']');
        print_report_json(out, view, &view->reports[i]);
        print_steps_json(out, &view->reports[i]);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_json(const struct view *view) {
    const struct ulp_patch_info *info = &view->info;
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_u64(&out, "version", info->version);
    json_out_root(&out, "parent_root", &info->parent);
    if (!info->partial)
        json_out_root(&out, "child_root", &info->child);
    json_out_bool(&out, "history", info->history);
    if (info->history)
        json_out_root(&out, "before_root", &info->before);
    json_out_bool(&out, "partial", info->partial);
    json_out_u64(&out, "patch_bytes", info->bytes);
    json_out_u64(&out, "dense_bytes", info->dense_bytes);
    json_out_real(&out, "ratio", report_share((double)info->dense_bytes, (double)info->bytes));
    json_out_u64(&out, "tensors", info->tensors);
    json_out_u64(&out, "chunks", info->chunks);
    json_out_u64(&out, "elements", info->elements);
    json_out_u64(&out, "changed", info->changed);
    json_out_real(&out, "density", report_share((double)info->changed, (double)info->elements));
    json_out_real(&out, "bits_per_change",
                  report_share(8 * (double)info->bytes, (double)info->changed));
    print_steps_json(&out, &view->total);
    json_out_u64(&out, "steps_unknown", steps_unknown(view));
    print_groups_json(&out, view);
    print_tensors_json(&out, view);
    json_out_end(&out, '}');
}

/* ---- text ---- */

static void print_header(const struct ulp_patch_info *info) {
    printf("patch     %llu bytes (%s), format version %u%s\n", (unsigned long long)info->bytes,
           readable_bytes(info->bytes).text, info->version,
           info->partial ? ", of some regions only" : "");
    printf("model     %llu elements in %zu tensors, %s", (unsigned long long)info->elements,
           info->tensors, readable_bytes(info->dense_bytes).text);
    if (info->dense_bytes > info->bytes)
        printf(": %.1f times the patch", (double)info->dense_bytes / (double)info->bytes);
    printf("\nchanged   %llu elements", (unsigned long long)info->changed);
    if (info->changed)
        printf(" (%.3f %%), %.3f bits each", 100.0 * (double)info->changed / (double)info->elements,
               8.0 * (double)info->bytes / (double)info->changed);
    putchar('\n');
    report_root_text("from", &info->parent);
    if (!info->partial)
        report_root_text("to", &info->child);
    if (info->history)
        report_root_text("history", &info->before);
    else
        puts("history   not needed");
}

static void print_bucket(unsigned bucket, uint64_t count, uint64_t most, uint64_t all) {
    unsigned long long first = bucket_first(bucket), last = 1ull << bucket;
    char range[48];

    if (bucket + 1 == ULP_STEP_BUCKETS)
        snprintf(range, sizeof range, "%llu+", first);
    else if (first == last)
        snprintf(range, sizeof range, "%llu", first);
    else
        snprintf(range, sizeof range, "%llu-%llu", first, last);
    printf("%12s  ", range);
    print_bar((double)count / (double)most, BAR_WIDTH);
    printf(" %6.2f %%  %llu\n", 100.0 * (double)count / (double)all, (unsigned long long)count);
}

static void print_steps(const struct view *view) {
    const uint64_t *steps = view->total.steps;
    uint64_t most = 0, unknown = steps_unknown(view);
    unsigned last = 0;

    for (unsigned i = 0; i < ULP_STEP_BUCKETS; i++) {
        most = steps[i] > most ? steps[i] : most;
        last = steps[i] ? i : last;
    }
    if (!view->info.changed)
        return;
    puts("\nsize of the steps, in ulps");
    for (unsigned i = 0; most && i <= last; i++)
        print_bucket(i, steps[i], most, view->info.changed);
    if (unknown)
        printf("%12s  of %llu changes; --base MODEL tells\n", "not known",
               (unsigned long long)unknown);
}

/* "context", "context+plain"; the coders of the chunks that it lies in. */
static void print_coders(const struct ulp_tensor_report *report) {
    char text[64] = "";

    for (unsigned i = 1; i < 4; i++) {
        if (!report->chunks[i])
            continue;
        if (*text)
            strncat(text, "+", sizeof text - strlen(text) - 1);
        strncat(text, coder_names[i], sizeof text - strlen(text) - 1);
    }
    printf("%-9s", *text ? text : "-");
}

static double density_of(const struct ulp_tensor_report *report) {
    return report->elements ? (double)report->changed / (double)report->elements : 0;
}

/* The columns in front of a name, which comes last because it may be anything. */
static void print_density(const struct view *view, const struct ulp_tensor_report *report,
                          double most, unsigned width) {
    const double density = density_of(report);

    printf("%s%7.3f %%  ", is_exact(view, report) ? " " : "<", 100 * density);
    print_bar(most > 0 ? density / most : 0, width);
    if (report->changed)
        printf("  %6.2f", (double)report->bits / (double)report->changed);
    else
        printf("  %6s", "-");
}

static void print_groups(const struct view *view) {
    double most = 0;

    for (size_t i = 0; i < view->group_count; i++) {
        double density = density_of(&view->groups[i].total);

        most = density > most ? density : most;
    }
    printf("\n%10s  %-*s  %6s  %s\n", "changed", (int)BAR_WIDTH, "", "bits", "where");
    for (size_t i = 0; i < view->group_count && i < GROUPS_SHOWN; i++) {
        char *name = strndup(view->groups[i].name, view->groups[i].length);

        print_density(view, &view->groups[i].total, most, BAR_WIDTH);
        fputs("  ", stdout);
        print_safely(stdout, name ? name : "");
        putchar('\n');
        free(name);
    }
    if (view->group_count > GROUPS_SHOWN)
        printf("and %zu more; --tensors lists everything\n", view->group_count - GROUPS_SHOWN);
}

static void print_tensors(const struct view *view) {
    const struct ulp_tensor *tensors = ulp_patch_tensors(view->patch);
    double most = 0;

    for (size_t i = 0; i < view->info.tensors; i++) {
        double density = density_of(&view->reports[i]);

        most = density > most ? density : most;
    }
    printf("\n%10s  %-*s  %6s  %-9s  %12s  %10s  %s\n", "changed", (int)NARROW_BAR_WIDTH, "",
           "bits", "coder", "elements", "changed", "name dtype [shape]");
    for (size_t i = 0; i < view->info.tensors; i++) {
        print_density(view, &view->reports[i], most, NARROW_BAR_WIDTH);
        fputs("  ", stdout);
        print_coders(&view->reports[i]);
        fputs("  ", stdout);
        printf("%12llu  %10llu  ", (unsigned long long)view->reports[i].elements,
               (unsigned long long)view->reports[i].changed);
        print_safely(stdout, tensors[i].name);
        fputs(" ", stdout);
        print_safely(stdout, tensors[i].dtype);
        fputs(" [", stdout);
        for (uint32_t k = 0; k < tensors[i].rank; k++)
            printf("%s%llu", k ? ", " : "", (unsigned long long)tensors[i].shape[k]);
        puts("]");
    }
}

/* ---- looking ---- */

/* With the base, every step is known; a patch with history then needs that too. */
static enum ulp_status weigh_base(const struct view *view, struct ulp_weights **ret_weights) {
    enum ulp_status status;

    if (!view->base)
        return ULP_OK;
    status = report_weights(ulp_model_tensors(view->base), ulp_model_count(view->base), view->pool,
                            ret_weights);
    if (!status && view->info.history)
        status = history_remember(&view->history, *ret_weights, view->pool);
    return status;
}

static enum ulp_status look(struct view *view) {
    struct ulp_weights *weights = NULL;
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status;

    view->reports = calloc(view->info.tensors + 1, sizeof *view->reports);
    if (!view->reports)
        return ulp_fail(ULP_E_NOMEM, "out of memory for the reports of the tensors");
    status = weigh_base(view, &weights);
    if (!status) {
        progress = progress_begin(&line, "inspect", view->info.bytes);
        status = ulp_patch_inspect(view->patch, weights, view->pool, &progress, view->reports);
        progress_end(&line);
    }
    ulp_weights_free(weights);
    for (size_t i = 0; !status && i < view->info.tensors; i++)
        report_add(&view->total, &view->reports[i]);
    return status ? status
                  : groups_make(ulp_patch_tensors(view->patch), view->reports, view->info.tensors,
                                &view->groups, &view->group_count);
}

static enum ulp_status open_inputs(const struct cli_args *args, struct view *view) {
    const char *base = option_text(args, "base");
    enum ulp_status status = option_pool(args, &view->pool);

    if (!status && option_given(args, "history") && !base)
        status = ulp_fail(ULP_E_USAGE, "--history is of use together with --base only");
    if (!status)
        status = input_patch(args->operands[0], &view->patch);
    if (!status)
        status = history_open(args, &view->history);
    if (!status && base)
        status = input_model(base, &view->base);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct view view = {0};
    enum ulp_status status = open_inputs(args, &view);

    if (!status) {
        ulp_patch_info(view.patch, &view.info);
        status = look(&view);
    }
    if (!status && option_given(args, "json")) {
        print_json(&view);
    } else if (!status) {
        print_header(&view.info);
        print_steps(&view);
        (option_given(args, "tensors") ? print_tensors : print_groups)(&view);
    }
    free(view.groups);
    free(view.reports);
    history_release(&view.history);
    ulp_model_free(view.base);
    ulp_patch_free(view.patch);
    ulp_pool_free(view.pool);
    return status;
}

static const struct cli_option options[] = {
    {"tensors", 0, NULL, "Show every tensor instead of layers."},
    {"base", 'b', "MODEL",
     "The model that the patch starts from; with it, the size of every step is known."},
    CLI_OPTIONS_HISTORY,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_inspect = {
    .name = "inspect",
    .group = CLI_PATCHES,
    .summary = "a picture of a patch: what moved, where and how far",
    .operands = "PATCH [--tensors] [--base MODEL] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Shows which states a patch joins, how large it is, how far the weights moved (in\n"
        "ulps: steps to the next number of their type), and which layers moved most.\n"
        "Bits are those spent on each changed element there.\n"
        "\n"
        "The patch alone is enough for what was coded relative to the old weights. Of\n"
        "other chunks only the new values are in it: then the steps are known with\n"
        "--base, and without it '<' marks where at most so much changed.\n",
    .examples = "  $ ulpsync inspect step-2.ulp\n"
                "  $ ulpsync inspect step-2.ulp --tensors --base step-1\n"
                "  $ ulpsync inspect step-2.ulp --json | jq '.groups[] | {name, density}'\n",
    .options = options,
    .run = run,
};
