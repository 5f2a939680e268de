// SPDX-License-Identifier: Apache-2.0
/* The three forms in which a study is shown. */
#ifndef CLI_STUDY_SHOW_H
#define CLI_STUDY_SHOW_H

#include "cli/study_run.h"

void study_print_text(const struct study *study);
void study_print_json(const struct study *study);

/* A page with charts. */
enum ulp_status study_write_html(const struct study *study, const char *path);

#endif
