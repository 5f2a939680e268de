// SPDX-License-Identifier: Apache-2.0
/*
 * Deletion is announced in the log first: from then on whoever adds a record knows of it and names
 * nothing that may go (docs/format/chain.md). The grace in between is for followers that are on
 * their way; nobody's safety depends on it.
 */
#include "sync/collect.h"

#include "base/clock.h"
#include "base/memory.h"
#include "chain/map.h"
#include "sync/commit.h"
#include "sync/memory_holder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS_DEFAULT (UINT64_C(3600) * 1000)
#define FOLDER_DIGITS 20u

/* ---- parts that are named ---- */

struct part_set {
    struct part *parts; /* sorted */
    size_t count, room;
};

static int by_name(const void *a, const void *b) {
    const struct part *x = a, *y = b;

    if (x->folder != y->folder)
        return x->folder < y->folder ? -1 : 1;
    return memcmp(&x->hash, &y->hash, sizeof x->hash);
}

static enum ulp_status add_part(void *user, const struct part *part) {
    struct part_set *set = user;
    enum ulp_status status = mem_grow(&set->parts, set->count, sizeof *set->parts, &set->room);

    if (!status)
        set->parts[set->count++] = *part;
    return status;
}

static void sort_parts(struct part_set *set) {
    if (set->count)
        qsort(set->parts, set->count, sizeof *set->parts, by_name);
}

static bool has_part(const struct part_set *set, const struct part *part) {
    return set->count && bsearch(part, set->parts, set->count, sizeof *part, by_name);
}

/* ---- parts that are there ---- */

struct sweep {
    struct ulp_store *store;
    const char *run;
    uint64_t boundary;     /* parts in folders below it may go */
    struct part_set named; /* but not these */
    bool remove;
    uint64_t unnamed, bytes, kept;
    struct part_set doomed; /* a listing is not to be disturbed: they go afterwards */
    enum ulp_status status; /* of memory */
};

static bool read_digit(char digit, uint8_t *value) {
    if (digit >= '0' && digit <= '9')
        *value = (uint8_t)(digit - '0');
    else if (digit >= 'a' && digit <= 'f')
        *value = (uint8_t)(digit - 'a' + 10);
    else
        return false;
    return true;
}

/* FOLDER/HASH; anything else is none of ours, and stays. */
static bool parse_part(const char *text, struct part *part) {
    if (strlen(text) != FOLDER_DIGITS + 1 + 2 * SHA256_BYTES || text[FOLDER_DIGITS] != '/' ||
        strspn(text, "0123456789") != FOLDER_DIGITS)
        return false;
    part->folder = strtoull(text, NULL, 10);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        const char *digits = text + FOLDER_DIGITS + 1 + 2 * i;
        uint8_t high, low;

        if (!read_digit(digits[0], &high) || !read_digit(digits[1], &low))
            return false;
        part->hash.bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int look_at(void *user, const char *key, uint64_t bytes) {
    struct sweep *sweep = user;
    struct part part = {.bytes = bytes};

    if (!parse_part(key + strlen(sweep->run) + strlen("/part/"), &part))
        return 0;
    if (part.folder >= sweep->boundary || has_part(&sweep->named, &part)) {
        sweep->kept++;
        return 0;
    }
    sweep->unnamed++;
    sweep->bytes += bytes;
    if (sweep->remove)
        sweep->status = add_part(&sweep->doomed, &part);
    return sweep->status != ULP_OK;
}

static enum ulp_status remove_doomed(const struct sweep *sweep) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < sweep->doomed.count; i++) {
        char key[ULP_KEY_BYTES_MAX + 1];

        part_key(sweep->run, &sweep->doomed.parts[i], key);
        status = ulp_store_remove(sweep->store, key);
    }
    return status;
}

