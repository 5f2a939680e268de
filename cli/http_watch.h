// SPDX-License-Identifier: Apache-2.0
/*
 * Watches the connections of a server, so that nobody who is slow, on purpose or not, keeps others
 * out: who does not get a whole request across in time is cut off, who takes an answer too slowly
 * too, and where connections become scarce who has been waiting for longest.
 *
 * Threads: all functions but watch_make() and watch_destroy() may be called from any.
 */
#ifndef CLI_HTTP_WATCH_H
#define CLI_HTTP_WATCH_H

#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So slowly an answer may be taken, once the patience is over: a quarter of what followers hold a
 * server to. */
#define WATCH_BYTES_PER_SECOND (16u << 10)

struct watched;

struct watch {
    struct lock lock; /* guards what follows, and all that is watched */
    struct watched *newest;
    size_t count, crowd; /* from so many on the longest waiting one goes */
    uint64_t patience_ns;
    uint64_t cut; /* off */
};

void watch_make(struct watch *watch, uint64_t patience_ns, size_t crowd);
void watch_destroy(struct watch *watch);

/* A connection, which waits for a request; NULL without memory. The socket is only ever shut down
 * here, and never after watch_end(). */
struct watched *watch_begin(struct watch *watch, int socket);
void watch_end(struct watch *watch, struct watched *one);

/* The whole head of a request is there; the answer is being made, or sent, by so many more bytes;
 * it is over. */
void watch_asked(struct watch *watch, struct watched *one);
void watch_sent(struct watch *watch, struct watched *one, uint64_t bytes);
void watch_answered(struct watch *watch, struct watched *one);

/* Cuts off whoever is too slow; now and then. */
void watch_sweep(struct watch *watch);

struct watch_figures {
    uint64_t connections, cut;
};
struct watch_figures watch_figures(struct watch *watch);

#endif
