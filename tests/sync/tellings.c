// SPDX-License-Identifier: Apache-2.0
/* Tellings: what is told is heard, in order, within its limits; nothing else of the run cares. */
#include "base/limits.h"
#include "sync/telling.h"
#include "tests/sync/live.h"
#include "tests/sync/odd_store.h"

struct heard {
    unsigned count;
    char names[2048]; /* of the last few, each followed by a space */
    char lines[8192];
    char last[LIMIT_TOLD_LINE_BYTES + 1];
};

static void add(char *to, size_t room, const char *text) {
    const size_t used = strlen(to);

    if (used + strlen(text) + 2 < room)
        snprintf(to + used, room - used, "%s ", text);
}

static void hear(void *user, const char *name, const char *line, size_t bytes) {
    struct heard *heard = user;

    assert_int_equal(strlen(line), bytes);
    heard->count++;
    add(heard->names, sizeof heard->names, name);
    add(heard->lines, sizeof heard->lines, line);
    snprintf(heard->last, sizeof heard->last, "%s", line);
}

static struct heard hear_all(struct ulp_store *store) {
    struct heard heard = {0};

    assert_ok(ulp_run_told(store, "run", hear, &heard));
    return heard;
}

static struct ulp_store *memory_store(void) {
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_memory(&store));
    return store;
}

static struct ulp_teller *teller_of(struct ulp_store *store, const char *name) {
    struct ulp_teller *teller = NULL;

    assert_ok(ulp_teller_open(store, "run", name, &teller));
    return teller;
}

static void tell_number(struct ulp_teller *teller, unsigned number) {
    char line[64];

    snprintf(line, sizeof line, "{\"n\":%u}", number);
    assert_ok(ulp_teller_tell(teller, line));
}

static int count_key(void *user, const char *key, uint64_t bytes) {
    (void)key;
    (void)bytes;
    ++*(unsigned *)user;
    return 0;
}

static unsigned keys_below(struct ulp_store *store, const char *prefix) {
    unsigned count = 0;

    assert_ok(ulp_store_list(store, prefix, "", count_key, &count));
    return count;
}

static void put_text(struct ulp_store *store, const char *key, const char *text) {
    assert_ok(ulp_store_put(store, key, text, strlen(text)));
}

/* ---- telling ---- */

static void test_in_order(void **unused) {
    struct ulp_store *store = memory_store();
    struct ulp_teller *b = teller_of(store, "b"), *a = teller_of(store, "a.b-c_D9");
    struct heard heard = hear_all(store);

    (void)unused;
    assert_int_equal(heard.count, 0);
    tell_number(b, 1);
    tell_number(a, 2);
    tell_number(b, 3);
    heard = hear_all(store);
    assert_string_equal(heard.names, "a.b-c_D9 b b ");
    assert_string_equal(heard.lines, "{\"n\":2} {\"n\":1} {\"n\":3} ");
    ulp_teller_close(a);
    ulp_teller_close(b);
    ulp_store_free(store);
}

/* A new process goes on behind the one before; so does a second one beside it. */
static void test_restart_and_twins(void **unused) {
    struct ulp_store *store = memory_store();
    struct ulp_teller *first = teller_of(store, "w"), *second = teller_of(store, "w");
    struct heard heard;

    (void)unused;
    tell_number(first, 1);
    tell_number(second, 10);
    tell_number(first, 2);
    tell_number(second, 11);
    ulp_teller_close(first);
    first = teller_of(store, "w");
    tell_number(first, 20);
    heard = hear_all(store);
    assert_string_equal(heard.lines, "{\"n\":1} {\"n\":2} {\"n\":10} {\"n\":11} {\"n\":20} ");
    assert_int_equal(keys_below(store, "run/told/w/"), 3);
    ulp_teller_close(first);
    ulp_teller_close(second);
    ulp_store_free(store);
}

