// SPDX-License-Identifier: Apache-2.0
/* Public entry points on keys. Secrets stay in arrays of this file, which are wiped. */
#include "hash/key.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "hash/key_text.h"

#include <errno.h>
#include <sys/random.h>

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_key_generate(struct ulp_key **ret_key) {
    uint8_t seed[ED25519_KEY_BYTES];
    ssize_t got;
    enum ulp_status status;

    if (!ret_key)
        return missing(__func__);
    do { /* so few bytes come whole; only before the system has gathered any can it be disturbed */
        got = getrandom(seed, sizeof seed, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof seed)
        return fail(ULP_E_IO, "the system gives no random numbers");
    status = key_new(seed, ret_key);
    mem_wipe(seed, sizeof seed);
    return status;
}

enum ulp_status ulp_key_save(const struct ulp_key *key, const char *path, const char *comment) {
    struct key_line line;
    enum ulp_status status;

    if (!key || !path)
        return missing(__func__);
    status = key_line_write(KEY_WORD_PRIVATE, key->seed, comment, &line);
    if (!status)
        status = file_write_private(path, line.text, line.bytes);
    mem_wipe(&line, sizeof line);
    return status;
}

enum ulp_status ulp_key_load(const char *path, struct ulp_key **ret_key) {
    char text[KEY_LINE_BYTES_MAX];
    uint8_t seed[ED25519_KEY_BYTES] = {0};
    size_t bytes = 0;
    enum ulp_status status;

    if (!path || !ret_key)
        return missing(__func__);
    status = file_read_private(path, text, sizeof text, &bytes);
    if (!status)
        status = key_text_private(path, text, bytes, seed);
    if (!status)
        status = key_new(seed, ret_key);
    mem_wipe(seed, sizeof seed);
    mem_wipe(text, sizeof text);
    return status;
}

void ulp_key_free(struct ulp_key *key) {
    key_free(key);
}

enum ulp_status ulp_key_public(const struct ulp_key *key, struct ulp_public_key *ret_public) {
    if (!key || !ret_public)
        return missing(__func__);
    *ret_public = key->public_key;
    return ULP_OK;
}

enum ulp_status ulp_public_key_save(const struct ulp_public_key *key, const char *path,
                                    const char *comment) {
    struct key_line line;
    enum ulp_status status;

    if (!key || !path)
        return missing(__func__);
    status = key_line_write(KEY_WORD_PUBLIC, key->bytes, comment, &line);
    return status ? status : file_write(path, line.text, line.bytes, ULP_COMMIT_NEW);
}

enum ulp_status ulp_public_keys_load(const char *path, struct ulp_public_key *ret_keys, size_t room,
                                     size_t *ret_count) {
    struct buffer text = BUFFER(LIMIT_TRUSTED_FILE_BYTES);
    enum ulp_status status;

    if (!path || !ret_keys || !ret_count)
        return missing(__func__);
    status = file_read(path, FILE_FOLLOW_LINKS, &text);
    if (!status)
        status = key_text_trusted(path, buffer_text(&text), text.used, ret_keys, room, ret_count);
    buffer_release(&text);
    return status;
}

void ulp_public_key_hex(const struct ulp_public_key *key, char ret_hex[ULP_PUBLIC_KEY_HEX_BYTES]) {
    key_hex(key->bytes, ret_hex);
    ret_hex[KEY_HEX_BYTES] = 0;
}
