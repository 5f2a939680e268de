// SPDX-License-Identifier: Apache-2.0
/*
 * A listing says how long each object is; one that has not grown is not read again, and of the
 * others only what was added. Nothing here is trusted: what is not as it should be is passed over.
 */
#include "sync/listener.h"

#include "base/memory.h"
#include "sync/run_log.h"

#include <string.h>

/* A store may list whatever it likes; so many keys are looked at. */
#define KEYS_MAX ((uint64_t)LIMIT_TELLERS * LIMIT_TOLD_OBJECTS)

struct told_object {
    uint32_t number;
    uint32_t bytes; /* that are there, as the listing says */
    uint32_t heard; /* of them */
    uint32_t seen;  /* bytes that it had when it was read: a line may not have ended there */
    uint32_t lines; /* that were heard, or passed over */
};

struct told_by {
    char name[LIMIT_TELLER_NAME_BYTES + 1];
    unsigned count;
    struct told_object objects[LIMIT_TOLD_OBJECTS]; /* the newest, ascending */
};

struct tellers {
    struct told_by *list;
    size_t count, room;
};

struct ulp_listener {
    struct ulp_store *store;
    char run[ULP_KEY_PART_BYTES_MAX + 1];
    struct tellers known;
};

enum ulp_status listener_new(struct ulp_store *store, const char *run,
                             struct ulp_listener **ret_listener) {
    struct ulp_listener *listener = NULL;
    enum ulp_status status = run_name_check(run);

    if (!status)
        status = mem_zeroed(1, sizeof *listener, &listener);
    if (status)
        return status;
    listener->store = store;
    strncpy(listener->run, run, sizeof listener->run - 1);
    *ret_listener = listener;
    return ULP_OK;
}

void listener_free(struct ulp_listener *listener) {
    if (!listener)
        return;
    mem_free(listener->known.list);
    mem_free(listener);
}

/* ---- what is there ---- */

struct looking {
    const struct tellers *before;
    size_t cursor; /* where the last teller was found there; the next one stands behind it */
    size_t prefix_bytes;
    struct tellers now;
    uint64_t keys;
    enum ulp_status status; /* of memory */
};

/* Listings come in the same order each time. */
static const struct told_by *find_before(struct looking *l, const char *name) {
    for (size_t i = 0; i < l->before->count; i++) {
        const size_t at = (l->cursor + i) % l->before->count;

        if (!strcmp(l->before->list[at].name, name)) {
            l->cursor = at;
            return &l->before->list[at];
        }
    }
    return NULL;
}

/* NULL when there is no room for more. */
static struct told_by *teller_of(struct looking *l, const char *name) {
    struct tellers *now = &l->now;
    struct told_by *teller;

    if (now->count && !strcmp(now->list[now->count - 1].name, name))
        return &now->list[now->count - 1];
    if (now->count == LIMIT_TELLERS)
        return NULL;
    l->status = mem_grow(&now->list, now->count, sizeof *now->list, &now->room);
    if (l->status)
        return NULL;
    teller = &now->list[now->count++];
    *teller = (struct told_by){0};
    memcpy(teller->name, name, strlen(name) + 1);
    return teller;
}

static void add_object(struct told_by *teller, uint32_t number, uint32_t bytes) {
    struct told_object *objects = teller->objects;

    if (teller->count == LIMIT_TOLD_OBJECTS) {
        memmove(objects, objects + 1, (LIMIT_TOLD_OBJECTS - 1) * sizeof *objects);
        teller->count--;
    }
    objects[teller->count++] = (struct told_object){.number = number, .bytes = bytes};
}

/* NAME/NUMBER; 0 for what is none. */
static uint32_t parse_key(const char *key, char name[LIMIT_TELLER_NAME_BYTES + 1]) {
    const size_t bytes = strcspn(key, "/");

    if (!key[bytes] || bytes > LIMIT_TELLER_NAME_BYTES)
        return 0;
    memcpy(name, key, bytes);
    name[bytes] = 0;
    return teller_name_check(name) ? 0 : told_number(key + bytes + 1);
}

