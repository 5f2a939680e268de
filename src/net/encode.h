// SPDX-License-Identifier: Apache-2.0
/* Percent-encoding as signatures want it: all but letters, digits and "-._~", in upper case. */
#ifndef NET_ENCODE_H
#define NET_ENCODE_H

#include "base/buffer.h"

#include <stdbool.h>

/* Slashes of a path stay. */
enum encode_slashes { ENCODE_SLASHES, KEEP_SLASHES };
enum ulp_status encode_percent(struct buffer *into, const char *text, enum encode_slashes slashes);

struct query_pair {
    const char *name, *value;
};

/* Appends "a=b&c=" with names in order; sorts the pairs. */
enum ulp_status encode_query(struct buffer *into, struct query_pair *pairs, size_t count);

/* Decodes in place and says how long it is then; false if it is not well-formed or holds a NUL. */
bool decode_percent(char *text, size_t length, size_t *ret_length);

#endif
