// SPDX-License-Identifier: Apache-2.0
/* Changing the map of a record that is being made. */
#include "chain/map.h"

#include "tests/chain/sample.h"

static struct way way(uint64_t from, uint64_t to) {
    return (struct way){.from = from, .to = to, .changes = 100 * from + to};
}

static struct anchor anchor(uint64_t version) {
    return (struct anchor){.version = version, .reference = ""};
}

/* The map as text: "@0 @8 0-1 0-8 7-8". */
struct text {
    char text[512];
};

static struct text shown(const struct record *record) {
    struct text text = {""};
    size_t used = 0;

    for (size_t i = 0; i < record->anchor_count; i++)
        used += (size_t)snprintf(text.text + used, sizeof text.text - used, "@%llu ",
                                 (unsigned long long)record->anchors[i].version);
    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *w = &record->ways[i];

        assert_int_equal(w->changes, 100 * w->from + w->to); /* all of it was moved */
        used += (size_t)snprintf(text.text + used, sizeof text.text - used, "%llu-%llu ",
                                 (unsigned long long)w->from, (unsigned long long)w->to);
    }
    if (used)
        text.text[used - 1] = 0;
    return text;
}

#define assert_map(record, expected) assert_string_equal(shown(record).text, expected)

static void add_ways(struct record *record, struct arena *arena, size_t count,
                     const uint64_t (*pairs)[2]) {
    for (size_t i = 0; i < count; i++) {
        struct way added = way(pairs[i][0], pairs[i][1]);

        assert_ok(map_add_way(record, &added, arena));
    }
}

static void test_ways_find_their_place(void **unused) {
    static const uint64_t pairs[][2] = {{3, 4}, {0, 1}, {7, 8}, {0, 8}, {4, 8}, {1, 2}, {0, 4}};
    struct arena arena = {0};
    struct record record = {0};

    (void)unused;
    add_ways(&record, &arena, 7, pairs);
    assert_map(&record, "0-1 1-2 0-4 3-4 0-8 4-8 7-8");
    arena_release(&arena);
}

/* In any order the map is the same, and what the record had before stays as it was. */
static void test_any_order_of_ways(void **unused) {
    uint64_t pairs[][2] = {{0, 1}, {1, 2}, {0, 4}, {3, 4}, {0, 8}, {4, 8}, {7, 8}};

    (void)unused;
    for (unsigned i = 0; i < 200; i++) {
        struct arena arena = {0};
        struct record record = {0}, before;

        for (size_t k = 6; k > 0; k--) {
            size_t other = test_random() % (k + 1);
            uint64_t swap[2] = {pairs[k][0], pairs[k][1]};

            memcpy(pairs[k], pairs[other], sizeof swap);
            memcpy(pairs[other], swap, sizeof swap);
        }
        add_ways(&record, &arena, 6, (const uint64_t(*)[2])pairs);
        before = record;
        add_ways(&record, &arena, 1, (const uint64_t(*)[2])(pairs + 6));
        assert_map(&record, "0-1 1-2 0-4 3-4 0-8 4-8 7-8");
        assert_int_equal(before.way_count, 6);
        assert_null(map_way(&before, pairs[6][0], pairs[6][1]));
        arena_release(&arena);
    }
}

static void test_a_way_that_is_there(void **unused) {
    struct arena arena = {0};
    struct record record = {0};
    struct way added = way(3, 9);

    (void)unused;
    assert_ok(map_add_way(&record, &added, &arena));
    assert_fails(map_add_way(&record, &added, &arena), ULP_E_EXISTS, "from version 3 to 9");
    assert_map(&record, "3-9");
    arena_release(&arena);
}

static void test_anchors_find_their_place(void **unused) {
    static const uint64_t versions[] = {16, 0, 8, 32, 24};
    struct arena arena = {0};
    struct record record = {0};
    struct anchor again = anchor(8);

    (void)unused;
    for (size_t i = 0; i < 5; i++) {
        struct anchor added = anchor(versions[i]);

        assert_ok(map_add_anchor(&record, &added, &arena));
    }
    assert_map(&record, "@0 @8 @16 @24 @32");
    assert_fails(map_add_anchor(&record, &again, &arena), ULP_E_EXISTS, "anchor of version 8");
    assert_map(&record, "@0 @8 @16 @24 @32");
    arena_release(&arena);
}

static void test_trim(void **unused) {
    static const uint64_t pairs[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}, {4, 5}, {2, 5}};
    struct arena arena = {0};
    struct record record = {0}, before;

    (void)unused;
    for (uint64_t version = 0; version <= 4; version += 2) {
        struct anchor added = anchor(version);

        assert_ok(map_add_anchor(&record, &added, &arena));
    }
    add_ways(&record, &arena, 7, pairs);
    before = record;
    assert_ok(map_trim(&record, 3, &arena));
    assert_map(&record, "@0 @2 @4 0-1 1-2 2-3 0-4 3-4 2-5 4-5");
    assert_ok(map_trim(&record, UINT32_MAX, &arena));
    assert_int_equal(record.anchor_count, 3);
    assert_ok(map_trim(&record, 2, &arena));
    assert_map(&record, "@2 @4 2-3 3-4 2-5 4-5");
    assert_ok(map_trim(&record, 1, &arena));
    assert_map(&record, "@4 4-5");
    assert_map(&before, "@0 @2 @4 0-1 1-2 2-3 0-4 3-4 2-5 4-5");
    arena_release(&arena);
}

