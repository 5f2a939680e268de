// SPDX-License-Identifier: Apache-2.0
/*
 * A strict JSON reader that pulls one token after another out of memory it does not own and builds
 * no tree, so a hostile header of 100 MB costs no more than the strings that the caller keeps, or
 * the longest one that is skipped.
 *
 *     json_object_begin(&json);
 *     while (!(status = json_member(&json, &key, &more)) && more)
 *         ... exactly one of json_string, json_u64, json_skip, json_object_begin, json_array_begin
 *     json_end(&json);
 *
 * Strict means: RFC 8259, valid UTF-8, no lone surrogates, no NUL, a bounded depth. Numbers are
 * read as unsigned integers; others can only be skipped. Duplicate keys are the caller's to find,
 * since only the caller keeps names.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    const uint8_t *text;
    size_t bytes, at;
    const char *what;    /* for messages: whose JSON this is */
    unsigned depth;      /* open objects and arrays */
    uint32_t has_member; /* bit d: the container at depth d has had a member */
};

void json_init(struct json *json, const void *text, size_t bytes, const char *what);

enum ulp_status json_object_begin(struct json *json);
enum ulp_status json_array_begin(struct json *json);

/* Steps to the next member and its value; *ret_more is false behind the closing brace. */
enum ulp_status json_member(struct json *json, struct buffer *key, bool *ret_more);
enum ulp_status json_element(struct json *json, bool *ret_more);

/* Replaces the contents of `text`, whose maximum is the limit. */
enum ulp_status json_string(struct json *json, struct buffer *text);
enum ulp_status json_u64(struct json *json, uint64_t *ret_value);
enum ulp_status json_skip(struct json *json);

/* The byte that the next value begins with, at which `at` stands then; -1 at the end. */
int json_peek(struct json *json);

/* Only white space may follow. */
enum ulp_status json_end(struct json *json);

/* Fails with the current place in the text in front of the message. */
enum ulp_status json_fail(const struct json *json, enum ulp_status status, const char *message);

/* Appends `text` (valid UTF-8) as a JSON string with quotes, escaping only what must be. */
enum ulp_status json_append_string(struct buffer *out, const char *text);

#endif
