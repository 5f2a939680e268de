// SPDX-License-Identifier: Apache-2.0
/* How tellings are kept, as <ulpsync/tell.h> and docs/format/chain.md describe them: the names of
 * their objects, and what a line may be. */
#ifndef SYNC_TELLING_H
#define SYNC_TELLING_H

#include "base/limits.h"
#include "store/store.h"

#include <stdbool.h>
#include <ulpsync/tell.h>

#define TOLD_NUMBER_DIGITS 8u
#define TOLD_NUMBER_MAX 99999999u

/* ULP_E_NAME unless a teller may be called that. */
enum ulp_status teller_name_check(const char *name);

/* RUN/told/ and RUN/told/NAME/, and the object `number`, from 1; the names have been checked. */
void told_prefix(const char *run, const char *name, char key[ULP_KEY_BYTES_MAX + 1]);
void told_key(const char *run, const char *name, uint32_t number, char key[ULP_KEY_BYTES_MAX + 1]);

/* The number at the end of a key; 0 for what is none. */
uint32_t told_number(const char *digits);

/* ULP_E_LIMIT, ULP_E_JSON, ULP_E_SCHEMA or ULP_E_UTF8 unless it is one object on one line. */
enum ulp_status told_line_check(const char *line, size_t bytes);

/* Walks through a line that may be anything. */
enum ulp_status told_line_values(const char *line, ulp_told_value value, void *user);

#endif
