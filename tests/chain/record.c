// SPDX-License-Identifier: Apache-2.0
/* Records of a log: what is written is read again, and nothing else is. */
#include "chain/record.h"

#include "base/cursor.h"
#include "base/limits.h"
#include "tests/test.h"

#define WAYS 40u
#define ANCHORS 5u
#define FILES 7u

/* A record with memory of its own. */
struct sample {
    struct record record;
    struct anchor anchors[ANCHORS];
    struct anchor_file files[ANCHORS][FILES];
    char names[FILES][24];
    struct way ways[WAYS];
    struct part parts[WAYS][3];
};

static void part_make(struct part *part) {
    part->bytes = test_random() >> (test_random() % 64);
    test_random_bytes(part->hash.bytes, SHA256_BYTES);
}

static void anchors_make(struct sample *s, size_t count) {
    for (size_t i = 0; i < FILES; i++)
        snprintf(s->names[i], sizeof s->names[i], "model-%zu.safetensors", i);
    for (size_t i = 0; i < count; i++) {
        s->anchors[i] = (struct anchor){
            .version = 20 * i, .files = s->files[i], .file_count = i % 2 ? FILES : 1};
        test_random_bytes(s->anchors[i].root.bytes, ULP_ROOT_BYTES);
        for (size_t k = 0; k < FILES; k++) {
            s->files[i][k].name = s->names[k];
            part_make(&s->files[i][k].part);
        }
    }
    s->record.anchors = s->anchors;
    s->record.anchor_count = count;
}

/* Two to each version: from the one before it, and from further back. */
static void ways_make(struct sample *s, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t to = 10 + i / 2;

        s->ways[i] = (struct way){.from = i % 2 ? to - 1 : to - 8,
                                  .to = to,
                                  .history = i % 3 == 1,
                                  .changes = test_random() >> (test_random() % 64),
                                  .sequence = 1 + i,
                                  .parts = s->parts[i],
                                  .part_count = 1 + i % 3};
        for (size_t k = 0; k < 3; k++)
            part_make(&s->parts[i][k]);
    }
    s->record.ways = s->ways;
    s->record.way_count = count;
}

static struct sample *sample_new(size_t anchors, size_t ways) {
    struct sample *s = calloc(1, sizeof *s);

    assert_non_null(s);
    test_random_seed(7);
    s->record = (struct record){
        .sequence = 1000, .epoch = 3, .version = 100, .step = UINT64_MAX, .time_ms = 1234567890123};
    test_random_bytes(s->record.run, RUN_ID_BYTES);
    test_random_bytes(s->record.before.bytes, SHA256_BYTES);
    test_random_bytes(s->record.root.bytes, ULP_ROOT_BYTES);
    anchors_make(s, anchors);
    ways_make(s, ways);
    return s;
}

static struct buffer written(const struct record *record) {
    struct buffer bytes = BUFFER((size_t)64 << 20);

    assert_ok(record_write(record, &bytes));
    return bytes;
}

/* ---- comparing ---- */

static void assert_same_part(const struct part *a, const struct part *b) {
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(&a->hash, &b->hash, sizeof a->hash);
}

static void assert_same_way(const struct way *a, const struct way *b) {
    assert_int_equal(a->from, b->from);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->history, b->history);
    assert_int_equal(a->changes, b->changes);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->part_count, b->part_count);
    for (size_t i = 0; i < a->part_count; i++)
        assert_same_part(&a->parts[i], &b->parts[i]);
}

static void assert_same_anchor(const struct anchor *a, const struct anchor *b) {
    assert_int_equal(a->version, b->version);
    assert_memory_equal(&a->root, &b->root, sizeof a->root);
    assert_int_equal(a->file_count, b->file_count);
    for (size_t i = 0; i < a->file_count; i++) {
        assert_string_equal(a->files[i].name, b->files[i].name);
        assert_same_part(&a->files[i].part, &b->files[i].part);
    }
}

