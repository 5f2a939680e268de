// SPDX-License-Identifier: Apache-2.0
/*
 * A record of a run's log. Each names the record before it by hash, the state that is now the
 * newest, and, as a map, what leads there: patches between versions (ways) and full states
 * (anchors). So the newest record is all that a follower has to read in order to know what to
 * fetch. docs/format/chain.md describes the bytes.
 *
 * A version is a state of the run, numbered from 0; a record that publishes one has a higher number
 * than the one before. Other records only change the map.
 */
#ifndef CHAIN_RECORD_H
#define CHAIN_RECORD_H

#include "base/arena.h"
#include "base/buffer.h"
#include "hash/sha256.h"

#include <stdbool.h>
#include <ulpsync/model.h>

#define RUN_ID_BYTES 16u

struct hash {
    uint8_t bytes[SHA256_BYTES];
};

/* Bytes in the store, under a name that follows from their hash. */
struct part {
    uint64_t bytes;
    struct hash hash;
};

/* A patch that leads from one version to a later one. */
struct way {
    uint64_t from, to;
    bool history;     /* it needs the moves into `from` */
    uint64_t changes; /* elements */
    uint64_t
        sequence; /* of the record that published version `to`: its map has the shorter ways there */
    const struct part *parts;
    size_t part_count;
};

/* A file of an anchor; its name is plain. */
struct anchor_file {
    const char *name;
    struct part part;
};

/* A full state, as files that any tool can load. */
struct anchor {
    uint64_t version;
    struct ulp_root root;
    const struct anchor_file *files;
    size_t file_count;
};

struct record {
    uint8_t run[RUN_ID_BYTES];
    uint64_t sequence;
    struct hash before; /* of the record before; zero for the first */
    uint64_t epoch, version, step;
    uint64_t time_ms;             /* since 1970; a label */
    struct ulp_root root;         /* of the version */
    const struct anchor *anchors; /* ascending by version */
    size_t anchor_count;
    const struct way *ways; /* ascending by `to`, then `from` */
    size_t way_count;
};

enum ulp_status record_write(const struct record *record, struct buffer *out);

/* Everything that the record points to is in the arena. Refuses what is not canonical;
 * ULP_E_CHECKSUM if the hash at its end is not that of the bytes in front. */
enum ulp_status record_read(const uint8_t *bytes, size_t count, struct arena *arena,
                            struct record *ret_record);

enum ulp_status hash_of(const void *data, size_t bytes, struct hash *ret_hash);

/* RUN/log/SEQUENCE and RUN/part/HASH; the text has room for a key. */
void record_key(const char *run, uint64_t sequence, char *key);
void part_key(const char *run, const struct hash *hash, char *key);

#endif
