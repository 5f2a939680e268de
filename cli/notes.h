// SPDX-License-Identifier: Apache-2.0
/* --note KEY=NUMBER: what a trainer wants to say of a step. */
#ifndef CLI_NOTES_H
#define CLI_NOTES_H

#include "cli/options.h"
#include "cli/output.h"

#define NOTES_MAX 16u
#define NOTE_NAME_BYTES_MAX 31u

struct note {
    char name[NOTE_NAME_BYTES_MAX + 1];
    double value;
};

struct notes {
    struct note list[NOTES_MAX];
    unsigned count;
};

/* ULP_E_USAGE for what is none, for too many, and for a name that comes twice. */
enum ulp_status notes_read(const struct cli_args *args, struct notes *ret_notes);

/* "notes": {...} in an open object; nothing if there are none. */
void notes_json(struct json_out *out, const struct notes *notes);

#endif
