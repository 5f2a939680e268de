// SPDX-License-Identifier: Apache-2.0
/* docs/simulator.md says what this is for. */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So many are shown. */
#define VIOLATIONS_MAX 10u

static const char *const rule_names[BROKEN_COUNT] = {
    [BROKEN_NOTHING] = "nothing",
    [BROKEN_RECORD_BEFORE_PARTS] = "record-before-parts",
    [BROKEN_BASE_BEFORE_COMMIT] = "base-before-commit",
    [BROKEN_DELETED_RECORD] = "deleted-record",
    [BROKEN_XOR_APPLY] = "xor-apply",
    [BROKEN_UNALIGNED_HISTORY] = "unaligned-history",
    [BROKEN_COLLECT_WITHOUT_BOUNDARY] = "collect-without-boundary",
    [BROKEN_BOUNDARY_IGNORED] = "boundary-ignored",
};

struct arguments {
    uint64_t first, count;
    enum broken broken;
    bool verbose, twice, must_notice;
};

static int usage(void) {
    fprintf(stderr, "usage: simulator [--seed N | --seeds FIRST COUNT] [--break RULE | "
                    "--notices RULE] [--twice] [--verbose]\nrules:");
    for (unsigned i = 1; i < BROKEN_COUNT; i++)
        fprintf(stderr, " %s", rule_names[i]);
    fprintf(stderr, "\n");
    return 2;
}

static bool parse_rule(const char *name, enum broken *ret_broken) {
    for (unsigned i = 1; i < BROKEN_COUNT; i++) {
        if (!strcmp(name, rule_names[i])) {
            *ret_broken = (enum broken)i;
            return true;
        }
    }
    return false;
}

static bool parse(int count, char **words, struct arguments *a) {
    for (int i = 1; i < count; i++) {
        const int left = count - i - 1;

        if (!strcmp(words[i], "--seed") && left >= 1) {
            a->first = strtoull(words[++i], NULL, 10);
            a->count = 1;
        } else if (!strcmp(words[i], "--seeds") && left >= 2) {
            a->first = strtoull(words[++i], NULL, 10);
            a->count = strtoull(words[++i], NULL, 10);
        } else if (!strcmp(words[i], "--break") && left >= 1) {
            if (!parse_rule(words[++i], &a->broken))
                return false;
        } else if (!strcmp(words[i], "--notices") && left >= 1) {
            a->must_notice = true;
            if (!parse_rule(words[++i], &a->broken))
                return false;
        } else if (!strcmp(words[i], "--twice")) {
            a->twice = true;
        } else if (!strcmp(words[i], "--verbose")) {
            a->verbose = true;
        } else {
            return false;
        }
    }
    return true;
}

/* Whether something was violated, or came out differently the second time. */
static bool run_seed(const struct arguments *a, uint64_t seed) {
    static struct world world;
    uint64_t trace;

    world_run(&world, seed, a->broken, a->verbose);
    trace = world.trace;
    if (world.violation[0])
        printf("seed %" PRIu64 ": %s\n  again: simulator --seed %" PRIu64 "%s%s --verbose\n", seed,
               world.violation, seed, a->broken ? " --break " : "",
               a->broken ? rule_names[a->broken] : "");
    if (!a->twice || world.violation[0])
        return world.violation[0];
    world_run(&world, seed, a->broken, false);
    if (world.trace != trace)
        printf("seed %" PRIu64 ": two runs are not the same\n", seed);
    return world.trace != trace;
}

/* All seeds, or as many as it takes to notice that a rule is broken. */
static int run_all(const struct arguments *a) {
    const uint64_t enough = a->must_notice ? 1 : VIOLATIONS_MAX;
    uint64_t bad = 0, done = 0;

    while (done < a->count && bad < enough)
        bad += run_seed(a, a->first + done++);
    printf("%" PRIu64 " seeds from %" PRIu64 " on: %" PRIu64 " violations\n", done, a->first, bad);
    return a->must_notice ? !bad : bad != 0;
}

int main(int count, char **words) {
    struct arguments a = {.first = 1, .count = 1};

    if (!parse(count, words, &a))
        return usage();
    if (!access("/dev/shm", W_OK))
        setenv("TMPDIR", "/dev/shm", 0);
    return run_all(&a);
}
