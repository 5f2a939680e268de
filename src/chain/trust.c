// SPDX-License-Identifier: Apache-2.0
#include "chain/trust.h"

#include "base/endian.h"
#include "hash/key.h"

#include <string.h>

#define SIGNATURE_END (ED25519_SIGNATURE_BYTES + SHA256_BYTES)
#define HANDOVER_BYTES (8u + RUN_ID_BYTES + 8u + 2 * ED25519_KEY_BYTES)

static bool same_key(const struct ulp_public_key *a, const struct ulp_public_key *b) {
    return !memcmp(a, b, sizeof *a);
}

/* The signature stands for all bytes before it. */
static enum ulp_status check_signature(const struct record *record, const uint8_t *bytes,
                                       size_t count) {
    const size_t end = count - SIGNATURE_END;
    enum ulp_status status = ed25519_verify(record->signer.bytes, bytes, end, bytes + end);

    if (status == ULP_E_SIGNATURE)
        status = fail(ULP_E_SIGNATURE, "the signature of record %llu is wrong",
                      (unsigned long long)record->sequence);
    return status;
}

/* What the old key signs when it hands over. */
static void handover_bytes(const uint8_t *run, const struct handover *handover,
                           uint8_t text[HANDOVER_BYTES]) {
    memcpy(text, "ulphand", 8);
    memcpy(text + 8, run, RUN_ID_BYTES);
    store_le64(text + 8 + RUN_ID_BYTES, handover->sequence);
    memcpy(text + 16 + RUN_ID_BYTES, handover->from.bytes, ED25519_KEY_BYTES);
    memcpy(text + 16 + RUN_ID_BYTES + ED25519_KEY_BYTES, handover->to.bytes, ED25519_KEY_BYTES);
}

static enum ulp_status check_handover(const struct record *record,
                                      const struct handover *handover) {
    uint8_t text[HANDOVER_BYTES];
    enum ulp_status status;

    handover_bytes(record->run, handover, text);
    status = ed25519_verify(handover->from.bytes, text, sizeof text, handover->signature);
    if (status == ULP_E_SIGNATURE)
        status = fail(ULP_E_SIGNATURE, "the key of record %llu was not handed over to it",
                      (unsigned long long)record->sequence);
    return status;
}

static bool is_trusted(const struct trust *trust, const struct ulp_public_key *key) {
    for (size_t i = 0; i < trust->count; i++) {
        if (same_key(&trust->keys[i], key))
            return true;
    }
    return false;
}

/* From the signer back to a key that is trusted. */
static enum ulp_status check_line(const struct trust *trust, const struct record *record) {
    enum ulp_status status = ULP_OK;

    if (is_trusted(trust, &record->signer))
        return ULP_OK;
    for (size_t i = record->handover_count; !status && i--;) {
        status = check_handover(record, &record->handovers[i]);
        if (!status && is_trusted(trust, &record->handovers[i].from))
            return ULP_OK;
    }
    return status ? status
                  : fail(ULP_E_SIGNATURE, "record %llu is signed by a key that is not trusted",
                         (unsigned long long)record->sequence);
}

/* What was handed over once stays so: else a key that was given up could sign again. */
static bool keeps_handovers(const struct record *seen, const struct record *record) {
    return seen->handover_count <= record->handover_count &&
           (!seen->handover_count || !memcmp(seen->handovers, record->handovers,
                                             seen->handover_count * sizeof *seen->handovers));
}

enum ulp_status trust_check(const struct trust *trust, const struct record *seen,
                            const struct record *record, const uint8_t *bytes, size_t count) {
    const struct trust before = {seen ? &seen->signer : NULL, seen && seen->is_signed};
    const struct trust *by = trust->count ? trust : &before;
    enum ulp_status status;

    if (!record->is_signed)
        return by->count ? fail(ULP_E_UNSIGNED, "record %llu is not signed, and should be",
                                (unsigned long long)record->sequence)
                         : ULP_OK;
    if (seen && !keeps_handovers(seen, record))
        return fail(ULP_E_SIGNATURE, "record %llu forgets that another key was handed over to",
                    (unsigned long long)record->sequence);
    status = check_signature(record, bytes, count);
    return status || !by->count ? status : check_line(by, record);
}

enum ulp_status handover_make(const struct record *record, uint64_t sequence,
                              const struct ulp_key *from, const struct ulp_public_key *to,
                              struct handover *ret_handover) {
    struct handover handover = {.sequence = sequence, .from = from->public_key, .to = *to};
    uint8_t text[HANDOVER_BYTES];
    enum ulp_status status;

    handover_bytes(record->run, &handover, text);
    status = key_sign(from, text, sizeof text, handover.signature);
    if (!status)
        *ret_handover = handover;
    return status;
}
