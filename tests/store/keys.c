// SPDX-License-Identifier: Apache-2.0
/* Which keys there are; all others are refused by every operation before the store hears of them.
 * */
#include "tests/store/stores.h"

static void repeat(char *to, char letter, size_t count) {
    memset(to, letter, count);
    to[count] = 0;
}

/* Parts of 99 bytes, cut off at `bytes`. */
static const char *long_key(size_t bytes) {
    static char key[1024];

    repeat(key, 'k', bytes);
    for (size_t i = 99; i + 1 < bytes; i += 100)
        key[i] = '/';
    return key;
}

static const char *long_part(const char *before, size_t bytes, const char *behind) {
    static char key[1024];
    char part[512];

    repeat(part, 'p', bytes);
    snprintf(key, sizeof key, "%s%s%s", before, part, behind);
    return key;
}

static void assert_allowed(struct ulp_store *store, const char *key) {
    assert_absent(store, key);
    assert_ok(ulp_store_create(store, key, "1", 1));
    assert_object(store, key, "1");
    put_text(store, key, "two");
    assert_object(store, key, "two");
    assert_int_equal(listed(store, key, "").count, 1);
    assert_ok(ulp_store_remove(store, key));
    assert_absent(store, key);
}

static void assert_refused(struct ulp_store *store, const char *key) {
    struct ulp_store_writer *writer = NULL;
    uint64_t total = 0;
    size_t got = 0;
    char byte;

    assert_fails(ulp_store_read(store, key, 0, &byte, 1, &got, &total), ULP_E_NAME, "not a key");
    assert_fails(ulp_store_create(store, key, "1", 1), ULP_E_NAME, "not a key");
    assert_fails(ulp_store_put(store, key, "1", 1), ULP_E_NAME, "not a key");
    assert_fails(ulp_store_put_begin(store, key, &writer), ULP_E_NAME, "not a key");
    assert_null(writer);
    assert_fails(ulp_store_stat(store, key, &total), ULP_E_NAME, "not a key");
    assert_fails(ulp_store_remove(store, key), ULP_E_NAME, "not a key");
    assert_int_equal(listed(store, "", "").count, 0);
}

static void allowed(struct place *place) {
    static const char *const keys[] = {"A",  "0",   "-",     "_",     "-rf", "a.",  "a..b",
                                       "a-", "x..", "a/b/c", "run/1", "a/-", "a.b", "CON.txt"};

    for (size_t i = 0; i < COUNT(keys);
         i++) /* one after the other, for "a" may not be beside "a/b" */
        assert_allowed(place->store, keys[i]);
    assert_allowed(place->store, long_part("", 200, ""));
    assert_allowed(place->store, long_part("a/", 200, ""));
    assert_allowed(place->store, long_part("", 200, "/a"));
    assert_allowed(place->store, long_key(900));
}

static void refused(struct place *place) {
    static const char *const keys[] = {
        "",     "/",    "//",     "/a",       "a/",  "a//b",      ".",      "..",
        "../a", "a/..", "a/../b", "a/./b",    ".a",  "a/.hidden", "...",    "a b",
        " ",    "a\\b", "a:b",    "a*",       "a?",  "a%2fb",     "a\nb",   "\t",
        "\x7f", "\x01", "\xff",   "\xc3\xa9", "a~",  "~",         "$HOME",  "a'b",
        "a\"b", "a@b",  "a+b",    "a=b",      "a,b", "a;b",       "a|b",    "a&b",
        "a<b",  "(a)",  "[a]",    "{a}",      "#",   "!",         "a/b/c/", "a/b c/d"};

    for (size_t i = 0; i < COUNT(keys); i++)
        assert_refused(place->store, keys[i]);
    assert_refused(place->store, long_part("", 201, ""));
    assert_refused(place->store, long_part("a/", 201, ""));
    assert_refused(place->store, long_part("", 201, "/a"));
    assert_refused(place->store, long_key(901));
    if (place->directory)
        assert_int_equal(entries_in(place->directory), 0);
}

/* Each byte that may stand in a key, and no other, by itself and behind a letter. */
static void every_byte(struct place *place) {
    for (unsigned byte = 1; byte < 256; byte++) {
        const char key[] = {'k', (char)byte, 'k', 0};
        bool good = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                    (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.' ||
                    byte == '/';
        uint64_t bytes;

        assert_int_equal(ulp_store_stat(place->store, key, &bytes),
                         good ? ULP_E_NOT_FOUND : ULP_E_NAME);
    }
}

TEST_EACH(allowed)
TEST_EACH(refused)
TEST_EACH(every_byte)

TEST_MAIN(test_allowed, test_refused, test_every_byte)
