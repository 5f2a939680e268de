// SPDX-License-Identifier: Apache-2.0
/* Listings: which keys, and in which order. */
#include "tests/store/stores.h"

static void put_all(struct ulp_store *store, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        put_text(store, keys[i], keys[i]);
}

#define ASSERT_LIST(prefix, after, expected)                                                       \
    assert_string_equal(listed(place->store, prefix, after).text, expected)

/* '-' and '.' come before '/', digits and letters behind it. */
static void in_byte_order(struct place *place) {
    static const char *const keys[] = {"a/b",  "a0",  "a.b", "a-b", "aa",  "a/b.c/d", "a/b-c",
                                       "a/0",  "B",   "b",   "a_",  "aB",  "a/bb",    "a.b.c/x",
                                       "a-/z", "a.d", "_",   "0",   "-/-", "a/z/z/z"};

    put_all(place->store, keys, COUNT(keys));
    ASSERT_LIST("", "",
                "-/- 0 B _ a-/z a-b a.b a.b.c/x a.d a/0 a/b a/b-c a/b.c/d a/bb a/z/z/z a0 aB a_ "
                "aa b ");
    ASSERT_LIST("a", "",
                "a-/z a-b a.b a.b.c/x a.d a/0 a/b a/b-c a/b.c/d a/bb a/z/z/z a0 aB a_ aa ");
    ASSERT_LIST("a/", "", "a/0 a/b a/b-c a/b.c/d a/bb a/z/z/z ");
    ASSERT_LIST("a/b", "", "a/b a/b-c a/b.c/d a/bb ");
    ASSERT_LIST("a/b.", "", "a/b.c/d ");
    ASSERT_LIST("a/b.c/", "", "a/b.c/d ");
    ASSERT_LIST("a/b.c/d", "", "a/b.c/d ");
    ASSERT_LIST("a/b.c/d/", "", "");
    ASSERT_LIST("a/b.c/dd", "", "");
    ASSERT_LIST("c", "", "");
    ASSERT_LIST("/", "", "");
    ASSERT_LIST("..", "", "");
    ASSERT_LIST("../", "", "");
    ASSERT_LIST("a/../a/", "", "");
    ASSERT_LIST("./a/", "", "");
    ASSERT_LIST("a//b", "", "");
    ASSERT_LIST("a/b/", "", ""); /* an object, and no directory */
}

static void behind_a_key(struct place *place) {
    static const char *const keys[] = {"a-b", "a.b", "a/b", "a/c/d", "a/c/e", "a0", "b"};

    put_all(place->store, keys, COUNT(keys));
    ASSERT_LIST("", "a", "a-b a.b a/b a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a-b", "a.b a/b a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a.b", "a/b a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a/", "a/b a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a/b", "a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a/b/x", "a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a/c", "a/c/d a/c/e a0 b ");
    ASSERT_LIST("", "a/c/d", "a/c/e a0 b ");
    ASSERT_LIST("", "a/c/e", "a0 b ");
    ASSERT_LIST("", "a/c0", "a0 b ");
    ASSERT_LIST("", "a0", "b ");
    ASSERT_LIST("", "b", "");
    ASSERT_LIST("a/", "a.b", "a/b a/c/d a/c/e ");
    ASSERT_LIST("a/c", "a/b", "a/c/d a/c/e ");
    ASSERT_LIST("a/c", "a/c/d", "a/c/e ");
    ASSERT_LIST("a/c", "a/c/e", "");
    ASSERT_LIST("a/c", "b", "");
    ASSERT_LIST("b", "a/c", "b ");
}

/* What to begin behind need not be a key. */
static void behind_a_long_text(struct place *place) {
    char text[2001];

    memset(text, 'b', sizeof text - 1);
    text[sizeof text - 1] = 0;
    put_text(place->store, "a", "a");
    put_text(place->store, "b", "b");
    put_text(place->store, "c/d", "c");
    ASSERT_LIST("", text, "c/d ");
    ASSERT_LIST(text, "", "");
    ASSERT_LIST("", "b\xff", "c/d ");
}

/* A random set of keys against a plain comparison of all of them. */
static int by_bytes(const void *a, const void *b) {
    return strcmp(a, b);
}

enum { KEYS = 20, KEY_ROOM = 24 };

static void random_keys(char keys[KEYS][KEY_ROOM]) {
    static const char *const parts[] = {"a", "b", "a-", "a.a", "aa", "a0", "-a", "A"};

    for (size_t i = 0; i < KEYS; i++) { /* "x" in front: no object is on the way to another */
        snprintf(keys[i], KEY_ROOM, "%s/%s/x%s", parts[test_random() % COUNT(parts)],
                 parts[test_random() % COUNT(parts)], parts[test_random() % COUNT(parts)]);
        if (i % 3 == 0)
            snprintf(keys[i], KEY_ROOM, "%s/x%s", parts[test_random() % COUNT(parts)],
                     parts[test_random() % COUNT(parts)]);
    }
    qsort(keys, KEYS, KEY_ROOM, by_bytes);
}

