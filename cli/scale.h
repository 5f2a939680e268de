// SPDX-License-Identifier: Apache-2.0
/* An axis: which numbers it spans, which of them are written, and how. */
#ifndef CLI_SCALE_H
#define CLI_SCALE_H

#include "cli/chart.h"

#define SCALE_TICKS_MAX 24u

struct scale {
    enum chart_unit unit;
    bool log;
    double low, high; /* low < high; both positive on a log axis */
    double ticks[SCALE_TICKS_MAX];
    unsigned tick_count;
    double step;        /* between two ticks; 0 on a log axis */
    double divisor;     /* of what is written, */
    const char *suffix; /* with this behind it */
};

/*
 * An axis for numbers from `low` to `high` with about `wanted` ticks (at most SCALE_TICKS_MAX / 2).
 * A tight one ends where the numbers do; others reach to the next tick.
 */
struct scale scale_make(const struct chart_axis *axis, double low, double high, unsigned wanted,
                        bool tight);

/* Whether the axis can show it. */
bool scale_shows(const struct scale *scale, double value);

/* Whether so many of them as there ever are can be added, and the axis still shows the sum. */
bool scale_adds(double value);

/* Where: 0 at the low end, 1 at the high one. */
double scale_share(const struct scale *scale, double value);

struct chart_number scale_tick_text(const struct scale *scale, unsigned tick);

#endif
