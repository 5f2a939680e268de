// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of S3 from any bytes: what is accepted holds elements whose paths are as deep as they may
 * be, and the last of them is the whole.
 */
#include "base/limits.h"
#include "fuzz/target.h"
#include "net/credentials.h"
#include "net/xml.h"

#include <string.h>

struct seen {
    size_t count;
    char last[8192];
};

static enum ulp_status hear(void *user, const char *path, const char *text) {
    struct seen *seen = user;
    size_t depth = 1;

    for (const char *at = path; *at; at++)
        depth += *at == '/';
    MUST(*path && depth < LIMIT_XML_DEPTH && strlen(path) < sizeof seen->last);
    MUST(strlen(text) <= LIMIT_XML_BYTES);
    memcpy(seen->last, path, strlen(path) + 1);
    seen->count++;
    return ULP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct seen seen = {0};
    struct credentials found = {0};
    enum ulp_status status = xml_read("input", (const char *)data, size, hear, &seen);

    MUST(!status || status == ULP_E_IO);
    MUST(status || (seen.count && !strchr(seen.last, '/')));
    if (!credentials_read_xml((const char *)data, size, &found))
        MUST(!status && *found.key_id && *found.secret);
    credentials_release(&found);
    return 0;
}
