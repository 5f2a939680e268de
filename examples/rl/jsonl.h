// SPDX-License-Identifier: Apache-2.0
/* A log of one JSON object per line, complete as soon as it is written. */
#ifndef RL_JSONL_H
#define RL_JSONL_H

#include <stdint.h>
#include <stdio.h>
#include <ulpsync/model.h>

struct jsonl {
    FILE *file; /* NULL: nobody wants to know */
};

/* Appends to what is there. `path` may be NULL. */
enum ulp_status jsonl_open(struct jsonl *log, const char *path);
void jsonl_close(struct jsonl *log);

/* {"event": ..., "time_ms": ... ; then fields; then the end of the line. Texts are plain ASCII. */
void jsonl_begin(struct jsonl *log, const char *event);
void jsonl_count(struct jsonl *log, const char *name, uint64_t value);
void jsonl_number(struct jsonl *log, const char *name, double value);
void jsonl_text(struct jsonl *log, const char *name, const char *value);
void jsonl_root(struct jsonl *log, const char *name, const struct ulp_root *root);
void jsonl_end(struct jsonl *log);

uint64_t wall_ms(void);
double seconds(void); /* monotonic */
void nap_ms(unsigned ms);

#endif
