// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* renameat2 */
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The version is put together in a hidden directory beside the one that it becomes; what a pull
 * that was killed left there is cleaned up by the next with the same goal. */
struct workshop {
    char parent[PATH_MAX];
    char path[PATH_MAX]; /* "" until it is ours */
    int lock;            /* descriptor + 1 */
};

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    return place->level ? remove(path) : 0;
}

static void empty_directory(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static enum ulp_status workshop_name(struct workshop *w, const char *goal) {
    size_t length = strlen(goal);
    const char *slash;
    int folder;

    while (length > 1 && goal[length - 1] == '/')
        length--;
    slash = memrchr(goal, '/', length);
    folder = slash ? (int)(slash + 1 - goal) : 0;
    if (length >= PATH_MAX - 16 || (size_t)folder == length)
        return ulp_fail(ULP_E_NAME, "'%s' cannot be the name of a new directory", goal);
    snprintf(w->parent, sizeof w->parent, "%.*s", folder, folder ? goal : ".");
    if (!folder)
        strcpy(w->parent, ".");
    snprintf(w->path, sizeof w->path, "%.*s.%.*s.pull", folder, goal, (int)length - folder,
             goal + folder);
    return ULP_OK;
}

static bool is_still_there(const char *path, int descriptor) {
    struct stat named, opened;

    return !lstat(path, &named) && !fstat(descriptor, &opened) && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

/* Another pull that just ended may take the directory away between our steps: then once more. */
static enum ulp_status workshop_lock(struct workshop *w) {
    for (unsigned i = 0; i < 100; i++) {
        enum ulp_status status = ulp_directory_make(w->path);
        int descriptor;

        if (status)
            return status;
        descriptor = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (descriptor < 0 && errno == ENOENT)
            continue;
        if (descriptor < 0)
            return ulp_fail(ULP_E_IO, "cannot open '%s': %s", w->path, strerror(errno));
        if (flock(descriptor, LOCK_EX | LOCK_NB)) {
            close(descriptor);
            return ulp_fail(ULP_E_BUSY, "another process pulls to the same place ('%s')", w->path);
        }
        if (is_still_there(w->path, descriptor)) {
            w->lock = descriptor + 1;
            return ULP_OK;
        }
        close(descriptor);
    }
    return ulp_fail(ULP_E_BUSY, "others pull to the same place ('%s')", w->path);
}

static enum ulp_status workshop_open(const char *goal, struct workshop *w) {
    enum ulp_status status = ulp_name_is_free(goal);

    if (!status)
        status = workshop_name(w, goal);
    if (!status)
        status = workshop_lock(w);
    if (!status)
        empty_directory(w->path);
    return status;
}

static void workshop_release(struct workshop *w) {
    if (!w->lock)
        return;
    empty_directory(w->path);
    rmdir(w->path);
    close(w->lock - 1);
    w->lock = 0;
}

static void sync_directory(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0)
        return;
    fsync(descriptor);
    close(descriptor);
}

/* Never over something, not even an empty directory that has just been made. */
static enum ulp_status move_out(const struct workshop *w, const char *goal) {
    char link[PATH_MAX + 16], *version;
    enum ulp_status status = ULP_OK;

    snprintf(link, sizeof link, "%s/current", w->path);
    version = realpath(link, NULL);
    if (!version || renameat2(AT_FDCWD, version, AT_FDCWD, goal, RENAME_NOREPLACE)) {
        if (version && errno == EINVAL && !ulp_name_is_free(goal) && !rename(version, goal))
            errno = 0; /* a file system that cannot promise it */
        else
            status = ulp_fail(errno == EEXIST ? ULP_E_EXISTS : ULP_E_IO, "cannot make '%s': %s",
                              goal, strerror(errno));
    }
    if (!status)
        sync_directory(w->parent);
    free(version);
    return status;
}

static void print_result(const struct cli_args *args, const struct ulp_run_record *record,
                         const struct ulp_run_report *report) {
    struct json_out out = {0};

    if (!option_given(args, "json")) {
        run_fetched_text(record, report);
        return;
    }
    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "path", option_text(args, "out"));
    run_record_json(&out, record);
    run_fetched_json(&out, report);
    run_phases_json(&out, &report->phases);
    json_out_end(&out, '}');
}

static enum ulp_status pull(const struct cli_args *args, const struct run_place *place,
                            const struct workshop *w) {
    const char *goal = option_text(args, "out");
    struct ulp_run_options options = {0};
    struct ulp_run_report report = {0};
    struct ulp_run_record record = {0};
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status = run_options(args, place, &options);

    if (!status)
        status = run_options_version(args, place, &options);
    if (status)
        return status;
    progress = progress_begin(&line, "pull", 0);
    options.progress = &progress;
    status = ulp_follow(place->store, place->run, w->path, &options, &report);
    progress_end(&line);
    if (!status)
        status = run_record_of_version(place, &report.head, report.version, &record);
    if (!status && terminal_stopping())
        status = ulp_fail(ULP_E_CANCELLED, "stopped; nothing was left behind");
    if (!status)
        status = move_out(w, goal);
    if (!status)
        print_result(args, &record, &report);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *goal = option_text(args, "out");
    struct run_place place = {0};
    struct workshop workshop = {0};
    enum ulp_status status = goal && *goal ? run_place_open(args, &place)
                                           : ulp_fail(ULP_E_USAGE, "say what to make: --out DIR");

    if (!status)
        status = workshop_open(goal, &workshop);
    if (!status)
        status = pull(args, &place, &workshop);
    workshop_release(&workshop);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"out", 'o', "DIR", "The model directory that is made; there must be nothing yet."},
    RUN_OPTIONS_VERSION,
    RUN_OPTIONS_READING,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_pull = {
    .name = "pull",
    .group = CLI_RUNS,
    .summary = "get one version of a run as a plain model directory",
    .operands = "--store URL --run NAME --out DIR [--step N] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Makes DIR, a model directory like any other, with the run's newest version or an\n"
        "older one that the run still leads to ('ulpsync log' shows them): to evaluate a\n"
        "step, or to go back to it. Nothing of ulpsync is left in DIR; use 'follow' for\n"
        "what shall stay up to date.\n"
        "\n"
        "DIR appears complete and verified, or not at all. Until then all is in a hidden\n"
        "directory beside it (.DIR.pull), which goes when the verb ends; if it is killed,\n"
        "the next pull to DIR takes it away.\n",
    .examples = "  $ ulpsync pull --store /mnt/weights --run rl1 --step 100 -o step-100\n"
                "  $ ulpsync pull --store /mnt/weights --run rl1 -o newest --trust trusted\n",
    .options = options,
    .run = run,
};