static int look_at(void *user, const char *key, uint64_t bytes) {
    struct looking *l = user;
    char name[LIMIT_TELLER_NAME_BYTES + 1];
    const uint32_t number = parse_key(key + l->prefix_bytes, name);
    struct told_by *teller;

    if (++l->keys > KEYS_MAX)
        return 1;
    if (!number || bytes > LIMIT_TOLD_BYTES)
        return 0;
    teller = teller_of(l, name);
    if (!teller)
        return 1;
    add_object(teller, number, (uint32_t)bytes);
    return 0;
}

static void remember(const struct told_by *before, struct told_by *teller) {
    for (unsigned i = 0, k = 0; before && i < teller->count; i++) {
        while (k < before->count && before->objects[k].number < teller->objects[i].number)
            k++;
        if (k < before->count && before->objects[k].number == teller->objects[i].number) {
            teller->objects[i].heard = before->objects[k].heard;
            teller->objects[i].seen = before->objects[k].seen;
            teller->objects[i].lines = before->objects[k].lines;
        }
    }
}

/* Replaces what is known by what is there. */
static enum ulp_status look(struct ulp_listener *listener) {
    struct looking l = {.before = &listener->known};
    char prefix[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    told_prefix(listener->run, NULL, prefix);
    l.prefix_bytes = strlen(prefix);
    status = ulp_store_list(listener->store, prefix, "", look_at, &l);
    if (status == ULP_E_CANCELLED)
        status = l.status; /* enough is enough */
    if (status) {
        mem_free(l.now.list);
        return status;
    }
    for (size_t i = 0; i < l.now.count; i++)
        remember(find_before(&l, l.now.list[i].name), &l.now.list[i]);
    mem_free(listener->known.list);
    listener->known = l.now;
    return ULP_OK;
}

/* ---- what it says ---- */

struct hearing {
    struct ulp_listener *listener;
    ulp_told heard;
    void *user;
    char *text; /* room for an object */
};

/* The lines that are complete; those that say nothing are passed over. */
static enum ulp_status hear_lines(const struct hearing *h, const char *name, char *text,
                                  size_t bytes, struct told_object *object) {
    char *line = text, *end;

    while (object->lines < LIMIT_TOLD_LINES &&
           (end = memchr(line, '\n', bytes - (size_t)(line - text)))) {
        const size_t length = (size_t)(end - line);
        const enum ulp_status status = told_line_check(line, length);

        if (status == ULP_E_NOMEM)
            return status; /* which is not the line's fault */
        *end = 0;
        object->lines++;
        object->heard += (uint32_t)length + 1;
        if (!status)
            h->heard(h->user, name, line, length);
        line = end + 1;
    }
    if (object->lines == LIMIT_TOLD_LINES)
        object->heard = object->bytes; /* nothing more is wanted of it */
    return ULP_OK;
}

/* It may be gone meanwhile, or be no object at all. */
static bool is_nothing(enum ulp_status status) {
    return status == ULP_E_NOT_FOUND || status == ULP_E_FILE_KIND || status == ULP_E_FILE_CHANGED;
}

static enum ulp_status hear_object(const struct hearing *h, const char *name,
                                   struct told_object *object) {
    char key[ULP_KEY_BYTES_MAX + 1];
    size_t bytes = 0;
    uint64_t total = 0;
    enum ulp_status status;

    if (object->bytes <= object->heard || object->bytes == object->seen)
        return ULP_OK;
    told_key(h->listener->run, name, object->number, key);
    status = ulp_store_read(h->listener->store, key, object->heard, h->text,
                            LIMIT_TOLD_BYTES - object->heard, &bytes, &total);
    if (!status)
        status = hear_lines(h, name, h->text, bytes, object);
    else if (is_nothing(status))
        return ULP_OK;
    if (!status)
        object->seen = object->bytes;
    return status;
}

enum ulp_status listener_hear(struct ulp_listener *listener, ulp_told heard, void *user) {
    struct hearing h = {listener, heard, user, NULL};
    enum ulp_status status = look(listener);

    if (!status)
        status = mem_resize(&h.text, LIMIT_TOLD_BYTES, 1);
    for (size_t i = 0; !status && i < listener->known.count; i++) {
        struct told_by *teller = &listener->known.list[i];

        for (unsigned k = 0; !status && k < teller->count; k++)
            status = hear_object(&h, teller->name, &teller->objects[k]);
    }
    mem_free(h.text);
    return status;
}
