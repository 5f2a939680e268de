// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* ptrace and its numbers */
#include "tests/patch/tracer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_STOP (SIGTRAP | 0x80)
#define ON_ENTRY 1

/* As the kernel fills it in for a stop on entry; some C libraries do not declare it. */
struct call_info {
    uint8_t on, nothing[3];
    uint32_t architecture;
    uint64_t instruction, stack, number, arguments[6];
};

static pid_t start(traced_work work, const void *user) {
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    if (child < 0)
        return -1;
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(99);
        raise(SIGSTOP);
        _exit(work(user));
    }
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1; /* it has ended already */
    if (ptrace(PTRACE_SETOPTIONS, child, NULL,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return -1;
    }
    return child;
}

/* To the next stop at a call, of whichever thread; false when the child has ended. *thread is the
 * one that stands still, and goes on. */
static bool next_stop(pid_t child, pid_t *thread) {
    int status;

    for (;;) {
        if (*thread)
            assert_int_equal(ptrace(PTRACE_SYSCALL, *thread, NULL, NULL), 0);
        *thread = waitpid(-1, &status, __WALL);
        assert_true(*thread > 0);
        if (WIFSTOPPED(status) && WSTOPSIG(status) == CALL_STOP)
            return true;
        if (WIFSTOPPED(status))
            continue;
        assert_true(WIFEXITED(status));
        if (*thread == child)
            break;
        *thread = 0; /* it has ended, and the others go on */
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

bool killed_at(unsigned long at, traced_work work, const void *user) {
    pid_t child = start(work, user), thread = child;
    int status;

    assert_true(child > 0);
    for (unsigned long i = 0; i < at; i++) {
        if (!next_stop(child, &thread))
            return false;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    while (waitpid(-1, &status, __WALL) != child || WIFSTOPPED(status))
        continue;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return true;
}

void watch_calls(traced_work work, const void *user, traced_watch watch, void *watcher) {
    pid_t child = start(work, user), thread = child;

    assert_true(child > 0);
    while (next_stop(child, &thread)) {
        struct call_info info = {0};
        struct traced_call call;

        assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) > 0);
        if (info.on != ON_ENTRY)
            continue;
        call.number = info.number;
        memcpy(call.arguments, info.arguments, sizeof call.arguments);
        watch(watcher, child, &call);
    }
}

static int nothing(const void *user) {
    (void)user;
    return getppid() < 0;
}

bool tracer_works(void) {
    pid_t child = start(nothing, NULL);
    struct call_info info;
    int status;
    bool works;

    if (child < 0)
        return false;
    works = !ptrace(PTRACE_SYSCALL, child, NULL, NULL) && waitpid(child, &status, 0) == child &&
            WIFSTOPPED(status) && WSTOPSIG(status) == CALL_STOP &&
            ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) > 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return works;
}