static enum ulp_status sweep_run(struct sweep *sweep) {
    char prefix[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    snprintf(prefix, sizeof prefix, "%s/part/", sweep->run);
    sort_parts(&sweep->named);
    status = ulp_store_list(sweep->store, prefix, "", look_at, sweep);
    if (sweep->status)
        status = sweep->status;
    if (!status)
        status = remove_doomed(sweep);
    mem_free(sweep->named.parts);
    mem_free(sweep->doomed.parts);
    return status;
}

/* ---- what was announced ---- */

struct collecting {
    struct ulp_follower *follower;
    const struct ulp_collect_options *options;
    struct ulp_collect_report *report;
};

static const struct record *head_of(const struct collecting *c) {
    return &c->follower->holder->seen.record;
}

/* 0 when the grace is over. */
static uint64_t wait_for(const struct collecting *c, const struct record *announced) {
    const uint64_t now = clock_wall_ns() / 1000000;
    const uint64_t grace = c->options->grace_ms ? c->options->grace_ms : GRACE_MS_DEFAULT;
    const uint64_t end = announced->time_ms + grace;

    return c->options->now || end <= now ? 0 : end - now;
}

/* Parts that the announcement does not name may go; what the newest record names is not among them,
 * and if it were it would stay. */
static enum ulp_status delete_announced(const struct collecting *c, const struct record *boundary) {
    const struct ulp_follower *f = c->follower;
    struct sweep sweep = {.store = f->store, .run = f->run, .boundary = boundary->sequence};
    const uint64_t wait = wait_for(c, boundary);
    enum ulp_status status = map_each_part(boundary, add_part, &sweep.named);

    if (!status)
        status = map_each_part(head_of(c), add_part, &sweep.named);
    sweep.remove = !wait && !c->options->dry_run;
    if (status)
        mem_free(sweep.named.parts);
    else
        status = sweep_run(&sweep);
    if (status)
        return status;
    c->report->kept = sweep.kept;
    if (wait) {
        c->report->condemned = sweep.unnamed;
        c->report->wait_ms = sweep.unnamed ? wait : 0;
    } else {
        c->report->boundary = boundary->sequence;
        c->report->deleted += sweep.unnamed;
        c->report->bytes += sweep.bytes;
    }
    return ULP_OK;
}

static enum ulp_status delete_old(const struct collecting *c) {
    struct log_entry entry = {0};
    enum ulp_status status;

    if (!head_of(c)->boundary)
        return ULP_OK;
    status = log_read(c->follower->store, c->follower->run, head_of(c)->boundary, &entry);
    if (!status)
        status = delete_announced(c, &entry.record);
    log_entry_release(&entry);
    return status;
}

/* ---- what comes next ---- */

/* What would go if the next record announced it. */
static enum ulp_status count_useless(const struct collecting *c, uint64_t *ret_count) {
    const struct ulp_follower *f = c->follower;
    struct sweep sweep = {.store = f->store, .run = f->run, .boundary = head_of(c)->sequence + 1};
    struct record trimmed = *head_of(c);
    struct arena arena = {0};
    enum ulp_status status =
        c->options->keep_anchors ? map_trim(&trimmed, c->options->keep_anchors, &arena) : ULP_OK;

    if (!status)
        status = map_each_part(&trimmed, add_part, &sweep.named);
    if (status)
        mem_free(sweep.named.parts);
    else
        status = sweep_run(&sweep);
    arena_release(&arena);
    *ret_count = sweep.unnamed;
    c->report->kept = sweep.kept;
    return status;
}

/* One announcement at a time: what waits is deleted first. */
static enum ulp_status announce(const struct collecting *c) {
    const struct addition addition = {
        .boundary = true, .keep_anchors = c->options->keep_anchors, .key = c->options->sign};
    struct ulp_run_report ignored = {0};
    uint64_t useless = 0;
    bool moved = false;
    enum ulp_status status;

    if (c->report->condemned || c->options->only_delete)
        return ULP_OK;
    status = count_useless(c, &useless);
    if (status || !useless)
        return status;
    c->report->condemned = useless;
    c->report->announced = !c->options->dry_run;
    if (c->options->dry_run)
        return ULP_OK;
    status = commit(c->follower, &addition, &ignored, &moved);
    c->report->wait_ms = status ? 0 : wait_for(c, head_of(c));
    return status;
}

static enum ulp_status collect_now(const struct collecting *c) {
    enum ulp_status status = delete_old(c);

    if (!status)
        status = announce(c);
    if (!status && c->report->announced && c->options->now) {
        c->report->condemned = 0;
        status = delete_old(c);
    }
    return status;
}

enum ulp_status collect(struct ulp_store *store, const char *run,
                        const struct ulp_collect_options *options,
                        struct ulp_collect_report *report) {
    const struct ulp_run_options run_options = {.trusted = options->trusted,
                                                .trusted_count = options->trusted_count};
    struct collecting c = {.options = options, .report = report};
    struct ulp_run_report ignored = {0};
    struct holder *holder = NULL;
    enum ulp_status status = memory_holder_open(NULL, 0, &run_options, &holder);

    if (!status)
        status = follower_new(store, run, &run_options, holder, &c.follower);
    if (!status)
        status = follower_look(c.follower, &ignored);
    if (!status)
        status = collect_now(&c);
    follower_free(c.follower);
    return status;
}
