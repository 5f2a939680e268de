// SPDX-License-Identifier: Apache-2.0
#include "tests/chain/sample.h"

#define WRITTEN_BYTES_MAX ((size_t)64 << 20)

static void part_make(struct part *part) {
    part->folder = test_random() >> (test_random() % 64);
    part->bytes = test_random() >> (test_random() % 64);
    test_random_bytes(part->hash.bytes, SHA256_BYTES);
}

static void anchors_make(struct sample *s, size_t count) {
    for (size_t i = 0; i < SAMPLE_FILES; i++)
        snprintf(s->names[i], sizeof s->names[i], "model-%zu.safetensors", i);
    for (size_t i = 0; i < count; i++) {
        s->anchors[i] = (struct anchor){.version = 20 * i,
                                        .reference = i == 2 ? "hub/model@main" : "",
                                        .files = s->files[i],
                                        .file_count = i % 2 ? SAMPLE_FILES : 1};
        test_random_bytes(s->anchors[i].root.bytes, ULP_ROOT_BYTES);
        if (i == 2)
            test_random_bytes(s->anchors[i].content.bytes, SHA256_BYTES);
        for (size_t k = 0; k < SAMPLE_FILES; k++) {
            s->files[i][k].name = s->names[k];
            part_make(&s->files[i][k].part);
        }
    }
    s->record.anchors = s->anchors;
    s->record.anchor_count = count;
}

static void patches_make(struct sample *s, size_t i) {
    size_t used = 0;

    for (size_t k = 0; k < SAMPLE_PARTS; k++)
        part_make(&s->parts[i][k]);
    for (size_t k = 0; k < s->ways[i].patch_count; k++) {
        s->patches[i][k] = (struct stored_patch){s->parts[i] + used, 1 + (i + k) % 2};
        used += s->patches[i][k].part_count;
    }
    assert_true(used <= SAMPLE_PARTS);
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
                                  .patches = s->patches[i],
                                  .patch_count = 1 + i % 3};
        patches_make(s, i);
    }
    s->record.ways = s->ways;
    s->record.way_count = count;
}

struct sample *sample_new(size_t anchors, size_t ways) {
    struct sample *s = calloc(1, sizeof *s);
    uint64_t ancestors[ANCESTORS_MAX];

    assert_non_null(s);
    test_random_seed(7);
    s->record = (struct record){.sequence = 1000,
                                .epoch = 3,
                                .version = 100,
                                .step = UINT64_MAX,
                                .time_ms = 1234567890123,
                                .elements = UINT64_C(7000000000),
                                .boundary = 990};
    test_random_bytes(s->record.run, RUN_ID_BYTES);
    test_random_bytes(s->record.ancestors,
                      ancestors_of(1000, ancestors) * sizeof s->record.ancestors[0]);
    test_random_bytes(s->record.root.bytes, ULP_ROOT_BYTES);
    anchors_make(s, anchors);
    ways_make(s, ways);
    return s;
}

struct buffer written(const struct record *record, const struct ulp_key *key) {
    struct buffer bytes = BUFFER(WRITTEN_BYTES_MAX);

    assert_ok(record_write(record, key, &bytes));
    return bytes;
}

struct buffer forged(const uint8_t *data, size_t count) {
    struct buffer bytes = BUFFER(WRITTEN_BYTES_MAX);
    struct hash hash;

    assert_ok(hash_of(data, count, &hash));
    assert_ok(buffer_append(&bytes, data, count));
    assert_ok(buffer_append(&bytes, hash.bytes, SHA256_BYTES));
    return bytes;
}

bool is_refusal(enum ulp_status status) {
    return status == ULP_E_RECORD || status == ULP_E_CHECKSUM || status == ULP_E_VERSION ||
           status == ULP_E_JUMP || status == ULP_E_SIGNATURE;
}

enum ulp_status read_exactly(const uint8_t *data, size_t count) {
    uint8_t *copy = malloc(count ? count : 1);
    struct arena arena = {0};
    struct record record = {.sequence = 77};
    enum ulp_status status;

    assert_non_null(copy);
    if (count)
        memcpy(copy, data, count);
    status = record_read(copy, count, &arena, &record);
    if (status)
        assert_int_equal(record.sequence, 77);
    else
        assert_canonical(&record, copy, count);
    arena_release(&arena);
    free(copy);
    return status;
}