/* A command in a loop leaves one object, not one for each line. */
static void test_one_line_each(void **unused) {
    struct ulp_store *store = memory_store();
    struct heard heard;

    (void)unused;
    for (unsigned i = 0; i < LIMIT_TOLD_LINES + 2; i++) {
        struct ulp_teller *teller = teller_of(store, "w");

        assert_ok(ulp_teller_resume(teller));
        tell_number(teller, i);
        ulp_teller_close(teller);
    }
    heard = hear_all(store);
    assert_int_equal(heard.count, LIMIT_TOLD_LINES + 2);
    assert_string_equal(heard.last, "{\"n\":257}");
    assert_int_equal(keys_below(store, "run/told/w/"), 2);
    ulp_store_free(store);
}

/* What is not as it should be is left as it is. */
static void test_nothing_to_resume(void **unused) {
    static const char *const texts[] = {"", "{}", "{}\nno\n", "\n"};
    struct ulp_store *store = memory_store();
    struct heard heard;

    (void)unused;
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ulp_teller *teller = teller_of(store, "w");
        char key[64];

        snprintf(key, sizeof key, "run/told/w/%08u", 2 * i + 1);
        put_text(store, key, texts[i]);
        assert_ok(ulp_teller_resume(teller));
        tell_number(teller, i);
        ulp_teller_close(teller);
    }
    heard = hear_all(store);
    assert_string_equal(heard.lines, "{\"n\":0} {\"n\":1} {} {\"n\":2} {\"n\":3} ");
    ulp_store_free(store);
}

static void test_objects_stay_few_and_small(void **unused) {
    const unsigned told = (LIMIT_TOLD_OBJECTS + 3) * LIMIT_TOLD_LINES + 1;
    struct ulp_store *store = memory_store();
    struct ulp_teller *teller = teller_of(store, "w");
    struct heard heard;
    char line[64];
    uint64_t bytes = 0;

    (void)unused;
    for (unsigned i = 1; i <= told; i++)
        tell_number(teller, i);
    assert_int_equal(keys_below(store, "run/told/w/"), LIMIT_TOLD_OBJECTS);
    heard = hear_all(store);
    assert_int_equal(heard.count, (LIMIT_TOLD_OBJECTS - 1) * LIMIT_TOLD_LINES + 1);
    snprintf(line, sizeof line, "{\"n\":%u}", told);
    assert_string_equal(heard.last, line);
    ulp_teller_close(teller);

    teller = teller_of(store, "long");
    for (unsigned i = 0; i < 40; i++) {
        char long_line[LIMIT_TOLD_LINE_BYTES + 1];

        memset(long_line, ' ', LIMIT_TOLD_LINE_BYTES);
        memcpy(long_line, "{\"a\":1", 6);
        memcpy(long_line + LIMIT_TOLD_LINE_BYTES - 1, "}", 2);
        assert_ok(ulp_teller_tell(teller, long_line));
    }
    assert_ok(ulp_store_stat(store, "run/told/long/00000001", &bytes));
    assert_true(bytes > 32 << 10 && bytes <= 64 << 10);
    ulp_teller_close(teller);
    ulp_store_free(store);
}

