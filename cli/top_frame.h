// SPDX-License-Identifier: Apache-2.0
/* What `ulpsync top` shows of a story. */
#ifndef CLI_TOP_FRAME_H
#define CLI_TOP_FRAME_H

#include "cli/frame.h"
#include "cli/story.h"

/* `rows`: so many lines are seen; 0: as many as it takes. `notice` is NULL, or what went wrong last;
 * `keys`: say how to leave. */
void top_draw(struct frame *frame, const struct story *story, unsigned rows, const char *notice,
              bool keys);

#endif
