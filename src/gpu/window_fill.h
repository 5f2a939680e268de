// SPDX-License-Identifier: Apache-2.0
/* What a window shows, from the host's memory to the device's. */
#ifndef GPU_WINDOW_FILL_H
#define GPU_WINDOW_FILL_H

#include "gpu/windows.h"

/* Old elements of a tensor that are end to end in both memories. */
struct stretch {
    const uint8_t *from;
    size_t at, bytes; /* in the window */
    size_t tensor;    /* others may be end to end with it, but pinned by themselves */
};

/* The window's chunks, counted from its first; the arrays are the window's, in the host's memory. */
struct cuda_plan window_plan(const struct windows *windows, const struct window *window);

/* Enqueue on the window's stream. What is not pinned is read before they return. */
enum ulp_status window_copy_old(const struct windows *windows, struct window *window,
                                struct ulp_pool *pool);

/* Where the moves of the window's blocks are; they stay where they are, on the device. */
enum ulp_status window_find_moves(const struct windows *windows, struct window *window,
                                  const struct device_moves *of, struct cuda_moves *ret_moves);

/* The snapshot's moves. */
enum ulp_status window_copy_moves(const struct windows *windows, struct window *window,
                                  struct ulp_pool *pool, struct cuda_moves *ret_moves);

#endif
