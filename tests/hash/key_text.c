// SPDX-License-Identifier: Apache-2.0
/* The text of key files: what is read, what is refused and in which line, and that no message shows
 * what stood there. */
#include "hash/key_text.h"
#include "tests/test.h"

#define HEX_A "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef"
#define HEX_B "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
#define A KEY_WORD_PUBLIC " " HEX_A
#define B KEY_WORD_PUBLIC " " HEX_B
#define SECRET KEY_WORD_PRIVATE " " HEX_A
#define HEX_NEUTRAL "0100000000000000000000000000000000000000000000000000000000000000"

/* Longer than anything that a message may quote of it. */
#define SHOWN 8

/* Neither the text nor a piece of the key is in the message. */
static void assert_nothing_shown(void) {
    for (size_t i = 0; i + SHOWN <= strlen(HEX_A); i++) {
        char piece[SHOWN + 1] = {0};

        memcpy(piece, &HEX_A[i], SHOWN);
        assert_null(strstr(ulp_last_error(), piece));
    }
}

static enum ulp_status trusted(const char *text, size_t bytes, struct ulp_public_key *keys,
                               size_t *count) {
    return key_text_trusted("the file", text, bytes, keys, ULP_TRUSTED_KEYS_MAX, count);
}

static void assert_keys(const char *text, size_t expected) {
    struct ulp_public_key keys[ULP_TRUSTED_KEYS_MAX];
    char hex[ULP_PUBLIC_KEY_HEX_BYTES];
    size_t count = 0;

    assert_ok(trusted(text, strlen(text), keys, &count));
    assert_int_equal(count, expected);
    ulp_public_key_hex(&keys[0], hex);
    assert_string_equal(hex, HEX_A);
    if (expected == 2) {
        ulp_public_key_hex(&keys[1], hex);
        assert_string_equal(hex, HEX_B);
    }
}

static void test_trusted_keys_that_are_read(void **state) {
    (void)state;
    assert_keys(A "\n", 1);
    assert_keys(A, 1); /* no end of the line */
    assert_keys(A " trainer of Zürich, 2026\n", 1);
    assert_keys(A " ", 1); /* an empty comment */
    assert_keys("# who may publish\n\n" A "\n\n# spare\t\x01\n" B " spare\n\n", 2);
    assert_keys("\n\n\n" A "\n" B, 2);
    assert_keys(KEY_WORD_PUBLIC " 00112233445566778899AABBCCDDEEFF0123456789ABCDEF"
                                "0123456789abcdef\n",
                1);
}

struct refusal {
    const char *text, *message;
};

static void assert_refused(const char *text, size_t bytes, const char *message) {
    struct ulp_public_key keys[ULP_TRUSTED_KEYS_MAX], untouched[ULP_TRUSTED_KEYS_MAX];
    size_t count = 77;

    memset(keys, 0x5a, sizeof keys);
    memset(untouched, 0x5a, sizeof untouched);
    assert_fails(trusted(text, bytes, keys, &count), ULP_E_KEY, message);
    assert_non_null(strstr(ulp_last_error(), "'the file'"));
    assert_nothing_shown();
    assert_int_equal(count, 77);
    assert_memory_equal(keys, untouched, sizeof keys);
}

