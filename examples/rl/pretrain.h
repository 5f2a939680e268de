// SPDX-License-Identifier: Apache-2.0
/* Learning the text, before anything is asked. */
#ifndef RL_PRETRAIN_H
#define RL_PRETRAIN_H

#include "corpus.h"
#include "jsonl.h"
#include "learner.h"

struct pretraining {
    uint64_t steps, batch, seed;
    double rate; /* at its highest */
};

enum ulp_status pretrain(struct learner *learner, const struct corpus *corpus,
                         const struct pretraining *how, struct jsonl *log);

#endif
