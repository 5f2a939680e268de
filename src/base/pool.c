// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/limits.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ulpsync/pool.h>
#include <unistd.h>

/* One ulp_pool_run() call. */
struct job {
    ulp_task task;
    void *user;
    uint64_t count;
    atomic_uint_fast64_t next, done;
    atomic_bool stopped;
    uint64_t reported; /* what `progress` last heard */

    pthread_mutex_t lock; /* guards what follows */
    uint64_t failed_index;
    enum ulp_status status;
    struct error_note error;
};

struct ulp_pool {
    unsigned threads; /* counts the calling thread */
    struct thread *workers;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake, idle;
    struct job *job;
    uint64_t jobs_posted;
    unsigned busy;
    bool stopping;
};

static void job_fail(struct job *job, uint64_t index, enum ulp_status status) {
    pthread_mutex_lock(&job->lock);
    if (!job->status || index < job->failed_index) {
        job->failed_index = index;
        job->status = status;
        error_save(&job->error);
    }
    pthread_mutex_unlock(&job->lock);
    atomic_store(&job->stopped, true);
}

/* Takes and runs one task; false when none is left. */
static bool job_take(struct job *job) {
    uint64_t index;
    enum ulp_status status;

    if (atomic_load(&job->stopped))
        return false;
    index = atomic_fetch_add(&job->next, 1);
    if (index >= job->count)
        return false;
    error_clear(); /* or a task that fails in silence would inherit an older message */
    status = job->task(job->user, index);
    if (status)
        job_fail(job, index, status);
    atomic_fetch_add(&job->done, 1);
    return true;
}

static void job_report(struct job *job, const struct ulp_progress *progress) {
    if (!progress)
        return;
    job->reported = atomic_load(&job->done);
    if (!progress->report(progress->user, job->reported, job->count))
        return;
    fail(ULP_E_CANCELLED, "stopped by the caller");
    job_fail(job, job->count, ULP_E_CANCELLED);
}

static void worker_main(void *user) {
    struct ulp_pool *pool = user;
    uint64_t jobs_seen = 0;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct job *job;

        while (!pool->stopping && pool->jobs_posted == jobs_seen)
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->stopping)
            break;
        jobs_seen = pool->jobs_posted;
        job = pool->job;
        pthread_mutex_unlock(&pool->lock);
        while (job_take(job))
            continue;
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void post(struct ulp_pool *pool, struct job *job) {
    pthread_mutex_lock(&pool->lock);
    pool->job = job;
    pool->jobs_posted++;
    pool->busy = pool->threads - 1;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void wait_idle(struct ulp_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool->busy)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pool->job = NULL;
    pthread_mutex_unlock(&pool->lock);
}

enum ulp_status ulp_pool_run(struct ulp_pool *pool, uint64_t count, ulp_task task, void *user,
                             const struct ulp_progress *progress) {
    struct job job = {.task = task, .user = user, .count = count};
    bool shared = pool && pool->threads > 1 && count > 1;

    pthread_mutex_init(&job.lock, NULL);
    if (shared)
        post(pool, &job);
    while (job_take(&job))
        job_report(&job, progress);
    if (shared)
        wait_idle(pool);
    if (!job.status && job.reported < count) /* others did the last tasks */
        job_report(&job, progress);
    pthread_mutex_destroy(&job.lock);
    if (job.status)
        error_restore(&job.error);
    return job.status;
}

static unsigned usable_cpus(void) {
    cpu_set_t set;
    long online;

    if (!sched_getaffinity(0, sizeof set, &set))
        return (unsigned)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than the set can hold */
    return online < 1 ? 1 : online > (long)LIMIT_THREADS ? LIMIT_THREADS : (unsigned)online;
}

enum ulp_status ulp_pool_new(unsigned threads, struct ulp_pool **ret_pool) {
    struct ulp_pool *pool = NULL;
    enum ulp_status status;

    if (threads > LIMIT_THREADS)
        return fail(ULP_E_LIMIT, "%u threads asked for; the limit is %u", threads, LIMIT_THREADS);
    status = mem_zeroed(1, sizeof *pool, &pool);
    if (status)
        return status;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    pool->threads = 1;
    if (!threads)
        threads = usable_cpus();
    status = mem_zeroed(threads, sizeof *pool->workers, &pool->workers);
    while (!status && pool->threads < threads) {
        status = thread_start(&pool->workers[pool->threads - 1], worker_main, pool);
        if (!status)
            pool->threads++;
    }
    if (status) {
        ulp_pool_free(pool);
        return status;
    }
    *ret_pool = pool;
    return ULP_OK;
}

unsigned ulp_pool_threads(const struct ulp_pool *pool) {
    return pool ? pool->threads : 1;
}

void ulp_pool_free(struct ulp_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i + 1 < pool->threads; i++)
        thread_join(&pool->workers[i]);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->workers);
    mem_free(pool);
}
