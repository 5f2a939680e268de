// SPDX-License-Identifier: Apache-2.0
/*
 * The tensors of a state that comes whole, and the memory that they are put into: the caller's, which
 * has a place for each of them, or one's own, which is taken as they come. What memory is, the host's
 * or a device's, is the holder's matter.
 */
#ifndef SYNC_KEPT_TENSORS_H
#define SYNC_KEPT_TENSORS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <ulpsync/model.h>

struct kept_memory {
    enum ulp_status (*take)(void *user, size_t bytes, void **ret_memory);
    void (*give)(void *user, void *memory);
    enum ulp_status (*copy)(void *user, void *to, const void *from, size_t bytes);
};

/* Zeroed means none; not to be moved. */
struct kept_tensors {
    const struct kept_memory *memory;
    void *user;
    struct arena arena;         /* of descriptions of our own */
    struct ulp_tensor *tensors; /* the caller's, in the order of their names, or ours */
    size_t count, room, filled; /* of `count`, those that a state that comes whole has brought */
    bool ours;
};

/* `tensors` NULL: memory of our own. */
enum ulp_status kept_open(struct kept_tensors *kept, const struct kept_memory *memory, void *user,
                          const struct ulp_tensor *tensors, size_t count);
void kept_release(struct kept_tensors *kept);

/* A state is about to come: memory of our own is given back. */
void kept_begin(struct kept_tensors *kept);

/* Some of its tensors; ULP_E_LAYOUT if the caller's memory has no place for them. */
enum ulp_status kept_put(struct kept_tensors *kept, const struct ulp_tensor *tensors, size_t count);

/* ULP_E_LAYOUT if it has not brought all that there is a place for. */
enum ulp_status kept_end(const struct kept_tensors *kept);

/* Where a tensor of this name is kept in the caller's memory, or NULL. */
struct ulp_tensor *kept_find(const struct kept_tensors *kept, const char *name);

#endif
