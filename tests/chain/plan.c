// SPDX-License-Identifier: Apache-2.0
/* The cheapest way through a map, by hand and against a search that tries everything. */
#include "chain/plan.h"

#include "tests/test.h"

#define WAYS_MAX 64u
#define ANCHORS_MAX 8u

struct map {
    struct record record;
    struct way ways[WAYS_MAX];
    struct stored_patch patches[WAYS_MAX];
    struct part parts[WAYS_MAX];
    struct anchor anchors[ANCHORS_MAX];
    struct anchor_file files[ANCHORS_MAX];
};

static void add_anchor(struct map *map, uint64_t version, uint64_t bytes) {
    size_t i = map->record.anchor_count++;

    map->files[i] = (struct anchor_file){"model.safetensors", {.bytes = bytes}};
    map->anchors[i] = (struct anchor){
        .version = version, .reference = "", .files = &map->files[i], .file_count = 1};
    map->record.anchors = map->anchors;
}

static void add_way(struct map *map, uint64_t from, uint64_t to, bool history, uint64_t bytes) {
    size_t i = map->record.way_count++;

    map->parts[i].bytes = bytes;
    map->patches[i] = (struct stored_patch){&map->parts[i], 1};
    map->ways[i] = (struct way){
        .from = from, .to = to, .history = history, .patches = &map->patches[i], .patch_count = 1};
    map->record.ways = map->ways;
    if (to > map->record.version)
        map->record.version = to;
}

static const struct held nothing;

static struct held at(uint64_t version, bool before) {
    return (struct held){.any = true, .version = version, .before = before};
}

/* Of who may start again from further back, because nobody sees what is on the way. */
static struct held unseen(uint64_t version, bool before) {
    return (struct held){.any = true, .version = version, .before = before, .back = true};
}

/* The plan as text: "@4 +5 +9" starts from the anchor of 4 and goes to 5 and 9; "-" if there is
 * none. */
struct text {
    char text[256];
};

static struct text planned(const struct map *map, struct held held, uint64_t to) {
    struct arena arena = {0};
    struct plan plan = {.bytes = 99};
    struct text text = {"-"};
    enum ulp_status status = plan_make(&map->record, &held, to, &arena, &plan);
    size_t used = 0;

    if (status) {
        assert_int_equal(status, ULP_E_UNREACHABLE);
        assert_int_equal(plan.bytes, 99);
    } else {
        text.text[0] = 0;
        if (plan.anchor)
            used += (size_t)sprintf(text.text, "@%llu ", (unsigned long long)plan.anchor->version);
        for (size_t i = 0; i < plan.way_count; i++)
            used +=
                (size_t)sprintf(text.text + used, "+%llu ", (unsigned long long)plan.ways[i]->to);
        sprintf(text.text + used, "= %llu", (unsigned long long)plan.bytes);
    }
    arena_release(&arena);
    return text;
}

#define assert_plan(map, held, to, expected)                                                       \
    assert_string_equal(planned(map, held, to).text, expected)

static void test_from_nothing(void **unused) {
    struct map map = {0};

    (void)unused;
    assert_plan(&map, nothing, 0, "-");
    add_anchor(&map, 0, 100);
    assert_plan(&map, nothing, 0, "@0 = 100");
    assert_plan(&map, nothing, 1, "-");
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 5);
    assert_plan(&map, nothing, 2, "@0 +1 +2 = 115");
    assert_plan(&map, nothing, 1, "@0 +1 = 110");
}

static void test_from_what_is_held(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 100);
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 5);
    assert_plan(&map, at(2, false), 2, "= 0");
    assert_plan(&map, at(1, false), 2, "+2 = 5");
    assert_plan(&map, at(0, false), 2, "+1 +2 = 15");
    assert_plan(&map, at(7, false), 2, "-"); /* nothing leads back */
}

/* Who shows what it holds never goes back; who does not may, if there is no other way or if it is
 * cheaper. */
