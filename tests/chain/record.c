// SPDX-License-Identifier: Apache-2.0
/* Records of a log: what is written is read again, and nothing else is. damaged.c has what bits and
 * forgers do to them, signed.c what keys add. */
#include "chain/record.h"

#include "base/cursor.h"
#include "base/limits.h"
#include "tests/chain/sample.h"

/* ---- round trips ---- */

static void check_round_trip(size_t anchors, size_t ways) {
    struct sample *s = sample_new(anchors, ways);
    struct buffer bytes = written(&s->record, NULL), again;
    struct arena arena = {0};
    struct record record = {0};

    assert_ok(record_read(bytes.data, bytes.used, &arena, &record));
    assert_same_record(&s->record, &record);
    assert_false(record.is_signed);
    again = written(&record, NULL);
    assert_int_equal(again.used, bytes.used);
    assert_memory_equal(again.data, bytes.data, bytes.used);
    arena_release(&arena);
    buffer_release(&again);
    buffer_release(&bytes);
    free(s);
}

static void test_round_trips(void **unused) {
    (void)unused;
    for (size_t anchors = 0; anchors <= SAMPLE_ANCHORS; anchors++) {
        for (size_t ways = 0; ways <= SAMPLE_WAYS; ways++)
            check_round_trip(anchors, ways);
    }
}

/* It goes behind what a buffer holds already, and its hash is of itself alone. */
static void test_written_behind_something(void **unused) {
    struct sample *s = sample_new(2, 2);
    struct buffer bytes = BUFFER(1 << 20), alone = written(&s->record, NULL);

    (void)unused;
    assert_ok(buffer_append(&bytes, "before", 6));
    assert_ok(record_write(&s->record, NULL, &bytes));
    assert_int_equal(bytes.used, 6 + alone.used);
    assert_memory_equal(bytes.data + 6, alone.data, alone.used);
    buffer_release(&bytes);
    buffer_release(&alone);
    free(s);
}

/* ---- ancestors ---- */

static void test_ancestors_by_hand(void **unused) {
    static const struct {
        uint64_t sequence;
        size_t count;
        uint64_t ancestors[6];
    } cases[] = {{1, 0, {0}},
                 {2, 1, {1}},
                 {3, 1, {2}},
                 {4, 2, {3, 2}},
                 {5, 1, {4}},
                 {8, 3, {7, 6, 4}},
                 {9, 1, {8}},
                 {12, 3, {11, 10, 8}},
                 {16, 4, {15, 14, 12, 8}},
                 {1001, 6, {1000, 992, 960, 896, 768, 512}}};

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t found[ANCESTORS_MAX];

        assert_int_equal(ancestors_of(cases[i].sequence, found), cases[i].count);
        assert_memory_equal(found, cases[i].ancestors, cases[i].count * sizeof found[0]);
    }
}

/* As docs/format/chain.md says it: floor((s-1) / 2^k) * 2^k, each once, as long as it is not 0. */
static void check_ancestors(uint64_t sequence) {
    uint64_t found[ANCESTORS_MAX], last = 0;
    size_t count = ancestors_of(sequence, found), at = 0;

    assert_true(count <= ANCESTORS_MAX);
    for (unsigned k = 0; k < 64; k++) {
        uint64_t power = (uint64_t)1 << k, ancestor = (sequence - 1) / power * power;

        if (ancestor && ancestor != last) {
            assert_true(at < count);
            assert_int_equal(found[at++], ancestor);
        }
        last = ancestor;
    }
    assert_int_equal(at, count);
}

static void test_ancestors_of_every_kind(void **unused) {
    (void)unused;
    for (uint64_t sequence = 1; sequence < 5000; sequence++)
        check_ancestors(sequence);
    for (unsigned k = 0; k < 64; k++) {
        check_ancestors((uint64_t)1 << k);
        check_ancestors(((uint64_t)1 << k) + 1);
        check_ancestors(UINT64_MAX >> k);
        check_ancestors(1 + (test_random() >> k));
    }
    assert_int_equal(ancestors_of((uint64_t)1 << 63, (uint64_t[ANCESTORS_MAX]){0}), 63);
}

