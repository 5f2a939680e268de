// SPDX-License-Identifier: Apache-2.0
#include "cli/telling.h"

#include "cli/terminal.h"

#include <stdlib.h>

#define REST_TIMES 10u

enum ulp_status telling_open(const struct cli_args *args, const struct run_place *place, bool stays,
                             struct telling *telling) {
    const char *name = option_text(args, "tell");
    enum ulp_status status;

    if (!name)
        return ULP_OK;
    telling->one_line = !stays;
    status = store_open_hasty(args, option_text(args, "store"), &telling->store);
    return status ? status : ulp_teller_open(telling->store, place->run, name, &telling->teller);
}

void telling_close(struct telling *telling) {
    ulp_teller_close(telling->teller);
    ulp_store_free(telling->store);
    *telling = (struct telling){0};
}

bool telling_begin(struct telling *telling, const char *event, struct json_out *ret_out) {
    if (!telling->teller || now_ns() < telling->rest_until_ns)
        return false;
    telling->file = open_memstream(&telling->text, &telling->bytes);
    if (!telling->file)
        return false;
    *ret_out = (struct json_out){.to = telling->file};
    json_out_begin(ret_out, NULL, '{');
    json_out_text(ret_out, "event", event);
    json_out_u64(ret_out, "told_ms", wall_ms());
    return true;
}

static void complain(struct telling *telling) {
    if (telling->complained)
        return;
    telling->complained = true;
    fputs("ulpsync: going on without telling: ", stderr);
    print_safely(stderr, ulp_last_error());
    fputc('\n', stderr);
}

static enum ulp_status tell(struct telling *telling) {
    enum ulp_status status = ULP_OK;

    if (telling->one_line)
        status = ulp_teller_resume(telling->teller);
    return status ? status : ulp_teller_tell(telling->teller, telling->text);
}

void telling_end(struct telling *telling, struct json_out *out) {
    const uint64_t started = now_ns();

    json_out_end(out, '}');
    if (!fclose(telling->file) && telling->bytes) {
        telling->text[telling->bytes - 1] = 0; /* the newline */
        if (tell(telling)) {
            complain(telling);
            telling->rest_until_ns = now_ns() + REST_TIMES * (now_ns() - started);
        }
    }
    free(telling->text);
    telling->text = NULL;
    telling->file = NULL;
}
