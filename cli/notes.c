// SPDX-License-Identifier: Apache-2.0
#include "cli/notes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char name_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";

static enum ulp_status parse(const char *text, struct note *ret_note) {
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    char *end = NULL;

    if (!length || length > NOTE_NAME_BYTES_MAX || strspn(text, name_characters) < length)
        return ulp_fail(ULP_E_USAGE,
                        "--note '%s': give KEY=NUMBER, such as reward=0.5; a key has up to %u "
                        "letters, digits, '.', '-', '_', '/'",
                        text, NOTE_NAME_BYTES_MAX);
    ret_note->value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(ret_note->value))
        return ulp_fail(ULP_E_USAGE, "--note '%s': what stands behind '=' is not a number", text);
    memcpy(ret_note->name, text, length);
    ret_note->name[length] = 0;
    return ULP_OK;
}

static enum ulp_status add(struct notes *notes, const struct note *note) {
    for (unsigned i = 0; i < notes->count; i++) {
        if (!strcmp(notes->list[i].name, note->name))
            return ulp_fail(ULP_E_USAGE, "--note %s was given twice", note->name);
    }
    if (notes->count == NOTES_MAX)
        return ulp_fail(ULP_E_USAGE, "more than %u notes", NOTES_MAX);
    notes->list[notes->count++] = *note;
    return ULP_OK;
}

enum ulp_status notes_read(const struct cli_args *args, struct notes *ret_notes) {
    struct notes notes = {0};
    unsigned cursor = 0;
    const char *text;

    while ((text = option_next(args, "note", &cursor))) {
        struct note note;
        enum ulp_status status = parse(text, &note);

        if (!status)
            status = add(&notes, &note);
        if (status)
            return status;
    }
    *ret_notes = notes;
    return ULP_OK;
}

void notes_json(struct json_out *out, const struct notes *notes) {
    if (!notes->count)
        return;
    json_out_begin(out, "notes", '{');
    for (unsigned i = 0; i < notes->count; i++)
        json_out_real(out, notes->list[i].name, notes->list[i].value);
    json_out_end(out, '}');
}
