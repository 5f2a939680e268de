// SPDX-License-Identifier: Apache-2.0
/* A file of text that appears complete, over the one before. */
#ifndef CLI_WHOLE_FILE_H
#define CLI_WHOLE_FILE_H

#include <stddef.h>
#include <ulpsync/ulpsync.h>

/* "-" is standard output; pipes and devices are written to. */
enum ulp_status whole_file_write(const char *path, const char *words, size_t bytes);

/* What errno says of a file that could not be made or written. */
enum ulp_status cannot_write(const char *path);

#endif
