// SPDX-License-Identifier: Apache-2.0
/*
 * A patch on its way to the store: it is cut into parts, and each is sent by a thread while the next
 * one is being made. A copy is kept, so that it can be checked and applied. Memory: two parts.
 */
#ifndef SYNC_UPLOAD_H
#define SYNC_UPLOAD_H

#include "base/lock.h"
#include "base/spool.h"
#include "base/thread.h"
#include "sync/parts.h"

#include <ulpsync/patch.h>

struct upload {
    struct ulp_store *store;
    const char *run;
    uint64_t folder;
    struct spool copy;
    struct buffer filling, sending;
    struct thread thread;   /* runs while `sending` is on its way */
    enum ulp_status status; /* of what was sent; read after the thread was joined */
    struct error_note note;
    struct part *parts;
    size_t count, room;
};

enum ulp_status upload_begin(struct upload *upload, struct ulp_store *store, const char *run,
                             uint64_t folder);

/* A sink for ulp_diff(); `user` is the upload. */
enum ulp_status upload_write(void *user, const void *data, size_t bytes);

/* Sends the rest and waits until all of it is stored. */
enum ulp_status upload_end(struct upload *upload);
void upload_release(struct upload *upload);

#endif
