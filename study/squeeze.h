// SPDX-License-Identifier: Apache-2.0
/* zstd at level 1, as others use it, to stand beside our own figures; only its sizes matter. */
#ifndef STUDY_SQUEEZE_H
#define STUDY_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>

/* false: this build has no zstd, and nothing is squeezed. */
bool squeeze_available(void);

/* Room for what `bytes` bytes become, at worst. */
size_t squeeze_room(size_t bytes);

/* Bytes of `data` as one frame, which is written to `room`; 0 when it failed. */
size_t squeeze(const void *data, size_t bytes, void *room, size_t room_bytes);

#endif