static void test_what_cannot_be_told(void **unused) {
    struct ulp_store *store = memory_store();
    struct ulp_teller *teller = NULL;
    char line[LIMIT_TOLD_LINE_BYTES + 2];
    char name[LIMIT_TELLER_NAME_BYTES + 2];

    (void)unused;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_fails(ulp_teller_open(store, "run", name, &teller), ULP_E_NAME, "name of a teller");
    assert_fails(ulp_teller_open(store, "run", "a/b", &teller), ULP_E_NAME, "name of a teller");
    assert_fails(ulp_teller_open(store, "run", ".a", &teller), ULP_E_NAME, "");
    assert_fails(ulp_teller_open(store, "run", "", &teller), ULP_E_NAME, "");
    assert_fails(ulp_teller_open(store, "r/n", "a", &teller), ULP_E_NAME, "");
    assert_fails(ulp_teller_open(NULL, "run", "a", &teller), ULP_E_USAGE, "NULL");
    name[sizeof name - 2] = 0;
    assert_ok(ulp_teller_open(store, "run", name, &teller));
    assert_fails(ulp_teller_tell(teller, ""), ULP_E_JSON, "");
    assert_fails(ulp_teller_tell(teller, "[1]"), ULP_E_SCHEMA, "");
    assert_fails(ulp_teller_tell(teller, "{} {}"), ULP_E_JSON, "");
    assert_fails(ulp_teller_tell(teller, "{\n}"), ULP_E_JSON, "one line");
    assert_fails(ulp_teller_tell(teller, "{\"a\":\"\xff\"}"), ULP_E_UTF8, "");
    assert_fails(ulp_teller_tell(teller, NULL), ULP_E_USAGE, "NULL");
    memset(line, ' ', sizeof line);
    memcpy(line, "{}", 2);
    line[sizeof line - 1] = 0;
    assert_fails(ulp_teller_tell(teller, line), ULP_E_LIMIT, "4096");
    assert_int_equal(keys_below(store, "run/"), 0);
    ulp_teller_close(teller);
    ulp_teller_close(NULL);
    ulp_store_free(store);
}

static void test_numbers_end(void **unused) {
    struct ulp_store *store = memory_store();
    struct ulp_teller *teller = teller_of(store, "w");

    (void)unused;
    put_text(store, "run/told/w/deeper/99999999", "{\"n\":0}\n"); /* not one of ours */
    assert_ok(ulp_teller_tell(teller, "{}"));
    ulp_teller_close(teller);
    teller = teller_of(store, "w");
    put_text(store, "run/told/w/99999999", "{\"n\":1}\n");
    assert_fails(ulp_teller_tell(teller, "{}"), ULP_E_LIMIT, "another name");
    ulp_teller_close(teller);
    ulp_store_free(store);
}

/* ---- stores that fail ---- */

/* A line that could not be told is lost, and the next is told. */
static void test_a_store_that_fails(void **unused) {
    struct ulp_store *inner = memory_store();
    struct odd_store odd = {.inner = inner, .create = CREATE_FAILS};
    struct ulp_store *store = odd_store_open(&odd);
    struct ulp_teller *teller = teller_of(store, "w");
    struct heard heard;

    (void)unused;
    assert_fails(ulp_teller_tell(teller, "{\"n\":1}"), ULP_E_IO, "");
    odd.create = CREATE_LOSES_THE_ANSWER;
    assert_fails(ulp_teller_tell(teller, "{\"n\":2}"), ULP_E_IO, "");
    odd.create = CREATE_AS_IS;
    tell_number(teller, 3);
    heard = hear_all(inner);
    assert_string_equal(heard.lines, "{\"n\":2} {\"n\":3} ");
    ulp_teller_close(teller);
    ulp_store_free(store);
    ulp_store_free(inner);
}

static enum ulp_fault fail_puts(void *user, enum ulp_store_op op, const char *key) {
    (void)key;
    return *(bool *)user && op == ULP_STORE_PUT_END ? ULP_FAULT_BEFORE : ULP_FAULT_NONE;
}

static void test_a_put_that_fails(void **unused) {
    bool failing = false;
    struct ulp_store *store = NULL;
    struct ulp_teller *teller;
    struct heard heard;

    (void)unused;
    assert_ok(ulp_store_fault(memory_store(), fail_puts, &failing, &store));
    teller = teller_of(store, "w");
    tell_number(teller, 1);
    failing = true;
    assert_fails(ulp_teller_tell(teller, "{\"n\":2}"), ULP_E_IO, "");
    failing = false;
    tell_number(teller, 3);
    heard = hear_all(store);
    assert_string_equal(heard.lines, "{\"n\":1} {\"n\":3} ");
    ulp_teller_close(teller);
    ulp_store_free(store);
}

