// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/test.h"

#include "base/memory.h"

#include <ftw.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define TESTS_MAX 128
#define NAME_BYTES 80

/* cmocka's own group runner, reached with names cut out of the argument list of TEST_MAIN. */
int test_run(const CMUnitTestFunction *functions, size_t count, const char *names) {
    static struct CMUnitTest tests[TESTS_MAX];
    static char texts[TESTS_MAX][NAME_BYTES];

    if (count > TESTS_MAX)
        return 1;
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(names, ",");

        snprintf(texts[i], NAME_BYTES, "%.*s", (int)length, names);
        tests[i] = (struct CMUnitTest){texts[i], functions[i], NULL, NULL, NULL};
        names += length + strspn(names + length, ", ");
    }
    return _cmocka_run_group_tests("ulpsync", tests, count, NULL, NULL);
}

char *temp_directory_make(void) {
    const char *parent = getenv("TMPDIR");
    char *path = malloc(4096);

    assert_non_null(path);
    snprintf(path, 4096, "%s/ulpsync-test-XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void temp_directory_remove(char *directory) {
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(directory);
}

const char *path_in(const char *directory, const char *name) {
    static char paths[8][4096];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static struct {
    uint64_t fail_at;
    int persistent;
    atomic_uint_fast64_t calls;
    atomic_int_fast64_t alive;
} allocator;

static void *counted_resize(void *user, void *old, size_t bytes) {
    uint64_t call = atomic_fetch_add(&allocator.calls, 1);
    void *fresh;

    (void)user;
    if (call == allocator.fail_at || (allocator.persistent && call > allocator.fail_at))
        return NULL;
    fresh = realloc(old, bytes);
    if (fresh && !old)
        atomic_fetch_add(&allocator.alive, 1);
    return fresh;
}

static void counted_release(void *user, void *pointer) {
    (void)user;
    atomic_fetch_sub(&allocator.alive, 1);
    free(pointer);
}

void failing_allocator_start(uint64_t fail_at, int persistent) {
    static const struct mem_hooks hooks = {counted_resize, counted_release, NULL};

    allocator.fail_at = fail_at;
    allocator.persistent = persistent;
    atomic_store(&allocator.calls, 0);
    atomic_store(&allocator.alive, 0);
    mem_install(&hooks);
}

uint64_t failing_allocator_stop(void) {
    mem_install(NULL);
    assert_int_equal(atomic_load(&allocator.alive), 0);
    return atomic_load(&allocator.calls);
}

/* splitmix64 */
static uint64_t random_state = 1;

void test_random_seed(uint64_t seed) {
    random_state = seed;
}

uint64_t test_random(void) {
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void test_random_bytes(void *to, size_t bytes) {
    uint8_t *byte = to;

    for (size_t i = 0; i < bytes; i++)
        byte[i] = (uint8_t)(test_random() >> 32);
}