enum ulp_status read_forged(const uint8_t *data, size_t count) {
    struct buffer bytes = forged(data, count);
    enum ulp_status status = read_exactly(bytes.data, bytes.used);

    buffer_release(&bytes);
    return status;
}

enum ulp_status read_written(const struct record *record) {
    struct buffer bytes = written(record, NULL);
    enum ulp_status status = read_exactly(bytes.data, bytes.used);

    buffer_release(&bytes);
    return status;
}

void assert_canonical(const struct record *record, const uint8_t *data, size_t count) {
    struct buffer again = written(record, NULL);
    const size_t mark = again.used - SHA256_BYTES - 1; /* that says whether it is signed */

    if (!record->is_signed) {
        assert_int_equal(again.used, count);
        assert_memory_equal(again.data, data, count);
    } else {
        assert_int_equal(again.used + ED25519_KEY_BYTES + ED25519_SIGNATURE_BYTES, count);
        assert_memory_equal(again.data, data, mark);
        assert_int_equal(data[mark], 1);
        assert_memory_equal(data + mark + 1, record->signer.bytes, ED25519_KEY_BYTES);
    }
    buffer_release(&again);
}

/* ---- comparing ---- */

static void assert_same_part(const struct part *a, const struct part *b) {
    assert_int_equal(a->folder, b->folder);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(&a->hash, &b->hash, sizeof a->hash);
}

static void assert_same_patch(const struct stored_patch *a, const struct stored_patch *b) {
    assert_int_equal(a->part_count, b->part_count);
    for (size_t i = 0; i < a->part_count; i++)
        assert_same_part(&a->parts[i], &b->parts[i]);
}

static void assert_same_way(const struct way *a, const struct way *b) {
    assert_int_equal(a->from, b->from);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->history, b->history);
    assert_int_equal(a->changes, b->changes);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->patch_count, b->patch_count);
    for (size_t i = 0; i < a->patch_count; i++)
        assert_same_patch(&a->patches[i], &b->patches[i]);
}

static void assert_same_anchor(const struct anchor *a, const struct anchor *b) {
    assert_int_equal(a->version, b->version);
    assert_memory_equal(&a->root, &b->root, sizeof a->root);
    assert_string_equal(a->reference, b->reference);
    assert_memory_equal(&a->content, &b->content, sizeof a->content);
    assert_int_equal(a->file_count, b->file_count);
    for (size_t i = 0; i < a->file_count; i++) {
        assert_string_equal(a->files[i].name, b->files[i].name);
        assert_same_part(&a->files[i].part, &b->files[i].part);
    }
}

static void assert_same_handover(const struct handover *a, const struct handover *b) {
    assert_int_equal(a->sequence, b->sequence);
    assert_memory_equal(&a->from, &b->from, sizeof a->from);
    assert_memory_equal(&a->to, &b->to, sizeof a->to);
    assert_memory_equal(a->signature, b->signature, sizeof a->signature);
}

static void assert_same_head(const struct record *a, const struct record *b) {
    assert_memory_equal(a->run, b->run, RUN_ID_BYTES);
    assert_int_equal(a->sequence, b->sequence);
    assert_memory_equal(a->ancestors, b->ancestors, sizeof a->ancestors);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->time_ms, b->time_ms);
    assert_memory_equal(&a->root, &b->root, sizeof a->root);
    assert_int_equal(a->elements, b->elements);
    assert_int_equal(a->boundary, b->boundary);
}

void assert_same_record(const struct record *a, const struct record *b) {
    assert_same_head(a, b);
    assert_int_equal(a->handover_count, b->handover_count);
    for (size_t i = 0; i < a->handover_count; i++)
        assert_same_handover(&a->handovers[i], &b->handovers[i]);
    assert_int_equal(a->anchor_count, b->anchor_count);
    for (size_t i = 0; i < a->anchor_count; i++)
        assert_same_anchor(&a->anchors[i], &b->anchors[i]);
    assert_int_equal(a->way_count, b->way_count);
    for (size_t i = 0; i < a->way_count; i++)
        assert_same_way(&a->ways[i], &b->ways[i]);
}
