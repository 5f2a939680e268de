// SPDX-License-Identifier: Apache-2.0
/* The text that is learned before anything is asked: one line after the other. */
#ifndef RL_CORPUS_H
#define RL_CORPUS_H

#include "sequence.h"

#include <stddef.h>
#include <ulpsync/status.h>

struct corpus {
    struct sequence *lines;
    size_t count;
};

enum ulp_status corpus_read(const char *path, struct corpus *ret_corpus);
void corpus_release(struct corpus *corpus);

#endif
