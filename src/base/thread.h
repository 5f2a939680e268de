// SPDX-License-Identifier: Apache-2.0
/* A thread in the background, which leaves all signals to the threads of the program. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

/* Zeroed means that none runs. It must stay where it is until it was joined. */
struct thread {
    void (*run)(void *user);
    void *user;
    pthread_t id;
    bool started;
};

/* ULP_E_NOMEM if the system gives no more threads. Messages of failures stay with the thread that
 * saw them: whoever wants to report one carries it over (struct error_note). */
enum ulp_status thread_start(struct thread *thread, void (*run)(void *user), void *user);

/* Waits until it has ended. One that was never started, or joined before, is no matter. */
void thread_join(struct thread *thread);

#endif
