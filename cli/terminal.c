// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS 100000000u
#define WAIT_PIECE_MS 100u

static volatile sig_atomic_t stop_signal;

/* Only async-signal-safe calls: the program was in the middle of anything. */
static void on_stop(int number) {
    static const char message[] =
        "ulpsync: stopping as soon as nothing is left half done; once more stops at once\n";
    int before = errno;
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);

    (void)ignored;
    errno = before;
    stop_signal = number;
}

static void on_lost_page(int number) {
    static const char message[] =
        "ulpsync: a mapped file shrank or could not be read while it was in use; "
        "retry when nothing writes to it\n";
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);

    (void)number;
    (void)ignored;
    _exit(ULP_E_FILE_CHANGED);
}

/* The second time the signal ends the program at once. */
static void stop_on(int number) {
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND}, before;

    if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(number, &stop, NULL);
}

void terminal_prepare(void) {
    struct sigaction lost = {.sa_handler = on_lost_page};

    stop_on(SIGINT);
    stop_on(SIGTERM);
    stop_on(SIGHUP);
    sigaction(SIGBUS, &lost, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

static void stop_at_once_on(int number) {
    struct sigaction before;

    if (!sigaction(number, NULL, &before) && before.sa_handler == on_stop)
        signal(number, SIG_DFL);
}

void terminal_stop_at_once(void) {
    stop_at_once_on(SIGINT);
    stop_at_once_on(SIGTERM);
    stop_at_once_on(SIGHUP);
    terminal_finish(); /* one may have come meanwhile */
}

bool terminal_stopping(void) {
    return stop_signal != 0;
}

void terminal_stopped_well(void) {
    stop_signal = 0;
}

/* In short pieces: a signal may come just before the sleep, or to another thread. */
void terminal_wait_ms(uint64_t ms) {
    while (ms && !stop_signal) {
        const uint64_t piece = ms < WAIT_PIECE_MS ? ms : WAIT_PIECE_MS;
        const struct timespec duration = {0, (long)piece * 1000000};

        nanosleep(&duration, NULL);
        ms -= piece;
    }
}

void terminal_finish(void) {
    if (!stop_signal)
        return;
    signal(stop_signal, SIG_DFL);
    raise(stop_signal);
}

uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int report(void *user, uint64_t done, uint64_t total) {
    struct progress_line *line = user;
    uint64_t now = now_ns();
    double share = total ? (double)done / (double)total : 1;
    double bytes = share * (double)line->total_bytes;

    if (line->shown && now - line->drawn_ns >= REDRAW_NS) {
        line->drawn_ns = now;
        fprintf(stderr, "\r%s %3.0f %%  %s  %.2f GB/s\033[K", line->doing, 100 * share,
                readable_bytes((uint64_t)bytes).text, bytes / (double)(now - line->started_ns));
    }
    return stop_signal != 0;
}

struct ulp_progress progress_begin(struct progress_line *line, const char *doing,
                                   uint64_t total_bytes) {
    uint64_t now = now_ns();

    *line = (struct progress_line){doing, total_bytes, isatty(STDERR_FILENO), now, now};
    return (struct ulp_progress){report, line};
}

void progress_end(struct progress_line *line) {
    if (line->shown)
        fputs("\r\033[K", stderr);
}