static void test_looking_for_ways_and_anchors(void **unused) {
    struct sample *s = sample_new(3, 9);

    (void)unused;
    for (size_t i = 0; i < 9; i++)
        assert_ptr_equal(map_way(&s->record, s->ways[i].from, s->ways[i].to), &s->ways[i]);
    assert_null(map_way(&s->record, 4, 10));
    assert_null(map_way(&s->record, s->ways[0].to, s->ways[0].from));
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(map_anchor(&s->record, s->anchors[i].version), &s->anchors[i]);
    assert_null(map_anchor(&s->record, 1));
    assert_null(map_anchor(&(struct record){0}, 0));
    assert_null(map_way(&(struct record){0}, 0, 0));
    free(s);
}

/* ---- parts ---- */

static size_t parts_of(const struct record *record) {
    size_t count = 0;

    for (size_t i = 0; i < record->anchor_count; i++)
        count += record->anchors[i].file_count;
    for (size_t i = 0; i < record->way_count; i++) {
        for (size_t k = 0; k < record->ways[i].patch_count; k++)
            count += record->ways[i].patches[k].part_count;
    }
    return count;
}

/* Every part is named, and by folder and hash: the same bytes elsewhere are another part. */
static enum ulp_status check_named(void *user, const struct part *part) {
    const struct record *record = user;
    struct part other = *part;

    assert_true(map_names(record, part));
    other.folder++;
    assert_false(map_names(record, &other));
    other = *part;
    other.hash.bytes[31] ^= 1;
    assert_false(map_names(record, &other));
    return ULP_OK;
}

static enum ulp_status count_part(void *user, const struct part *part) {
    size_t *left = user;

    (void)part;
    return --*left ? ULP_OK : ULP_E_CANCELLED;
}

static void test_names_of_parts(void **unused) {
    struct sample *s = sample_new(SAMPLE_ANCHORS, 12);
    size_t left = SIZE_MAX;
    struct part none = {0};

    (void)unused;
    assert_ok(map_each_part(&s->record, check_named, &s->record));
    assert_ok(map_each_part(&s->record, count_part, &left));
    assert_int_equal(SIZE_MAX - left, parts_of(&s->record));
    assert_false(map_names(&s->record, &none));
    assert_false(map_names(&(struct record){0}, &none));
    /* those behind the ends of the lists that are in use are not named */
    assert_false(map_names(&s->record, &s->files[0][1].part));
    assert_false(map_names(&s->record, &s->parts[0][4]));
    free(s);
}

static void test_each_part_until_one_says_stop(void **unused) {
    struct sample *s = sample_new(SAMPLE_ANCHORS, 12);
    size_t all = parts_of(&s->record);

    (void)unused;
    for (size_t stop = 1; stop <= all; stop++) {
        size_t left = stop;

        assert_int_equal(map_each_part(&s->record, count_part, &left), ULP_E_CANCELLED);
        assert_int_equal(left, 0);
    }
    free(s);
}

/* ---- what a record is when there is no memory ---- */

static void test_allocations_fail(void **unused) {
    struct sample *s = sample_new(3, 3);
    struct record record = s->record;
    struct anchor new_anchor = anchor(1);
    struct way new_way = way(0, 1);
    struct arena arena = {0};

    (void)unused;
    failing_allocator_start(0, 1);
    assert_int_equal(map_add_way(&record, &new_way, &arena), ULP_E_NOMEM);
    assert_int_equal(map_add_anchor(&record, &new_anchor, &arena), ULP_E_NOMEM);
    assert_int_equal(map_trim(&record, 1, &arena), ULP_E_NOMEM);
    failing_allocator_stop();
    assert_same_record(&record, &s->record);
    arena_release(&arena);
    free(s);
}

/* Who wants to see each version takes no long way, and no anchor once something is held. */
static void test_each_version(void **unused) {
    static const uint64_t pairs[][2] = {{0, 1}, {1, 2}, {0, 8}, {7, 8}, {8, 9}, {0, 9}};
    struct arena arena = {0};
    struct record record = {0}, stepwise = {0};
    struct anchor first = anchor(0), second = anchor(8);

    (void)unused;
    add_ways(&record, &arena, 6, pairs);
    assert_ok(map_add_anchor(&record, &first, &arena));
    assert_ok(map_add_anchor(&record, &second, &arena));
    assert_ok(map_each_version(&record, true, &arena, &stepwise));
    assert_map(&stepwise, "0-1 1-2 7-8 8-9");
    assert_ok(map_each_version(&record, false, &arena, &stepwise));
    assert_map(&stepwise, "@0 @8 0-1 1-2 7-8 8-9");
    assert_map(&record, "@0 @8 0-1 1-2 0-8 7-8 0-9 8-9");
    arena_release(&arena);
}

TEST_MAIN(test_ways_find_their_place, test_any_order_of_ways, test_a_way_that_is_there,
          test_anchors_find_their_place, test_trim, test_each_version,
          test_looking_for_ways_and_anchors, test_names_of_parts,
          test_each_part_until_one_says_stop, test_allocations_fail)
