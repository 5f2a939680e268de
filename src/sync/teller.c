// SPDX-License-Identifier: Apache-2.0
/*
 * The newest object is put anew with each line, so that no store has to know how to append. It is
 * begun by creating it: two who tell under one name never write over each other's lines.
 */
#include "sync/teller.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/quote.h"
#include "sync/run_log.h"

#include <string.h>

/* What is put anew with each line should stay small beside a patch. */
#define OBJECT_BYTES_ENOUGH (64u << 10)

/* Others who begin at the same moment, under the same name. */
#define TRIES 16u

/* Old objects that are removed at once; usually it is one. */
#define DOOMED_MAX 256u

struct ulp_teller {
    struct ulp_store *store;
    char run[ULP_KEY_PART_BYTES_MAX + 1];
    char name[LIMIT_TELLER_NAME_BYTES + 1];
    uint32_t number; /* of the object that is written; 0: none is begun */
    unsigned lines;
    struct buffer text; /* of that object */
};

enum ulp_status teller_new(struct ulp_store *store, const char *run, const char *name,
                           struct ulp_teller **ret_teller) {
    struct ulp_teller *teller = NULL;
    enum ulp_status status = run_name_check(run);

    if (!status)
        status = teller_name_check(name);
    if (!status)
        status = mem_zeroed(1, sizeof *teller, &teller);
    if (status)
        return status;
    teller->store = store;
    strncpy(teller->run, run, sizeof teller->run - 1);
    strncpy(teller->name, name, sizeof teller->name - 1);
    teller->text = BUFFER(LIMIT_TOLD_BYTES);
    *ret_teller = teller;
    return ULP_OK;
}

void teller_free(struct ulp_teller *teller) {
    if (!teller)
        return;
    buffer_release(&teller->text);
    mem_free(teller);
}

/* ---- what is there already ---- */

struct earlier {
    uint32_t first[DOOMED_MAX]; /* the oldest of them */
    size_t count;
    uint32_t highest;
    size_t prefix_bytes; /* in front of a number; what lies deeper is none of ours */
};

static int note_earlier(void *user, const char *key, uint64_t bytes) {
    struct earlier *earlier = user;
    const uint32_t number = told_number(key + earlier->prefix_bytes);

    (void)bytes;
    if (!number)
        return 0;
    if (earlier->count < DOOMED_MAX)
        earlier->first[earlier->count] = number;
    earlier->count++;
    if (number > earlier->highest)
        earlier->highest = number;
    return 0;
}

static enum ulp_status look_for_earlier(const struct ulp_teller *teller, struct earlier *earlier) {
    char prefix[ULP_KEY_BYTES_MAX + 1];

    told_prefix(teller->run, teller->name, prefix);
    earlier->prefix_bytes = strlen(prefix);
    return ulp_store_list(teller->store, prefix, "", note_earlier, earlier);
}

/* With the one that was just begun they are to be as many as may be read. What cannot be removed
 * does no harm: nobody reads it. */
static void remove_oldest(const struct ulp_teller *teller, const struct earlier *earlier) {
    for (size_t i = 0; i < DOOMED_MAX && i + LIMIT_TOLD_OBJECTS <= earlier->count; i++) {
        char key[ULP_KEY_BYTES_MAX + 1];

        told_key(teller->run, teller->name, earlier->first[i], key);
        if (ulp_store_remove(teller->store, key))
            return;
    }
}

/* ---- lines ---- */

static enum ulp_status create_next(const struct ulp_teller *teller, const struct buffer *text,
                                   uint32_t after, uint32_t *ret_number) {
    enum ulp_status status = ULP_E_EXISTS;

    for (unsigned i = 0; i < TRIES && status == ULP_E_EXISTS; i++) {
        char key[ULP_KEY_BYTES_MAX + 1];

        if (after >= TOLD_NUMBER_MAX)
            return fail(ULP_E_LIMIT, "%s has told all that it can; tell under another name",
                        quote(teller->name).text);
        told_key(teller->run, teller->name, ++after, key);
        status = ulp_store_create(teller->store, key, text->data, text->used);
    }
    if (!status)
        *ret_number = after;
    return status;
}

