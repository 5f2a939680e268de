// SPDX-License-Identifier: Apache-2.0
/* Time, through a door that tests can replace. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never runs backwards. For durations and deadlines. */
uint64_t clock_monotonic_ns(void);

/* Nanoseconds since 1970. For labels; never for safety. */
uint64_t clock_wall_ns(void);

void clock_sleep_ns(uint64_t duration_ns);

struct clock_hooks {
    uint64_t (*monotonic_ns)(void *user);
    uint64_t (*wall_ns)(void *user);
    void (*sleep_ns)(void *user, uint64_t duration_ns);
    void *user;
};

/* For tests, before any other thread runs. NULL restores the system's clock. */
void clock_install(const struct clock_hooks *hooks);

#endif