static enum ulp_status no_list(void *self, const char *prefix, const char *after,
                               ulp_store_entry entry, void *user) {
    (void)self;
    (void)prefix;
    (void)after;
    (void)entry;
    (void)user;
    return ulp_fail(ULP_E_UNSUPPORTED, "this store cannot be listed");
}

static void free_nothing(void *self) {
    (void)self;
}

static void test_a_store_without_list(void **unused) {
    static const struct ulp_store_ops ops = {.list = no_list, .free = free_nothing};
    struct ulp_store *store = NULL;
    struct ulp_teller *teller;
    struct heard heard = {0};

    (void)unused;
    assert_ok(ulp_store_new(&ops, NULL, "no list", &store));
    teller = teller_of(store, "w");
    assert_fails(ulp_teller_tell(teller, "{}"), ULP_E_UNSUPPORTED, "cannot be listed");
    assert_fails(ulp_run_told(store, "run", hear, &heard), ULP_E_UNSUPPORTED, "cannot be listed");
    assert_int_equal(heard.count, 0);
    ulp_teller_close(teller);
    ulp_store_free(store);
}

/* ---- listening ---- */

static void test_only_what_is_new(void **unused) {
    struct ulp_store *inner = memory_store();
    struct odd_store odd = {.inner = inner};
    struct ulp_store *store = odd_store_open(&odd);
    struct ulp_teller *a = teller_of(inner, "a"), *b = teller_of(inner, "b");
    struct ulp_listener *listener = NULL;
    struct heard heard = {0};

    (void)unused;
    tell_number(a, 1);
    tell_number(b, 2);
    assert_ok(ulp_listener_open(store, "run", &listener));
    assert_ok(ulp_listener_hear(listener, hear, &heard));
    assert_int_equal(heard.count, 2);
    assert_int_equal(odd.record_reads, 2);
    assert_ok(ulp_listener_hear(listener, hear, &heard));
    assert_int_equal(heard.count, 2);
    assert_int_equal(odd.record_reads, 2);
    tell_number(b, 3);
    ulp_teller_close(a);
    a = teller_of(inner, "a");
    tell_number(a, 4);
    assert_ok(ulp_listener_hear(listener, hear, &heard));
    assert_string_equal(heard.lines, "{\"n\":1} {\"n\":2} {\"n\":4} {\"n\":3} ");
    assert_int_equal(odd.record_reads, 4);
    ulp_listener_close(listener);
    ulp_listener_close(NULL);
    ulp_teller_close(a);
    ulp_teller_close(b);
    ulp_store_free(store);
    ulp_store_free(inner);
}

/* Half a line is not read again and again; it is heard once it is whole. */
static void test_an_unfinished_line(void **unused) {
    static const char half[] = "{\"n\":1}\n{\"n\":", whole[] = "{\"n\":1}\n{\"n\":2}\n";
    struct ulp_store *inner = memory_store();
    struct odd_store odd = {.inner = inner};
    struct ulp_store *store = odd_store_open(&odd);
    struct ulp_listener *listener = NULL;
    struct heard heard = {0};

    (void)unused;
    assert_ok(ulp_store_put(inner, "run/told/a/00000001", half, sizeof half - 1));
    assert_ok(ulp_listener_open(store, "run", &listener));
    for (unsigned i = 0; i < 3; i++)
        assert_ok(ulp_listener_hear(listener, hear, &heard));
    assert_int_equal(odd.record_reads, 1);
    assert_ok(ulp_store_put(inner, "run/told/a/00000001", whole, sizeof whole - 1));
    assert_ok(ulp_listener_hear(listener, hear, &heard));
    assert_string_equal(heard.lines, "{\"n\":1} {\"n\":2} ");
    ulp_listener_close(listener);
    ulp_store_free(store);
    ulp_store_free(inner);
}

