// SPDX-License-Identifier: Apache-2.0
/*
 * What is asked, and what an answer is worth: sums of two numbers of two digits, "47+85=132". Whoever
 * knows arithmetic can check an answer, so nobody has to believe the worker.
 */
#ifndef RL_TASK_H
#define RL_TASK_H

#include "random.h"
#include "sequence.h"

#include <stddef.h>

/* "47+85=", behind the end of the line before. */
void task_ask(struct random *random, struct sequence *ret_sequence);

/* 1 for the sum; a little for right digits of as many as there must be; 0 for anything else. */
double task_reward(const struct sequence *sequence);

/* Reads `line` (without its end) as something to learn from: what stands behind '=', or all of it.
 * 0 if it is empty or too long. */
int task_learn(const char *line, size_t length, struct sequence *ret_sequence);

#endif
