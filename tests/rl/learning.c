// SPDX-License-Identifier: Apache-2.0
/* What learning must be: the same bits whoever computes it, and worth its reward. */
#include "tests/test.h"

#include "examples/rl/decode.h"
#include "examples/rl/grpo.h"
#include "examples/rl/learner.h"
#include "examples/rl/task.h"

#include <math.h>

static const struct dims dims = {.context = 12, .width = 32, .heads = 2, .hidden = 48, .layers = 2};

static struct sequence line(const char *text) {
    struct sequence s;

    assert_true(task_learn(text, strlen(text), &s));
    return s;
}

static struct sequence answer(const char *question, const char *said) {
    struct sequence s = {0};

    assert_true(strlen(question) + strlen(said) + 1 <= TOKENS_MAX);
    s.prompt = (uint8_t)snprintf((char *)s.tokens, TOKENS_MAX, "\n%s", question);
    s.length = (uint8_t)(s.prompt + strlen(said));
    memcpy(s.tokens + s.prompt, said, strlen(said));
    return s;
}

static double reward(const char *question, const char *said) {
    const struct sequence s = answer(question, said);

    return task_reward(&s);
}

static void test_reward(void **state) {
    (void)state;
    assert_true(reward("47+85=", "132\n") == 1);
    assert_true(reward("10+10=", "20\n") == 1);
    assert_true(reward("99+99=", "198\n") == 1);
    assert_true(fabs(reward("47+85=", "122\n") - 0.2) < 1e-12);
    assert_true(fabs(reward("47+85=", "931\n") - 0.1) < 1e-12);
    assert_true(reward("47+85=", "32\n") == 0);
    assert_true(reward("47+85=", "132") == 0);
    assert_true(reward("47+85=", "1320\n") == 0);
    assert_true(reward("47+85=", "?\n") == 0);
    assert_true(reward("47+85=", "\n") == 0);
    assert_true(reward("1+1=", "2\n") == 0); /* nobody asked that */
    assert_true(reward("47-15=", "62\n") == 0);
}

static void test_advantages(void **state) {
    struct sequence samples[] = {answer("47+85=", "132\n"), answer("47+85=", "?\n"),
                                 answer("11+11=", "?\n"), answer("11+11=", "?\n")};
    struct group_report report;

    (void)state;
    grpo_judge(samples, 2, 2, &report);
    assert_true(report.reward == 0.25 && report.exact == 0.25 && report.idle == 0.5);
    assert_true(fabsf(samples[0].advantage - 1) < 1e-6f);
    assert_true(fabsf(samples[1].advantage + 1) < 1e-6f);
    assert_true(samples[2].advantage == 0 && samples[3].advantage == 0);
}

/* ---- the same bits ---- */

#define LINES 200

static void fill(struct sequence *lines) {
    struct random random = random_stream(1, 2, 3);

    for (size_t i = 0; i < LINES; i++) {
        char text[TOKENS_MAX];
        const unsigned a = 10 + (unsigned)random_below(&random, 90);

        snprintf(text, sizeof text, "%u+%u=%u", a, 10 + (unsigned)i % 90,
                 a + 10 + (unsigned)i % 90);
        lines[i] = line(text);
    }
}

static void learn(unsigned threads, struct learner *learner, double *ret_first, double *ret_last) {
    static struct sequence lines[LINES];
    struct lesson_report report;

    fill(lines);
    assert_ok(learner_init(learner, &dims, 5, threads));
    for (unsigned step = 0; step < 30; step++) {
        memcpy(learner->weights, learner->masters, learner->layout.total * sizeof(float));
        assert_ok(learner_step(learner, &(struct lesson){lines, LINES, 1e-2, 0}, &report));
        if (!step)
            *ret_first = report.loss;
    }
    *ret_last = report.loss;
}

