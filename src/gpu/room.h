// SPDX-License-Identifier: Apache-2.0
/* Memory of a device that is kept from one patch to the next: taking it anew costs more than a
 * small patch does. */
#ifndef GPU_ROOM_H
#define GPU_ROOM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed means none. */
struct room {
    uint8_t *memory;
    size_t bytes;
    bool pinned; /* the host's; else the device's */
};

/* `spare` if it is large enough, else new memory. */
enum ulp_status room_take(struct room *spare, size_t bytes, bool pinned, struct room *ret_room);

/* The larger of both becomes the spare one. */
void room_give(struct room *spare, struct room *room);
void room_release(struct room *room);

/* A piece of a room, laid out before there is one: returns where it begins, on a multiple of 256. */
size_t room_place(size_t *bytes, size_t count, size_t size);

/* What the device said, as a sentence: `status` is that of a function of the room cuda. */
enum ulp_status device_status(enum ulp_status status, const char *doing);

#endif
