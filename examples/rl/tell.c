// SPDX-License-Identifier: Apache-2.0
#include "tell.h"

#include "jsonl.h"

#include <math.h>
#include <stdlib.h>
#include <ulpsync/tell.h>

static void complain(struct telling *telling) {
    if (!telling->complained)
        fprintf(stderr, "going on without telling: %s\n", ulp_last_error());
    telling->complained = true;
}

void telling_open(struct telling *telling, enum sync_mode mode, struct ulp_store *store,
                  const char *run, const char *name) {
    *telling = (struct telling){0};
    if (mode == SYNC_ULPSYNC && ulp_teller_open(store, run, name, &telling->teller))
        complain(telling);
}

void telling_close(struct telling *telling) {
    ulp_teller_close(telling->teller);
    *telling = (struct telling){0};
}

/* {"name": 1, ...} */
static void put_object(FILE *to, const char *name, const struct note *numbers) {
    const char *between = "";

    fprintf(to, ", \"%s\": {", name);
    for (; numbers->name; numbers++) {
        if (!isfinite(numbers->value))
            continue;
        fprintf(to, "%s\"%s\": %.9g", between, numbers->name, numbers->value);
        between = ", ";
    }
    fputc('}', to);
}

static void put_phases(FILE *to, const struct ulp_run_phases *p) {
    const struct note phases[] = {{"poll_ms", (double)p->poll_ns / 1e6},
                                  {"fetch_ms", (double)p->fetch_ns / 1e6},
                                  {"verify_ms", (double)p->verify_ns / 1e6},
                                  {"decode_ms", (double)p->decode_ns / 1e6},
                                  {"digest_ms", (double)p->digest_ns / 1e6},
                                  {"stage_ms", (double)p->stage_ns / 1e6},
                                  {"apply_ms", (double)p->apply_ns / 1e6},
                                  {"encode_ms", (double)p->encode_ns / 1e6},
                                  {"store_ms", (double)p->store_ns / 1e6},
                                  {"commit_ms", (double)p->commit_ns / 1e6},
                                  {NULL, 0}};

    put_object(to, "phases", phases);
}

/* What was written so far is `text`, once the file is closed. */
static void finish(struct telling *telling, FILE *to, char **text) {
    fputc('}', to);
    if (!fclose(to) && ulp_teller_tell(telling->teller, *text))
        complain(telling);
    free(*text);
}

void tell_published(struct telling *telling, const struct sent *sent, const struct note *notes) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = telling->teller ? open_memstream(&text, &bytes) : NULL;

    if (!to)
        return;
    fprintf(to,
            "{\"event\": \"publish\", \"told_ms\": %llu, \"version\": %llu, \"step\": %llu, "
            "\"fresh\": true, \"stored_bytes\": %llu",
            (unsigned long long)wall_ms(), (unsigned long long)sent->version,
            (unsigned long long)sent->version, (unsigned long long)sent->bytes);
    put_phases(to, &sent->phases);
    put_object(to, "notes", notes);
    finish(telling, to, &text);
}

void tell_followed(struct telling *telling, uint64_t version, const struct received *received,
                   uint64_t now_ms) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = telling->teller ? open_memstream(&text, &bytes) : NULL;

    if (!to)
        return;
    fprintf(
        to,
        "{\"event\": \"follow\", \"told_ms\": %llu, \"held_version\": %llu, \"held_step\": %llu, "
        "\"fresh\": true, \"fetched_bytes\": %llu, \"fetched_patches\": %llu, "
        "\"fetched_anchors\": %llu",
        (unsigned long long)now_ms, (unsigned long long)version, (unsigned long long)version,
        (unsigned long long)received->bytes, (unsigned long long)received->patches,
        (unsigned long long)received->anchors);
    if (received->time_ms)
        fprintf(to, ", \"publish_to_active_ms\": %llu",
                (unsigned long long)(now_ms > received->time_ms ? now_ms - received->time_ms : 0));
    put_phases(to, &received->phases);
    finish(telling, to, &text);
}