static void test_same_bits_with_any_threads(void **state) {
    struct learner one, two;
    double first, last;

    (void)state;
    learn(1, &one, &first, &last);
    learn(2, &two, &first, &last);
    assert_memory_equal(one.masters, two.masters, one.layout.total * sizeof(float));
    assert_true(last < first / 2);
    learner_release(&one);
    learner_release(&two);
}

/* ---- what is said, and what the trainer thinks of it ---- */

static void say(struct learner *learner, struct sequence *said, size_t count) {
    struct decoder decoder;
    struct random streams[16];

    decoder_init(&decoder, &learner->layout, 16);
    for (size_t i = 0; i < count; i++) {
        struct random random = random_stream(7, 8, i);

        task_ask(&random, &said[i]);
        streams[i] = random_stream(9, 10, i);
    }
    decoder_say(&decoder, &learner->model, said, streams, count);
    decoder_release(&decoder);
}

/* Byte by byte with what was kept, or all at once: the same chances, but for rounding. */
static void test_decoder_and_pass_agree(void **state) {
    struct learner learner;
    struct sequence said[16];
    struct pass pass;
    double first, last;
    size_t compared = 0;

    (void)state;
    learn(1, &learner, &first, &last);
    memcpy(learner.weights, learner.masters, learner.layout.total * sizeof(float));
    say(&learner, said, 16);
    pass_init(&pass, &learner.layout, 1, dims.context);
    for (size_t i = 0; i < 16; i++) {
        pass.time = (size_t)said[i].length - 1;
        memcpy(pass.input, said[i].tokens, pass.time);
        memcpy(pass.target, said[i].tokens + 1, pass.time);
        pass_forward(&pass, &learner.model);
        for (size_t t = said[i].prompt; t < said[i].length; t++, compared++)
            assert_true(fabsf(pass.log_chance[t - 1] - said[i].log_chance[t]) < 1e-3f);
    }
    assert_true(compared >= 32);
    pass_release(&pass);
    learner_release(&learner);
}

/* What was better than the rest becomes likelier, what was worse less likely; a ratio that has gone
 * far enough pulls no more. */
static void test_pulls(void **state) {
    struct learner learner;
    struct sequence said[16];
    struct lesson_report report;
    double first, last;

    (void)state;
    learn(1, &learner, &first, &last);
    memcpy(learner.weights, learner.masters, learner.layout.total * sizeof(float));
    say(&learner, said, 16);
    for (size_t i = 0; i < 16; i++)
        said[i].advantage = 1;
    learner_refresh(&learner, 1e-8);
    assert_ok(learner_step(&learner, &(struct lesson){said, 16, 1e-3, 0.2}, &report));
    assert_true(fabs(report.ratio - 1) < 1e-3 && report.clipped == 0);
    first = report.loss;
    memcpy(learner.weights, learner.masters, learner.layout.total * sizeof(float));
    for (size_t i = 0; i < 16; i++)
        for (size_t t = 0; t < TOKENS_MAX; t++)
            said[i].log_chance[t] -= 1; /* as if it had been less likely when it was said */
    assert_ok(learner_step(&learner, &(struct lesson){said, 16, 1e-3, 0.2}, &report));
    assert_true(report.loss < first);
    assert_true(report.clipped == 1 && report.gradient == 0);
    for (size_t i = 0; i < 16; i++)
        said[i].advantage = -1; /* and pulled the other way, it is far from too far */
    learner_refresh(&learner, 1e-8);
    assert_ok(learner_step(&learner, &(struct lesson){said, 16, 1e-3, 0.2}, &report));
    assert_true(report.clipped == 0 && report.gradient > 0);
    first = report.loss;
    memcpy(learner.weights, learner.masters, learner.layout.total * sizeof(float));
    assert_ok(learner_step(&learner, &(struct lesson){said, 16, 1e-3, 0.2}, &report));
    assert_true(report.loss > first);
    learner_release(&learner);
}

TEST_MAIN(test_reward, test_advantages, test_same_bits_with_any_threads,
          test_decoder_and_pass_agree, test_pulls)
