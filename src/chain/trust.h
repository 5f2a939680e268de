// SPDX-License-Identifier: Apache-2.0
/* Who may sign a run's records. */
#ifndef CHAIN_TRUST_H
#define CHAIN_TRUST_H

#include "chain/record.h"

/* The keys that are trusted; none: whoever signed what was seen before, if anybody did. */
struct trust {
    const struct ulp_public_key *keys;
    size_t count;
};

/*
 * Whether a record, read from `bytes`, is signed by a trusted key, or by one that a trusted one
 * handed over to. `seen` is NULL or the newest record that was accepted before: where that was
 * signed, this must be too. ULP_E_UNSIGNED, ULP_E_SIGNATURE.
 */
enum ulp_status trust_check(const struct trust *trust, const struct record *seen,
                            const struct record *record, const uint8_t *bytes, size_t count);

/* A handover of the record's run, from its signer to `to`. */
enum ulp_status handover_make(const struct record *record, uint64_t sequence,
                              const struct ulp_key *from, const struct ulp_public_key *to,
                              struct handover *ret_handover);

#endif