static void assert_same_record(const struct record *a, const struct record *b) {
    assert_memory_equal(a->run, b->run, RUN_ID_BYTES);
    assert_int_equal(a->sequence, b->sequence);
    assert_memory_equal(&a->before, &b->before, sizeof a->before);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->time_ms, b->time_ms);
    assert_memory_equal(&a->root, &b->root, sizeof a->root);
    assert_int_equal(a->anchor_count, b->anchor_count);
    for (size_t i = 0; i < a->anchor_count; i++)
        assert_same_anchor(&a->anchors[i], &b->anchors[i]);
    assert_int_equal(a->way_count, b->way_count);
    for (size_t i = 0; i < a->way_count; i++)
        assert_same_way(&a->ways[i], &b->ways[i]);
}

/* ---- round trips ---- */

static void check_round_trip(size_t anchors, size_t ways) {
    struct sample *s = sample_new(anchors, ways);
    struct buffer bytes = written(&s->record), again;
    struct arena arena = {0};
    struct record record = {0};

    assert_ok(record_read(bytes.data, bytes.used, &arena, &record));
    assert_same_record(&s->record, &record);
    again = written(&record);
    assert_int_equal(again.used, bytes.used);
    assert_memory_equal(again.data, bytes.data, bytes.used);
    arena_release(&arena);
    buffer_release(&again);
    buffer_release(&bytes);
    free(s);
}

static void test_round_trips(void **unused) {
    (void)unused;
    for (size_t anchors = 0; anchors <= ANCHORS; anchors++) {
        for (size_t ways = 0; ways <= WAYS; ways++)
            check_round_trip(anchors, ways);
    }
}

/* It goes behind what a buffer holds already, and its hash is of itself alone. */
static void test_written_behind_something(void **unused) {
    struct sample *s = sample_new(2, 2);
    struct buffer bytes = BUFFER(1 << 20), alone = written(&s->record);

    (void)unused;
    assert_ok(buffer_append(&bytes, "before", 6));
    assert_ok(record_write(&s->record, &bytes));
    assert_int_equal(bytes.used, 6 + alone.used);
    assert_memory_equal(bytes.data + 6, alone.data, alone.used);
    buffer_release(&bytes);
    buffer_release(&alone);
    free(s);
}

/* ---- damage ---- */

/* A copy without slack, so that a read past the end is noticed. */
static enum ulp_status read_exactly(const uint8_t *data, size_t count) {
    uint8_t *copy = malloc(count ? count : 1);
    struct arena arena = {0};
    struct record record = {.sequence = 77};
    enum ulp_status status;

    assert_non_null(copy);
    if (count)
        memcpy(copy, data, count);
    status = record_read(copy, count, &arena, &record);
    if (status)
        assert_int_equal(record.sequence, 77); /* outputs are untouched */
    arena_release(&arena);
    free(copy);
    return status;
}

static bool is_refusal(enum ulp_status status) {
    return status == ULP_E_RECORD || status == ULP_E_CHECKSUM || status == ULP_E_VERSION;
}

static void test_every_truncation(void **unused) {
    struct sample *s = sample_new(ANCHORS, 10);
    struct buffer bytes = written(&s->record);

    (void)unused;
    for (size_t count = 0; count < bytes.used; count++)
        assert_true(is_refusal(read_exactly(bytes.data, count)));
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
    free(s);
}

static void test_every_bit(void **unused) {
    struct sample *s = sample_new(3, 6);
    struct buffer bytes = written(&s->record);

    (void)unused;
    for (size_t bit = 0; bit < 8 * bytes.used; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(is_refusal(read_exactly(bytes.data, bytes.used)));
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
    free(s);
}

/* The bytes with a hash that fits, as a forger would send them. */
static enum ulp_status read_forged(const uint8_t *data, size_t count) {
    struct buffer bytes = BUFFER((size_t)64 << 20);
    struct hash hash;
    enum ulp_status status;

    assert_ok(hash_of(data, count, &hash));
    assert_ok(buffer_append(&bytes, data, count));
    assert_ok(buffer_append(&bytes, hash.bytes, SHA256_BYTES));
    status = read_exactly(bytes.data, bytes.used);
    buffer_release(&bytes);
    return status;
}

/* The parser behind the hash: what it lets through is canonical. */
static void check_forged(const uint8_t *data, size_t count, unsigned *accepted) {
    struct buffer bytes = BUFFER((size_t)64 << 20), again;
    struct arena arena = {0};
    struct record record;
    struct hash hash;

    assert_ok(hash_of(data, count, &hash));
    assert_ok(buffer_append(&bytes, data, count));
    assert_ok(buffer_append(&bytes, hash.bytes, SHA256_BYTES));
    if (is_refusal(read_exactly(bytes.data, bytes.used))) {
        buffer_release(&bytes);
        return;
    }
    assert_ok(record_read(bytes.data, bytes.used, &arena, &record));
    again = written(&record);
    assert_int_equal(again.used, bytes.used);
    assert_memory_equal(again.data, bytes.data, bytes.used);
    ++*accepted;
    arena_release(&arena);
    buffer_release(&again);
    buffer_release(&bytes);
}

static void test_every_forged_bit_and_truncation(void **unused) {
    struct sample *s = sample_new(3, 6);
    struct buffer bytes = written(&s->record);
    const size_t count = bytes.used - SHA256_BYTES;
    unsigned flipped = 0, cut = 0;

    (void)unused;
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        check_forged(bytes.data, count, &flipped);
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t length = 0; length < count; length++)
        check_forged(bytes.data, length, &cut);
    assert_true(flipped > 1000); /* hashes, roots, numbers: other records, and well-formed */
    assert_int_equal(cut, 0);
    buffer_release(&bytes);
    free(s);
}

