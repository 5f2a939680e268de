// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/publish_watch.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "cli/tiling.h"

#include <limits.h>
#include <stdio.h>

static void print_text(const struct ulp_run_report *report) {
    const struct ulp_run_record *head = &report->head;

    printf("version   %llu, step %llu\n", (unsigned long long)head->version,
           (unsigned long long)head->step);
    if (head->patch_bytes)
        printf("changed   %llu elements, a patch of %s%s\n", (unsigned long long)head->changed,
               readable_bytes(head->patch_bytes).text, head->history ? " with history" : "");
    if (head->anchor_bytes)
        printf("anchor    %s\n", readable_bytes(head->anchor_bytes).text);
    printf("stored    %s\n", readable_bytes(report->stored_bytes).text);
    report_root_text("root", &head->root);
}

/* In a line, where one follows the other. */
static void print_line(const char *event, const char *path, const struct ulp_run_report *report) {
    const struct ulp_run_record *head = &report->head;

    printf("%s: version %llu, step %llu: stored %s", event, (unsigned long long)head->version,
           (unsigned long long)head->step, readable_bytes(report->stored_bytes).text);
    if (path) {
        fputs(", ", stdout);
        print_safely(stdout, path);
    }
    putchar('\n');
}

static void report_json(struct json_out *out, const struct ulp_run_report *report) {
    run_record_json(out, &report->head);
    json_out_bool(out, "fresh", report->fresh);
    run_stored_json(out, report);
    run_phases_json(out, &report->phases);
}

static void print_json(const char *event, const char *path, const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    if (event)
        json_out_text(&out, "event", event);
    if (path)
        json_out_text(&out, "path", path);
    report_json(&out, report);
    json_out_end(&out, '}');
}

/* Where the trainer keeps its checkpoints is nobody's business. */
static void tell_others(struct audience *audience, const char *event,
                        const struct ulp_run_report *report) {
    struct json_out out;

    if (!telling_begin(&audience->telling, event ? event : "publish", &out))
        return;
    report_json(&out, report);
    notes_json(&out, &audience->notes);
    telling_end(&audience->telling, &out);
}

void publish_tell(struct audience *audience, const char *event, const char *path,
                  const struct ulp_run_report *report) {
    if (option_given(audience->args, "json"))
        print_json(event, path, report);
    else if (event)
        print_line(event, path, report);
    else
        print_text(report);
    fflush(stdout);
    tell_others(audience, event, report);
}

static enum ulp_status publish_one(struct audience *audience, const struct run_place *place,
                                   struct ulp_run_options *options) {
    const struct cli_args *args = audience->args;
    struct ulp_run_report report = {0};
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t step = 0;
    enum ulp_status status = option_count(args, "step", 0, UINT64_MAX, &step);

    if (status)
        return status;
    progress = progress_begin(&line, "publish", 0);
    options->progress = &progress;
    status = ulp_publish(place->store, place->run, option_text(args, "state"), args->operands[0],
                         step, options, &report);
    progress_end(&line);
    if (!status)
        publish_tell(audience, NULL, NULL, &report);
    return input_explain(status, args->operands[0], "a model");
}

static enum ulp_status read_options(const struct cli_args *args, const struct run_place *place,
                                    struct ulp_run_options *options) {
    uint64_t anchor_every = 0, keep_anchors = 0;
    enum ulp_status status = run_options(args, place, options);

    if (!status)
        status = option_count(args, "anchor-every", 1, UINT_MAX, &anchor_every);
    if (!status)
        status = option_count(args, "keep-anchors", 1, UINT_MAX, &keep_anchors);
    if (status)
        return status;
    options->anchor_every = (unsigned)anchor_every;
    options->keep_anchors = (unsigned)keep_anchors;
    options->reference = option_text(args, "reference");
    options->several = option_given(args, "several");
    return ULP_OK;
}

static enum ulp_status check_usage(const struct cli_args *args) {
    static const char *const only_watching[] = {"once", "settle", "poll"};

    if (!option_given(args, "state"))
        return ulp_fail(ULP_E_USAGE, "say where to keep the last version: --state DIR");
    if (option_given(args, "note") && !option_given(args, "tell"))
        return ulp_fail(ULP_E_USAGE, "--note goes with --tell NAME");
    if (option_given(args, "watch") && option_given(args, "note"))
        return ulp_fail(ULP_E_USAGE, "--note is of one step; with --watch there are many");
    if (option_given(args, "watch"))
        return option_given(args, "step")
                   ? ulp_fail(ULP_E_USAGE, "with --watch the names of the checkpoints tell the "
                                           "step; leave out --step")
                   : ULP_OK;
    for (size_t i = 0; i < sizeof only_watching / sizeof only_watching[0]; i++) {
        if (option_given(args, only_watching[i]))
            return ulp_fail(ULP_E_USAGE, "--%s goes with --watch", only_watching[i]);
    }
    return ULP_OK;
}

