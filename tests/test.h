// SPDX-License-Identifier: Apache-2.0
/*
 * The one header of the tests: cmocka, and the few things every test of ours needs. A test program
 * ends with
 *     TEST_MAIN(test_this, test_that)
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulpsync/ulpsync.h>
/* cmocka wants those in front of it */
#include <cmocka.h>

/* Our own fail() means something else, so cmocka's gives way, and fail_msg() does without it. */
#undef fail
#undef fail_msg
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        print_error("ERROR: " __VA_ARGS__);                                                        \
        print_error("\n");                                                                         \
        _fail(__FILE__, __LINE__);                                                                 \
    } while (0)

/* Shows the message of an unexpected failure. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        enum ulp_status status_ = (call);                                                          \
        if (status_)                                                                               \
            fail_msg("%s: %s: %s", #call, ulp_status_name(status_), ulp_last_error());             \
    } while (0)

/* The call fails with just this status, and its message contains `text`. */
#define assert_fails(call, expected, text)                                                         \
    do {                                                                                           \
        enum ulp_status status_ = (call);                                                          \
        if (status_ != (expected) || !strstr(ulp_last_error(), (text)))                            \
            fail_msg("%s: got %s: %s\n  expected %s: ...%s...", #call, ulp_status_name(status_),   \
                     ulp_last_error(), ulp_status_name(expected), (text));                         \
    } while (0)

/* An empty directory of the test's own, removed by temp_directory_remove(). */
char *temp_directory_make(void);
void temp_directory_remove(char *directory);

/* DIRECTORY/NAME, in one of a few buffers that are used in turn. */
const char *path_in(const char *directory, const char *name);

/*
 * An allocator that fails: call number `fail_at` (from 0) and, if `persistent`, every one after it.
 * UINT64_MAX never fails. Stop it with failing_allocator_stop(), which checks that everything
 * allocated meanwhile was freed and returns how many allocations were asked for.
 */
void failing_allocator_start(uint64_t fail_at, int persistent);
uint64_t failing_allocator_stop(void);

/* Reproducible random numbers: the same in every run. */
uint64_t test_random(void);
void test_random_seed(uint64_t seed);
void test_random_bytes(void *to, size_t bytes);

/* The names of the functions become the names of the tests. */
#define TEST_MAIN(...)                                                                             \
    int main(void) {                                                                               \
        const CMUnitTestFunction functions[] = {__VA_ARGS__};                                      \
        const char *names = #__VA_ARGS__;                                                          \
        return test_run(functions, sizeof functions / sizeof functions[0], names);                 \
    }

int test_run(const CMUnitTestFunction *functions, size_t count, const char *names);

#endif
