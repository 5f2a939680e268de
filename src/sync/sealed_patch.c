// SPDX-License-Identifier: Apache-2.0
#include "sync/sealed_patch.h"

#include "base/checked.h"
#include "base/quote.h"
#include "patch/patch.h"

#include <string.h>

/* Where the bytes come from, and what was read of them. */
struct sealing {
    const uint8_t *data; /* in memory, or: */
    struct ulp_store *store;
    const char *run;
    const struct stored_patch *stored;
    struct sha256 *hash;
    uint64_t bytes;
};

static enum ulp_status read_part(const struct sealing *s, const struct part *part, uint64_t offset,
                                 uint8_t *to, size_t bytes) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t total = 0;
    size_t got = 0;
    enum ulp_status status;

    part_key(s->run, part, key);
    status = ulp_store_read(s->store, key, offset, to, bytes, &got, &total);
    if (status == ULP_E_NOT_FOUND)
        return fail(ULP_E_PART_MISSING, "the part %s is missing from the store", quote(key).text);
    if (!status && (total != part->bytes || got != bytes))
        status =
            fail(ULP_E_PART, "the part %s has not the length that it should have", quote(key).text);
    return status;
}

/* A stretch of the patch may lie in several parts. */
static enum ulp_status read_stored(const struct sealing *s, uint64_t offset, uint8_t *to,
                                   size_t bytes) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && bytes && i < s->stored->part_count; i++) {
        const struct part *part = &s->stored->parts[i];

        if (offset < part->bytes) {
            uint64_t left = part->bytes - offset;
            size_t here = bytes < left ? bytes : (size_t)left;

            status = read_part(s, part, offset, to, here);
            to += here;
            bytes -= here;
            offset = 0;
        } else {
            offset -= part->bytes;
        }
    }
    return status;
}

static enum ulp_status read_and_hash(void *user, uint64_t offset, void *data, size_t bytes) {
    struct sealing *s = user;
    enum ulp_status status = ULP_OK;

    if (s->data)
        memcpy(data, s->data + offset, bytes);
    else
        status = read_stored(s, offset, data, bytes);
    s->bytes += bytes;
    return status ? status : sha256_add(s->hash, data, bytes);
}

static enum ulp_status open_and_hash(struct sealing *s, uint64_t bytes,
                                     struct ulp_patch **ret_patch, struct hash *ret_seal) {
    const struct ulp_source source = {read_and_hash, s, bytes};
    struct ulp_patch *patch = NULL;
    enum ulp_status status = sha256_begin(&s->hash);

    if (!status)
        status = patch_open_source(&source, &patch);
    if (!status)
        status = sha256_end(s->hash, ret_seal->bytes);
    sha256_free(s->hash);
    if (status) {
        patch_free(patch);
        return status;
    }
    patch->source = (struct ulp_source){.bytes = bytes}; /* nothing more is read from it */
    *ret_patch = patch;
    return ULP_OK;
}

enum ulp_status patch_seal(const void *data, size_t bytes, struct hash *ret_seal) {
    struct sealing s = {.data = data};
    struct ulp_patch *patch = NULL;
    enum ulp_status status = open_and_hash(&s, bytes, &patch, ret_seal);

    patch_free(patch);
    return status;
}

/* The table lies in the last part, or the last few; the others must be there too. */
static enum ulp_status look_for_parts(const struct sealing *s) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && s->stored->part_count > 1 && i < s->stored->part_count; i++)
        status = read_part(s, &s->stored->parts[i], 0, NULL, 0);
    return status;
}

enum ulp_status patch_open_sealed(struct ulp_store *store, const char *run,
                                  const struct stored_patch *stored, const struct hash *seal,
                                  struct ulp_patch **ret_patch, uint64_t *ret_bytes) {
    struct sealing s = {.store = store, .run = run, .stored = stored};
    struct ulp_patch *patch = NULL;
    struct hash found;
    uint64_t bytes = 0;
    enum ulp_status status;

    for (size_t i = 0; i < stored->part_count; i++) {
        if (add_overflows(bytes, stored->parts[i].bytes, &bytes))
            return fail(ULP_E_LIMIT, "the parts of a patch add up to more than 2^64 bytes");
    }
    status = look_for_parts(&s);
    if (!status)
        status = open_and_hash(&s, bytes, &patch, &found);
    if (!status && memcmp(&found, seal, sizeof found) != 0)
        status = fail(ULP_E_PART, "the table of a contributed patch is not the one that was made");
    if (status) {
        patch_free(patch);
        return status;
    }
    *ret_patch = patch;
    *ret_bytes = s.bytes;
    return ULP_OK;
}
