// SPDX-License-Identifier: Apache-2.0
/*
 * A contribution of a rank from any bytes, with the hash behind them that they need. What is
 * accepted has patches with parts, of tiles that there are, and written again it is the same to the
 * byte.
 */
#include "base/limits.h"
#include "fuzz/target.h"
#include "sync/contribution.h"

#include <string.h>

static void check(const struct contribution *c) {
    MUST(c->tiles && c->tiles <= LIMIT_TILES);
    MUST(c->count && c->count <= CONTRIBUTION_PATCHES_MAX);
    for (size_t i = 0; i < c->count; i++) {
        MUST(c->patches[i].tile <= c->tiles);
        MUST(c->patches[i].stored.part_count && c->patches[i].stored.part_count <= LIMIT_PARTS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer bytes = BUFFER(LIMIT_CONTRIBUTION_BYTES),
                  again = BUFFER(LIMIT_CONTRIBUTION_BYTES);
    struct arena arena = {0};
    struct contribution c;
    struct hash hash;
    enum ulp_status status;

    if (size > LIMIT_CONTRIBUTION_BYTES / 2)
        return 0;
    MUST(!hash_of(data, size, &hash));
    MUST(!buffer_append(&bytes, data, size) && !buffer_append(&bytes, &hash, sizeof hash));
    status = contribution_read(bytes.data, bytes.used, &arena, &c);
    MUST(!status || status == ULP_E_RECORD || status == ULP_E_VERSION);
    if (!status) {
        check(&c);
        MUST(!contribution_write(&c, &again));
        MUST(again.used == bytes.used && !memcmp(again.data, bytes.data, bytes.used));
    }
    arena_release(&arena);
    buffer_release(&bytes);
    buffer_release(&again);
    return 0;
}
