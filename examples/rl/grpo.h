// SPDX-License-Identifier: Apache-2.0
/* How much better than the others of its group a sample was: what GRPO pulls by. */
#ifndef RL_GRPO_H
#define RL_GRPO_H

#include "sequence.h"

#include <stddef.h>

struct group_report {
    double reward, exact; /* means over all samples */
    double idle;          /* share of groups whose samples were all worth the same */
};

/* Samples lie group by group, `size` in each. Fills in the advantages. */
void grpo_judge(struct sequence *samples, size_t groups, size_t size,
                struct group_report *ret_report);

#endif
