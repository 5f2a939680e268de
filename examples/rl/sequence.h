// SPDX-License-Identifier: Apache-2.0
/* A line of text: learned from a file, or said by a worker in answer to a prompt. */
#ifndef RL_SEQUENCE_H
#define RL_SEQUENCE_H

#include <stdint.h>

/* No model of ours looks further. */
#define TOKENS_MAX 12

/* Lines begin behind the end of another, and end with one. */
#define LINE_END '\n'

struct sequence {
    uint8_t tokens[TOKENS_MAX];
    uint8_t length, prompt;       /* tokens in all; those that were given */
    float log_chance[TOKENS_MAX]; /* of those that were said, when they were */
    float advantage;              /* over the others of its group; 1 for what is simply learned */
};

#endif
