// SPDX-License-Identifier: Apache-2.0
#include "cli/http_watch.h"

#include "cli/terminal.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

struct watched {
    struct watched *older, *newer;
    int socket;
    bool answering, cut;
    uint64_t since_ns; /* it waits, or the answer began */
    uint64_t sent;     /* of the answer */
};

void watch_make(struct watch *watch, uint64_t patience_ns, size_t crowd) {
    *watch = (struct watch){.patience_ns = patience_ns, .crowd = crowd};
    lock_make(&watch->lock);
}

void watch_destroy(struct watch *watch) {
    lock_destroy(&watch->lock);
}

/* Whoever owns the socket sees its end and closes it. What is on its way to a client that takes
 * nothing is forgotten then; the system would keep it for minutes. */
static void cut_off(struct watch *watch, struct watched *one) {
    const struct linger at_once = {.l_onoff = 1};

    one->cut = true;
    watch->cut++;
    if (one->answering)
        setsockopt(one->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    shutdown(one->socket, SHUT_RDWR);
}

static void cut_longest_waiting(struct watch *watch) {
    struct watched *found = NULL;

    for (struct watched *one = watch->newest; one; one = one->older) {
        if (!one->answering && !one->cut && (!found || one->since_ns <= found->since_ns))
            found = one;
    }
    if (found)
        cut_off(watch, found);
}

struct watched *watch_begin(struct watch *watch, int socket) {
    struct watched *one = calloc(1, sizeof *one);

    if (!one)
        return NULL;
    one->socket = socket;
    one->since_ns = now_ns();
    lock_take(&watch->lock);
    one->older = watch->newest;
    if (one->older)
        one->older->newer = one;
    watch->newest = one;
    if (++watch->count > watch->crowd)
        cut_longest_waiting(watch);
    lock_give(&watch->lock);
    return one;
}

void watch_end(struct watch *watch, struct watched *one) {
    lock_take(&watch->lock);
    if (one->older)
        one->older->newer = one->newer;
    *(one->newer ? &one->newer->older : &watch->newest) = one->older;
    watch->count--;
    lock_give(&watch->lock);
    free(one);
}

static void turn(struct watch *watch, struct watched *one, bool answering) {
    lock_take(&watch->lock);
    one->answering = answering;
    one->since_ns = now_ns();
    one->sent = 0;
    lock_give(&watch->lock);
}

void watch_asked(struct watch *watch, struct watched *one) {
    turn(watch, one, true);
}

void watch_answered(struct watch *watch, struct watched *one) {
    turn(watch, one, false);
}

void watch_sent(struct watch *watch, struct watched *one, uint64_t bytes) {
    lock_take(&watch->lock);
    one->sent += bytes;
    lock_give(&watch->lock);
}

/* What the client has not taken yet lies in the socket. */
static uint64_t taken(const struct watched *one) {
    int queued = 0;

    if (ioctl(one->socket, SIOCOUTQ, &queued) || queued < 0)
        return one->sent;
    return one->sent > (uint64_t)queued ? one->sent - (uint64_t)queued : 0;
}

void watch_sweep(struct watch *watch) {
    uint64_t now;

    lock_take(&watch->lock);
    now = now_ns(); /* in here, so that nothing began later */
    for (struct watched *one = watch->newest; one; one = one->older) {
        const uint64_t waited_ns = now - one->since_ns;

        if (!one->cut && waited_ns > watch->patience_ns &&
            waited_ns - watch->patience_ns > taken(one) / WATCH_BYTES_PER_SECOND * 1000000000u)
            cut_off(watch, one);
    }
    lock_give(&watch->lock);
}

struct watch_figures watch_figures(struct watch *watch) {
    struct watch_figures figures;

    lock_take(&watch->lock);
    figures = (struct watch_figures){.connections = watch->count, .cut = watch->cut};
    lock_give(&watch->lock);
    return figures;
}
