// SPDX-License-Identifier: Apache-2.0
#include "cli/page.h"
#include "cli/study_show.h"

enum ulp_status study_write_html(const struct study *study, const char *path) {
    (void)study;
    (void)path;
    return ULP_OK;
}
