// SPDX-License-Identifier: Apache-2.0
#include "sync/kept_tensors.h"

#include "base/memory.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory of our own ---- */

static enum ulp_status describe(struct arena *arena, const struct ulp_tensor *from,
                                struct ulp_tensor *to) {
    uint64_t *shape = NULL;
    enum ulp_status status = arena_zeroed(arena, from->rank, sizeof *shape, &shape);

    *to = *from;
    to->data = NULL;
    to->shape = shape;
    if (!status && from->rank)
        memcpy(shape, from->shape, from->rank * sizeof *shape);
    if (!status)
        status = arena_text(arena, from->name, strlen(from->name), &to->name);
    return status ? status : arena_text(arena, from->dtype, strlen(from->dtype), &to->dtype);
}

static enum ulp_status add_tensor(struct kept_tensors *k, const struct ulp_tensor *tensor) {
    enum ulp_status status = mem_grow(&k->tensors, k->count, sizeof *k->tensors, &k->room);
    struct ulp_tensor *to = status ? NULL : &k->tensors[k->count];

    if (!status)
        status = describe(&k->arena, tensor, to);
    if (!status)
        status = k->memory->take(k->user, (size_t)tensor->bytes, &to->data);
    if (status)
        return status;
    k->count++;
    return tensor->bytes ? k->memory->copy(k->user, to->data, tensor->data, (size_t)tensor->bytes)
                         : ULP_OK;
}

void kept_begin(struct kept_tensors *k) {
    k->filled = 0;
    if (!k->ours)
        return;
    for (size_t i = 0; i < k->count; i++)
        k->memory->give(k->user, k->tensors[i].data);
    mem_free(k->tensors);
    k->tensors = NULL;
    k->count = k->room = 0;
    arena_release(&k->arena);
}

/* ---- the caller's ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct ulp_tensor *)a)->name, ((const struct ulp_tensor *)b)->name);
}

struct ulp_tensor *kept_find(const struct kept_tensors *k, const char *name) {
    const struct ulp_tensor like = {.name = name};

    return k->count && !k->ours ? bsearch(&like, k->tensors, k->count, sizeof like, by_name) : NULL;
}

static bool same_form(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return !strcmp(a->dtype, b->dtype) && a->rank == b->rank && a->bytes == b->bytes &&
           (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

static enum ulp_status fill_tensor(struct kept_tensors *k, const struct ulp_tensor *tensor) {
    struct ulp_tensor *to = kept_find(k, tensor->name);

    if (!to || !same_form(to, tensor))
        return fail(ULP_E_LAYOUT, "the run has a tensor %s that is not the one in memory",
                    quote(tensor->name).text);
    k->filled++;
    return tensor->bytes ? k->memory->copy(k->user, to->data, tensor->data, (size_t)tensor->bytes)
                         : ULP_OK;
}

/* ---- either ---- */

enum ulp_status kept_put(struct kept_tensors *k, const struct ulp_tensor *tensors, size_t count) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++)
        status = k->ours ? add_tensor(k, &tensors[i]) : fill_tensor(k, &tensors[i]);
    return status;
}

enum ulp_status kept_end(const struct kept_tensors *k) {
    return k->ours || k->filled == k->count
               ? ULP_OK
               : fail(ULP_E_LAYOUT, "memory has %zu tensors, and the run %zu", k->count, k->filled);
}

enum ulp_status kept_open(struct kept_tensors *k, const struct kept_memory *memory, void *user,
                          const struct ulp_tensor *tensors, size_t count) {
    enum ulp_status status = ULP_OK;

    *k = (struct kept_tensors){.memory = memory, .user = user, .ours = !tensors};
    if (tensors)
        status = mem_zeroed(count, sizeof *k->tensors, &k->tensors);
    if (status || !tensors || !count)
        return status;
    memcpy(k->tensors, tensors, count * sizeof *tensors);
    k->count = count;
    qsort(k->tensors, count, sizeof *k->tensors, by_name);
    return ULP_OK;
}

void kept_release(struct kept_tensors *k) {
    kept_begin(k);
    mem_free(k->tensors);
    *k = (struct kept_tensors){0};
}
