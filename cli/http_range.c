// SPDX-License-Identifier: Apache-2.0
#include "cli/http_range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Digits at *at, of which there must be one; more than fits is the most there is. */
static bool take_number(const char **at, uint64_t *ret_number) {
    const char *first = *at;
    uint64_t number = 0;

    for (; **at >= '0' && **at <= '9'; ++*at) {
        const uint64_t digit = (uint64_t)(**at - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *ret_number = number;
    return *at != first;
}

/* "-5": the last five bytes. */
static enum http_ranged suffix(const char *at, uint64_t total, uint64_t *ret_first,
                               uint64_t *ret_length) {
    uint64_t length;

    if (!take_number(&at, &length) || *at)
        return HTTP_WHOLE;
    if (!length || !total)
        return HTTP_NO_SUCH_PART;
    *ret_length = length < total ? length : total;
    *ret_first = total - *ret_length;
    return HTTP_PART;
}

enum http_ranged http_range(const char *header, uint64_t total, uint64_t *ret_first,
                            uint64_t *ret_length) {
    const char *at = header;
    uint64_t first, last = UINT64_MAX;

    if (!header || strncasecmp(header, "bytes=", 6) != 0)
        return HTTP_WHOLE;
    at += 6;
    if (*at == '-')
        return suffix(at + 1, total, ret_first, ret_length);
    if (!take_number(&at, &first) || *at++ != '-')
        return HTTP_WHOLE;
    if (*at && !take_number(&at, &last))
        return HTTP_WHOLE;
    if (*at || last < first)
        return HTTP_WHOLE;
    if (first >= total)
        return HTTP_NO_SUCH_PART;
    *ret_first = first;
    *ret_length = (last < total ? last + 1 : total) - first;
    return HTTP_PART;
}
