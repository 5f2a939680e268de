// SPDX-License-Identifier: Apache-2.0
#include "net/retry.h"

#include "base/clock.h"

#include <stdint.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static uint64_t or_else(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

/* Different for everybody who begins at the same moment; nothing secret (splitmix64). */
static uint64_t next_random(struct retry *retry) {
    uint64_t mixed = retry->random += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

struct retry retry_begin(const struct retry_limits *limits) {
    struct retry retry = {
        .limits = {(unsigned)or_else(limits->attempts, 8), or_else(limits->total_ns, 120000 * MS),
                   or_else(limits->first_ns, 100 * MS), or_else(limits->most_ns, 20000 * MS)},
        .began_ns = clock_monotonic_ns()};

    retry.random = clock_wall_ns() ^ (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)&retry;
    return retry;
}

void retry_refresh(struct retry *retry) {
    retry->made = 0;
    retry->began_ns = clock_monotonic_ns();
}

static uint64_t pause_of(struct retry *retry, uint64_t retry_after_s) {
    const uint64_t most = retry->limits.most_ns;
    uint64_t longest = retry->limits.first_ns, asked, pause;

    for (unsigned i = 1; i < retry->made && longest < most; i++)
        longest *= 2;
    longest = longest < most ? longest : most;
    pause = next_random(retry) % (longest + 1);
    asked = retry_after_s < most / (1000 * MS) ? retry_after_s * 1000 * MS : most;
    if (!retry_after_s || asked <= pause)
        return pause;
    /* not sooner than asked, and not all at that very moment */
    return asked + pause < most ? asked + pause : most;
}

bool retry_again(struct retry *retry, uint64_t retry_after_s) {
    uint64_t pause, gone;

    if (++retry->made >= retry->limits.attempts)
        return false;
    pause = pause_of(retry, retry_after_s);
    gone = clock_monotonic_ns() - retry->began_ns;
    if (gone >= retry->limits.total_ns || pause > retry->limits.total_ns - gone)
        return false;
    clock_sleep_ns(pause);
    return true;
}

bool retry_code(unsigned code) {
    return code == 408 || code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
}