/* A log of so many records. Each names the right ones, and from the last to any other it is at most
 * 2 log2 n steps. */
#define LOG_RECORDS 3000u

static unsigned steps_back(uint64_t from, uint64_t goal) {
    uint64_t ancestors[ANCESTORS_MAX];
    unsigned steps = 0;

    while (from > goal) {
        size_t count = ancestors_of(from, ancestors), at = 0;

        while (at + 1 < count && ancestors[at + 1] >= goal)
            at++;
        from = ancestors[at];
        steps++;
    }
    assert_int_equal(from, goal);
    return steps;
}

static void check_names(const struct record *record, const struct hash *hashes) {
    uint64_t ancestors[ANCESTORS_MAX];
    size_t count = ancestors_of(record->sequence, ancestors);
    static const struct hash none;

    for (size_t i = 0; i < count; i++)
        assert_memory_equal(&record->ancestors[i], &hashes[ancestors[i]], sizeof none);
    for (size_t i = count; i < ANCESTORS_MAX; i++)
        assert_memory_equal(&record->ancestors[i], &none, sizeof none);
}

static void test_every_record_names_its_ancestors(void **unused) {
    static struct hash hashes[LOG_RECORDS + 1];
    struct sample *s = sample_new(1, 1);
    struct record record = s->record;

    (void)unused;
    record.sequence = 1;
    record.version = record.epoch = record.boundary = 0;
    record.way_count = 0;
    memset(record.ancestors, 0, sizeof record.ancestors);
    for (uint64_t i = 1; i <= LOG_RECORDS; i++) {
        struct buffer bytes = written(&record, NULL);

        assert_int_equal(record.sequence, i);
        check_names(&record, hashes);
        assert_ok(read_exactly(bytes.data, bytes.used));
        assert_ok(hash_of(bytes.data, bytes.used, &hashes[i]));
        buffer_release(&bytes);
        record_succeed(&record, &hashes[i], &record);
        assert_true(steps_back(LOG_RECORDS, i) <= 24);
    }
    free(s);
}

static void test_what_a_successor_inherits(void **unused) {
    struct sample *s = sample_new(3, 4);
    struct record next, expected = s->record;
    struct hash hash;

    (void)unused;
    memset(&hash, 0x5a, sizeof hash);
    record_succeed(&s->record, &hash, &next);
    assert_int_equal(next.sequence, 1001);
    assert_memory_equal(&next.ancestors[0], &hash, sizeof hash);
    expected.sequence = next.sequence;
    memcpy(expected.ancestors, next.ancestors, sizeof next.ancestors);
    assert_same_record(&expected, &next);
    assert_ok(read_written(&next));
    free(s);
}

/* ---- what is not canonical ---- */

