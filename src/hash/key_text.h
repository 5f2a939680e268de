// SPDX-License-Identifier: Apache-2.0
/*
 * Key files, which are text: docs/format/keys.md. Messages name the file and the line, and never
 * show what stands there: people mistake private keys for public ones.
 */
#ifndef HASH_KEY_TEXT_H
#define HASH_KEY_TEXT_H

#include "base/limits.h"
#include "hash/ed25519.h"

#include <ulpsync/key.h>

#define KEY_WORD_PUBLIC "ulpsync-ed25519"
#define KEY_WORD_PRIVATE "ulpsync-ed25519-private"

#define KEY_HEX_BYTES (2 * ED25519_KEY_BYTES)

/* The longest line that is written: word, key and comment, blanks between them and an end. */
#define KEY_LINE_BYTES_MAX                                                                         \
    (sizeof KEY_WORD_PRIVATE - 1 + 1 + KEY_HEX_BYTES + 1 + LIMIT_KEY_COMMENT_BYTES + 1)

struct key_line {
    char text[KEY_LINE_BYTES_MAX];
    size_t bytes;
};

/* One line with `word`, the key and the comment, which may be NULL. ULP_E_USAGE, or ULP_E_LIMIT, if
 * that is no comment. A line with a private key is for the caller to wipe. */
enum ulp_status key_line_write(const char *word, const uint8_t key[ED25519_KEY_BYTES],
                               const char *comment, struct key_line *ret_line);

/* The seed in the text of a private key file. `name` is for messages. */
enum ulp_status key_text_private(const char *name, const char *text, size_t bytes,
                                 uint8_t ret_seed[ED25519_KEY_BYTES]);

/* The keys in the text of a file of trusted keys: at least one, and at most `room`. */
enum ulp_status key_text_trusted(const char *name, const char *text, size_t bytes,
                                 struct ulp_public_key *ret_keys, size_t room, size_t *ret_count);

/* Without a NUL. */
void key_hex(const uint8_t key[ED25519_KEY_BYTES], char ret_hex[KEY_HEX_BYTES]);

#endif
