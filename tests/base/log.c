// SPDX-License-Identifier: Apache-2.0
/* The library is silent until somebody listens, and then says no more than was asked for. */
#include "tests/test.h"

#include "base/log.h"
#include "base/status.h"

#include <unistd.h>

struct heard {
    unsigned count;
    enum ulp_log_level level;
    char text[2 * ERROR_MESSAGE_BYTES];
};

static void listen(void *user, enum ulp_log_level level, const char *message) {
    struct heard *heard = user;

    heard->count++;
    heard->level = level;
    snprintf(heard->text, sizeof heard->text, "%s", message);
}

/* Runs `say` with standard output and error in a file; returns how many bytes arrived there. */
static long printed_by(void (*say)(void)) {
    FILE *file = tmpfile();
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    long bytes;

    assert_non_null(file);
    fflush(NULL);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    say();
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    bytes = (long)lseek(fileno(file), 0, SEEK_END);
    close(out);
    close(err);
    fclose(file);
    return bytes;
}

static void say_at_every_level(void) {
    log_message(ULP_LOG_ERROR, "error %d", 1);
    log_message(ULP_LOG_WARN, "warn %d", 2);
    log_message(ULP_LOG_INFO, "info %d", 3);
    log_message(ULP_LOG_DEBUG, "debug %d", 4);
}

/* Runs first, before anybody listened. */
static void test_silent_by_default(void **state) {
    (void)state;
    assert_int_equal(printed_by(say_at_every_level), 0);
}

static void test_the_level_filters(void **state) {
    static const char *const last[] = {"", "error 1", "warn 2", "info 3", "debug 4"};

    (void)state;
    for (unsigned level = ULP_LOG_ERROR; level <= ULP_LOG_DEBUG; level++) {
        struct heard heard = {0};

        ulp_log_set(listen, &heard, (enum ulp_log_level)level);
        assert_int_equal(printed_by(say_at_every_level), 0);
        assert_int_equal(heard.count, level);
        assert_int_equal(heard.level, level);
        assert_string_equal(heard.text, last[level]);
    }
    ulp_log_set(NULL, NULL, ULP_LOG_DEBUG);
}

static void test_null_switches_off_again(void **state) {
    struct heard heard = {0};

    (void)state;
    ulp_log_set(listen, &heard, ULP_LOG_DEBUG);
    ulp_log_set(NULL, NULL, ULP_LOG_DEBUG);
    assert_int_equal(printed_by(say_at_every_level), 0);
    assert_int_equal(heard.count, 0);
}

static void test_a_long_message_is_cut(void **state) {
    struct heard heard = {0};
    char text[ERROR_MESSAGE_BYTES + 100];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    ulp_log_set(listen, &heard, ULP_LOG_INFO);
    log_message(ULP_LOG_INFO, "%s", text);
    ulp_log_set(NULL, NULL, ULP_LOG_ERROR);
    assert_int_equal(heard.count, 1);
    assert_int_equal(strspn(heard.text, "x"), ERROR_MESSAGE_BYTES - 1);
    assert_int_equal(strlen(heard.text), ERROR_MESSAGE_BYTES - 1);
}

static void test_logging_leaves_the_last_error_alone(void **state) {
    struct heard heard = {0};

    (void)state;
    ulp_fail(ULP_E_IO, "the failure");
    ulp_log_set(listen, &heard, ULP_LOG_INFO);
    log_message(ULP_LOG_INFO, "chatter");
    ulp_log_set(NULL, NULL, ULP_LOG_ERROR);
    assert_string_equal(ulp_last_error(), "the failure");
}

TEST_MAIN(test_silent_by_default, test_the_level_filters, test_null_switches_off_again,
          test_a_long_message_is_cut, test_logging_leaves_the_last_error_alone)
