// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/turns.h"

#include "base/clock.h"
#include "base/thread.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64u
#define SECOND_NS ((uint64_t)1000000000)
#define START_NS ((uint64_t)1700000000 * SECOND_NS)
#define POINT_NS_MAX ((uint64_t)2000000)

enum state { FREE, READY, ASLEEP, WAITING, ENDED };

struct turn {
    enum state state;
    sem_t go;
    pthread_t id;
    uint64_t until;        /* ASLEEP */
    const void *waits_for; /* WAITING: a condition, a thread or a flag */
    void *(*run)(void *user);
    void *user;
};

/* The linker gives the real ones these names. */
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user);
int __real_pthread_join(pthread_t id, void **result);
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user);
int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

static struct turn turns[THREADS_MAX];
static struct chance chance;
static uint64_t now, seed_of_run;
static unsigned stay_percent;
static sem_t all_ended;
static _Thread_local struct turn *self;

static uint64_t simulated_now(void *user) {
    (void)user;
    return START_NS + now;
}

static void simulated_sleep(void *user, uint64_t duration_ns) {
    (void)user;
    turns_sleep(duration_ns);
}

void turns_begin(uint64_t seed, unsigned stay) {
    const struct clock_hooks hooks = {simulated_now, simulated_now, simulated_sleep, NULL};

    clock_install(&hooks);
    memset(turns, 0, sizeof turns);
    sem_init(&all_ended, 0, 0);
    chance = chance_of(seed);
    seed_of_run = seed;
    stay_percent = stay;
    now = 0;
}

uint64_t turns_now(void) {
    return now;
}

struct chance *turns_chance(void) {
    return &chance;
}

/* ---- whose turn it is ---- */

static void wake_sleepers(void) {
    for (size_t i = 0; i < THREADS_MAX; i++) {
        if (turns[i].state == ASLEEP && turns[i].until <= now)
            turns[i].state = READY;
    }
}

static void leap(void) {
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < THREADS_MAX; i++) {
        if (turns[i].state == ASLEEP && turns[i].until < next)
            next = turns[i].until;
    }
    now = next == UINT64_MAX ? now : next;
    wake_sleepers();
}

static struct turn *any_ready(void) {
    size_t count = 0, wanted;

    for (size_t i = 0; i < THREADS_MAX; i++)
        count += turns[i].state == READY;
    if (!count)
        return NULL;
    wanted = (size_t)chance_below(&chance, count);
    for (size_t i = 0;; i++) {
        if (turns[i].state == READY && !wanted--)
            return &turns[i];
    }
}

static bool everybody_ended(void) {
    for (size_t i = 0; i < THREADS_MAX; i++) {
        if (turns[i].state != FREE && turns[i].state != ENDED)
            return false;
    }
    return true;
}

/* NULL when all have ended. */
static struct turn *choose(void) {
    struct turn *next;

    wake_sleepers();
    next = any_ready();
    if (next)
        return next;
    leap();
    next = any_ready();
    if (!next && !everybody_ended()) {
        fprintf(stderr, "seed %llu: all threads wait for one another\n",
                (unsigned long long)seed_of_run);
        abort();
    }
    return next;
}

static void pass_on(void) {
    struct turn *next = choose();
    const bool goes_on = next != self && self->state != ENDED;

    if (!next)
        sem_post(&all_ended);
    else if (next != self)
        sem_post(&next->go);
    if (goes_on) {
        while (sem_wait(&self->go))
            ;
    }
}

void turns_point(void) {
    if (!self)
        return;
    now += chance_below(&chance, POINT_NS_MAX);
    if (!chance_percent(&chance, stay_percent))
        pass_on();
}

void turns_sleep(uint64_t duration_ns) {
    if (!self)
        return;
    self->until = now + duration_ns;
    self->state = ASLEEP;
    pass_on();
}

static void wait_for(const void *what) {
    self->waits_for = what;
    self->state = WAITING;
    pass_on();
}

static void wake_those_who_wait_for(const void *what) {
    for (size_t i = 0; i < THREADS_MAX; i++) {
        if (turns[i].state == WAITING && turns[i].waits_for == what)
            turns[i].state = READY;
    }
}

void turns_wait_for(const int *flag) {
    while (!*flag)
        wait_for(flag);
}

void turns_raise(int *flag) {
    *flag = 1;
    wake_those_who_wait_for(flag);
}

/* ---- beginning and ending ---- */

static void *run_turn(void *user) {
    struct turn *turn = user;

    self = turn;
    while (sem_wait(&turn->go))
        ;
    turn->run(turn->user);
    turn->state = ENDED;
    wake_those_who_wait_for(turn);
    pass_on();
    return NULL;
}

static struct turn *start(void *(*run)(void *user), void *user) {
    struct turn *turn = turns;

    while (turn < turns + THREADS_MAX && turn->state != FREE)
        turn++;
    if (turn == turns + THREADS_MAX)
        return NULL;
    *turn = (struct turn){.state = READY, .run = run, .user = user};
    sem_init(&turn->go, 0, 0);
    if (__real_pthread_create(&turn->id, NULL, run_turn, turn)) {
        turn->state = FREE;
        return NULL;
    }
    return turn;
}

struct starting {
    void (*run)(void *user);
    void *user;
};

static void *run_starting(void *user) {
    struct starting starting = *(struct starting *)user;

    free(user);
    starting.run(starting.user);
    return NULL;
}

void turns_start(void (*run)(void *user), void *user) {
    struct starting *starting = malloc(sizeof *starting);

    if (starting)
        *starting = (struct starting){run, user};
    if (!starting || !start(run_starting, starting)) {
        fprintf(stderr, "the system gives no more threads\n");
        abort();
    }
}

static void end(struct turn *turn) {
    __real_pthread_join(turn->id, NULL);
    sem_destroy(&turn->go);
    turn->state = FREE;
}

void turns_run(void) {
    struct turn *first = choose();

    if (first) {
        sem_post(&first->go);
        while (sem_wait(&all_ended))
            ;
    }
    for (size_t i = 0; i < THREADS_MAX; i++) {
        if (turns[i].state == ENDED)
            end(&turns[i]);
    }
    sem_destroy(&all_ended);
    clock_install(NULL);
}

/* ---- threads of the library ---- */

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user) {
    struct turn *turn;

    if (!self)
        return __real_pthread_create(id, attributes, run, user);
    turn = start(run, user);
    if (!turn)
        return 11; /* EAGAIN */
    *id = turn->id;
    return 0;
}

int __wrap_pthread_join(pthread_t id, void **result) {
    for (size_t i = 0; self && i < THREADS_MAX; i++) {
        struct turn *turn = &turns[i];

        if (turn->state == FREE || !pthread_equal(turn->id, id))
            continue;
        while (turn->state != ENDED)
            wait_for(turn);
        end(turn);
        return 0;
    }
    return __real_pthread_join(id, result);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (!self)
        return __real_pthread_cond_wait(condition, mutex);
    pthread_mutex_unlock(mutex);
    wait_for(condition);
    return pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition) {
    wake_those_who_wait_for(condition);
    return __real_pthread_cond_broadcast(condition);
}
