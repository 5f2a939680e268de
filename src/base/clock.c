// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t read_clock(clockid_t id) {
    struct timespec now = {0};

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t system_monotonic(void *user) {
    (void)user;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t system_wall(void *user) {
    (void)user;
    return read_clock(CLOCK_REALTIME);
}

static void system_sleep(void *user, uint64_t duration_ns) {
    struct timespec left = {(time_t)(duration_ns / NS_PER_S), (long)(duration_ns % NS_PER_S)};

    (void)user;
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

static const struct clock_hooks system_clock = {system_monotonic, system_wall, system_sleep, NULL};
static struct clock_hooks active = {system_monotonic, system_wall, system_sleep, NULL};

void clock_install(const struct clock_hooks *hooks) {
    active = hooks ? *hooks : system_clock;
}

uint64_t clock_monotonic_ns(void) {
    return active.monotonic_ns(active.user);
}

uint64_t clock_wall_ns(void) {
    return active.wall_ns(active.user);
}

void clock_sleep_ns(uint64_t duration_ns) {
    active.sleep_ns(active.user, duration_ns);
}
