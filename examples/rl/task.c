// SPDX-License-Identifier: Apache-2.0
#include "task.h"

#include <stdio.h>
#include <string.h>

#define LEAST 10
#define NUMBERS 90

/* What all right digits but one would come to, at most. */
#define PARTIAL 0.3

void task_ask(struct random *random, struct sequence *ret_sequence) {
    const unsigned a = LEAST + (unsigned)random_below(random, NUMBERS);
    const unsigned b = LEAST + (unsigned)random_below(random, NUMBERS);

    memset(ret_sequence, 0, sizeof *ret_sequence);
    ret_sequence->prompt =
        (uint8_t)snprintf((char *)ret_sequence->tokens, TOKENS_MAX, "%c%u+%u=", LINE_END, a, b);
    ret_sequence->length = ret_sequence->prompt;
}

static unsigned two_digits(const uint8_t *at) {
    return (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
}

/* Two digits, a plus, two digits: samples come from outside, and so does what they claim was asked. */
static int is_question(const struct sequence *s) {
    static const char form[] = "\n00+00=";

    for (size_t i = 0; i + 1 < sizeof form; i++)
        if (form[i] == '0' ? s->tokens[i] < '0' || s->tokens[i] > '9'
                           : s->tokens[i] != (uint8_t)form[i])
            return 0;
    return s->prompt == sizeof form - 1;
}

double task_reward(const struct sequence *sequence) {
    const uint8_t *said = sequence->tokens + sequence->prompt;
    const size_t count = (size_t)sequence->length - sequence->prompt;
    size_t right = 0, digits;
    char expected[TOKENS_MAX];

    if (!is_question(sequence))
        return 0;
    digits = (size_t)snprintf(expected, sizeof expected, "%u",
                              two_digits(sequence->tokens + 1) + two_digits(sequence->tokens + 4));
    if (count != digits + 1 || said[digits] != LINE_END)
        return 0;
    for (size_t i = 0; i < digits; i++)
        right += said[i] == (uint8_t)expected[i];
    return right == digits ? 1 : PARTIAL * (double)right / (double)digits;
}

int task_learn(const char *line, size_t length, struct sequence *ret_sequence) {
    const char *question = memchr(line, '=', length);

    if (!length || length + 2 > TOKENS_MAX)
        return 0;
    memset(ret_sequence, 0, sizeof *ret_sequence);
    ret_sequence->tokens[0] = LINE_END;
    memcpy(ret_sequence->tokens + 1, line, length);
    ret_sequence->tokens[length + 1] = LINE_END;
    ret_sequence->length = (uint8_t)(length + 2);
    ret_sequence->prompt = (uint8_t)(question ? question - line + 2 : 1);
    ret_sequence->advantage = 1;
    return 1;
}
