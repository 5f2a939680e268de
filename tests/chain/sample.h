// SPDX-License-Identifier: Apache-2.0
/* Records to try things on, and what every test of records does with them. */
#ifndef TESTS_CHAIN_SAMPLE_H
#define TESTS_CHAIN_SAMPLE_H

#include "chain/record.h"

#include "tests/test.h"

#define SAMPLE_WAYS 40u
#define SAMPLE_ANCHORS 5u
#define SAMPLE_FILES 7u
#define SAMPLE_PARTS 5u
#define SAMPLE_HANDOVERS 3u

/* A record with memory of its own. */
struct sample {
    struct record record;
    struct anchor anchors[SAMPLE_ANCHORS]; /* the third one is by reference */
    struct anchor_file files[SAMPLE_ANCHORS][SAMPLE_FILES];
    char names[SAMPLE_FILES][24];
    struct way ways[SAMPLE_WAYS]; /* of one patch, or of up to three */
    struct stored_patch patches[SAMPLE_WAYS][3];
    struct part parts[SAMPLE_WAYS][SAMPLE_PARTS];
    struct handover handovers[SAMPLE_HANDOVERS]; /* not used yet; for who can sign */
};

/* To be given back with free(). The same whenever the numbers are the same. */
struct sample *sample_new(size_t anchors, size_t ways);

/* Room for records that are longer than any may be, too. */
struct buffer written(const struct record *record, const struct ulp_key *key);

/* The bytes with a hash behind them that fits, as a forger would send them. */
struct buffer forged(const uint8_t *data, size_t count);

/* Reads a copy without slack, so that a read past the end is noticed; what is refused leaves the
 * output alone, and what is accepted is canonical. */
enum ulp_status read_exactly(const uint8_t *data, size_t count);
enum ulp_status read_forged(const uint8_t *data, size_t count);

/* Writes the record and reads it again. */
enum ulp_status read_written(const struct record *record);

/* The record that was read from the bytes, written again, is these bytes; a signature is compared
 * with nothing, but there is one, and nothing else. */
void assert_canonical(const struct record *record, const uint8_t *data, size_t count);

void assert_same_record(const struct record *a, const struct record *b);

/* One of the statuses with which records are refused. */
bool is_refusal(enum ulp_status status);

#endif
