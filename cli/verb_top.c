// SPDX-License-Identifier: Apache-2.0
#include "cli/picture.h"
#include "cli/screen.h"
#include "cli/story.h"
#include "cli/terminal.h"
#include "cli/top_frame.h"

#include <stdio.h>
#include <stdlib.h>

#define INTERVAL_MS_DEFAULT 1000u
#define INTERVAL_MS_MAX 86400000u
#define STEPS 256u /* more than a terminal has columns for */

struct topping {
    const struct cli_args *args;
    struct run_place place;
    struct story story;
    uint64_t interval_ms;
    bool on_screen, utf8, colour;
    char notice[512];
};

/* ---- for machines ---- */

static void numbers_json(struct json_out *out, const char *key, const double *numbers,
                         const char *const *names, unsigned count) {
    json_out_begin(out, key, '{');
    for (unsigned i = 0; i < count; i++)
        json_out_real(out, names[i], numbers[i]);
    json_out_end(out, '}');
}

static void phases_json(struct json_out *out, const double *phases) {
    static const char *const names[RUN_PHASES] = {"poll_ms",   "fetch_ms", "verify_ms", "decode_ms",
                                                  "digest_ms", "stage_ms", "apply_ms",  "encode_ms",
                                                  "store_ms",  "commit_ms"};

    numbers_json(out, "phases", phases, names, RUN_PHASES);
}

static void step_json(struct json_out *out, const struct story *story,
                      const struct story_step *step) {
    const char *names[STORY_NOTES_MAX];

    for (unsigned i = 0; i < story->note_count; i++)
        names[i] = story->note_names[i];
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "version", step->version);
    json_out_u64(out, "step", step->step);
    json_out_u64(out, "epoch", step->epoch);
    json_out_u64(out, "time_ms", step->time_ms);
    json_out_u64(out, "changed", step->changed);
    json_out_real(out, "density", step->density);
    json_out_u64(out, "patch_bytes", step->patch_bytes);
    json_out_u64(out, "anchor_bytes", step->anchor_bytes);
    json_out_u64(out, "full_bytes", step->full_bytes);
    json_out_real(out, "times_smaller", story_ratio(step));
    json_out_bool(out, "told", step->told);
    if (step->told) {
        phases_json(out, step->phases_ms);
        numbers_json(out, "notes", step->notes, names, story->note_count);
    }
    json_out_end(out, '}');
}

static void follower_json(struct json_out *out, const struct story *story,
                          const struct story_follower *follower) {
    json_out_begin(out, NULL, '{');
    json_out_text(out, "name", follower->name);
    json_out_u64(out, "version", follower->version);
    json_out_u64(out, "step", follower->step);
    json_out_u64(out, "lag", story_lag(story, follower));
    json_out_u64(out, "told_ms", follower->told_ms);
    json_out_u64(out, "fetched_bytes", follower->fetched_bytes);
    json_out_u64(out, "activations", follower->activation_count);
    json_out_real(out, "publish_to_active_ms", story_active_last(follower));
    json_out_real(out, "publish_to_active_median_ms", story_active_median(follower));
    json_out_end(out, '}');
}

static void print_json(const struct story *story) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "run", story->run);
    json_out_u64(&out, "sequence", story->head.sequence);
    json_out_u64(&out, "version", story->head.version);
    json_out_u64(&out, "step", story->head.step);
    json_out_u64(&out, "elements", story->head.elements);
    json_out_root(&out, "root", &story->head.root);
    json_out_u64(&out, "full_bytes", story->full_bytes);
    json_out_text(&out, "tellings", ulp_status_name(story->told_status));
    json_out_begin(&out, "steps", '[');
    for (size_t i = 0; i < story->step_count; i++)
        step_json(&out, story, &story->steps[i]);
    json_out_end(&out, ']');
    json_out_begin(&out, "followers", '[');
    for (size_t i = 0; i < story->follower_count; i++)
        follower_json(&out, story, &story->followers[i]);
    json_out_end(&out, ']');
    json_out_end(&out, '}');
    fflush(stdout);
}

/* ---- for people ---- */

static enum ulp_status draw(struct topping *t) {
    struct frame frame;
    unsigned columns, rows;

    screen_size(&columns, &rows);
    if (!t->on_screen)
        rows = 0;
    if (!frame_begin(&frame, columns, t->utf8, t->colour))
        return ulp_fail(ULP_E_NOMEM, "there is no memory for a page of text");
    top_draw(&frame, &t->story, rows, t->notice[0] ? t->notice : NULL, t->on_screen);
    frame_end(&frame);
    if (t->on_screen)
        screen_draw(frame.text, rows);
    else
        fputs(frame.text, stdout);
    frame_release(&frame);
    return ULP_OK;
}

