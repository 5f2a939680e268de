// SPDX-License-Identifier: Apache-2.0
/* Silent until ulp_log_set() names a listener. A message that nobody hears costs one comparison. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <ulpsync/ulpsync.h>

void log_message(enum ulp_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
