// SPDX-License-Identifier: Apache-2.0
/*
 * Patches on their way to the store: they are cut into parts, and each is sent by a thread while the
 * next one is being made. A copy is kept, so that they can be checked and applied. Memory: two
 * parts.
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
    uint64_t bytes; /* that were written */
};

enum ulp_status upload_begin(struct upload *upload, struct ulp_store *store, const char *run,
                             uint64_t folder);

/* A sink for ulp_diff(); `user` is the upload. */
enum ulp_status upload_write(void *user, const void *data, size_t bytes);

/* Here a patch ends, and its last part; *ret_parts have begun so far. */
enum ulp_status upload_cut(struct upload *upload, size_t *ret_parts);

/* Sends the rest and waits until all of it is stored. */
enum ulp_status upload_end(struct upload *upload);
void upload_release(struct upload *upload);

#endif
