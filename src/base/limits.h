// SPDX-License-Identifier: Apache-2.0
/*
 * Every limit on what comes from outside, in one place. Each is checked before memory is taken for
 * what it limits. docs/limits.md shows this table to users; a test keeps the two equal.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* The cap of the reference implementation of safetensors: 100 decimal megabytes. */
#define LIMIT_HEADER_BYTES 100000000u

/* The largest mixture-of-experts checkpoints of 2026 hold some 150 000 tensors. */
#define LIMIT_TENSORS 524288u

/* Hugging Face names stay under 200 bytes. */
#define LIMIT_NAME_BYTES 4096u
#define LIMIT_DTYPE_BYTES 32u

/* PyTorch's own limit. */
#define LIMIT_RANK 64u

/* Of dtypes this version does not know; the widest known one has 64. */
#define LIMIT_ELEMENT_BITS 4096u

#define LIMIT_METADATA_PAIRS 65536u
#define LIMIT_METADATA_VALUE_BYTES (16u << 20)

#define LIMIT_INDEX_BYTES LIMIT_HEADER_BYTES
#define LIMIT_SHARDS 4096u
#define LIMIT_FILE_NAME_BYTES 255u

/* Safetensors headers nest two deep, indexes two; anything deeper is an attack on the stack. */
#define LIMIT_JSON_DEPTH 16u

/* Pieces of a patch: enough for 2^46 elements, or for every tensor that there may be. */
#define LIMIT_PIECES (1u << 22)

/* Regions that a patch, or all parts of one, may be made of: a tile of each tensor for each of a
 * thousand ranks. Those that lie beside each other are compared in pairs. */
#define LIMIT_REGIONS (1u << 22)
#define LIMIT_REGION_PAIRS (1u << 28)

/* Tiles of a state, and the rules that cut it: text of some ten lines. */
#define LIMIT_TILES 1024u
#define LIMIT_TILING_BYTES (1u << 16)
#define LIMIT_TILING_RULES 1024u

/* The table at the end of a patch: names, sums of the pieces, places of the chunks. */
#define LIMIT_TABLE_BYTES (1u << 30)

/* Patches that are squashed at once. */
#define LIMIT_SQUASH 4096u

/* A record of a run's log; with its map of ways it has a few KB, with a thousand tiles more. */
#define LIMIT_RECORD_BYTES (4u << 20)

/* Ways and anchors that a record lists, parts of a patch, files of an anchor. */
#define LIMIT_WAYS 4096u
#define LIMIT_ANCHORS 64u
#define LIMIT_PARTS 4096u
#define LIMIT_ANCHOR_FILES 8192u
#define LIMIT_REFERENCE_BYTES 1024u

/* What a rank sends to whoever commits: some 50 bytes for each part. */
#define LIMIT_CONTRIBUTION_BYTES (1u << 20)

/* Tellings of a run: a line, the lines and bytes of an object, objects of a teller, tellers. */
#define LIMIT_TOLD_LINE_BYTES 4096u
#define LIMIT_TOLD_LINES 256u
#define LIMIT_TOLD_BYTES (1u << 20)
#define LIMIT_TOLD_OBJECTS 64u
#define LIMIT_TELLERS 4096u
#define LIMIT_TELLER_NAME_BYTES 64u

/* How often the key that signs a run may change. */
#define LIMIT_HANDOVERS 64u

/* Keys whose signatures one follower accepts, and the file that lists them. */
#define LIMIT_TRUSTED_KEYS 64u
#define LIMIT_TRUSTED_FILE_BYTES 65536u

/* What people write behind a key, to tell it from others. */
#define LIMIT_KEY_COMMENT_BYTES 200u

/* Objects in a cache: some 500 GB of the usual size. */
#define LIMIT_CACHE_OBJECTS (1u << 16)

/* What a server over HTTP may say before its answer, and to explain a failure. */
#define LIMIT_HTTP_HEADER_BYTES (64u << 10)
#define LIMIT_ERROR_BYTES (64u << 10)

/* An answer of S3 that is XML: a listing has a thousand keys of up to 1024 bytes each, encoded. */
#define LIMIT_XML_BYTES (8u << 20)
#define LIMIT_XML_DEPTH 16u

/* What a web server may send of an object beyond what was asked for. */
#define LIMIT_UNASKED_BYTES (64u << 20)

/* S3's own, for one object. */
#define LIMIT_UPLOAD_PARTS 10000u

/* Files with credentials and with tokens, and answers that hold credentials. */
#define LIMIT_CREDENTIALS_BYTES (64u << 10)

#define LIMIT_THREADS 1024u

#endif