static void test_random_bytes_behind_the_head(void **unused) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record);
    const size_t head = bytes.used - SHA256_BYTES - 2;
    unsigned accepted = 0;
    uint8_t *data = malloc(head + 300);

    (void)unused;
    assert_non_null(data);
    memcpy(data, bytes.data, head);
    for (unsigned i = 0; i < 20000; i++) {
        size_t more = (size_t)(test_random() % 300);

        test_random_bytes(data + head, more);
        if (more)
            data[head] &= 3;
        check_forged(data, head + more, &accepted);
    }
    free(data);
    buffer_release(&bytes);
    free(s);
}

/* ---- what is not canonical ---- */

static void test_longer_numbers(void **unused) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record);
    size_t count = bytes.used - SHA256_BYTES;

    (void)unused;
    assert_ok(read_forged(bytes.data, count));
    /* the last byte is the number of ways, 0 */
    assert_int_equal(bytes.data[count - 1], 0);
    bytes.data[count - 1] = 0x80;
    bytes.data[count++] = 0; /* over the hash, which is made anew */
    assert_int_equal(read_forged(bytes.data, count), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void test_bytes_behind(void **unused) {
    struct sample *s = sample_new(2, 3);
    struct buffer bytes = written(&s->record);
    const size_t count = bytes.used - SHA256_BYTES;

    (void)unused;
    bytes.data[count] = 0;
    assert_int_equal(read_forged(bytes.data, count + 1), ULP_E_RECORD);
    assert_int_equal(read_forged(bytes.data, count + SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void assert_refused(const struct record *record, const char *text) {
    struct buffer bytes = written(record);
    struct arena arena = {0};
    struct record read;

    assert_fails(record_read(bytes.data, bytes.used, &arena, &read), ULP_E_RECORD, text);
    arena_release(&arena);
    buffer_release(&bytes);
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
    s->ways[0].part_count = 0;
    assert_refused(&s->record, "leads nowhere");
    free(s);
}

static void test_names_of_files(void **unused) {
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "/etc/passwd", "../x", "x/"};
    struct sample *s = sample_new(1, 0);
    char longest[LIMIT_FILE_NAME_BYTES + 2];
    struct buffer bytes;

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
    bytes = written(&s->record);
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
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

/* A name with a NUL in it cannot be written by us, only forged. */
static void test_nul_in_a_name(void **unused) {
    struct sample *s = sample_new(1, 0);
    struct buffer bytes = written(&s->record);
    uint8_t *name = NULL;

    (void)unused;
    for (size_t i = 0; !name && i + 5 < bytes.used; i++)
        name = memcmp(bytes.data + i, "model", 5) ? NULL : bytes.data + i;
    assert_non_null(name);
    name[2] = 0;
    assert_int_equal(read_forged(bytes.data, bytes.used - SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

/* ---- limits ---- */

/* `count` ways of one part each, to versions one behind the other. */
static struct way *many_ways(size_t count, const struct part *parts, size_t part_count) {
    struct way *ways = calloc(count, sizeof *ways);

    assert_non_null(ways);
    for (size_t i = 0; i < count; i++)
        ways[i] = (struct way){
            .from = i, .to = i + 1, .sequence = i + 2, .parts = parts, .part_count = part_count};
    return ways;
}

static enum ulp_status read_many_ways(size_t count, size_t part_count) {
    struct part *parts = calloc(part_count, sizeof *parts);
    struct way *ways = many_ways(count, parts, part_count);
    struct record record = {
        .sequence = count + 1, .version = count, .ways = ways, .way_count = count};
    struct buffer bytes = written(&record);
    enum ulp_status status = read_exactly(bytes.data, bytes.used);

    buffer_release(&bytes);
    free(ways);
    free(parts);
    return status;
}

static void test_limits(void **unused) {
    (void)unused;
    assert_ok(read_many_ways(LIMIT_WAYS, 1));
    assert_int_equal(read_many_ways(LIMIT_WAYS + 1, 1), ULP_E_RECORD);
    assert_ok(read_many_ways(1, LIMIT_PARTS));
    assert_int_equal(read_many_ways(1, LIMIT_PARTS + 1), ULP_E_RECORD);
    assert_int_equal(read_many_ways(10, LIMIT_PARTS), ULP_E_LIMIT); /* over a megabyte */
}

static void test_number_of_anchors(void **unused) {
    static struct anchor anchors[LIMIT_ANCHORS + 1];
    struct record record = {.sequence = 1, .version = 100, .anchors = anchors};
    struct buffer bytes;

    (void)unused;
    for (size_t i = 0; i <= LIMIT_ANCHORS; i++)
        anchors[i].version = i;
    record.anchor_count = LIMIT_ANCHORS;
    bytes = written(&record);
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
    record.anchor_count = LIMIT_ANCHORS + 1;
    bytes = written(&record);
    assert_int_equal(read_exactly(bytes.data, bytes.used), ULP_E_RECORD);
    buffer_release(&bytes);
}

/* Announced counts cost nothing until the bytes are there. */
static void test_announced_counts(void **unused) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record), forged = BUFFER(1 << 20);

    (void)unused;
    assert_ok(buffer_append(&forged, bytes.data, bytes.used - SHA256_BYTES - 1));
    assert_ok(put_varint(&forged, LIMIT_WAYS));
    assert_int_equal(read_forged(forged.data, forged.used), ULP_E_RECORD);
    buffer_cut(&forged, bytes.used - SHA256_BYTES - 1);
    assert_ok(put_varint(&forged, UINT64_MAX));
    assert_int_equal(read_forged(forged.data, forged.used), ULP_E_RECORD);
    buffer_release(&forged);
    buffer_release(&bytes);
    free(s);
}

static void test_another_version(void **unused) {
    struct sample *s = sample_new(1, 1);
    struct buffer bytes = written(&s->record);

    (void)unused;
    bytes.data[7] = 1;
    assert_int_equal(read_exactly(bytes.data, bytes.used), ULP_E_VERSION);
    bytes.data[7] = 0;
    bytes.data[0] = 'U';
    assert_int_equal(read_forged(bytes.data, bytes.used - SHA256_BYTES), ULP_E_RECORD);
    buffer_release(&bytes);
    free(s);
}

static void test_allocations_fail(void **unused) {
    struct sample *s = sample_new(ANCHORS, WAYS);
    struct buffer bytes = written(&s->record);
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
    struct hash hash = {{0}};

    (void)unused;
    hash.bytes[0] = 0xab;
    hash.bytes[31] = 0x0f;
    record_key("rl", UINT64_MAX, key);
    assert_string_equal(key, "rl/log/18446744073709551615");
    record_key("rl", 7, key);
    assert_string_equal(key, "rl/log/00000000000000000007");
    part_key("rl", &hash, key);
    assert_string_equal(key,
                        "rl/part/ab0000000000000000000000000000000000000000000000000000000000000f");
}

TEST_MAIN(test_round_trips, test_written_behind_something, test_every_truncation, test_every_bit,
          test_every_forged_bit_and_truncation, test_random_bytes_behind_the_head,
          test_longer_numbers, test_bytes_behind, test_order_of_anchors, test_order_of_ways,
          test_ways_that_lead_nowhere, test_names_of_files, test_order_of_files, test_nul_in_a_name,
          test_limits, test_number_of_anchors, test_announced_counts, test_another_version,
          test_allocations_fail, test_keys)
