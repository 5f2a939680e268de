// SPDX-License-Identifier: Apache-2.0
#include "sync/upload.h"

#include "base/limits.h"
#include "base/memory.h"
#include "sync/holder.h"

enum ulp_status upload_begin(struct upload *upload, struct ulp_store *store, const char *run,
                             uint64_t folder) {
    *upload = (struct upload){.store = store,
                              .run = run,
                              .folder = folder,
                              .filling = BUFFER(PART_BYTES),
                              .sending = BUFFER(PART_BYTES)};
    return spool_open(&upload->copy, WORK_BYTES, NULL);
}

static void send(void *user) {
    struct upload *upload = user;
    const struct piece piece = {upload->sending.data, upload->sending.used};

    upload->status = part_put(upload->store, upload->run, upload->folder, &piece, 1,
                              &upload->parts[upload->count]);
    if (upload->status)
        error_save(&upload->note);
}

/* Waits for the part that is on its way. */
static enum ulp_status wait(struct upload *upload) {
    if (!upload->thread.started)
        return ULP_OK;
    thread_join(&upload->thread);
    upload->count++;
    buffer_clear(&upload->sending);
    if (upload->status)
        error_restore(&upload->note);
    return upload->status;
}

/* What was filled goes on its way, and the other buffer is filled next. */
static enum ulp_status send_filled(struct upload *upload) {
    enum ulp_status status = wait(upload);
    struct buffer filled = upload->filling;

    if (status)
        return status;
    if (upload->count == LIMIT_PARTS)
        return fail(ULP_E_LIMIT, "a patch of more than %u parts", LIMIT_PARTS);
    status = mem_grow(&upload->parts, upload->count, sizeof *upload->parts, &upload->room);
    if (status)
        return status;
    upload->filling = upload->sending;
    upload->sending = filled;
    return thread_start(&upload->thread, send, upload);
}

enum ulp_status upload_cut(struct upload *upload, size_t *ret_parts) {
    enum ulp_status status = upload->filling.used ? send_filled(upload) : ULP_OK;

    if (!status)
        *ret_parts = upload->count + upload->thread.started; /* one may be on its way */
    return status;
}

enum ulp_status upload_write(void *user, const void *data, size_t bytes) {
    struct upload *upload = user;
    const uint8_t *from = data;
    enum ulp_status status = spool_append(&upload->copy, data, bytes);

    upload->bytes += status ? 0 : bytes;
    while (!status && bytes) {
        size_t room = PART_BYTES - upload->filling.used, take = bytes < room ? bytes : room;

        status = buffer_append(&upload->filling, from, take);
        from += take;
        bytes -= take;
        if (!status && upload->filling.used == PART_BYTES)
            status = send_filled(upload);
    }
    return status;
}

enum ulp_status upload_end(struct upload *upload) {
    enum ulp_status status = upload->filling.used ? send_filled(upload) : ULP_OK;

    return status ? status : wait(upload);
}

void upload_release(struct upload *upload) {
    thread_join(&upload->thread);
    spool_release(&upload->copy);
    buffer_release(&upload->filling);
    buffer_release(&upload->sending);
    mem_free(upload->parts);
    *upload = (struct upload){0};
}