static void test_hostile_objects(void **unused) {
    static const char *const keys[] = {"run/told/w/0000001",  "run/told/w/000000012",
                                       "run/told/w/0000000x", "run/told/w/x/00000001",
                                       "run/told/00000001",   "run/told/w/00000000"};
    struct ulp_store *store = memory_store();
    struct heard heard;
    char *big = calloc(1, LIMIT_TOLD_BYTES + 2);

    (void)unused;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        put_text(store, keys[i], "{\"n\":1}\n");
    assert_non_null(big);
    memset(big, ' ', LIMIT_TOLD_BYTES + 1);
    memcpy(big, "{}\n", 3);
    put_text(store, "run/told/w/00000005", big); /* one byte too long */
    heard = hear_all(store);
    assert_int_equal(heard.count, 0);
    put_text(store, "run/told/w/00000002",
             "{\"n\":1}\nno\n\n{\"a\":\"\xc0\"}\n{\"a\":\x01}\n[]\n{\"n\":2}\n{\"n\":3}");
    assert_ok(ulp_store_put(store, "run/told/w/00000003", "{\"\0\":1}\n{}\n", 12));
    assert_ok(ulp_store_put(store, "run/told/w/00000004", "", 0));
    heard = hear_all(store);
    assert_string_equal(heard.lines, "{\"n\":1} {\"n\":2} {} ");
    free(big);
    ulp_store_free(store);
}

/* More of everything than is read. */
static void test_hostile_numbers(void **unused) {
    struct ulp_store *store = memory_store();
    char *lines = calloc(LIMIT_TOLD_LINES + 5, 3), key[128];
    struct heard heard;

    (void)unused;
    assert_non_null(lines);
    for (size_t i = 0; i < LIMIT_TOLD_LINES + 4; i++)
        memcpy(lines + 3 * i, "{}\n", 3);
    put_text(store, "run/told/w/00000001", lines);
    heard = hear_all(store);
    assert_int_equal(heard.count, LIMIT_TOLD_LINES);
    for (unsigned i = 1; i <= LIMIT_TOLD_OBJECTS + 6; i++) {
        snprintf(key, sizeof key, "run/told/w/%08u", i);
        put_text(store, key, "{}\n");
    }
    heard = hear_all(store);
    assert_int_equal(heard.count, LIMIT_TOLD_OBJECTS);
    for (unsigned i = 0; i < LIMIT_TELLERS + 3; i++) {
        snprintf(key, sizeof key, "run/told/a%05u/00000001", i);
        put_text(store, key, "{}\n");
    }
    heard = hear_all(store);
    assert_int_equal(heard.count, LIMIT_TELLERS);
    free(lines);
    ulp_store_free(store);
}

/* ---- memory ---- */

static enum ulp_status tell_and_hear(struct ulp_store *store, struct heard *heard) {
    struct ulp_teller *teller = NULL;
    enum ulp_status status = ulp_teller_open(store, "run", "w", &teller);

    if (!status)
        status = ulp_teller_resume(teller);
    if (!status)
        status = ulp_teller_tell(teller, "{\"a\":{\"b\":\"c\"}}");
    if (!status)
        status = ulp_teller_tell(teller, "{\"d\":[1]}");
    ulp_teller_close(teller);
    return status ? status : ulp_run_told(store, "run", hear, heard);
}

/* Wherever memory runs out, it is said, and nothing is left behind. */
static void test_no_memory(void **unused) {
    enum ulp_status status = ULP_E_NOMEM;
    struct heard heard;

    (void)unused;
    for (uint64_t at = 0; status; at++) {
        struct ulp_store *store = NULL;

        memset(&heard, 0, sizeof heard);
        failing_allocator_start(at, 0);
        status = ulp_store_memory(&store);
        if (!status)
            status = ulp_store_put(store, "run/told/w/00000001", "{}\n", 3);
        if (!status)
            status = tell_and_hear(store, &heard);
        ulp_store_free(store);
        failing_allocator_stop();
        assert_true(!status || status == ULP_E_NOMEM);
        assert_true(at < 1000);
    }
    assert_int_equal(heard.count, 3);
}

