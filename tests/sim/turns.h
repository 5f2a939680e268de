// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that take turns. Only one of them runs at any time; at certain points it may have to stop,
 * and a seed decides who goes on. Threads that the library starts by itself take part: the linker
 * leads pthread_create(), pthread_join(), pthread_cond_wait() and pthread_cond_broadcast() here.
 *
 * Time is simulated too: it goes on at these points, and when all are asleep it leaps.
 */
#ifndef TESTS_SIM_TURNS_H
#define TESTS_SIM_TURNS_H

#include "tests/sim/chance.h"

/* `stay`: in how many percent of cases who runs goes on running. */
void turns_begin(uint64_t seed, unsigned stay);

/* Before turns_run(), or from a thread that takes turns. */
void turns_start(void (*run)(void *user), void *user);

/* Returns when all threads have ended. */
void turns_run(void);

/* Another one may go on here. Nothing happens in a thread that takes no turns. */
void turns_point(void);
void turns_sleep(uint64_t duration_ns);

void turns_wait_for(const int *flag);
void turns_raise(int *flag);
uint64_t turns_now(void);

/* The only source of chance while threads run. */
struct chance *turns_chance(void);

#endif
