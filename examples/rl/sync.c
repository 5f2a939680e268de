// SPDX-License-Identifier: Apache-2.0
#include "sync.h"

#include "sync_full.h"

#include <string.h>

enum ulp_status sync_mode_read(const char *text, enum sync_mode *ret_mode) {
    if (strcmp(text, "ulpsync") != 0 && strcmp(text, "full") != 0)
        return ulp_fail(ULP_E_USAGE, "weights are synced by `ulpsync` or `full`, not by %.40s",
                        text);
    *ret_mode = strcmp(text, "full") == 0 ? SYNC_FULL : SYNC_ULPSYNC;
    return ULP_OK;
}

/* ---- the trainer's end ---- */

static enum ulp_status refuse_old_run(struct ulp_store *store, const char *run) {
    struct ulp_run_record head;
    const enum ulp_status status = ulp_run_head(store, run, &head);

    if (!status)
        return ulp_fail(ULP_E_EXISTS,
                        "the store has a run %.80s already; choose another name, or another store",
                        run);
    return status == ULP_E_NO_RUN ? ULP_OK : status;
}

enum ulp_status sender_open(struct sender *sender, enum sync_mode mode, struct ulp_store *store,
                            const char *run, const struct state *state) {
    enum ulp_status status;

    *sender = (struct sender){.mode = mode, .store = store, .run = run, .state = state};
    if (mode == SYNC_FULL)
        return full_refuse_old_run(store, run);
    status = refuse_old_run(store, run);
    return status ? status : ulp_publisher_open(store, run, NULL, NULL, &sender->publisher);
}

void sender_close(struct sender *sender) {
    ulp_publisher_close(sender->publisher);
    memset(sender, 0, sizeof *sender);
}

static enum ulp_status publish(struct sender *sender, struct sent *sent) {
    struct ulp_run_report report;
    enum ulp_status status =
        ulp_publisher_publish(sender->publisher, sender->state->tensors,
                              sender->state->layout->count, sender->next, &report);

    if (status)
        return status;
    sent->version = report.head.version;
    sent->bytes = report.stored_bytes;
    sent->phases = report.phases;
    if (memcmp(&sent->root, &report.head.root, sizeof sent->root) != 0)
        return ulp_fail(ULP_E_WRONG_RESULT, "the run's record has another root than the weights");
    return ULP_OK;
}

enum ulp_status sender_send(struct sender *sender, struct sent *ret_sent) {
    struct sent sent = {.version = sender->next};
    enum ulp_status status = state_root(sender->state, &sent.root);

    if (!status && sender->mode == SYNC_FULL)
        status = full_put(sender->store, sender->run, sender->next, sender->state, &sent.bytes);
    else if (!status)
        status = publish(sender, &sent);
    if (status)
        return status;
    sender->next++;
    *ret_sent = sent;
    return ULP_OK;
}

/* ---- a worker's end ---- */

enum ulp_status receiver_open(struct receiver *receiver, enum sync_mode mode,
                              struct ulp_store *store, const char *run, const struct state *state) {
    *receiver = (struct receiver){.mode = mode, .store = store, .run = run, .state = state};
    if (mode == SYNC_FULL)
        return ULP_OK;
    return ulp_follower_open_memory(store, run, state->tensors, state->layout->count, NULL,
                                    &receiver->follower);
}

void receiver_close(struct receiver *receiver) {
    ulp_follower_close(receiver->follower);
    memset(receiver, 0, sizeof *receiver);
}

static void add_phases(struct ulp_run_phases *sum, const struct ulp_run_phases *more) {
    sum->poll_ns += more->poll_ns;
    sum->fetch_ns += more->fetch_ns;
    sum->verify_ns += more->verify_ns;
    sum->decode_ns += more->decode_ns;
    sum->digest_ns += more->digest_ns;
    sum->stage_ns += more->stage_ns;
    sum->apply_ns += more->apply_ns;
}

static void add_report(struct received *received, const struct ulp_run_report *report) {
    received->bytes += report->fetched_bytes;
    received->patches += report->fetched_patches;
    received->anchors += report->fetched_anchors;
    add_phases(&received->phases, &report->phases);
}

/* Polling is what a worker can do while it generates; applying is the moment in which it must not. */
static enum ulp_status follow(struct receiver *receiver, struct received *received) {
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_follower_poll(receiver->follower, &report);

    add_report(received, &report);
    while (!status && report.ready) {
        status = ulp_follower_apply(receiver->follower, &report);
        if (status)
            break;
        add_report(received, &report);
        received->fresh = receiver->holds = true;
        receiver->version = report.version;
        received->time_ms = report.version == report.head.version ? report.head.time_ms : 0;
        if (report.apply_left) {
            status = ulp_follower_poll(receiver->follower, &report);
            add_report(received, &report);
        }
    }
    return status == ULP_E_NO_RUN && !receiver->holds ? ULP_OK : status;
}

static enum ulp_status load(struct receiver *receiver, struct received *received) {
    uint64_t version = receiver->holds ? receiver->version + 1 : 0;
    enum ulp_status status = full_get(receiver->store, receiver->run, version, receiver->state,
                                      &received->bytes, &received->time_ms);

    while (!status) {
        received->fresh = receiver->holds = true;
        receiver->version = version++;
        status = full_get(receiver->store, receiver->run, version, receiver->state,
                          &received->bytes, &received->time_ms);
    }
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

enum ulp_status receiver_look(struct receiver *receiver, struct received *ret_received) {
    struct received received = {0};
    const enum ulp_status status =
        receiver->mode == SYNC_FULL ? load(receiver, &received) : follow(receiver, &received);

    *ret_received = received;
    return status;
}
