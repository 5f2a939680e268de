// SPDX-License-Identifier: Apache-2.0
/* A store in front of another, which counts, lets others go first, and loses answers. */
#ifndef TESTS_SYNC_ODD_STORE_H
#define TESTS_SYNC_ODD_STORE_H

#include "tests/test.h"

#include <stdatomic.h>

enum odd_create {
    CREATE_AS_IS,
    CREATE_LOSES_THE_ANSWER, /* it is created, and the caller hears ULP_E_IO */
    CREATE_TRIES_AGAIN,      /* the store's own second try finds the object there */
    CREATE_FAILS             /* nothing is created: ULP_E_IO */
};

/* Something that happens just before. */
typedef void (*odd_hook)(void *user);

struct odd_store {
    struct ulp_store *inner; /* stays the caller's */
    enum odd_create create;
    _Atomic(odd_hook) before_put, before_create; /* once, in front of the next one; may be NULL */
    _Atomic(odd_hook) before_part_read;          /* once, in front of number `part_at`, from 0 */
    uint64_t part_at;
    void *user;
    atomic_uint_fast64_t part_reads, record_reads, puts, creates;
};

/* `odd` must stay until the handle is freed. */
struct ulp_store *odd_store_open(struct odd_store *odd);

#endif