static void test_going_back(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 100);
    add_anchor(&map, 2, 3);
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 5);
    add_way(&map, 2, 3, false, 1);
    add_way(&map, 0, 4, false, 90);
    add_way(&map, 3, 4, true, 1);
    assert_plan(&map, at(3, false), 4, "-");
    assert_plan(&map, unseen(3, false), 4, "@2 +3 +4 = 5");
    assert_plan(&map, at(3, true), 4, "+4 = 1");
    assert_plan(&map, unseen(3, true), 4, "+4 = 1");
    assert_plan(&map, at(7, false), 1, "-");
    assert_plan(&map, unseen(7, false), 1, "@0 +1 = 110");
    assert_plan(&map, at(2, false), 2, "= 0");
    assert_plan(&map, unseen(2, false), 2, "= 0");
    map.files[1].part.bytes = 0;
    assert_plan(&map, unseen(3, true), 3, "= 0");
    map.parts[4].bytes = 20; /* from 3 to 4 */
    map.parts[3].bytes = 10; /* from 0 to 4 */
    map.files[0].part.bytes = 2;
    assert_plan(&map, at(3, true), 4, "+4 = 20");
    assert_plan(&map, unseen(3, true), 4, "@0 +4 = 12");
}

/* What an anchor refers to is not in the store. */
static void test_anchors_by_reference(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 1);
    map.anchors[0].reference = "hub/model";
    add_way(&map, 0, 1, false, 10);
    assert_plan(&map, nothing, 0, "-");
    assert_plan(&map, nothing, 1, "-");
    assert_plan(&map, unseen(1, false), 0, "-");
    assert_plan(&map, at(0, false), 1, "+1 = 10");
    add_anchor(&map, 1, 1000);
    assert_plan(&map, nothing, 1, "@1 = 1000");
    assert_plan(&map, at(0, false), 1, "+1 = 10");
}

static void test_the_cheaper_anchor(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 100);
    add_anchor(&map, 3, 120);
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 9);
    add_way(&map, 2, 3, false, 8);
    add_way(&map, 3, 4, false, 7);
    assert_plan(&map, nothing, 3, "@3 = 120");
    assert_plan(&map, nothing, 4, "@3 +4 = 127");
    assert_plan(&map, nothing, 2, "@0 +1 +2 = 119");
    assert_plan(&map, at(0, false), 4, "+1 +2 +3 +4 = 34");
    map.files[1].part.bytes = 2;
    assert_plan(&map, at(0, false), 4, "@3 +4 = 9"); /* even for who holds something */
}

static void test_longer_ways(void **unused) {
    struct map map = {0};

    (void)unused;
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 10);
    add_way(&map, 2, 3, false, 10);
    add_way(&map, 0, 4, false, 25);
    add_way(&map, 3, 4, false, 10);
    add_way(&map, 4, 5, false, 1);
    assert_plan(&map, at(0, false), 5, "+4 +5 = 26");
    assert_plan(&map, at(1, false), 5, "+2 +3 +4 +5 = 31");
    map.parts[3].bytes = 41;
    assert_plan(&map, at(0, false), 5, "+1 +2 +3 +4 +5 = 41");
}

static void test_history(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 100);
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, true, 5);
    add_way(&map, 2, 3, true, 5);
    assert_plan(&map, nothing, 3, "@0 +1 +2 +3 = 120"); /* 0 was just passed, then 1 */
    assert_plan(&map, at(1, true), 3, "+2 +3 = 10");
    assert_plan(&map, at(1, false), 3, "-");
    assert_plan(&map, unseen(1, false), 3, "@0 +1 +2 +3 = 120");
    assert_plan(&map, at(2, false), 2, "= 0");
}

static void test_history_behind_an_anchor(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 4, 100);
    add_way(&map, 4, 5, true, 5);
    assert_plan(&map, nothing, 5, "-"); /* an anchor has no version before it */
    assert_plan(&map, at(4, true), 5, "+5 = 5");
    assert_plan(&map, at(4, false), 5, "-");
}

/* A longer way does not pass the version in front of the one it leads to. */
static void test_history_behind_a_longer_way(void **unused) {
    struct map map = {0};

    (void)unused;
    add_way(&map, 2, 3, false, 50);
    add_way(&map, 0, 4, false, 10);
    add_way(&map, 3, 4, false, 50);
    add_way(&map, 4, 5, true, 5);
    assert_plan(&map, at(0, true), 5, "-");
    assert_plan(&map, at(0, true), 4, "+4 = 10");
    assert_plan(&map, at(2, false), 5, "+3 +4 +5 = 105");
}

