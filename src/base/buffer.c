// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum ulp_status buffer_reserve(struct buffer *buffer, size_t bytes) {
    size_t room = buffer->room ? buffer->room : 64;
    enum ulp_status status;

    if (buffer->max >= SIZE_MAX / 2)
        return fail(ULP_E_INTERNAL, "a buffer without a maximum");
    if (bytes > buffer->max - buffer->used)
        return fail(ULP_E_LIMIT, "more than %zu bytes where that is the limit", buffer->max);
    while (room < buffer->used + bytes + 1)
        room *= 2;
    if (room == buffer->room)
        return ULP_OK;
    status = mem_resize(&buffer->data, room, 1);
    if (!status)
        buffer->room = room;
    return status;
}

enum ulp_status buffer_append(struct buffer *buffer, const void *data, size_t bytes) {
    enum ulp_status status = buffer_reserve(buffer, bytes);

    if (status)
        return status;
    if (bytes)
        memcpy(buffer->data + buffer->used, data, bytes);
    buffer->used += bytes;
    buffer->data[buffer->used] = 0;
    return ULP_OK;
}

enum ulp_status buffer_append_text(struct buffer *buffer, const char *text) {
    return buffer_append(buffer, text, strlen(text));
}

enum ulp_status buffer_append_format(struct buffer *buffer, const char *format, ...) {
    char line[256];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof line)
        return fail(ULP_E_INTERNAL, "a formatted piece exceeds %zu bytes", sizeof line);
    return buffer_append(buffer, line, (size_t)length);
}

enum ulp_status buffer_append_fill(struct buffer *buffer, uint8_t byte, size_t count) {
    enum ulp_status status = buffer_reserve(buffer, count);

    if (status)
        return status;
    memset(buffer->data + buffer->used, byte, count);
    buffer->used += count;
    buffer->data[buffer->used] = 0;
    return ULP_OK;
}

void buffer_cut(struct buffer *buffer, size_t used) {
    assert(used <= buffer->used);
    buffer->used = used;
    if (buffer->data)
        buffer->data[used] = 0;
}

void buffer_clear(struct buffer *buffer) {
    buffer_cut(buffer, 0);
}

void buffer_release(struct buffer *buffer) {
    mem_free(buffer->data);
    *buffer = BUFFER(buffer->max);
}

const char *buffer_text(const struct buffer *buffer) {
    return buffer->data ? (const char *)buffer->data : "";
}
