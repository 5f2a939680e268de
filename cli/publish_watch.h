// SPDX-License-Identifier: Apache-2.0
/* `ulpsync publish --watch`: publishes each checkpoint that appears in a directory. */
#ifndef CLI_PUBLISH_WATCH_H
#define CLI_PUBLISH_WATCH_H

#include "cli/runs.h"

enum ulp_status publish_watch(const struct cli_args *args, const struct run_place *place,
                              const struct ulp_run_options *options);

/* What one publish did; `event` and `path` are NULL when it is the only one. */
void publish_tell(const struct cli_args *args, const char *event, const char *path,
                  const struct ulp_run_report *report);

#endif