/* ---- what a line says ---- */

static void note_value(void *user, const char *path, const char *value, int is_text) {
    struct heard *heard = user;

    heard->count++;
    add(heard->lines, sizeof heard->lines, path);
    add(heard->lines, sizeof heard->lines, is_text ? "text" : "plain");
    add(heard->lines, sizeof heard->lines, value);
}

static void test_values(void **unused) {
    struct heard heard = {0};
    char deep[1024] = "", name[300];

    (void)unused;
    assert_ok(
        ulp_told_values("{\"a\":1, \"b\" : {\"c\":-2.5e3,\"d\":{\"e\":\"x\\ny\"}},\"f\":[1,{}],"
                        "\"g\":null}",
                        note_value, &heard));
    assert_string_equal(heard.lines, "a plain 1 b.c plain -2.5e3 b.d.e text x\ny g plain null ");
    assert_fails(ulp_told_values("{\"a\":1", note_value, &heard), ULP_E_JSON, "");
    for (unsigned i = 0; i < LIMIT_JSON_DEPTH + 1; i++)
        strcat(deep, "{\"a\":");
    assert_fails(ulp_told_values(deep, note_value, &heard), ULP_E_LIMIT, "deep");
    memset(&heard, 0, sizeof heard);
    memset(name, 'n', sizeof name);
    snprintf(deep, sizeof deep, "{\"%.201s\":1,\"%.200s\":2,\"b\":{\"%.199s\":3}}", name, name,
             name);
    assert_ok(ulp_told_values(deep, note_value, &heard));
    assert_int_equal(heard.count, 1);
}

/* ---- the run ---- */

static void no_damage(void *user, const char *key, enum ulp_status status, const char *message) {
    (void)user;
    fail_msg("%s: %s: %s", key, ulp_status_name(status), message);
}

/* Who deletes, checks and mirrors leaves tellings alone, and is not disturbed by them. */
static void test_nobody_else_cares(void **unused) {
    const struct ulp_collect_options now = {.now = 1, .keep_anchors = 1};
    struct trainer t = trainer_make(1, true);
    struct ulp_store *copy = memory_store();
    struct ulp_collect_report collected = {0};
    struct ulp_run_health health = {0};
    struct ulp_teller *teller = NULL;
    struct ulp_run_report report;
    char key[128];

    (void)unused;
    live_versions(&t, 3, NULL);
    assert_ok(ulp_teller_open(t.store, RUN, "w", &teller));
    tell_number(teller, 1);
    /* what looks like a part, and like a record */
    snprintf(key, sizeof key, "%s/told/part/00000001", RUN);
    put_text(t.store, key, "{}\n");
    snprintf(key, sizeof key, "%s/told/log/00000009", RUN);
    put_text(t.store, key, "{}\n");
    snprintf(key, sizeof key, "%s/told/", RUN);
    assert_ok(ulp_run_collect(t.store, RUN, &now, &collected));
    assert_ok(ulp_run_check(t.store, RUN, no_damage, NULL, &health));
    assert_int_equal(health.damaged, 0);
    assert_ok(ulp_run_mirror(t.store, copy, RUN, NULL, &report));
    assert_int_equal(keys_below(t.store, key), 3);
    assert_int_equal(keys_below(copy, key), 0);
    ulp_teller_close(teller);
    ulp_store_free(copy);
    trainer_free(&t);
}

TEST_MAIN(test_in_order, test_restart_and_twins, test_one_line_each, test_nothing_to_resume,
          test_objects_stay_few_and_small, test_what_cannot_be_told, test_numbers_end,
          test_a_store_that_fails, test_a_put_that_fails, test_a_store_without_list,
          test_only_what_is_new, test_an_unfinished_line, test_hostile_objects,
          test_hostile_numbers, test_no_memory, test_values, test_nobody_else_cares)