static enum ulp_status publish(struct audience *audience, const struct run_place *place,
                               struct ulp_run_options *options) {
    enum ulp_status status = notes_read(audience->args, &audience->notes);

    if (!status)
        status = telling_open(audience->args, place, option_given(audience->args, "watch"),
                              &audience->telling);
    if (!status)
        status = option_given(audience->args, "watch") ? publish_watch(audience, place, options)
                                                       : publish_one(audience, place, options);
    telling_close(&audience->telling);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct audience audience = {.args = args};
    struct ulp_run_options options = {0};
    struct run_place place = {0};
    struct ulp_tiling *tiling = NULL;
    enum ulp_status status = check_usage(args);

    if (!status)
        status = option_tiles(args, &tiling);
    if (!status)
        status = run_place_open(args, &place);
    if (!status)
        status = read_options(args, &place, &options);
    options.tiling = tiling;
    if (!status)
        status = publish(&audience, &place, &options);
    run_place_close(&place);
    ulp_tiling_free(tiling);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"state", 0, "DIR", "Where the last version is kept; made if missing, and brought up to date."},
    {"step", 's', "N", "The trainer's own number for this version; 0 unless given."},
    {"watch", 'w', NULL,
     "MODEL is a directory into which checkpoints are written: publish each, and stay."},
    {"once", 0, NULL, "With --watch: publish what is there now, and end."},
    {"settle", 0, "MS",
     "With --watch: how long nothing in a checkpoint must have changed; 2000 unless given."},
    {"poll", 0, "MS", "With --watch: milliseconds between two looks; 1000 unless given."},
    RUN_OPTION_SIGN,
    RUN_OPTION_TRUST,
    {"reference", 0, "NAME",
     "The first version is a public model of this name, which every follower has (--base): only "
     "the name is stored."},
    {"several", 0, NULL,
     "Others may publish to the run too: try first whether the store can keep publishers apart, "
     "and refuse one that cannot (exit code 13)."},
    {"anchor-every", 0, "N",
     "Store a version whole after at most N others; 128 unless given, and earlier when the "
     "patches have become long."},
    {"keep-anchors", 0, "N",
     "Of these, the newest N and all that leads on from them can be had; 2 unless given."},
    {"tiles", 0, "N", "Cut what is stored into N tiles, for followers with --slice K/N."},
    CLI_OPTION_LAYOUT,
    TELL_OPTION("what was done"),
    {"note", 0, "KEY=NUMBER",
     "With --tell: a number to show with this step, such as reward=0.5; may be given again."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON_LINES,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_publish = {
    .name = "publish",
    .group = CLI_RUNS,
    .summary = "add a checkpoint to a run in a store, or each that appears",
    .operands = "MODEL --store URL --run NAME --state DIR [--watch] [...]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Stores what changed between the run's newest version and MODEL, a safetensors\n"
        "file or a directory of them, and makes it known to all followers. The first\n"
        "version of a run is stored whole, and now and then a later one (an anchor),\n"
        "with the files beside the weights: whoever comes late starts from there.\n"
        "\n"
        "DIR holds the newest version, to compare with. It belongs to this run; after a\n"
        "crash, or on another machine, it is brought up to date from the store.\n"
        "\n"
        "With --tiles each tensor that can be is cut into N bands of rows, or as the\n"
        "rules of --layout say (docs/tiles.md), and each tile has a patch of its own: a\n"
        "rank of an engine that holds one of them fetches no more. All versions of a run\n"
        "should be cut alike.\n"
        "\n"
        "Nothing is known to followers until everything is stored and checked. If another\n"
        "publisher was first, this one is told so (exit code 73) and has changed nothing.\n"
        "\n"
        "With --watch it stays beside a trainer that knows nothing of ulpsync. MODEL is\n"
        "then the directory into which that writes: each entry whose name ends in a\n"
        "number, its step (step-100, checkpoint-200, global_step_300.safetensors), is\n"
        "published, in order of steps, once it opens as a model with all its shards and\n"
        "has been left alone for the time that --settle says. Steps that are not above\n"
        "the run's newest are passed over, and so are names that begin with a dot or tmp,\n"
        "or end in .tmp. A checkpoint that is broken is reported once and left out until\n"
        "it changes; one that is still being written holds up those behind it. It ends\n"
        "when it is stopped (SIGTERM, Ctrl-C), which is no failure, or when somebody else\n"
        "publishes the run.\n"
        "\n"
        "With --tell what was done is left in the store too, beside the run, with times\n"
        "and with what --note says: 'ulpsync top' shows it live. Nothing depends on it;\n"
        "if it fails, that is said once, and the work goes on.\n",
    .examples = "  $ ulpsync publish step-100 --store /mnt/rl --run r1 --state base --step 100\n"
                "  $ ulpsync publish --watch checkpoints --store /mnt/rl --run r1 --state base \\\n"
                "        --sign trainer.key\n"
                "  $ ulpsync publish step-9 --store /mnt/rl --run r1 --state base --step 9 \\\n"
                "        --tell trainer --note reward=0.61 --note kl=0.004\n",
    .options = options,
    .run = run,
};
