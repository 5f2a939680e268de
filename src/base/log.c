// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static ulp_log_fn listener;
static void *listener_user;
static enum ulp_log_level most_detail_heard;

void ulp_log_set(ulp_log_fn fn, void *user, enum ulp_log_level most_detail) {
    listener = fn;
    listener_user = user;
    most_detail_heard = most_detail;
}

void log_message(enum ulp_log_level level, const char *format, ...) {
    char message[ERROR_MESSAGE_BYTES];
    va_list args;

    if (!listener || level > most_detail_heard)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    listener(listener_user, level, message);
}
