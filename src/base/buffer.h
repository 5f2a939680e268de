// SPDX-License-Identifier: Apache-2.0
/*
 * A growing byte buffer that declares its maximum at birth. One NUL always stands behind the
 * contents, so text needs no copying. BUFFER(max) is an empty one; buffer_release() accepts it.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *data;
    size_t used, room, max;
};

/* A maximum is a limit of ours, far below SIZE_MAX / 2. */
#define BUFFER(bytes_max) ((struct buffer){.max = (bytes_max)})

enum ulp_status buffer_append(struct buffer *buffer, const void *data, size_t bytes);
enum ulp_status buffer_append_text(struct buffer *buffer, const char *text);
enum ulp_status buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Room for `bytes` more behind what is used; their contents are anything. */
enum ulp_status buffer_reserve(struct buffer *buffer, size_t bytes);
enum ulp_status buffer_append_fill(struct buffer *buffer, uint8_t byte, size_t count);

/* Back to the first `used` bytes: how a failed operation takes back what it had added. */
void buffer_cut(struct buffer *buffer, size_t used);
void buffer_clear(struct buffer *buffer);
void buffer_release(struct buffer *buffer);

/* The contents as text; "" when nothing was ever added. */
const char *buffer_text(const struct buffer *buffer);

#endif
