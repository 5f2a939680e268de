// SPDX-License-Identifier: Apache-2.0
/* A store in front of another, which counts, lets others go first, and loses answers. */
#ifndef TESTS_SYNC_ODD_STORE_H
#define TESTS_SYNC_ODD_STORE_H

#include "tests/test.h"

enum odd_create {
    CREATE_AS_IS,
    CREATE_LOSES_THE_ANSWER, /* it is created, and the caller hears ULP_E_IO */
    CREATE_TRIES_AGAIN,      /* the store's own second try finds the object there */
    CREATE_FAILS             /* nothing is created: ULP_E_IO */
};

struct odd_store {
    struct ulp_store *inner; /* stays the caller's */
    enum odd_create create;
    void (*before_put)(void *user); /* once, in front of the first part; may be NULL */
    void *user;
    uint64_t part_reads, record_reads, puts, creates;
};

/* `odd` must stay until the handle is freed. */
struct ulp_store *odd_store_open(struct odd_store *odd);

#endif
