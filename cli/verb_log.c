// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void print_heading(void) {
    printf(
        "  record  version epoch     step  time                   changed density   bits       patch "
        "  ways anchors  signer    notes\n");
}

static const char *local_time(uint64_t time_ms, char text[32]) {
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm local;

    text[0] = 0;
    if (localtime_r(&seconds, &local))
        strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

/* What changed since the version before: blank in records that did not publish one. */
static void print_change(const struct ulp_run_record *record) {
    if (!record->patch_bytes) {
        printf("  %9s %7s %6s %11s ", "", "", "", "");
        return;
    }
    printf("  %9s", readable_count(record->changed).text);
    if (record->elements)
        printf(" %6.3f%%", 100 * (double)record->changed / (double)record->elements);
    else
        printf(" %7s", "-");
    if (record->changed)
        printf(" %6.2f", 8 * (double)record->patch_bytes / (double)record->changed);
    else
        printf(" %6s", "-");
    printf(" %11s%c", readable_bytes(record->patch_bytes).text, record->history ? 'h' : ' ');
}

/* Two records that follow each other; `before` is zeroed in front of the first. */
struct pair {
    struct ulp_run_record before, record;
};

static bool publishes(const struct pair *pair) {
    return !pair->before.sequence || pair->record.version != pair->before.version;
}

static bool changes_key(const struct pair *pair) {
    return pair->before.is_signed && pair->record.is_signed &&
           memcmp(&pair->before.signer, &pair->record.signer, sizeof pair->record.signer) != 0;
}

static void print_note(const char *note, const char **between) {
    printf("%s%s", *between, note);
    *between = ", ";
}

static void print_notes(const struct pair *pair) {
    const struct ulp_run_record *record = &pair->record;
    const char *between = "  ";
    char anchor[64];

    snprintf(anchor, sizeof anchor, "anchor %s", readable_bytes(record->anchor_bytes).text);
    if (record->anchor_bytes && (publishes(pair) || !pair->before.anchor_bytes))
        print_note(anchor, &between);
    if (record->epoch != pair->before.epoch)
        print_note("the step went back", &between);
    if (changes_key(pair))
        print_note("another key", &between);
    if (record->boundary == record->sequence)
        print_note("announces deletion", &between);
    if (!publishes(pair))
        print_note("same version", &between);
    putchar('\n');
}

static void print_line(const struct pair *pair) {
    static const struct ulp_run_record nothing;
    const struct ulp_run_record *record = &pair->record;
    char when[32], signer[ULP_PUBLIC_KEY_HEX_BYTES] = "-";

    if (record->is_signed)
        ulp_public_key_hex(&record->signer, signer);
    printf("%8llu %8llu %5llu %8llu  %-19s", (unsigned long long)record->sequence,
           (unsigned long long)record->version, (unsigned long long)record->epoch,
           (unsigned long long)record->step, local_time(record->time_ms, when));
    print_change(publishes(pair) ? record : &nothing);
    printf(" %5u %7u  %-8.8s", record->ways, record->anchors, signer);
    print_notes(pair);
}

static void print_json(const struct pair *pair) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    run_record_json(&out, &pair->record);
    json_out_bool(&out, "publishes", publishes(pair));
    json_out_end(&out, '}');
}

static enum ulp_status print_records(const struct run_place *place, uint64_t first, uint64_t last,
                                     bool json) {
    struct pair pair = {0};
    enum ulp_status status = ULP_OK;

    if (first > 1) /* to see what the first one did */
        status = ulp_run_read(place->store, place->run, first - 1, &pair.record);
    for (uint64_t i = first; !status && i <= last; i++) {
        pair.before = pair.record;
        status = ulp_run_read(place->store, place->run, i, &pair.record);
        if (!status)
            (json ? print_json : print_line)(&pair);
    }
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const bool json = option_given(args, "json");
    struct run_place place = {0};
    struct ulp_run_record head = {0};
    uint64_t count = UINT64_MAX;
    enum ulp_status status = option_count(args, "last", 1, UINT64_MAX, &count);

    if (!status)
        status = run_place_open(args, &place);
    if (!status)
        status = ulp_run_head(place.store, place.run, &head);
    if (!status && !json)
        print_heading();
    if (!status)
        status = print_records(&place, head.sequence > count ? head.sequence - count + 1 : 1,
                               head.sequence, json);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,           {"last", 'n', "N", "Only the last N records."},
    CLI_OPTION_JSON_LINES, CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,       CLI_OPTIONS_END,
};

const struct cli_verb verb_log = {
    .name = "log",
    .group = CLI_RUNS,
    .summary = "the history of a run: versions, steps, sizes, times, keys",
    .operands = "--store URL --run NAME [--last N] [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Lists the records of a run's log, oldest first: the version and the trainer's\n"
        "step (the epoch goes up when the step goes back), how many elements changed\n"
        "since the version before, the bits that each took and the size of the patch\n"
        "('h': it needs the version before as history), how many ways and anchors the\n"
        "record's map has, and the beginning of the key that signed it. Notes say when\n"
        "the version is stored whole (an anchor), when another key signs, when deletion\n"
        "of old parts is announced, and when the record only has a better map (same\n"
        "version).\n"
        "\n"
        "Signatures are not checked here: 'follow' and 'pull' do that, 'fsck' too.\n",
    .examples = "  $ ulpsync log --store /mnt/weights --run rl1 --last 20\n"
                "  $ ulpsync log --store /mnt/weights --run rl1 --last 1 --json | jq .step\n",
    .options = options,
    .run = run,
};