/* The dearer way to a version may be the one that leads further. */
static void test_the_dearer_way_that_opens_history(void **unused) {
    struct map map = {0};

    (void)unused;
    add_way(&map, 0, 1, false, 10);
    add_way(&map, 1, 2, false, 10);
    add_way(&map, 2, 3, false, 10);
    add_way(&map, 0, 4, false, 1);
    add_way(&map, 3, 4, false, 10);
    add_way(&map, 4, 5, true, 2);
    assert_plan(&map, at(0, false), 4, "+4 = 1");
    assert_plan(&map, at(0, false), 5, "+1 +2 +3 +4 +5 = 42");
}

/* Of two that cost the same: what is held goes before an anchor, and fewer objects before more. */
static void test_ties(void **unused) {
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 1, 0);
    add_anchor(&map, 2, 7);
    add_way(&map, 1, 2, false, 7);
    assert_plan(&map, at(1, false), 2, "@2 = 7");
    assert_plan(&map, at(1, false), 1, "= 0");
    assert_plan(&map, nothing, 2, "@2 = 7"); /* as many bytes, but in one go */
}

static void test_parts_and_files_add_up(void **unused) {
    struct anchor_file files[3] = {
        {"a", {.bytes = 1}}, {"b", {.bytes = 20}}, {"c", {.bytes = 300}}};
    struct part parts[3] = {{.bytes = 4000}, {.bytes = 50000}, {.bytes = 600000}};
    struct stored_patch patches[2] = {{parts, 2}, {parts + 2, 1}};
    struct map map = {0};

    (void)unused;
    add_anchor(&map, 0, 0);
    add_way(&map, 0, 1, false, 0);
    map.anchors[0].files = files;
    map.anchors[0].file_count = 3;
    map.ways[0].patches = patches;
    map.ways[0].patch_count = 2;
    assert_plan(&map, nothing, 1, "@0 +1 = 654321");
}

/* ---- against a search that tries everything ---- */

/* The fewest bytes from a place on; UINT64_MAX if there is no way. */
static uint64_t cheapest(const struct record *record, uint64_t version, bool before, uint64_t to) {
    uint64_t best = version == to ? 0 : UINT64_MAX;

    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];
        uint64_t rest;

        if (way->from != version || way->to > to || (way->history && !before))
            continue;
        rest = cheapest(record, way->to, way->to == way->from + 1, to);
        if (rest != UINT64_MAX && rest + way_bytes(way) < best)
            best = rest + way_bytes(way);
    }
    return best;
}

static uint64_t cheapest_of_all(const struct record *record, struct held held, uint64_t to) {
    uint64_t best = held.any ? cheapest(record, held.version, held.before, to) : UINT64_MAX;

    for (size_t i = 0; i < record->anchor_count; i++) {
        const struct anchor *anchor = &record->anchors[i];
        uint64_t rest = cheapest(record, anchor->version, false, to);

        if (*anchor->reference || (held.any && !held.back && anchor->version <= held.version))
            continue;
        if (rest != UINT64_MAX && rest + record->anchors[i].files[0].part.bytes < best)
            best = rest + record->anchors[i].files[0].part.bytes;
    }
    return best;
}

/* The plan can be gone, step by step, and costs what it says. */
static void check_plan(const struct plan *plan, struct held held, uint64_t to) {
    uint64_t bytes = plan->anchor ? plan->anchor->files[0].part.bytes : 0;
    uint64_t version = plan->anchor ? plan->anchor->version : held.version;
    bool before = !plan->anchor && held.before;

    assert_true(plan->anchor || held.any);
    if (plan->anchor) {
        assert_string_equal(plan->anchor->reference, "");
        assert_true(!held.any || held.back || version > held.version);
    }
    for (size_t i = 0; i < plan->way_count; i++) {
        const struct way *way = plan->ways[i];

        assert_int_equal(way->from, version);
        assert_true(before || !way->history);
        before = way->to == way->from + 1;
        version = way->to;
        bytes += way_bytes(way);
    }
    assert_int_equal(version, to);
    assert_int_equal(plan->bytes, bytes);
}