static void as_a_plain_search(struct place *place) {
    static const char *const texts[] = {"", "a", "a/", "a/a", "a-/", "aa/a", "b/b/x", "A/x", "z"};
    char keys[KEYS][KEY_ROOM];

    random_keys(keys);
    for (size_t i = KEYS; i-- > 0;)
        put_text(place->store, keys[i], "");
    for (size_t p = 0; p < COUNT(texts); p++) {
        for (size_t a = 0; a < COUNT(texts) + KEYS; a++) {
            const char *after = a < COUNT(texts) ? texts[a] : keys[a - COUNT(texts)];
            char expected[KEYS * KEY_ROOM] = "";

            for (size_t i = 0; i < KEYS; i++) {
                if (!strncmp(keys[i], texts[p], strlen(texts[p])) && strcmp(keys[i], after) > 0 &&
                    (!i || strcmp(keys[i], keys[i - 1]) != 0))
                    strcat(strcat(expected, keys[i]), " ");
            }
            ASSERT_LIST(texts[p], after, expected);
        }
    }
}

/* Where there are no directories, an object may stand on the way to another. */
static void test_an_object_on_the_way(void **state) {
    struct place place_made = {0}, *place = &place_made;

    (void)state;
    assert_ok(ulp_store_memory(&place->store));
    put_text(place->store, "a", "1");
    put_text(place->store, "a/b", "2");
    put_text(place->store, "a-b", "3");
    put_text(place->store, "a.b", "4");
    ASSERT_LIST("", "", "a a-b a.b a/b ");
    ASSERT_LIST("a", "a", "a-b a.b a/b ");
    ASSERT_LIST("a/", "", "a/b ");
    place_free(place);
}

struct stopping {
    unsigned left;
    char last[64];
    uint64_t bytes;
};

static int stop_soon(void *user, const char *key, uint64_t bytes) {
    struct stopping *stopping = user;

    snprintf(stopping->last, sizeof stopping->last, "%s", key);
    stopping->bytes = bytes;
    return --stopping->left == 0;
}

static void stops(struct place *place) {
    struct stopping stopping = {.left = 2};

    put_text(place->store, "a", "1");
    put_text(place->store, "b/c/d", "333");
    put_text(place->store, "c", "1");
    assert_fails(ulp_store_list(place->store, "", "", stop_soon, &stopping), ULP_E_CANCELLED,
                 "stopped");
    assert_string_equal(stopping.last, "b/c/d");
    assert_int_equal(stopping.bytes, 3);
    stopping.left = 4;
    assert_ok(ulp_store_list(place->store, "", "", stop_soon, &stopping));
    assert_string_equal(stopping.last, "c");
}

struct using {
    struct ulp_store *store;
    unsigned heard;
    enum ulp_status status;
};

/* Reads, writes and removes what is listed, and lists what is there. */
static int use_the_store(void *user, const char *key, uint64_t bytes) {
    struct using *using = user;
    char data[16], copy[64];
    size_t got = 0;
    struct listed inner = {0};

    snprintf(copy, sizeof copy, "0copies/%s", key);
    using->heard++;
    using->status = read_whole(using->store, key, data, sizeof data, &got);
    if (!using->status && got != bytes)
        using->status = ULP_E_INTERNAL;
    if (!using->status)
        using->status = ulp_store_put(using->store, copy, data, got);
    if (!using->status)
        using->status = ulp_store_remove(using->store, key);
    inner = listed(using->store, "", "");
    if (!using->status && inner.count != 3)
        using->status = ULP_E_INTERNAL;
    return using->status != ULP_OK;
}

static void used_within(struct place *place) {
    struct using using = {.store = place->store};

    put_text(place->store, "a/x", "1");
    put_text(place->store, "a/y", "22");
    put_text(place->store, "b", "333");
    assert_ok(ulp_store_list(place->store, "", "", use_the_store, &using));
    assert_int_equal(using.heard, 3);
    ASSERT_LIST("", "", "0copies/a/x 0copies/a/y 0copies/b ");
    assert_object(place->store, "0copies/b", "333");
}

static void of_nothing(struct place *place) {
    ASSERT_LIST("", "", "");
    ASSERT_LIST("a", "b", "");
}

TEST_EACH(in_byte_order)
TEST_EACH(behind_a_key)
TEST_EACH(behind_a_long_text)
TEST_EACH(as_a_plain_search)
TEST_EACH(stops)
TEST_EACH(used_within)
TEST_EACH(of_nothing)

TEST_MAIN(test_in_byte_order, test_behind_a_key, test_behind_a_long_text, test_as_a_plain_search,
          test_an_object_on_the_way, test_stops, test_used_within, test_of_nothing)
