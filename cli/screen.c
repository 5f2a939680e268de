// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 100u
#define COLUMNS_MAX 1000u
#define ROWS_DEFAULT 24u
#define ROWS_MAX 1000u

static const char enter_codes[] = "\033[?1049h\033[?25l";
static const char leave_codes[] = "\033[0m\033[?25h\033[?1049l";

static struct termios before;
static bool has_keys; /* standard input is the terminal, and `before` is how it was */
static bool deaf;     /* nothing comes from there any more */
static volatile sig_atomic_t entered, resized;

/* ---- only async-signal-safe calls ---- */

static void put(const char *text, size_t bytes) {
    while (bytes) {
        const ssize_t done = write(STDOUT_FILENO, text, bytes);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        text += done;
        bytes -= (size_t)done;
    }
}

static void turn_on(void) {
    struct termios raw = before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put(enter_codes, sizeof enter_codes - 1);
    entered = 1;
}

static void turn_off(void) {
    if (!entered)
        return;
    entered = 0;
    put(leave_codes, sizeof leave_codes - 1);
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_end(int number) {
    (void)number;
    turn_off();
    _exit(0);
}

static void on_crash(int number) {
    turn_off();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_resize(int number) {
    (void)number;
    resized = 1;
}

static void catch (int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};

    sigaction(number, &action, NULL);
}

/* It stops here, and goes on from here. Where nobody could make it go on, the system does not stop
 * it. */
static void on_suspend(int number) {
    const int error = errno;
    sigset_t this;

    turn_off();
    signal(number, SIG_DFL);
    sigemptyset(&this);
    sigaddset(&this, number);
    sigprocmask(SIG_UNBLOCK, &this, NULL);
    raise(number);
    catch (number, on_suspend);
    if (!entered)
        turn_on();
    resized = 1;
    errno = error;
}

/* Also after SIGSTOP, which nobody hears of. */
static void on_continue(int number) {
    const int error = errno;

    (void)number;
    turn_on();
    resized = 1;
    errno = error;
}

/* ---- the rest ---- */

bool screen_is_there(void) {
    const char *kind = getenv("TERM");

    return isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

static unsigned from_environment(const char *name, unsigned most, unsigned otherwise) {
    const char *text = getenv(name);
    const unsigned long value = text ? strtoul(text, NULL, 10) : 0;

    return value && value <= most ? (unsigned)value : otherwise;
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows) {
    struct winsize size = {0};

    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col &&
        size.ws_row) {
        *ret_columns = size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
        *ret_rows = size.ws_row < ROWS_MAX ? size.ws_row : ROWS_MAX;
        return;
    }
    *ret_columns = from_environment("COLUMNS", COLUMNS_MAX, COLUMNS_DEFAULT);
    *ret_rows = from_environment("LINES", ROWS_MAX, ROWS_DEFAULT);
}

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGPIPE, SIGXCPU};

void screen_enter(void) {
    has_keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &before);
    catch (SIGINT, on_end);
    catch (SIGTERM, on_end);
    catch (SIGHUP, on_end);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        catch (crashes[i], on_crash);
    catch (SIGWINCH, on_resize);
    catch (SIGTSTP, on_suspend);
    catch (SIGCONT, on_continue);
    turn_on();
}

void screen_leave(void) {
    signal(SIGCONT, SIG_DFL);
    signal(SIGTSTP, SIG_DFL);
    turn_off();
}

/* One piece, so that nobody sees half of it: home, each line and what was behind it, the rest. */
void screen_draw(const char *text, unsigned rows) {
    char *drawn = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&drawn, &bytes);

    if (!to)
        return;
    fputs("\033[H", to);
    for (unsigned row = 0; *text && row < rows; row++) {
        const size_t length = strcspn(text, "\n");

        fprintf(to, "%s%.*s\033[K", row ? "\r\n" : "", (int)length, text);
        text += length + (text[length] == '\n');
    }
    fputs("\033[J", to);
    if (!fclose(to))
        put(drawn, bytes);
    free(drawn);
}

static bool wants_to_quit(void) {
    char keys[64];
    const ssize_t count = read(STDIN_FILENO, keys, sizeof keys);

    if (count <= 0) { /* the terminal is gone, or nobody types any more */
        deaf = true;
        return false;
    }
    return memchr(keys, 'q', (size_t)count) || memchr(keys, 'Q', (size_t)count);
}

enum screen_event screen_wait(uint64_t ms) {
    const uint64_t end = now_ns() + ms * 1000000;

    for (;;) {
        struct pollfd keys = {.fd = has_keys && !deaf ? STDIN_FILENO : -1, .events = POLLIN};
        const uint64_t now = now_ns();
        const uint64_t left_ms = now < end ? (end - now + 999999) / 1000000 : 0;

        if (resized) {
            resized = 0;
            return SCREEN_RESIZED;
        }
        if (!left_ms)
            return SCREEN_TIMEOUT;
        /* in short pieces: the size may change just before the wait */
        if (poll(&keys, 1, left_ms < 100 ? (int)left_ms : 100) > 0 && wants_to_quit())
            return SCREEN_QUIT;
    }
}
