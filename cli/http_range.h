// SPDX-License-Identifier: Apache-2.0
/* What a client asks for with "Range: bytes=...". */
#ifndef CLI_HTTP_RANGE_H
#define CLI_HTTP_RANGE_H

#include <stdint.h>

enum http_ranged {
    HTTP_WHOLE, /* nothing, several ranges or nonsense was asked for: all of it is the answer */
    HTTP_PART,
    HTTP_NO_SUCH_PART
};

/* `header` may be NULL. The part has at least one byte, and none behind `total`. */
enum http_ranged http_range(const char *header, uint64_t total, uint64_t *ret_first,
                            uint64_t *ret_length);

#endif