static void test_trusted_keys_that_are_refused(void **state) {
    static const struct refusal refusals[] = {
        {"", "holds no key"},
        {"\n\n", "holds no key"},
        {"# " A "\n", "holds no key"},
        {A "\nhello\n", "line 2: begins neither"},
        {" " A "\n", "line 1: begins neither"},
        {"\xef\xbb\xbf" A "\n", "line 1: begins neither"},
        {A "\n \n", "line 2: begins neither"},
        {"#\n\n" KEY_WORD_PUBLIC "\n", "line 3: begins neither"},
        {KEY_WORD_PUBLIC "\t" HEX_A "\n", "line 1: begins neither"},
        {"Ulpsync-ed25519 " HEX_A "\n", "line 1: begins neither"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n", "line 1: begins neither"},
        {HEX_A "\n", "line 1: begins neither"},
        {SECRET "\n", "line 1: a private key"},
        {B "\n" SECRET " mine\n", "line 2: a private key"},
        {KEY_WORD_PUBLIC " \n", "line 1: not 64"},
        {KEY_WORD_PUBLIC "  " HEX_A "\n", "line 1: not 64"},
        {A "0\n", "line 1: not 64"},
        {A ",comment\n", "line 1: not 64"},
        {A "#comment\n", "line 1: not 64"},
        {KEY_WORD_PUBLIC " 0x112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef\n",
         "line 1: not 64"},
        {KEY_WORD_PUBLIC " +0112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef\n",
         "line 1: not 64"},
        {A "\r\n", "line 1: a control character"},
        {A " tab\there\n", "line 1: a control character"},
        {A " \x1b[31mred\n", "line 1: a control character"},
        {A " \x7f\n", "line 1: a control character"},
        {A " \xff\n", "line 1: a control character"},
        {A " \xc3\n", "line 1: a control character"},
        {A "\n" B "\n#\n" A " again\n", "line 4: a key that is there already"},
        {A "\n" KEY_WORD_PUBLIC " " HEX_NEUTRAL "\n", "line 2: a key for which anybody"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        assert_refused(refusals[i].text, strlen(refusals[i].text), refusals[i].message);
    assert_refused(A " a\0b\n", sizeof A " a\0b\n" - 1, "line 1: a control character");
}

/* Cut anywhere inside of the key, and with any digit that is none. */
static void test_damaged_keys_are_refused(void **state) {
    char line[] = A;
    size_t start = strlen(KEY_WORD_PUBLIC " ");

    (void)state;
    for (size_t cut = 1; cut < sizeof line - 1; cut++)
        assert_refused(line, cut, "line 1");
    for (size_t i = start; i < sizeof line - 1; i++) {
        static const char bad[] = "gG/:@`~ xX.-";
        char kept = line[i];

        for (size_t b = 0; b < sizeof bad - 1; b++) {
            line[i] = bad[b];
            assert_refused(line, sizeof line - 1, "line 1: not 64");
        }
        line[i] = kept;
    }
    assert_keys(line, 1);
}

static void test_as_many_keys_as_there_is_room_for(void **state) {
    struct ulp_public_key keys[ULP_TRUSTED_KEYS_MAX + 1], made = {{0}};
    char text[(ULP_TRUSTED_KEYS_MAX + 1) * 100];
    size_t used = 0, most = 0, count = 0;
    struct key_line line;

    (void)state;
    for (unsigned i = 0; i <= ULP_TRUSTED_KEYS_MAX; i++) {
        made.bytes[0] = (uint8_t)(i + 10);
        assert_ok(key_line_write(KEY_WORD_PUBLIC, made.bytes, NULL, &line));
        memcpy(text + used, line.text, line.bytes);
        if (i == ULP_TRUSTED_KEYS_MAX)
            most = used;
        used += line.bytes;
    }
    assert_ok(trusted(text, most, keys, &count));
    assert_int_equal(count, ULP_TRUSTED_KEYS_MAX);
    assert_int_equal(keys[ULP_TRUSTED_KEYS_MAX - 1].bytes[0], ULP_TRUSTED_KEYS_MAX + 9);
    assert_fails(key_text_trusted("f", text, used, keys, ULP_TRUSTED_KEYS_MAX + 1, &count),
                 ULP_E_LIMIT, "line 65: more than 64");
    assert_fails(key_text_trusted("f", text, most, keys, 63, &count), ULP_E_LIMIT, "line 64");
    assert_fails(key_text_trusted("f", text, most, keys, 0, &count), ULP_E_LIMIT, "line 1");
}

static void assert_seed(const char *text) {
    uint8_t seed[ED25519_KEY_BYTES];
    char hex[KEY_HEX_BYTES];

    assert_ok(key_text_private("the file", text, strlen(text), seed));
    key_hex(seed, hex);
    assert_memory_equal(hex, HEX_A, sizeof hex);
}

static void test_private_keys(void **state) {
    static const struct refusal refusals[] = {
        {"", "is empty"},
        {"\n", "line 1: does not begin"},
        {"# comment\n" SECRET "\n", "line 1: does not begin"},
        {SECRET "\n\n", "line 2: a private key file has one line"},
        {SECRET "\n" SECRET "\n", "line 2: a private key file has one line"},
        {A "\n", "line 1: a public key"},
        {"-----BEGIN PRIVATE KEY-----\n", "line 1: does not begin"},
        {KEY_WORD_PRIVATE HEX_A "\n", "line 1: does not begin"},
        {SECRET "00\n", "line 1: not 64"},
        {SECRET "\r\n", "line 1: a control character"},
        {KEY_WORD_PRIVATE " 00112233445566778899aabbccddeeff\n", "line 1: not 64"},
        {KEY_WORD_PRIVATE " 00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdeg\n",
         "line 1: not 64"},
    };

    (void)state;
    assert_seed(SECRET "\n");
    assert_seed(SECRET);
    assert_seed(SECRET " trainer\n");
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        uint8_t seed[ED25519_KEY_BYTES] = {9}, untouched[ED25519_KEY_BYTES] = {9};
        const char *text = refusals[i].text;

        assert_fails(key_text_private("the file", text, strlen(text), seed), ULP_E_KEY,
                     refusals[i].message);
        assert_nothing_shown();
        assert_memory_equal(seed, untouched, sizeof seed);
    }
}

static void test_comments(void **state) {
    static const uint8_t key[ED25519_KEY_BYTES];
    char longest[LIMIT_KEY_COMMENT_BYTES + 2] = "";
    struct key_line line;

    (void)state;
    assert_ok(key_line_write("w", key, "", &line));
    assert_int_equal(line.bytes, 2 + KEY_HEX_BYTES + 1);
    assert_ok(key_line_write("w", key, "ü", &line));
    assert_memory_equal(line.text + 2 + KEY_HEX_BYTES, " ü\n", 4);
    assert_fails(key_line_write("w", key, "two\nlines", &line), ULP_E_USAGE, "two\\x0alines");
    assert_fails(key_line_write("w", key, "\x1b[1m", &line), ULP_E_USAGE, "one line");
    assert_fails(key_line_write("w", key, "\xff", &line), ULP_E_USAGE, "one line");
    memset(longest, 'c', LIMIT_KEY_COMMENT_BYTES);
    assert_ok(key_line_write(KEY_WORD_PRIVATE, key, longest, &line));
    assert_int_equal(line.bytes, KEY_LINE_BYTES_MAX);
    longest[LIMIT_KEY_COMMENT_BYTES] = 'c';
    assert_fails(key_line_write("w", key, longest, &line), ULP_E_LIMIT, "the limit is 200");
}

TEST_MAIN(test_trusted_keys_that_are_read, test_trusted_keys_that_are_refused,
          test_damaged_keys_are_refused, test_as_many_keys_as_there_is_room_for, test_private_keys,
          test_comments)
