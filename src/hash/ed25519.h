// SPDX-License-Identifier: Apache-2.0
/*
 * Ed25519 (RFC 8032), the plain variant: no context, no prehash. OpenSSL's; a build without it has
 * none, and says so with ULP_E_UNSUPPORTED. There is no portable twin as SHA-256 has one: arithmetic
 * on secrets is not for a second implementation.
 */
#ifndef HASH_ED25519_H
#define HASH_ED25519_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ED25519_KEY_BYTES 32u
#define ED25519_SIGNATURE_BYTES 64u

/* The public key of a seed, which RFC 8032 calls the private key: any 32 secret bytes. */
enum ulp_status ed25519_public(const uint8_t seed[ED25519_KEY_BYTES],
                               uint8_t ret_public[ED25519_KEY_BYTES]);

/* The same signature whenever the same data is signed with the same seed. */
enum ulp_status ed25519_sign(const uint8_t seed[ED25519_KEY_BYTES], const void *data, size_t bytes,
                             uint8_t ret_signature[ED25519_SIGNATURE_BYTES]);

/* ULP_E_SIGNATURE if it is not this key's signature of the data, or the key is a weak one. */
enum ulp_status ed25519_verify(const uint8_t public_key[ED25519_KEY_BYTES], const void *data,
                               size_t bytes, const uint8_t signature[ED25519_SIGNATURE_BYTES]);

/* Whether this is a public key for which anybody can make signatures: a point of small order.
 * RFC 8032 does not forbid them and OpenSSL takes them; no honest generator makes one. */
bool ed25519_weak(const uint8_t public_key[ED25519_KEY_BYTES]);

#endif
