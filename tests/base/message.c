// SPDX-License-Identifier: Apache-2.0
/* The message of the last failure: filled, cut to length, one per thread. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/status.h"

#include <errno.h>
#include <stdatomic.h>

/* Runs first, before anything failed. */
static void test_no_failure_means_no_message(void **state) {
    (void)state;
    assert_string_equal(ulp_last_error(), "");
}

static void test_fail_formats_and_returns_the_status(void **state) {
    (void)state;
    assert_int_equal(ulp_fail(ULP_E_HOLE, "%s has %d", "this", 7), ULP_E_HOLE);
    assert_string_equal(ulp_last_error(), "this has 7");
    assert_int_equal(ulp_fail(ULP_E_IO, "next"), ULP_E_IO);
    assert_string_equal(ulp_last_error(), "next");
}

static void test_a_message_is_cut_to_length(void **state) {
    char text[3 * ERROR_MESSAGE_BYTES];

    (void)state;
    for (size_t length = ERROR_MESSAGE_BYTES - 3; length < sizeof text; length++) {
        size_t kept = length < ERROR_MESSAGE_BYTES ? length : ERROR_MESSAGE_BYTES - 1;

        memset(text, 'x', length);
        text[length] = 0;
        assert_int_equal(ulp_fail(ULP_E_IO, "%s", text), ULP_E_IO);
        assert_int_equal(strlen(ulp_last_error()), kept);
    }
}

static void test_a_note_carries_a_message(void **state) {
    struct error_note note;

    (void)state;
    ulp_fail(ULP_E_IO, "the first");
    error_save(&note);
    ulp_fail(ULP_E_IO, "the second");
    assert_string_equal(note.message, "the first");
    error_restore(&note);
    assert_string_equal(ulp_last_error(), "the first");
}

static const struct {
    int number;
    enum ulp_status status;
} errnos[] = {
    {ENOENT, ULP_E_NOT_FOUND}, {ENOTDIR, ULP_E_NOT_FOUND},   {EEXIST, ULP_E_EXISTS},
    {ENOTEMPTY, ULP_E_EXISTS}, {EACCES, ULP_E_PERMISSION},   {EPERM, ULP_E_PERMISSION},
    {EROFS, ULP_E_PERMISSION}, {ENOSPC, ULP_E_NO_SPACE},     {EDQUOT, ULP_E_NO_SPACE},
    {EFBIG, ULP_E_NO_SPACE},   {ENOMEM, ULP_E_NOMEM},        {ELOOP, ULP_E_FILE_KIND},
    {EISDIR, ULP_E_FILE_KIND}, {ENXIO, ULP_E_FILE_KIND},     {EMFILE, ULP_E_NOMEM},
    {ENFILE, ULP_E_NOMEM},     {ENAMETOOLONG, ULP_E_NAME},   {EIO, ULP_E_IO},
    {EINVAL, ULP_E_IO},        {EFAULT, ULP_E_FILE_CHANGED},
};

static void test_errno_becomes_a_status_and_a_sentence(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        char expected[256];

        snprintf(expected, sizeof expected, "cannot open 'a\\x0ab': %s",
                 strerror(errnos[i].number));
        errno = errnos[i].number;
        assert_int_equal(fail_errno("open", "a\nb"), errnos[i].status);
        assert_string_equal(ulp_last_error(), expected);
    }
}

struct talk {
    atomic_int mixed;
};

/* Other threads write their messages while this one sleeps. */
static enum ulp_status say_and_look(void *user, uint64_t index) {
    struct talk *talk = user;
    char expected[32];

    snprintf(expected, sizeof expected, "task %d", (int)index);
    ulp_fail(ULP_E_IO, "task %d", (int)index);
    clock_sleep_ns(100000);
    if (strcmp(ulp_last_error(), expected) != 0)
        atomic_fetch_add(&talk->mixed, 1);
    return ULP_OK;
}

static void test_each_thread_has_its_own_message(void **state) {
    struct ulp_pool *pool = NULL;
    struct talk talk = {0};

    (void)state;
    assert_ok(ulp_pool_new(8, &pool));
    assert_ok(ulp_pool_run(pool, 400, say_and_look, &talk, NULL));
    assert_int_equal(atomic_load(&talk.mixed), 0);
    ulp_pool_free(pool);
}

TEST_MAIN(test_no_failure_means_no_message, test_fail_formats_and_returns_the_status,
          test_a_message_is_cut_to_length, test_a_note_carries_a_message,
          test_errno_becomes_a_status_and_a_sentence, test_each_thread_has_its_own_message)
