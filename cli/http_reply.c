// SPDX-License-Identifier: Apache-2.0
#include "cli/http_server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_reply_header(struct http_reply *reply, const char *name, const char *format, ...) {
    struct http_header *header = &reply->headers[reply->header_count];
    va_list values;

    if (reply->header_count == HTTP_REPLY_HEADERS_MAX)
        return;
    reply->header_count++;
    header->name = name;
    va_start(values, format);
    vsnprintf(header->value, sizeof header->value, format, values);
    va_end(values);
}

void http_reply_line(struct http_reply *reply, unsigned code, const char *line) {
    const size_t length = strlen(line);

    *reply = (struct http_reply){.code = code, .text = malloc(length + 2)};
    http_reply_header(reply, "Content-Type", "text/plain; charset=utf-8");
    http_reply_header(reply, "Cache-Control", "no-store");
    if (!reply->text)
        return;
    memcpy(reply->text, line, length);
    memcpy(reply->text + length, "\n", 2);
    reply->length = length + 1;
}
