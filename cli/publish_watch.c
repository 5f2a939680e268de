// SPDX-License-Identifier: Apache-2.0
#include "cli/publish_watch.h"

#include "cli/checkpoints.h"
#include "cli/terminal.h"

#include <stdio.h>

#define POLL_MS_DEFAULT 1000u
#define SETTLE_MS_DEFAULT 2000u

struct watching {
    struct audience *audience;
    struct ulp_run_options options;
    struct progress_line line;
    struct ulp_progress progress;
    struct ulp_publisher *publisher;
    struct checkpoints list;
    bool has_run; /* and this is its newest step: */
    uint64_t step;
    uint64_t poll_ms, settle_ms;
    enum ulp_status last; /* what was complained of */
    bool once;
    enum ulp_status skipped; /* with --once: what came of the last one that was left out */
    char message[1024];
};

/* Anybody may have chosen the name. */
static void say_of(const char *path, const char *what, const char *message) {
    fputs("ulpsync: '", stderr);
    print_safely(stderr, path);
    fprintf(stderr, "' %s: ", what);
    print_safely(stderr, message);
    fputc('\n', stderr);
}

static void note_head(struct watching *w, const struct ulp_run_report *report) {
    if (!report->head.sequence)
        return;
    w->has_run = true;
    w->step = report->head.step;
}

/* ---- publishing one ---- */

/* Also at the beginning: it brings the state to where the run is, and says where that is. */
static enum ulp_status anchor(struct watching *w) {
    struct ulp_run_report report = {0};
    enum ulp_status status;

    w->progress = progress_begin(&w->line, "anchor", 0);
    status = ulp_publisher_anchor(w->publisher, &report);
    progress_end(&w->line);
    if (status)
        return status;
    note_head(w, &report);
    if (report.fresh)
        publish_tell(w->audience, "anchor", NULL, &report);
    return ULP_OK;
}

static enum ulp_status publish(struct watching *w, const struct checkpoint *entry,
                               const char *path) {
    struct ulp_run_report report = {0};
    enum ulp_status status;

    w->progress = progress_begin(&w->line, "publish", 0);
    status = ulp_publisher_publish_model(w->publisher, path, entry->step, &report);
    progress_end(&w->line);
    if (status)
        return status;
    note_head(w, &report);
    publish_tell(w->audience, "publish", path, &report);
    if (checkpoint_look(path) != entry->look)
        say_of(path, "changed while it was published", "a longer --settle helps");
    status = anchor(w);
    if (status && status != ULP_E_FENCED && status != ULP_E_CANCELLED) {
        say_of(path, "is published, but no anchor could be made", ulp_last_error());
        status = ULP_OK; /* the version is published all the same */
    }
    return status;
}

/* Whether it is the checkpoint that is wrong: somebody will write it anew, or the next one. */
static bool is_the_checkpoints(enum ulp_status status) {
    return (status >= ULP_E_TRUNCATED && status <= ULP_E_NO_MODEL) || status == ULP_E_LAYOUT ||
           status == ULP_E_NOT_FOUND || status == ULP_E_FILE_KIND || status == ULP_E_FILE_CHANGED ||
           status == ULP_E_INTERRUPTED || status == ULP_E_BUSY;
}

static enum ulp_status leave_out(struct watching *w, struct checkpoint *entry, const char *path,
                                 enum ulp_status status) {
    entry->broken = true;
    if (checkpoint_look(path) != entry->look)
        return ULP_OK; /* it just changed, or went; it is looked at again */
    w->skipped = status;
    snprintf(w->message, sizeof w->message, "%s", ulp_last_error());
    say_of(path, "is left out until it changes", w->message);
    return ULP_OK;
}

static enum ulp_status opens_as_model(const char *path) {
    struct ulp_model *model = NULL;
    enum ulp_status status = ulp_model_open(path, &model);

    ulp_model_free(model);
    return status;
}

static enum ulp_status take(struct watching *w, struct checkpoint *entry) {
    char path[PATH_MAX];
    enum ulp_status status = checkpoint_path(&w->list, entry, path);

    if (status)
        return status;
    status = opens_as_model(path);
    if (!status) {
        status = publish(w, entry, path);
        if (status != ULP_E_LAYOUT)
            return status;
    }
    return is_the_checkpoints(status) ? leave_out(w, entry, path, status) : status;
}

/* ---- all of them ---- */

/* In order of step: one that is still being written holds up those behind it. `ret_left` says that
 * some of those that were there at first are not done. */
static enum ulp_status take_all(struct watching *w, bool *ret_left) {
    const uint64_t settle_ns = w->settle_ms * 1000000;
    enum ulp_status status = checkpoints_look(&w->list, w->has_run ? &w->step : NULL);
    bool waiting = false;

    *ret_left = false;
    for (size_t i = 0; !status && i < w->list.count && !terminal_stopping(); i++) {
        struct checkpoint *entry = &w->list.entries[i];

        if (entry->broken || (w->has_run && entry->step <= w->step))
            continue;
        waiting = waiting || now_ns() - entry->since_ns < settle_ns;
        if (waiting)
            *ret_left |= entry->first;
        else if (entry->first || !w->once)
            status = take(w, entry);
    }
    return status;
}

/* Nobody else makes a way for a publisher whose state cannot be brought to where the run is. */
static bool may_pass(enum ulp_status status) {
    return status != ULP_E_UNREACHABLE && run_may_pass(status);
}

static enum ulp_status stay(struct watching *w) {
    enum ulp_status status = ULP_OK;
    bool begun = false, left = true;

    while (!terminal_stopping()) {
        if (!begun)
            status = anchor(w);
        begun = begun || !status;
        if (begun)
            status = take_all(w, &left);
        if (terminal_stopping() || (status && (w->once || !may_pass(status))) || (w->once && !left))
            break;
        run_complain(&w->last, status, "trying again");
        run_wait(w->once && w->settle_ms < w->poll_ms ? w->settle_ms + 1 : w->poll_ms);
    }
    if (w->once)
        return status || !w->skipped ? status : ulp_fail(w->skipped, "%s", w->message);
    if (terminal_stopping() && (status == ULP_E_CANCELLED || may_pass(status)))
        status = ULP_OK;
    terminal_stopped_well();
    return status;
}

enum ulp_status publish_watch(struct audience *audience, const struct run_place *place,
                              const struct ulp_run_options *options) {
    const struct cli_args *args = audience->args;
    struct watching w = {.audience = audience,
                         .options = *options,
                         .list = {.directory = args->operands[0]},
                         .poll_ms = POLL_MS_DEFAULT,
                         .settle_ms = SETTLE_MS_DEFAULT,
                         .once = option_given(args, "once")};
    enum ulp_status status = run_option_poll(args, &w.poll_ms);

    w.options.progress = &w.progress;
    if (!status)
        status = option_count(args, "settle", 0, 86400000, &w.settle_ms);
    if (!status)
        status = checkpoints_look(&w.list, NULL);
    if (!status)
        status = ulp_publisher_open(place->store, place->run, option_text(args, "state"),
                                    &w.options, &w.publisher);
    if (!status)
        status = stay(&w);
    ulp_publisher_close(w.publisher);
    checkpoints_release(&w.list);
    return status;
}