/* Takes over `text`, with the first line, if it succeeds. */
static enum ulp_status begin_object(struct ulp_teller *teller, struct buffer *text) {
    struct earlier earlier = {.highest = teller->number};
    enum ulp_status status = look_for_earlier(teller, &earlier);

    if (!status)
        status = create_next(teller, text, earlier.highest, &teller->number);
    if (status)
        return status;
    buffer_release(&teller->text);
    teller->text = *text;
    *text = BUFFER(LIMIT_TOLD_BYTES);
    teller->lines = 1;
    remove_oldest(teller, &earlier);
    return ULP_OK;
}

static enum ulp_status append_line(struct buffer *text, const char *line) {
    const size_t before = text->used;
    enum ulp_status status = buffer_append_text(text, line);

    if (!status)
        status = buffer_append_text(text, "\n");
    if (status)
        buffer_cut(text, before);
    return status;
}

static enum ulp_status tell_first(struct ulp_teller *teller, const char *line) {
    struct buffer text = BUFFER(LIMIT_TOLD_BYTES);
    enum ulp_status status = append_line(&text, line);

    if (!status)
        status = begin_object(teller, &text);
    buffer_release(&text);
    return status;
}

static enum ulp_status tell_next(struct ulp_teller *teller, const char *line) {
    const size_t before = teller->text.used;
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = append_line(&teller->text, line);

    told_key(teller->run, teller->name, teller->number, key);
    if (!status)
        status = ulp_store_put(teller->store, key, teller->text.data, teller->text.used);
    if (status)
        buffer_cut(&teller->text, before);
    else
        teller->lines++;
    return status;
}

enum ulp_status teller_tell(struct ulp_teller *teller, const char *line) {
    const size_t bytes = strlen(line);
    enum ulp_status status = told_line_check(line, bytes);

    if (status)
        return status;
    if (!teller->number || teller->lines >= LIMIT_TOLD_LINES ||
        teller->text.used + bytes + 1 > OBJECT_BYTES_ENOUGH)
        return tell_first(teller, line);
    return tell_next(teller, line);
}

/* ---- going on with what another process began ---- */

/* How many lines there are, all of them sound; 0 for anything else. */
static unsigned count_lines(const char *text, size_t bytes) {
    unsigned lines = 0;

    while (bytes) {
        const char *end = memchr(text, '\n', bytes);

        if (!end || told_line_check(text, (size_t)(end - text)))
            return 0;
        lines++;
        bytes -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return lines;
}

static enum ulp_status read_object(const struct ulp_teller *teller, uint32_t number,
                                   struct buffer *text) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t total = 0;
    size_t bytes = 0;
    enum ulp_status status = buffer_reserve(text, OBJECT_BYTES_ENOUGH);

    told_key(teller->run, teller->name, number, key);
    if (!status)
        status =
            ulp_store_read(teller->store, key, 0, text->data, OBJECT_BYTES_ENOUGH, &bytes, &total);
    if (!status && bytes == total)
        text->used = bytes;
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

enum ulp_status teller_resume(struct ulp_teller *teller) {
    struct buffer text = BUFFER(LIMIT_TOLD_BYTES);
    struct earlier earlier = {0};
    enum ulp_status status = look_for_earlier(teller, &earlier);
    unsigned lines;

    if (!status && earlier.highest)
        status = read_object(teller, earlier.highest, &text);
    lines = status ? 0 : count_lines(buffer_text(&text), text.used);
    if (lines) {
        buffer_release(&teller->text);
        teller->text = text;
        teller->number = earlier.highest;
        teller->lines = lines;
    } else {
        buffer_release(&text);
    }
    return status;
}
