// SPDX-License-Identifier: Apache-2.0
/* States of weights in memory, how they change, and patches between them. */
#ifndef TESTS_PATCH_STATE_H
#define TESTS_PATCH_STATE_H

#include "tests/test.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct form {
    const char *name, *dtype;
    uint64_t shape[4];
    uint32_t rank;
    uint64_t bytes; /* of an unknown dtype */
};

/* Tensors with memory of their own. */
struct state {
    struct ulp_tensor *tensors;
    size_t count;
    uint8_t *data;
    size_t bytes;
};

/* One tensor of every dtype, some of them with a second; empty ones, scalars and odd lengths. */
extern const struct form every_form[];
extern const size_t every_form_count;

/* Bits that look like weights. `forms` must stay. Tensors begin `skew` bytes behind a multiple of
 * 64. */
struct state state_make(const struct form *forms, size_t count, size_t skew);
struct state state_copy(const struct state *from);
void state_free(struct state *state);

/* The same tensors, the last one first. */
void state_reverse(struct state *state);

/* Elements step by one or a few; `per_mille` of them, at random. */
void state_step(struct state *state, unsigned per_mille);

/* They become any pattern. */
void state_scramble(struct state *state, unsigned per_mille);

void assert_same_state(const struct state *a, const struct state *b);
struct ulp_root root_of(const struct state *state);
void assert_same_root(const struct ulp_root *a, const struct ulp_root *b);
void assert_root_of(const struct ulp_weights *weights, const struct state *state);

struct ulp_weights *weights_of(const struct state *state);

/* Bytes that grow, apart from the allocator that tests make fail. */
struct bytes {
    uint8_t *data;
    size_t used, room;
};
struct ulp_sink bytes_sink(struct bytes *bytes);
void bytes_free(struct bytes *bytes);
void assert_same_bytes(const struct bytes *a, const struct bytes *b);

/* The patch from `weights` to `to`. */
struct bytes patch_to(const struct ulp_weights *weights, const struct state *to,
                      const struct ulp_diff_options *options);

/* The same without the handle, when there is none yet. */
struct bytes patch_between(const struct state *from, const struct state *to,
                           const struct ulp_diff_options *options);
struct ulp_patch *open_bytes(const struct bytes *bytes);

struct ulp_pool *pool_of(unsigned threads);

#endif
