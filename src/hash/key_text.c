// SPDX-License-Identifier: Apache-2.0
#include "hash/key_text.h"

#include "base/memory.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static_assert(LIMIT_TRUSTED_KEYS == ULP_TRUSTED_KEYS_MAX, "the public header names the limit");
static_assert(LIMIT_KEY_COMMENT_BYTES == ULP_KEY_COMMENT_BYTES_MAX, "and this one");
static_assert(sizeof(struct ulp_public_key) == ED25519_KEY_BYTES, "a public key is its bytes");

/* ---- writing ------------------------------------------------------------------------------ */

/* By hand: printf() might keep a secret in a buffer of its own. */
void key_hex(const uint8_t key[ED25519_KEY_BYTES], char ret_hex[KEY_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < ED25519_KEY_BYTES; i++) {
        ret_hex[2 * i] = digits[key[i] >> 4];
        ret_hex[2 * i + 1] = digits[key[i] & 15];
    }
}

static bool is_plain_text(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return utf8_valid(text, bytes);
}

static enum ulp_status check_comment(const char *comment) {
    size_t bytes = strlen(comment);

    if (bytes > LIMIT_KEY_COMMENT_BYTES)
        return fail(ULP_E_LIMIT, "the comment of a key has %zu bytes; the limit is %u", bytes,
                    LIMIT_KEY_COMMENT_BYTES);
    if (!is_plain_text(comment, bytes))
        return fail(ULP_E_USAGE,
                    "the comment of a key must be one line of UTF-8 without control characters: %s",
                    quote(comment).text);
    return ULP_OK;
}

static void line_add(struct key_line *line, const char *text, size_t bytes) {
    memcpy(line->text + line->bytes, text, bytes);
    line->bytes += bytes;
}

enum ulp_status key_line_write(const char *word, const uint8_t key[ED25519_KEY_BYTES],
                               const char *comment, struct key_line *ret_line) {
    enum ulp_status status = comment ? check_comment(comment) : ULP_OK;

    if (status)
        return status;
    ret_line->bytes = 0;
    line_add(ret_line, word, strlen(word));
    line_add(ret_line, " ", 1);
    key_hex(key, ret_line->text + ret_line->bytes);
    ret_line->bytes += KEY_HEX_BYTES;
    if (comment && *comment) {
        line_add(ret_line, " ", 1);
        line_add(ret_line, comment, strlen(comment));
    }
    line_add(ret_line, "\n", 1);
    return ULP_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* What is left of a text, and the line that was taken from it last. */
struct lines {
    const char *name, *text;
    size_t left;
    const char *line;
    size_t bytes, number;
};

static bool next_line(struct lines *lines) {
    const char *end;
    size_t taken;

    if (!lines->left)
        return false;
    end = memchr(lines->text, '\n', lines->left);
    lines->line = lines->text;
    lines->bytes = end ? (size_t)(end - lines->text) : lines->left;
    lines->number++;
    taken = lines->bytes + (end ? 1 : 0); /* the last line may lack its end */
    lines->text += taken;
    lines->left -= taken;
    return true;
}

static enum ulp_status bad_line(const struct lines *lines, const char *problem) {
    return fail(ULP_E_KEY, "%s, line %zu: %s", quote(lines->name).text, lines->number, problem);
}

static bool has_word(const struct lines *lines, const char *word) {
    size_t length = strlen(word);

    return lines->bytes > length && !memcmp(lines->line, word, length) &&
           lines->line[length] == ' ';
}

static int digit_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The key behind the word; false unless just 64 digits stand there. */
static bool read_hex(const struct lines *lines, size_t at, uint8_t ret_key[ED25519_KEY_BYTES]) {
    const char *hex = lines->line + at;

    if (lines->bytes - at < KEY_HEX_BYTES)
        return false;
    for (size_t i = 0; i < ED25519_KEY_BYTES; i++) {
        int high = digit_value(hex[2 * i]), low = digit_value(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_key[i] = (uint8_t)(high << 4 | low);
    }
    return lines->bytes - at == KEY_HEX_BYTES || hex[KEY_HEX_BYTES] == ' ';
}

static enum ulp_status read_key_line(const struct lines *lines, const char *word,
                                     uint8_t ret_key[ED25519_KEY_BYTES]) {
    bool wants_private = !strcmp(word, KEY_WORD_PRIVATE);

    if (has_word(lines, wants_private ? KEY_WORD_PUBLIC : KEY_WORD_PRIVATE))
        return bad_line(lines, wants_private
                                   ? "a public key; the private one stands in the file without .pub"
                                   : "a private key, which nobody else may see: name its .pub");
    if (!has_word(lines, word))
        return bad_line(lines, wants_private ? "does not begin with '" KEY_WORD_PRIVATE " '"
                                             : "begins neither with '" KEY_WORD_PUBLIC
                                               " ' nor with '#'");
    if (!is_plain_text(lines->line, lines->bytes))
        return bad_line(lines, "a control character (a carriage return?), or not UTF-8");
    if (!read_hex(lines, strlen(word) + 1, ret_key))
        return bad_line(lines, "not 64 hexadecimal digits, then a blank or the end of the line");
    return ULP_OK;
}

enum ulp_status key_text_private(const char *name, const char *text, size_t bytes,
                                 uint8_t ret_seed[ED25519_KEY_BYTES]) {
    struct lines lines = {.name = name, .text = text, .left = bytes};
    uint8_t seed[ED25519_KEY_BYTES] = {0};
    enum ulp_status status;

    if (!next_line(&lines))
        return fail(ULP_E_KEY, "%s is empty", quote(name).text);
    status = read_key_line(&lines, KEY_WORD_PRIVATE, seed);
    if (!status && next_line(&lines))
        status = bad_line(&lines, "a private key file has one line only");
    if (!status)
        memcpy(ret_seed, seed, sizeof seed);
    mem_wipe(seed, sizeof seed);
    return status;
}

static enum ulp_status check_trusted(const struct lines *lines, const struct ulp_public_key *keys,
                                     size_t count) {
    if (ed25519_weak(keys[count].bytes))
        return bad_line(lines, "a key for which anybody can make signatures; never trust it");
    for (size_t i = 0; i < count; i++) {
        if (!memcmp(&keys[i], &keys[count], sizeof keys[i]))
            return bad_line(lines, "a key that is there already; leave it in once");
    }
    return ULP_OK;
}

enum ulp_status key_text_trusted(const char *name, const char *text, size_t bytes,
                                 struct ulp_public_key *ret_keys, size_t room, size_t *ret_count) {
    struct lines lines = {.name = name, .text = text, .left = bytes};
    struct ulp_public_key keys[LIMIT_TRUSTED_KEYS];
    size_t count = 0, most = room < LIMIT_TRUSTED_KEYS ? room : LIMIT_TRUSTED_KEYS;
    enum ulp_status status = ULP_OK;

    while (!status && next_line(&lines)) {
        if (!lines.bytes || lines.line[0] == '#')
            continue;
        if (count == most)
            return fail(ULP_E_LIMIT, "%s, line %zu: more than %zu keys, which is the limit",
                        quote(name).text, lines.number, most);
        status = read_key_line(&lines, KEY_WORD_PUBLIC, keys[count].bytes);
        if (!status)
            status = check_trusted(&lines, keys, count++);
    }
    if (status)
        return status;
    if (!count) /* an empty list must not be taken for one that trusts everybody */
        return fail(ULP_E_KEY, "%s holds no key", quote(name).text);
    memcpy(ret_keys, keys, count * sizeof keys[0]);
    *ret_count = count;
    return ULP_OK;
}
