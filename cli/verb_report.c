// SPDX-License-Identifier: Apache-2.0
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/replay.h"
#include "cli/runs.h"
#include "cli/story.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Beside which the replay's state may lie: the report, or, if that is standard output, here. */
static const char *beside(const char *path) {
    return strcmp(path, "-") != 0 ? path : "ulpsync-report";
}

static void make_page(struct text *page, const struct story *story, const struct replay *replay) {
    const uint64_t versions = story->head.version + 1;
    char title[320], subtitle[160];

    snprintf(title, sizeof title, "Run %.256s", story->run);
    if (story->step_count == versions)
        snprintf(subtitle, sizeof subtitle, "%llu version%s, by ulpsync %s",
                 (unsigned long long)versions, versions == 1 ? "" : "s", ulp_version());
    else
        snprintf(subtitle, sizeof subtitle, "The last %zu of %llu versions, by ulpsync %s",
                 story->step_count, (unsigned long long)versions, ulp_version());
    page_begin(page, &(struct page_head){.title = title, .subtitle = subtitle});
    figures_of_story(page, story, replay);
    page_end(page);
}

static void replayed_json(struct json_out *out, const struct replay *replay) {
    json_out_begin(out, "replayed", '[');
    for (size_t i = 0; i < replay->step_count; i++) {
        const struct replay_step *step = &replay->steps[i];

        json_out_begin(out, NULL, '{');
        json_out_u64(out, "version", step->version);
        json_out_u64(out, "step", step->step);
        json_out_u64(out, "elements", step->elements);
        json_out_u64(out, "changed", step->changed);
        json_out_real(out, "floor_bytes", step->floor_bytes);
        json_out_begin(out, "layers", '{');
        for (size_t k = 0; k < replay->layer_count; k++)
            json_out_real(out, replay->layers[k], step->layer_density[k]);
        json_out_end(out, '}');
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_json(const char *path, const struct text *page, const struct story *story,
                       const struct replay *replay) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "path", path);
    json_out_u64(&out, "bytes", page->length);
    json_out_text(&out, "run", story->run);
    json_out_u64(&out, "version", story->head.version);
    json_out_u64(&out, "steps", story->step_count);
    json_out_bool(&out, "told", story->told);
    json_out_u64(&out, "followers", story->follower_count);
    json_out_u64(&out, "full_bytes", story->full_bytes);
    if (*replay->missing)
        json_out_text(&out, "missing", replay->missing);
    else
        json_out_null(&out, "missing");
    replayed_json(&out, replay);
    json_out_end(&out, '}');
}

static void print_text(const char *path, const struct text *page, const struct story *story,
                       const struct replay *replay) {
    printf("report    ");
    print_safely(stdout, path);
    printf(" (%s)\nversions  %zu, %zu of them replayed\ntold      %s\n",
           readable_bytes(page->length).text, story->step_count, replay->step_count,
           story->told ? "yes" : "nothing: publish and follow with --tell NAME");
    if (*replay->missing) {
        printf("missing   ");
        print_safely(stdout, replay->missing);
        putchar('\n');
    }
}

static enum ulp_status read_story(const struct cli_args *args, const struct run_place *place,
                                  struct story *story) {
    uint64_t steps = STORY_STEPS_DEFAULT;
    enum ulp_status status = option_count(args, "steps", 1, STORY_STEPS_MAX, &steps);

    if (!status)
        status = story_open(place->store, place->run, (size_t)steps, story);
    return status ? status : story_refresh(story);
}

/* Also where nothing is replayed: who says which keys sign the run wants no page about another. */
static enum ulp_status check_trust(const struct cli_args *args, const struct run_place *place,
                                   const struct story *story) {
    struct ulp_run_options options = {0};
    uint64_t version = 0;
    enum ulp_status status = run_options(args, place, &options);

    if (!status && (options.trusted || options.max_age_ms))
        status = ulp_run_find_step(place->store, place->run, story->head.step, &options, &version);
    return status == ULP_E_UNREACHABLE ? ULP_OK : status; /* trusted, but older ones are gone */
}

static enum ulp_status report(const struct cli_args *args, const struct run_place *place,
                              const char *path) {
    struct story story = {0};
    struct replay replay = {0};
    struct text page = {0};
    enum ulp_status status = read_story(args, place, &story);

    if (!status)
        status = check_trust(args, place, &story);
    if (!status)
        status = replay_run(args, place, &story, beside(path), &replay);
    if (!status) {
        make_page(&page, &story, &replay);
        status = page_write(&page, path);
    }
    if (!status && option_given(args, "json"))
        print_json(path, &page, &story, &replay);
    else if (!status && strcmp(path, "-") != 0)
        print_text(path, &page, &story, &replay);
    text_release(&page);
    replay_release(&replay);
    story_close(&story);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *path = option_text(args, "out");
    struct run_place place = {0};
    enum ulp_status status = ULP_OK;

    if (!path || !*path)
        status = ulp_fail(ULP_E_USAGE, "say what to write: -o report.html");
    else if (!strcmp(path, "-") && option_given(args, "json"))
        status = ulp_fail(ULP_E_USAGE, "the report and --json cannot both go to standard output");
    if (!status)
        status = run_place_open(args, &place);
    if (!status)
        status = report(args, &place, path);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"out", 'o', "FILE", "The page that is written; '-' is standard output."},
    {"steps", 0, "N", "Show the last N records of the log; 1024 unless given."},
    REPLAY_OPTIONS,
    RUN_OPTIONS_READING,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_report = {
    .name = "report",
    .group = CLI_RUNS,
    .summary = "a page of figures about a run: reward, sizes, layers, times, lag",
    .operands = "--store URL --run NAME -o FILE [--last N] [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Writes one HTML file that any browser shows, with nothing to fetch: reward and\n"
        "other notes by step, the share of weights that change by step and by layer, the\n"
        "bytes of each step beside the full state and beside the entropy floor, where\n"
        "the time of publishing and following went, how long each version took to come\n"
        "to life with each follower, and the last versions with their roots.\n"
        "\n"
        "Sizes and densities are in the run's log. Rewards, times and followers are\n"
        "there when publishers and followers told of them (--tell). Layers and floor\n"
        "need the weights: the last versions are fetched and replayed in memory, unless\n"
        "the state is too large or --no-replay is given. Of what is missing the page\n"
        "says so.\n"
        "\n"
        "Tellings are not signed: a page shows what somebody said. Versions that are\n"
        "replayed are verified as by 'follow'. With --trust there is no page about a run\n"
        "whose newest record none of these keys signed.\n",
    .examples = "  $ ulpsync report --store /mnt/weights --run rl1 -o report.html\n"
                "  $ ulpsync report --store s3://bucket/runs --run rl1 -o report.html --last 16\n",
    .options = options,
    .run = run,
};