static enum ulp_status show(struct topping *t) {
    if (!option_given(t->args, "json"))
        return draw(t);
    if (t->story.changed)
        print_json(&t->story);
    return ULP_OK;
}

/* ---- looking ---- */

/* What may pass is shown, and looked at again. */
static enum ulp_status look(struct topping *t) {
    const enum ulp_status status = story_refresh(&t->story);

    t->notice[0] = 0;
    if (status == ULP_E_NO_RUN)
        snprintf(t->notice, sizeof t->notice, "waiting for the run to begin: %s", ulp_last_error());
    else if (status)
        snprintf(t->notice, sizeof t->notice, "%s", ulp_last_error());
    return run_may_pass(status) ? ULP_OK : status;
}

static enum ulp_status stay_on_screen(struct topping *t) {
    enum ulp_status status = ULP_OK;
    enum screen_event event = SCREEN_TIMEOUT;

    screen_enter();
    status = draw(t); /* before the first look, which may take its time */
    while (!status && event != SCREEN_QUIT) {
        if (event == SCREEN_TIMEOUT)
            status = look(t);
        if (!status)
            status = draw(t);
        if (!status)
            event = screen_wait(t->interval_ms);
    }
    screen_leave();
    return status;
}

static enum ulp_status stay_in_pipe(struct topping *t) {
    enum ulp_status status = look(t);

    while (!status && !terminal_stopping()) {
        status = show(t);
        if (ferror(stdout)) /* which main() says: nobody reads what comes */
            return status;
        terminal_wait_ms(t->interval_ms);
        if (!status && !terminal_stopping())
            status = look(t);
    }
    if (terminal_stopping() && status == ULP_E_CANCELLED)
        status = ULP_OK;
    terminal_stopped_well();
    return status;
}

static enum ulp_status once(struct topping *t) {
    const enum ulp_status status = story_refresh(&t->story);

    return status ? status : show(t);
}

static enum ulp_status run(const struct cli_args *args) {
    struct topping t = {.args = args, .interval_ms = INTERVAL_MS_DEFAULT};
    const bool json = option_given(args, "json"), screen = screen_is_there();
    const char *no_colour = getenv("NO_COLOR");
    enum ulp_status status = option_count(args, "interval", 10, INTERVAL_MS_MAX, &t.interval_ms);

    t.utf8 = screen && takes_utf8();
    t.colour = screen && !(no_colour && *no_colour);
    t.on_screen = screen && !json && !option_given(args, "once");
    if (!status)
        status = run_place_open(args, &t.place);
    if (!status)
        status = story_open(t.place.store, t.place.run, STEPS, &t.story);
    if (!status && t.on_screen)
        status = stay_on_screen(&t);
    else if (!status)
        status = json && !option_given(args, "once") ? stay_in_pipe(&t) : once(&t);
    story_close(&t.story);
    run_place_close(&t.place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"interval", 'n', "MS", "Milliseconds between two looks; 1000 unless given."},
    {"once", '1', NULL, "Print what is there now, and end; so too where there is no terminal."},
    CLI_OPTION_JSON_LINES,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_top = {
    .name = "top",
    .group = CLI_RUNS,
    .summary = "watch a run live: rewards, density, bytes, who holds what",
    .operands = "--store URL --run NAME [--once] [--interval MS] [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Shows a run while it goes on: its newest version and how old that is; curves of\n"
        "the reward (or whatever 'publish --note' told first), of the share of elements\n"
        "that changed, of the bytes of each step, and of how many times smaller than a\n"
        "full state these are; the last steps; and each follower with the version that it\n"
        "holds, how many versions it lags, how long it took from publishing to being\n"
        "active, last and in the middle of all, what it fetched, and when it was last\n"
        "heard of.\n"
        "\n"
        "Steps and sizes are in the run's log. Rewards, times and followers are there\n"
        "where 'publish' and 'follow' were given --tell NAME: they are what somebody\n"
        "said, unsigned. Nothing is verified here, and nothing is changed.\n"
        "\n"
        "q or Ctrl-C ends it. NO_COLOR is respected. With --json a line is printed for\n"
        "each change, with all of it.\n",
    .examples = "  $ ulpsync top --store /mnt/weights --run rl1\n"
                "  $ ulpsync top --store s3://bucket/rl --run rl1 --interval 5000\n"
                "  $ ulpsync top --store /mnt/weights --run rl1 --once --json | jq .followers\n",
    .options = options,
    .run = run,
};
