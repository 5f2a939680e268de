// SPDX-License-Identifier: Apache-2.0
/*
 * Trying again: after a random part of a time that doubles (full jitter), so that many who failed
 * together do not come back together, and not for ever.
 *
 *     struct retry retry = retry_begin(&limits);
 *     do ... while (it failed for a reason that may pass && retry_again(&retry, retry_after_s));
 */
#ifndef NET_RETRY_H
#define NET_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* 0 stands for what is said behind. */
struct retry_limits {
    unsigned attempts; /* with the first one: 8 */
    uint64_t total_ns; /* from the first one to the last one's beginning: two minutes */
    uint64_t first_ns; /* the longest first pause: 100 ms */
    uint64_t most_ns;  /* the longest pause, also where the server asks for a longer: 20 s */
};

struct retry {
    struct retry_limits limits;
    unsigned made; /* attempts */
    uint64_t began_ns, random;
};

struct retry retry_begin(const struct retry_limits *limits);

/* Waits and says true, or false at once if nothing is left. The server may have asked for a pause
 * (0: it did not). */
bool retry_again(struct retry *retry, uint64_t retry_after_s);

/* Much has been achieved since: all begins anew. */
void retry_refresh(struct retry *retry);

/* Whether an answer with this code may be another one next time. */
bool retry_code(unsigned code);

#endif