static void check_map(const struct map *map, struct held held, uint64_t to, unsigned *reached) {
    uint64_t best = cheapest_of_all(&map->record, held, to);
    struct arena arena = {0};
    struct plan plan = {0};
    enum ulp_status status = plan_make(&map->record, &held, to, &arena, &plan);

    assert_int_equal(status, best == UINT64_MAX ? ULP_E_UNREACHABLE : ULP_OK);
    if (!status) {
        check_plan(&plan, held, to);
        assert_int_equal(plan.bytes, best);
        ++*reached;
    }
    arena_release(&arena);
}

/* In place, since a map points into itself. */
static void random_map(struct map *map, uint64_t versions) {
    memset(map, 0, sizeof *map);
    for (uint64_t version = 0; version <= versions; version++) {
        if (test_random() % 4 == 0)
            add_anchor(map, version, test_random() % 60);
        if (map->record.anchor_count && test_random() % 8 == 0)
            map->anchors[map->record.anchor_count - 1].reference = "hub/model";
    }
    for (uint64_t to = 1; to <= versions; to++) {
        for (uint64_t from = 0; from < to; from++) {
            unsigned odds = from + 1 == to ? 5 : 1; /* of 6 */

            if (test_random() % 6 < odds)
                add_way(map, from, to, test_random() % 2, test_random() % 30);
        }
    }
    map->record.version = versions;
}

/* I6: from some anchor, no matter of which kind, with nothing but the anchor in hand. */
static bool leads_from_an_anchor(const struct record *record) {
    bool leads = false;

    for (size_t i = 0; i < record->anchor_count; i++)
        leads |= cheapest(record, record->anchors[i].version, false, record->version) != UINT64_MAX;
    return leads;
}

static void test_random_maps(void **unused) {
    unsigned reached = 0, tried = 0;

    (void)unused;
    for (unsigned i = 0; i < 20000; i++) {
        struct map map;
        struct held held = {.any = test_random() % 4 != 0,
                            .version = test_random() % 8,
                            .before = test_random() % 2,
                            .back = test_random() % 2};

        random_map(&map, 1 + test_random() % 7);
        check_map(&map, held, test_random() % (map.record.version + 1), &reached);
        assert_int_equal(plan_check(&map.record),
                         leads_from_an_anchor(&map.record) ? ULP_OK : ULP_E_UNREACHABLE);
        tried++;
    }
    assert_true(reached > tried / 4 && reached < tried - tried / 20);
}

static void test_plan_check(void **unused) {
    struct map map = {0};

    (void)unused;
    assert_fails(plan_check(&map.record), ULP_E_UNREACHABLE, "without an anchor");
    add_anchor(&map, 0, 1);
    assert_ok(plan_check(&map.record));
    map.record.version = 1;
    assert_int_equal(plan_check(&map.record), ULP_E_UNREACHABLE);
    add_way(&map, 0, 1, false, 1);
    assert_ok(plan_check(&map.record));
    map.anchors[0].reference = "hub/model"; /* good enough: somebody can start there */
    assert_ok(plan_check(&map.record));
    map.ways[0].history = true; /* which nobody has who comes from an anchor */
    assert_int_equal(plan_check(&map.record), ULP_E_UNREACHABLE);
    add_anchor(&map, 1, 1);
    assert_ok(plan_check(&map.record));
    map.record.version = 2;
    assert_int_equal(plan_check(&map.record), ULP_E_UNREACHABLE);
}

static void test_allocations_fail(void **unused) {
    struct map map = {0};
    bool ended = false;

    (void)unused;
    add_anchor(&map, 0, 1);
    add_way(&map, 0, 1, false, 1);
    for (uint64_t call = 0; !ended; call++) {
        struct arena arena = {0};
        struct plan plan;
        struct held held = nothing;
        enum ulp_status status;

        assert_true(call < 100);
        failing_allocator_start(call, 0);
        status = plan_make(&map.record, &held, 1, &arena, &plan);
        arena_release(&arena);
        ended = failing_allocator_stop() <= call;
        assert_int_equal(status, ended ? ULP_OK : ULP_E_NOMEM);
        assert_true(ended || call < 5);
    }
}

TEST_MAIN(test_from_nothing, test_from_what_is_held, test_the_cheaper_anchor, test_longer_ways,
          test_history, test_history_behind_an_anchor, test_history_behind_a_longer_way,
          test_the_dearer_way_that_opens_history, test_ties, test_parts_and_files_add_up,
          test_going_back, test_anchors_by_reference, test_random_maps, test_plan_check,
          test_allocations_fail)
