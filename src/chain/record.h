// SPDX-License-Identifier: Apache-2.0
/*
 * A record of a run's log. Each names records before it by hash, the state that is now the newest,
 * and, as a map, what leads there: patches between versions (ways) and full states (anchors). So
 * the newest record is all that a follower has to read in order to know what to fetch.
 * docs/format/chain.md describes the bytes.
 *
 * A version is a state of the run, numbered from 0; a record that publishes one has a higher number
 * than the one before. Other records only change the map.
 */
#ifndef CHAIN_RECORD_H
#define CHAIN_RECORD_H

#include "base/arena.h"
#include "base/buffer.h"
#include "hash/ed25519.h"
#include "hash/sha256.h"

#include <stdbool.h>
#include <ulpsync/key.h>
#include <ulpsync/model.h>

#define RUN_ID_BYTES 16u

struct hash {
    uint8_t bytes[SHA256_BYTES];
};

/*
 * Bytes in the store, in a folder and under a name that follows from their hash. The folder is the
 * number of a record: of the first one that the publisher could have made known these bytes with.
 * When old parts are deleted, those in younger folders are safe.
 */
struct part {
    uint64_t folder;
    uint64_t bytes;
    struct hash hash;
};

/* A patch in the store: its parts, one after the other; none for a tile that has nothing. */
struct stored_patch {
    const struct part *parts;
    size_t part_count;
};

/* What leads from one version to a later one: one whole patch, or partial ones that tile it, the
 * common tile's first. */
struct way {
    uint64_t from, to;
    bool history;      /* it needs the moves into `from` */
    uint64_t changes;  /* elements */
    uint64_t sequence; /* of the record that published version `to` */
    const struct stored_patch *patches;
    size_t patch_count;
};

/* A file of an anchor; its name is plain. */
struct anchor_file {
    const char *name;
    struct part part;
};

/* A full state, as files that any tool can load; or, by reference, only what lies beside the
 * weights of a model that everybody can get elsewhere. */
struct anchor {
    uint64_t version;
    struct ulp_root root;
    const char *reference; /* "": the weights are among the files */
    struct hash content;   /* of the weights, by reference; see docs/format/chain.md */
    const struct anchor_file *files;
    size_t file_count;
};

/* From record `sequence` on another key signs; the one before it says so. */
struct handover {
    uint64_t sequence;
    struct ulp_public_key from, to;
    uint8_t signature[ED25519_SIGNATURE_BYTES];
};

/* The records that one names: at 1 before it, and at multiples of 2, 4, 8, ... below it. */
#define ANCESTORS_MAX 64u

struct record {
    uint8_t run[RUN_ID_BYTES];
    uint64_t sequence;
    struct hash ancestors[ANCESTORS_MAX]; /* as many as ancestors_of() says */
    uint64_t epoch, version, step;
    uint64_t time_ms;     /* since 1970; a label */
    struct ulp_root root; /* of the version */
    uint64_t elements;    /* of the state; a label */

    /* The newest record that announced deletion: parts in folders below it that its map does not
     * name may be gone. 0: nothing was ever deleted. */
    uint64_t boundary;
    const struct handover *handovers; /* each begins with the key that the one before ended with */
    size_t handover_count;
    const struct anchor *anchors; /* ascending by version */
    size_t anchor_count;
    const struct way *ways; /* ascending by `to`, then `from` */
    size_t way_count;
    bool is_signed; /* set by record_read(); the signature itself was not looked at */
    struct ulp_public_key signer;
};

/* The sequences that a record names, descending; as many as are returned. */
size_t ancestors_of(uint64_t sequence, uint64_t ret_sequences[ANCESTORS_MAX]);

/* Makes the record one that follows `before`, whose own hash is given, and inherits everything. */
void record_succeed(const struct record *before, const struct hash *hash, struct record *ret_next);

/* `key` is NULL for an unsigned record. */
enum ulp_status record_write(const struct record *record, const struct ulp_key *key,
                             struct buffer *out);

/* Everything that the record points to is in the arena. Refuses what is not canonical;
 * ULP_E_CHECKSUM if the hash at its end is not that of the bytes in front. */
enum ulp_status record_read(const uint8_t *bytes, size_t count, struct arena *arena,
                            struct record *ret_record);

enum ulp_status hash_of(const void *data, size_t bytes, struct hash *ret_hash);

/* All parts together; UINT64_MAX if a record that nobody can keep says more. */
uint64_t way_bytes(const struct way *way);
uint64_t anchor_bytes(const struct anchor *anchor);
static inline uint64_t add_bytes(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* RUN/log/SEQUENCE and RUN/part/FOLDER/HASH; the text has room for a key. */
void record_key(const char *run, uint64_t sequence, char *key);
void part_key(const char *run, const struct part *part, char *key);

#endif
