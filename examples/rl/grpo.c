// SPDX-License-Identifier: Apache-2.0
#include "grpo.h"

#include "task.h"

#include <math.h>

/* Rewards that differ by less are the same. */
#define SPREAD_MIN 1e-6

static double judge_group(struct sequence *samples, size_t size, struct group_report *report) {
    double sum = 0, squares = 0, mean, spread;

    for (size_t i = 0; i < size; i++) {
        const double reward = task_reward(&samples[i]);

        sum += reward;
        squares += reward * reward;
        report->exact += reward >= 1;
    }
    mean = sum / (double)size;
    spread = sqrt(fmax(squares / (double)size - mean * mean, 0));
    report->idle += spread < SPREAD_MIN;
    for (size_t i = 0; i < size; i++)
        samples[i].advantage =
            spread < SPREAD_MIN ? 0 : (float)((task_reward(&samples[i]) - mean) / spread);
    return mean;
}

void grpo_judge(struct sequence *samples, size_t groups, size_t size,
                struct group_report *ret_report) {
    struct group_report report = {0};

    for (size_t i = 0; i < groups; i++)
        report.reward += judge_group(samples + i * size, size, &report);
    report.reward /= (double)groups;
    report.exact /= (double)(groups * size);
    report.idle /= (double)groups;
    *ret_report = report;
}
