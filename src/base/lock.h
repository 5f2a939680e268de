// SPDX-License-Identifier: Apache-2.0
/* A lock with a condition: whoever holds it may wait until somebody else changes what it guards. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* For one that lasts as long as the process; lock_make() is for all others. */
#define LOCK_STATIC                                                                                \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER }

static inline void lock_make(struct lock *lock) {
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, NULL);
}

static inline void lock_destroy(struct lock *lock) {
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
}

static inline void lock_take(struct lock *lock) {
    pthread_mutex_lock(&lock->mutex);
}

static inline void lock_give(struct lock *lock) {
    pthread_mutex_unlock(&lock->mutex);
}

/* Gives the lock away and takes it again after a lock_wake(), or for no reason. */
static inline void lock_wait(struct lock *lock) {
    pthread_cond_wait(&lock->changed, &lock->mutex);
}

static inline void lock_wake(struct lock *lock) {
    pthread_cond_broadcast(&lock->changed);
}

#endif
