// SPDX-License-Identifier: Apache-2.0
/* Well-formed UTF-8 and nothing else, against a decoder that works the other way round. */
#include "tests/test.h"

#include "base/utf8.h"

/* Encodes by the definition; 0 for what has no encoding. */
static size_t encode(uint32_t code, uint8_t out[4]) {
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 + code / 64);
        out[1] = (uint8_t)(0x80 + code % 64);
        return 2;
    }
    if (code >= 0xd800 && code <= 0xdfff)
        return 0;
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 + code / 4096);
        out[1] = (uint8_t)(0x80 + code / 64 % 64);
        out[2] = (uint8_t)(0x80 + code % 64);
        return 3;
    }
    if (code > 0x10ffff)
        return 0;
    out[0] = (uint8_t)(0xf0 + code / 262144);
    out[1] = (uint8_t)(0x80 + code / 4096 % 64);
    out[2] = (uint8_t)(0x80 + code / 64 % 64);
    out[3] = (uint8_t)(0x80 + code % 64);
    return 4;
}

/* Takes the bits out without looking for faults: right is what encoding gives back. */
static size_t expected_length(const uint8_t *s, size_t left) {
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    uint8_t again[4];

    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        code = code * 64 + (s[i] & 0x3f);
    return encode(code, again) == length && !memcmp(s, again, length) ? length : 0;
}

static void test_every_sequence_of_one_and_two_bytes(void **state) {
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        uint8_t s[2] = {(uint8_t)first, 0};

        assert_int_equal(utf8_length(s, 1), expected_length(s, 1));
        assert_int_equal(utf8_length(s, 1), first < 0x80);
        for (unsigned second = 0; second < 256; second++) {
            s[1] = (uint8_t)second;
            assert_int_equal(utf8_length(s, 2), expected_length(s, 2));
        }
    }
}

/* All first and second bytes with the edges of the others. */
static void test_every_edge_of_three_and_four_bytes(void **state) {
    static const uint8_t edges[] = {0x00, 0x41, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xff};
    const size_t count = sizeof edges;

    (void)state;
    for (unsigned start = 0; start < 65536; start++) {
        for (size_t i = 0; i < count * count; i++) {
            uint8_t s[4] = {(uint8_t)(start >> 8), (uint8_t)start, edges[i / count],
                            edges[i % count]};

            if (utf8_length(s, 3) != expected_length(s, 3) ||
                utf8_length(s, 4) != expected_length(s, 4))
                fail_msg("%02x %02x %02x %02x", s[0], s[1], s[2], s[3]);
        }
    }
}

static void test_every_code_point_and_none_of_its_truncations(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        uint8_t s[4];
        size_t length = encode(code, s);

        if (length && utf8_length(s, 4) != length)
            fail_msg("U+%04X is refused", (unsigned)code);
        for (size_t left = 1; left < length; left++) {
            if (utf8_length(s, left) != 0)
                fail_msg("U+%04X is accepted with %zu bytes left", (unsigned)code, left);
        }
    }
}

struct text_case {
    const char *text;
    bool valid;
};

static const struct text_case texts[] = {
    {"", true},
    {"plain", true},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true},
    {"\xef\xbb\xbf"
     "BOM",
     true},
    {"\xef\xbf\xbf", true},
    {"\xf4\x8f\xbf\xbf", true},
    {"\xed\x9f\xbf\xee\x80\x80", true},
    {"a\x80", false},            /* continuation without a start */
    {"\xc0\xaf", false},         /* '/' in two bytes */
    {"\xc1\xbf", false},         /* overlong */
    {"\xe0\x80\xaf", false},     /* '/' in three */
    {"\xe0\x9f\xbf", false},     /* U+7FF in three */
    {"\xf0\x80\x80\xaf", false}, /* '/' in four */
    {"\xf0\x8f\xbf\xbf", false}, /* U+FFFF in four */
    {"\xed\xa0\x80", false},     /* U+D800 */
    {"\xed\xbf\xbf", false},     /* U+DFFF */
    {"\xf4\x90\x80\x80", false}, /* U+110000 */
    {"\xf5\x80\x80\x80", false}, /* beyond */
    {"\xf8\x88\x80\x80\x80", false},
    {"\xff", false},
    {"ok\xc3", false}, /* truncated */
    {"ok\xe2\x82", false},
    {"ok\xf0\x9f\x98", false},
    {"\xc3\x28", false}, /* the second byte starts something else */
};

static void test_whole_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (utf8_valid(texts[i].text, strlen(texts[i].text)) != texts[i].valid)
            fail_msg("text %zu", i);
    }
    assert_true(utf8_valid("a\0b", 3));
    assert_false(utf8_valid("\xc3\xa4", 1));
}

TEST_MAIN(test_every_sequence_of_one_and_two_bytes, test_every_edge_of_three_and_four_bytes,
          test_every_code_point_and_none_of_its_truncations, test_whole_texts)
