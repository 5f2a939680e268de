// SPDX-License-Identifier: Apache-2.0
/* Open files run out: every operation says so, a listing too, rather than leave something out. */
#include "tests/store/stores.h"

#include <sys/resource.h>
#include <unistd.h>

static int count_one(void *user, const char *key, uint64_t bytes) {
    (void)key;
    (void)bytes;
    ++*(unsigned *)user;
    return 0;
}

struct answers {
    enum ulp_status create, put, read, list, remove;
    unsigned listed;
};

static struct answers ask_all(struct ulp_store *store) {
    struct answers answers = {0};
    uint64_t total;
    size_t got;
    char byte;

    answers.list = ulp_store_list(store, "", "", count_one, &answers.listed);
    answers.create = ulp_store_create(store, "a/b/new", "x", 1);
    answers.put = ulp_store_put(store, "a/b/c/1", "x", 1);
    answers.read = ulp_store_read(store, "a/b/c/1", 0, &byte, 1, &got, &total);
    answers.remove = ulp_store_remove(store, "a/b/new");
    return answers;
}

/* Nothing is asserted while files cannot be opened. */
static struct answers ask_with(struct ulp_store *store, rlim_t files) {
    struct rlimit before, limit;
    int next = dup(0);
    struct answers answers;

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)next + files;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    answers = ask_all(store);
    setrlimit(RLIMIT_NOFILE, &before);
    return answers;
}

static void assert_clear(enum ulp_status status) {
    assert_true(status == ULP_OK || status == ULP_E_NOMEM);
}

static void test_few_open_files(void **state) {
    struct place place = directory_place();
    size_t open_before = entries_in("/proc/self/fd");
    struct answers answers = {.list = ULP_E_NOMEM};

    (void)state;
    put_text(place.store, "a/b/c/1", "x");
    put_text(place.store, "a/2", "x");
    for (rlim_t files = 0; files < 12; files++) {
        answers = ask_with(place.store, files);
        assert_clear(answers.create);
        assert_clear(answers.put);
        assert_clear(answers.read);
        assert_clear(answers.remove);
        assert_clear(answers.list);
        if (!files)
            assert_true(answers.create && answers.put && answers.read && answers.list &&
                        answers.remove);
        if (!answers.list)
            assert_int_equal(answers.listed, 2);
        assert_int_equal(entries_in("/proc/self/fd"), open_before);
        assert_ok(ulp_store_remove(place.store, "a/b/new"));
    }
    assert_false(answers.create || answers.put || answers.read || answers.list || answers.remove);
    place_free(&place);
}

TEST_MAIN(test_few_open_files)