static void test_longer_numbers(void **unused) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record, NULL);
    size_t count = bytes.used - SHA256_BYTES;

    (void)unused;
    assert_ok(read_forged(bytes.data, count));
    /* the last bytes: no handovers, anchors and ways, and not signed */
    for (size_t i = 1; i <= 4; i++)
        assert_int_equal(bytes.data[count - i], 0);
    bytes.data[count - 1] = 0x80;
    bytes.data[count++] = 0; /* over the hash, which is made anew */
    assert_int_equal(read_forged(bytes.data, count), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void test_bytes_behind(void **unused) {
    struct sample *s = sample_new(2, 3);
    struct buffer bytes = written(&s->record, NULL);
    const size_t count = bytes.used - SHA256_BYTES;

    (void)unused;
    bytes.data[count] = 0;
    assert_int_equal(read_forged(bytes.data, count + 1), ULP_E_RECORD);
    assert_int_equal(read_forged(bytes.data, count + SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void assert_refused_with(const struct record *record, enum ulp_status expected,
                                const char *text) {
    struct buffer bytes = written(record, NULL);
    struct arena arena = {0};
    struct record read;

    assert_fails(record_read(bytes.data, bytes.used, &arena, &read), expected, text);
    arena_release(&arena);
    buffer_release(&bytes);
}

static void assert_refused(const struct record *record, const char *text) {
    assert_refused_with(record, ULP_E_RECORD, text);
}

static void test_order_of_anchors(void **unused) {
    struct sample *s = sample_new(3, 0);

    (void)unused;
    s->anchors[1].version = s->anchors[0].version;
    assert_refused(&s->record, "anchors out of order");
    s->anchors[1].version = s->anchors[2].version + 1;
    assert_refused(&s->record, "anchors out of order");
    s->anchors[1].version = 1;
    s->anchors[2].version = s->record.version + 1;
    assert_refused(&s->record, "anchors out of order");
    s->anchors[2].version = s->record.version;
    assert_ok(read_written(&s->record));
    free(s);
}

static void test_order_of_ways(void **unused) {
    struct sample *s = sample_new(0, 3);

    (void)unused;
    s->ways[1] = s->ways[0];
    assert_refused(&s->record, "ways out of order");
    s->ways[1].from--;
    assert_refused(&s->record, "ways out of order");
    s->ways[1] = s->ways[2];
    s->ways[1].to++;
    assert_refused(&s->record, "ways out of order");
    free(s);
}

static void test_ways_that_lead_nowhere(void **unused) {
    struct sample *s = sample_new(0, 1);

    (void)unused;
    s->ways[0].to = s->record.version + 1;
    assert_refused(&s->record, "ways out of order");
    s->ways[0].to = s->ways[0].from;
    assert_refused(&s->record, "leads nowhere");
    s->ways[0].from = s->ways[0].to + 1;
    assert_refused(&s->record, "leads nowhere");
    s->ways[0].from = 1;
    s->ways[0].to = 9;
    s->ways[0].sequence = s->record.sequence + 1;
    assert_refused(&s->record, "ways out of order");
    s->ways[0].sequence = s->record.sequence;
    s->patches[0][0].part_count = 0;
    assert_refused(&s->record, "without parts");
    s->ways[0].patch_count = 0;
    assert_refused(&s->record, "leads nowhere");
    free(s);
}

static void test_names_of_files(void **unused) {
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "/etc/passwd", "../x", "x/"};
    struct sample *s = sample_new(1, 0);
    char longest[LIMIT_FILE_NAME_BYTES + 2];

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        s->files[0][0].name = bad[i];
        assert_refused(&s->record, "the name of a file");
    }
    memset(longest, 'n', sizeof longest);
    longest[LIMIT_FILE_NAME_BYTES + 1] = 0;
    s->files[0][0].name = longest;
    assert_refused(&s->record, "the name of a file");
    longest[LIMIT_FILE_NAME_BYTES] = 0;
    assert_ok(read_written(&s->record));
    free(s);
}

static void test_order_of_files(void **unused) {
    struct sample *s = sample_new(2, 0);

    (void)unused;
    s->files[1][2].name = s->files[1][1].name;
    assert_refused(&s->record, "files out of order");
    s->files[1][2].name = "a";
    assert_refused(&s->record, "files out of order");
    free(s);
}

/* A text with a NUL in it cannot be written by us, only forged. */
static void check_nul_in(const char *text) {
    struct sample *s = sample_new(3, 0);
    struct buffer bytes = written(&s->record, NULL);
    uint8_t *at = NULL;

    for (size_t i = 0; !at && i + strlen(text) < bytes.used; i++)
        at = memcmp(bytes.data + i, text, strlen(text)) ? NULL : bytes.data + i;
    assert_non_null(at);
    assert_ok(read_forged(bytes.data, bytes.used - SHA256_BYTES));
    at[2] = 0;
    assert_int_equal(read_forged(bytes.data, bytes.used - SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void test_nul_in_a_text(void **unused) {
    (void)unused;
    check_nul_in("model-0");
    check_nul_in("hub/model");
}

/* ---- limits ---- */

/* More versions or epochs than there are records: some were left out. */
static void test_numbers_below_the_sequence(void **unused) {
    struct record record = {.sequence = 5, .version = 4, .epoch = 4, .boundary = 5};

    (void)unused;
    record.step = record.time_ms = UINT64_MAX;
    assert_ok(read_written(&record));
    record.version = 5;
    assert_refused_with(&record, ULP_E_JUMP, "record 5 speaks of version 5");
    record.version = UINT64_MAX;
    assert_refused_with(&record, ULP_E_JUMP, "some were left out");
    record.version = 4;
    record.epoch = 5;
    assert_refused_with(&record, ULP_E_JUMP, "");
    record.epoch = UINT64_MAX;
    assert_refused_with(&record, ULP_E_JUMP, "");
    record.epoch = 0;
    record.boundary = 6;
    assert_refused(&record, "");
    record.boundary = UINT64_MAX;
    assert_refused(&record, "");
}

static void test_the_first_and_the_last_sequence(void **unused) {
    struct record record = {.sequence = 1};

    (void)unused;
    assert_ok(read_written(&record));
    record.version = 1;
    assert_refused_with(&record, ULP_E_JUMP, "");
    record = (struct record){.sequence = UINT64_MAX,
                             .version = UINT64_MAX - 1,
                             .epoch = UINT64_MAX - 1,
                             .boundary = UINT64_MAX};
    assert_ok(read_written(&record));
    record = (struct record){.sequence = (uint64_t)1 << 63}; /* the most ancestors */
    assert_ok(read_written(&record));
    record = (struct record){0};
    assert_refused(&record, "no number");
}

static void test_every_number_of_a_map_at_its_most(void **unused) {
    struct part part = {UINT64_MAX, UINT64_MAX, {{0}}};
    struct stored_patch patch = {&part, 1};
    struct way way = {.from = UINT64_MAX - 2,
                      .to = UINT64_MAX - 1,
                      .history = true,
                      .changes = UINT64_MAX,
                      .sequence = UINT64_MAX,
                      .patches = &patch,
                      .patch_count = 1};
    struct anchor anchor = {.version = UINT64_MAX - 1, .reference = ""};
    struct record record = {.sequence = UINT64_MAX,
                            .version = UINT64_MAX - 1,
                            .anchors = &anchor,
                            .anchor_count = 1,
                            .ways = &way,
                            .way_count = 1};

    (void)unused;
    memset(part.hash.bytes, 0xff, SHA256_BYTES);
    assert_ok(read_written(&record));
    anchor.version = UINT64_MAX;
    assert_refused(&record, "anchors out of order");
    anchor.version = 0;
    way.to = UINT64_MAX;
    assert_refused(&record, "ways out of order");
}

/* `count` ways to versions one behind the other, each of the same patches. */
static enum ulp_status read_many_ways(size_t count, size_t patch_count, size_t part_count) {
    struct part *parts = calloc(part_count, sizeof *parts);
    struct stored_patch *patches = calloc(patch_count, sizeof *patches);
    struct way *ways = calloc(count, sizeof *ways);
    struct record record = {
        .sequence = count + 1, .version = count, .ways = ways, .way_count = count};
    enum ulp_status status;

    assert_true(parts && patches && ways);
    for (size_t i = 0; i < patch_count; i++)
        patches[i] = (struct stored_patch){parts, part_count};
    for (size_t i = 0; i < count; i++)
        ways[i] = (struct way){
            .from = i, .to = i + 1, .sequence = 1, .patches = patches, .patch_count = patch_count};
    status = read_written(&record);
    free(ways);
    free(patches);
    free(parts);
    return status;
}

static void test_limits(void **unused) {
    (void)unused;
    assert_ok(read_many_ways(LIMIT_WAYS, 1, 1));
    assert_int_equal(read_many_ways(LIMIT_WAYS + 1, 1, 1), ULP_E_RECORD);
    assert_ok(read_many_ways(1, 1, LIMIT_PARTS));
    assert_int_equal(read_many_ways(1, 1, LIMIT_PARTS + 1), ULP_E_RECORD);
    assert_ok(read_many_ways(2, LIMIT_TILES + 1, 1));
    assert_int_equal(read_many_ways(1, LIMIT_TILES + 2, 1), ULP_E_RECORD);
    assert_ok(read_many_ways(2, 2, LIMIT_PARTS / 2)); /* of a way, all patches together */
    assert_int_equal(read_many_ways(1, 2, LIMIT_PARTS / 2 + 1), ULP_E_RECORD);
    assert_int_equal(read_many_ways(40, 1, LIMIT_PARTS), ULP_E_RECORD); /* over 4 MiB */
}

/* The longest record is read; one byte more is not even looked at. */
static void test_bytes_of_a_record(void **unused) {
    uint8_t *data = calloc(LIMIT_RECORD_BYTES + 1, 1);

    (void)unused;
    assert_non_null(data);
    memcpy(data, "ulpslog", 8);
    assert_int_equal(read_exactly(data, LIMIT_RECORD_BYTES), ULP_E_CHECKSUM);
    assert_int_equal(read_exactly(data, LIMIT_RECORD_BYTES + 1), ULP_E_RECORD);
    free(data);
}

static void test_number_of_anchors(void **unused) {
    static struct anchor anchors[LIMIT_ANCHORS + 1];
    struct record record = {.sequence = 101, .version = 100, .anchors = anchors};

    (void)unused;
    for (size_t i = 0; i <= LIMIT_ANCHORS; i++)
        anchors[i] = (struct anchor){.version = i, .reference = ""};
    record.anchor_count = LIMIT_ANCHORS;
    assert_ok(read_written(&record));
    record.anchor_count = LIMIT_ANCHORS + 1;
    assert_int_equal(read_written(&record), ULP_E_RECORD);
}

static enum ulp_status read_many_files(size_t count) {
    struct anchor_file *files = calloc(count, sizeof *files);
    char(*names)[8] = calloc(count, sizeof *names);
    struct anchor anchor = {.reference = "", .files = files, .file_count = count};
    struct record record = {.sequence = 1, .anchors = &anchor, .anchor_count = 1};
    enum ulp_status status;

    assert_true(files && names);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%05u", (unsigned)i % 100000);
        files[i].name = names[i];
    }
    status = read_written(&record);
    free(names);
    free(files);
    return status;
}

static void test_number_of_files(void **unused) {
    (void)unused;
    assert_ok(read_many_files(LIMIT_ANCHOR_FILES));
    assert_int_equal(read_many_files(LIMIT_ANCHOR_FILES + 1), ULP_E_RECORD);
}

static void test_length_of_a_reference(void **unused) {
    char longest[LIMIT_REFERENCE_BYTES + 2];
    struct anchor anchor = {.reference = longest};
    struct record record = {.sequence = 1, .anchors = &anchor, .anchor_count = 1};

    (void)unused;
    memset(longest, 'r', sizeof longest);
    longest[LIMIT_REFERENCE_BYTES + 1] = 0;
    assert_refused(&record, "");
    longest[LIMIT_REFERENCE_BYTES] = 0;
    assert_ok(read_written(&record));
    longest[1] = 0;
    assert_ok(read_written(&record));
}

/* Announced counts cost nothing until the bytes are there. */
static void check_announced(size_t zeros_behind, uint64_t count) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record, NULL), made = BUFFER(1 << 20);

    assert_ok(buffer_append(&made, bytes.data, bytes.used - SHA256_BYTES - 1 - zeros_behind));
    assert_ok(put_varint(&made, count));
    assert_int_equal(read_forged(made.data, made.used), ULP_E_RECORD);
    assert_ok(buffer_append_fill(&made, 0, zeros_behind));
    assert_int_equal(read_forged(made.data, made.used), ULP_E_RECORD);
    buffer_release(&made);
    buffer_release(&bytes);
    free(s);
}

static void test_announced_counts(void **unused) {
    static const uint64_t limits[] = {1, LIMIT_WAYS, LIMIT_ANCHORS, LIMIT_HANDOVERS};

    (void)unused;
    for (size_t i = 0; i < 4; i++) { /* the mark of a signature, ways, anchors, handovers */
        check_announced(i, limits[i]);
        check_announced(i, limits[i] + 1);
        check_announced(i, UINT64_MAX);
    }
}

static void test_another_version(void **unused) {
    struct sample *s = sample_new(1, 1);
    struct buffer bytes = written(&s->record, NULL);

    (void)unused;
    bytes.data[7] = 1;
    assert_int_equal(read_exactly(bytes.data, bytes.used), ULP_E_VERSION);
    bytes.data[7] = 0;
    bytes.data[0] = 'U';
    assert_int_equal(read_forged(bytes.data, bytes.used - SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

/* ---- the rest ---- */

static void test_allocations_fail(void **unused) {
    struct sample *s = sample_new(SAMPLE_ANCHORS, SAMPLE_WAYS);
    struct buffer bytes = written(&s->record, NULL);
    unsigned failed = 0;
    bool ended = false;

    (void)unused;
    for (uint64_t at = 0; !ended; at++) {
        struct arena arena = {0};
        struct record record;
        enum ulp_status status;

        assert_true(at < 1000);
        failing_allocator_start(at, 1);
        status = record_read(bytes.data, bytes.used, &arena, &record);
        arena_release(&arena);
        ended = failing_allocator_stop() <= at;
        assert_int_equal(status, ended ? ULP_OK : ULP_E_NOMEM);
        failed += !ended;
    }
    assert_true(failed > 0);
    buffer_release(&bytes);
    free(s);
}

static void test_keys(void **unused) {
    char key[ULP_KEY_BYTES_MAX + 1];
    struct part part = {.folder = 42};

    (void)unused;
    part.hash.bytes[0] = 0xab;
    part.hash.bytes[31] = 0x0f;
    record_key("rl", UINT64_MAX, key);
    assert_string_equal(key, "rl/log/18446744073709551615");
    record_key("rl", 7, key);
    assert_string_equal(key, "rl/log/00000000000000000007");
    part_key("rl", &part, key);
    assert_string_equal(key, "rl/part/00000000000000000042/"
                             "ab0000000000000000000000000000000000000000000000000000000000000f");
    part.folder = UINT64_MAX;
    part_key("rl", &part, key);
    assert_non_null(strstr(key, "rl/part/18446744073709551615/ab00"));
}

TEST_MAIN(test_round_trips, test_written_behind_something, test_ancestors_by_hand,
          test_ancestors_of_every_kind, test_every_record_names_its_ancestors,
          test_what_a_successor_inherits, test_longer_numbers, test_bytes_behind,
          test_order_of_anchors, test_order_of_ways, test_ways_that_lead_nowhere,
          test_names_of_files, test_order_of_files, test_nul_in_a_text,
          test_numbers_below_the_sequence, test_the_first_and_the_last_sequence,
          test_every_number_of_a_map_at_its_most, test_limits, test_bytes_of_a_record,
          test_number_of_anchors, test_number_of_files, test_length_of_a_reference,
          test_announced_counts, test_another_version, test_allocations_fail, test_keys)
