// SPDX-License-Identifier: Apache-2.0
/* Moments as text: those of HTTP, of signatures, and of credentials that expire. */
#ifndef NET_TIMESTAMP_H
#define NET_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

/* "20150830T123600Z" */
#define TIMESTAMP_BYTES 17

/* Seconds since 1970, before the year 10000. */
void timestamp_write(uint64_t seconds, char ret_text[TIMESTAMP_BYTES]);

/* "Sun, 06 Nov 1994 08:49:37 GMT", the one form that is sent today. */
bool timestamp_read_http(const char *text, uint64_t *ret_seconds);

/* "2026-02-03T04:05:06Z", with or without a fraction. */
bool timestamp_read_iso(const char *text, uint64_t *ret_seconds);

#endif
