// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

static void *run_thread(void *user) {
    const struct thread *thread = user;

    thread->run(thread->user);
    return NULL;
}

enum ulp_status thread_start(struct thread *thread, void (*run)(void *user), void *user) {
    sigset_t all, before;
    int error;

    assert(!thread->started);
    thread->run = run;
    thread->user = user;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new one inherits it */
    error = pthread_create(&thread->id, NULL, run_thread, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return fail(ULP_E_NOMEM, "cannot start another thread: %s; use fewer threads",
                    strerror(error));
    thread->started = true;
    return ULP_OK;
}

void thread_join(struct thread *thread) {
    if (thread->started)
        pthread_join(thread->id, NULL);
    *thread = (struct thread){0};
}
