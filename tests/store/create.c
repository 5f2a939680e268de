// SPDX-License-Identifier: Apache-2.0
/* Many create the same object at once: one succeeds, and everybody sees what it wrote. */
#include "tests/store/stores.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 16, ROUNDS = 12, CONTENTS = 3000 };

struct race {
    struct ulp_store *store;
    char key[32];
    atomic_uint ready, winners;
    atomic_uint winner;
};

/* Callers have contents of their own, also in length. */
static size_t contents_of(unsigned caller, char data[CONTENTS]) {
    memset(data, 'a' + (int)caller, CONTENTS);
    return CONTENTS - caller;
}

/* So that all of them really start together, as far as the machine lets them. */
static void wait_for_all(struct race *race) {
    atomic_fetch_add(&race->ready, 1);
    for (unsigned i = 0; i < 1000 && atomic_load(&race->ready) < CALLERS; i++)
        sched_yield();
}

static enum ulp_status create_one(void *user, uint64_t caller) {
    struct race *race = user;
    char data[CONTENTS];
    size_t bytes = contents_of((unsigned)caller, data);
    enum ulp_status status;

    wait_for_all(race);
    status = ulp_store_create(race->store, race->key, data, bytes);
    if (status == ULP_E_EXISTS)
        return strstr(ulp_last_error(), race->key) ? ULP_OK : ULP_E_INTERNAL;
    if (!status) {
        atomic_fetch_add(&race->winners, 1);
        atomic_store(&race->winner, (unsigned)caller);
    }
    return status;
}

static void assert_contents_of(struct ulp_store *store, const char *key, unsigned caller) {
    char expected[CONTENTS], found[CONTENTS];
    size_t bytes = contents_of(caller, expected), got = 0;

    assert_ok(read_whole(store, key, found, sizeof found, &got));
    assert_int_equal(got, bytes);
    assert_memory_equal(found, expected, bytes);
}

static void threads_race(struct place *place) {
    struct ulp_pool *pool = NULL;

    assert_ok(ulp_pool_new(CALLERS, &pool));
    for (int round = 0; round < ROUNDS; round++) {
        struct race race = {.store = place->store};

        /* every other round they also make the directory */
        snprintf(race.key, sizeof race.key, "run%d/log/%d", round / 2, round);
        assert_ok(ulp_pool_run(pool, CALLERS, create_one, &race, NULL));
        assert_int_equal(atomic_load(&race.winners), 1);
        assert_contents_of(place->store, race.key, atomic_load(&race.winner));
    }
    ulp_pool_free(pool);
    assert_int_equal(listed(place->store, "", "").count, ROUNDS);
}

static void test_one_of_many_threads_creates(void **state) {
    (void)state;
    for_each_store(threads_race);
}

/* In the child: its answer is its exit status. */
static int create_as_process(const char *directory, const char *key, unsigned caller, int start) {
    struct ulp_store *store = NULL;
    char data[CONTENTS], byte;
    size_t bytes = contents_of(caller, data);
    enum ulp_status status = ulp_store_open(directory, &store);

    if (!status && read(start, &byte, 1) == 0) /* the end of the pipe is the signal */
        status = ulp_store_create(store, key, data, bytes);
    ulp_store_free(store);
    return (int)status;
}

static void start_processes(const char *directory, const char *key, pid_t children[CALLERS]) {
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    for (unsigned i = 0; i < CALLERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (!children[i]) {
            close(ends[1]);
            _exit(create_as_process(directory, key, i, ends[0]));
        }
    }
    close(ends[0]);
    close(ends[1]);
}

static void processes_race(struct place *place, const char *key) {
    unsigned winner = CALLERS, winners = 0;
    pid_t children[CALLERS];

    start_processes(place->directory, key, children);
    for (unsigned i = 0; i < CALLERS; i++) {
        int result = 0;

        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_true(WIFEXITED(result));
        if (WEXITSTATUS(result) == ULP_OK) {
            winner = i;
            winners++;
        } else {
            assert_int_equal(WEXITSTATUS(result), ULP_E_EXISTS);
        }
    }
    assert_int_equal(winners, 1);
    assert_contents_of(place->store, key, winner);
}

static void processes(struct place *place) {
    for (int round = 0; place->directory && round < ROUNDS; round++) {
        char key[32];

        snprintf(key, sizeof key, "run%d/%d", round / 2, round);
        processes_race(place, key);
    }
}

static void test_one_of_many_processes_creates(void **state) {
    (void)state;
    for_each_store(processes);
}

static void never_replaces(struct place *place) {
    assert_ok(ulp_store_create(place->store, "a/b", "first", 5));
    for (int i = 0; i < 3; i++) {
        assert_fails(ulp_store_create(place->store, "a/b", "second one", 10), ULP_E_EXISTS, "a/b");
        assert_object(place->store, "a/b", "first");
    }
    put_text(place->store, "a/c", "put");
    assert_fails(ulp_store_create(place->store, "a/c", "", 0), ULP_E_EXISTS, "a/c");
    assert_object(place->store, "a/c", "put");
    assert_string_equal(listed(place->store, "", "").text, "a/b a/c ");
    if (place->directory)
        assert_int_equal(entries_in(path_in(place->directory, "a")), 2);
    assert_ok(ulp_store_remove(place->store, "a/b"));
    assert_ok(ulp_store_create(place->store, "a/b", "third", 5));
    assert_object(place->store, "a/b", "third");
}

static void test_create_never_replaces(void **state) {
    (void)state;
    for_each_store(never_replaces);
}

TEST_MAIN(test_one_of_many_threads_creates, test_one_of_many_processes_creates,
          test_create_never_replaces)
