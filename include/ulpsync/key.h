// SPDX-License-Identifier: Apache-2.0
/*
 * Keys (Ed25519): the publisher's private one signs the records of a run's log; followers have a
 * file with the public keys that they trust.
 *
 *     struct ulp_key *key = NULL;
 *     struct ulp_public_key trusted[ULP_TRUSTED_KEYS_MAX];
 *     size_t count = 0;
 *
 *     ulp_key_load("trainer.key", &key);                                  made by `ulpsync keygen`
 *     ulp_public_keys_load("trusted", trusted, ULP_TRUSTED_KEYS_MAX, &count);
 *     ulp_key_free(key);
 *
 * docs/format/keys.md describes the files. What is secret never appears in a message or the log. A
 * build without OpenSSL knows files of public keys only; all else fails with ULP_E_UNSUPPORTED.
 */
#ifndef ULPSYNC_KEY_H
#define ULPSYNC_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most keys that a file of trusted ones may list. */
#define ULP_TRUSTED_KEYS_MAX 64

/* The longest comment of a key, in bytes. */
#define ULP_KEY_COMMENT_BYTES_MAX 200

/* A private key. It does not change, so several threads may use it at once. */
struct ulp_key;

struct ulp_public_key {
    uint8_t bytes[32];
};

/* A new one, from the system's random numbers. */
ULP_API enum ulp_status ulp_key_generate(struct ulp_key **ret_key);

/*
 * Writes a new file that only its owner can read (mode 0600); it appears complete and synced, and
 * never over another (ULP_E_EXISTS). `comment` is one line of text for people, or NULL; it is no
 * secret.
 */
ULP_API enum ulp_status ulp_key_save(const struct ulp_key *key, const char *path,
                                     const char *comment);

/*
 * ULP_E_PERMISSION if group or others have any right to the file, ULP_E_FILE_KIND if it is a link or
 * not a plain file, ULP_E_KEY if it holds something else.
 */
ULP_API enum ulp_status ulp_key_load(const char *path, struct ulp_key **ret_key);

/* Zeroes the key before it gives the memory back. */
ULP_API void ulp_key_free(struct ulp_key *key);

ULP_API enum ulp_status ulp_key_public(const struct ulp_key *key,
                                       struct ulp_public_key *ret_public);

/* Writes a new file with one public key; it can be used as a file of trusted keys, or joined with
 * others to one. */
ULP_API enum ulp_status ulp_public_key_save(const struct ulp_public_key *key, const char *path,
                                            const char *comment);

/*
 * Reads a file of trusted keys: at least one, and at most `room` (ULP_E_LIMIT). ULP_E_KEY, with the
 * number of the line, if something in it is no public key, is there twice, or is a key for which
 * anybody can make signatures.
 */
ULP_API enum ulp_status ulp_public_keys_load(const char *path, struct ulp_public_key *ret_keys,
                                             size_t room, size_t *ret_count);

/* Lower-case hexadecimal, NUL-terminated: the form in which files and messages show it. */
#define ULP_PUBLIC_KEY_HEX_BYTES 65
ULP_API void ulp_public_key_hex(const struct ulp_public_key *key,
                                char ret_hex[ULP_PUBLIC_KEY_HEX_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
