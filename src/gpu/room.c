// SPDX-License-Identifier: Apache-2.0
#include "gpu/room.h"

#include "cuda/memory.h"

#define ALIGNMENT 256u

enum ulp_status device_status(enum ulp_status status, const char *doing) {
    if (status == ULP_E_NOMEM)
        return fail(status, "the GPU has no memory left for %s", doing);
    return status ? fail(status, "the GPU failed while %s: %s", doing, cuda_error_text()) : ULP_OK;
}

enum ulp_status room_take(struct room *spare, size_t bytes, bool pinned, struct room *ret_room) {
    void *memory = NULL;
    enum ulp_status status;

    if (spare->memory && spare->bytes >= bytes) {
        *ret_room = *spare;
        *spare = (struct room){0};
        return ULP_OK;
    }
    status = pinned ? cuda_pinned_new(bytes, &memory) : cuda_memory_new(bytes, &memory);
    if (!status)
        *ret_room = (struct room){memory, bytes, pinned};
    return device_status(status, "a patch");
}

void room_release(struct room *room) {
    if (room->pinned)
        cuda_pinned_free(room->memory);
    else
        cuda_memory_free(room->memory);
    *room = (struct room){0};
}

void room_give(struct room *spare, struct room *room) {
    if (room->bytes > spare->bytes) {
        struct room smaller = *spare;

        *spare = *room;
        *room = smaller;
    }
    room_release(room);
}

size_t room_place(size_t *bytes, size_t count, size_t size) {
    size_t begin = *bytes;

    *bytes += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return begin;
}
