// SPDX-License-Identifier: Apache-2.0
/*
 * What one rank stored for the next version, as bytes that it sends to whoever commits. Who reads
 * them trusts nothing: docs/tiles.md describes them.
 */
#ifndef SYNC_CONTRIBUTION_H
#define SYNC_CONTRIBUTION_H

#include "chain/record.h"

/* The common part and one tile, at most. */
#define CONTRIBUTION_PATCHES_MAX 2u

struct contributed_patch {
    unsigned tile;
    uint64_t changes;
    struct hash seal; /* of what is read when it is opened; see sealed_patch.h */
    struct stored_patch stored;
};

struct contribution {
    uint8_t run[RUN_ID_BYTES];
    uint64_t version; /* that it starts from */
    struct ulp_root root;
    uint64_t step;
    unsigned tiles;
    struct contributed_patch patches[CONTRIBUTION_PATCHES_MAX];
    size_t count;
};

enum ulp_status contribution_write(const struct contribution *contribution, struct buffer *out);

/* ULP_E_CHECKSUM for bytes that were damaged on the way, ULP_E_RECORD for what is none. */
enum ulp_status contribution_read(const uint8_t *bytes, size_t count, struct arena *arena,
                                  struct contribution *ret_contribution);

#endif
