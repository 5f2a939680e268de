// SPDX-License-Identifier: Apache-2.0
/* `ulpsync publish --watch`: publishes each checkpoint that appears in a directory. */
#ifndef CLI_PUBLISH_WATCH_H
#define CLI_PUBLISH_WATCH_H

#include "cli/notes.h"
#include "cli/telling.h"

/* Who hears of it: standard output, and whoever looks on. */
struct audience {
    const struct cli_args *args;
    struct telling telling;
    struct notes notes;
};

enum ulp_status publish_watch(struct audience *audience, const struct run_place *place,
                              const struct ulp_run_options *options);

/* What one publish did; `event` and `path` are NULL when it is the only one. */
void publish_tell(struct audience *audience, const char *event, const char *path,
                  const struct ulp_run_report *report);

#endif
