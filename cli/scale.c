// SPDX-License-Identifier: Apache-2.0
#include "cli/scale.h"

#include <math.h>
#include <stdio.h>

/* How far off rounding may be when numbers are compared with multiples of a step. */
#define SLACK 1e-9

/* Beyond these, differences and quotients of two numbers need not be numbers any more. */
#define LARGEST 1e250
#define SMALLEST 1e-250
#define LARGEST_SUMMAND 1e200

/* Numbers whose difference is a smaller share of them are one: there is no room for ticks between. */
#define CLOSE 1e-12

struct unit {
    double divisor;
    const char *suffix;
};

static const struct unit plain_units[] = {{1, ""}, {0, NULL}};
static const struct unit percent_units[] = {{0.01, " %"}, {0, NULL}};
static const struct unit count_units[] = {{1, ""},     {1e3, " K"},  {1e6, " M"},
                                          {1e9, " B"}, {1e12, " T"}, {0, NULL}};
static const struct unit byte_units[] = {
    {1, " B"}, {1024., " KiB"}, {1048576., " MiB"}, {1073741824., " GiB"}, {1099511627776., " TiB"},
    {0, NULL}};
static const struct unit second_units[] = {
    {1e-9, " ns"}, {1e-6, " \xc2\xb5s"}, {1e-3, " ms"}, {1, " s"},
    {60, " min"},  {3600, " h"},         {86400, " d"}, {0, NULL}};

static const struct unit *units_of(enum chart_unit unit) {
    switch (unit) {
    case CHART_COUNT:
        return count_units;
    case CHART_BYTES:
        return byte_units;
    case CHART_SECONDS:
        return second_units;
    case CHART_PERCENT:
        return percent_units;
    default:
        return plain_units;
    }
}

/* The largest that is not larger than the number. */
static struct unit unit_for(double value, enum chart_unit unit) {
    const struct unit *units = units_of(unit);

    if (unit == CHART_SECONDS && value == 0)
        return second_units[3];
    while (units[1].suffix && fabs(value) >= units[1].divisor * (1 - SLACK))
        units++;
    return *units;
}

struct chart_number chart_number(double value, enum chart_unit unit) {
    const struct unit in = unit_for(value, unit);
    const double number = value / in.divisor;
    struct chart_number out;

    if (!isfinite(value))
        snprintf(out.text, sizeof out.text, "-");
    else if (unit == CHART_WHOLE)
        snprintf(out.text, sizeof out.text, "%.0f", value);
    else if (unit == CHART_PLAIN)
        snprintf(out.text, sizeof out.text, "%.6g", value);
    else if (fabs(number) >= 1e9 || /* digits to the edge of the page would be cut */
             (unit == CHART_PERCENT && number != 0 && fabs(number) < 1 && in.divisor != 1))
        snprintf(out.text, sizeof out.text, "%.3g%s", number, in.suffix);
    else if (number == 0 || (in.divisor == 1 && unit != CHART_SECONDS))
        snprintf(out.text, sizeof out.text, "%.0f%s", number, in.suffix);
    else
        snprintf(out.text, sizeof out.text, "%.*f%s",
                 fabs(number) < 10    ? 2
                 : fabs(number) < 100 ? 1
                                      : 0,
                 number, in.suffix);
    return out;
}

/* ---- linear ---- */

/* The smallest of 1, 2, 5, 10, 20, ... that is not smaller, be it 0.01, 0.02, ... */
static double round_up(double raw) {
    const double power = pow(10, floor(log10(raw)));

    for (unsigned i = 0; i < 3; i++) {
        static const double digits[] = {1, 2, 5};

        if (digits[i] * power >= raw * (1 - SLACK))
            return digits[i] * power;
    }
    return 10 * power;
}

/* Whole numbers of seconds, minutes, hours: as clocks count. */
static double round_up_time(double raw) {
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
                                   600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};

    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] >= raw)
            return steps[i];
    }
    return 86400 * round_up(raw / 86400);
}

static void choose_step(struct scale *scale, double reach, double raw) {
    const struct unit unit = unit_for(reach, scale->unit);

    scale->divisor = unit.divisor;
    scale->suffix = unit.suffix;
    if (scale->unit == CHART_SECONDS && raw > 1) {
        scale->step = round_up_time(raw);
        while (scale->divisor > 1 && scale->step < scale->divisor) /* 90 s are not 1.5 min */
            scale->divisor = scale->divisor > 3600 ? 3600 : scale->divisor > 60 ? 60 : 1;
        scale->suffix = unit_for(scale->divisor, scale->unit).suffix;
        return;
    }
    if (scale->divisor > 1 && scale->unit == CHART_SECONDS) {
        scale->divisor = 1;
        scale->suffix = " s";
    }
    scale->step = round_up(raw / scale->divisor) * scale->divisor;
    if (scale->step < 1 &&
        (scale->unit == CHART_WHOLE || scale->unit == CHART_BYTES || scale->unit == CHART_COUNT))
        scale->step = 1;
}

static void make_linear(struct scale *scale, unsigned wanted, bool tight) {
    const double reach = fmax(fabs(scale->low), fabs(scale->high));
    double first, last;

    choose_step(scale, reach, (scale->high - scale->low) / wanted);
    if (!tight) {
        scale->low = floor(scale->low / scale->step + SLACK) * scale->step;
        scale->high = ceil(scale->high / scale->step - SLACK) * scale->step;
        if (!(scale->low < scale->high)) /* far less than a step: of bytes there are no halves */
            scale->high = scale->low + scale->step;
    }
    first = ceil(scale->low / scale->step - SLACK);
    last = floor(scale->high / scale->step + SLACK);
    for (double i = 0; i <= last - first && scale->tick_count < SCALE_TICKS_MAX; i++) {
        const double tick = (first + i) * scale->step;
        const double share = scale_share(scale, tick);

        if (share > -SLACK && share < 1 + SLACK)
            scale->ticks[scale->tick_count++] = tick;
    }
}

/* ---- logarithmic ---- */

/* Rung i of a ladder of round numbers: 1, 10, 100, and for bytes 1 KiB, 10 KiB, 100 KiB, 1 MiB; the
 * fine one has 2 and 5 between them. */
static double rung(double i, bool fine, bool bytes) {
    static const double digits[] = {1, 2, 5};
    const double power = fine ? floor(i / 3) : i;
    const double digit = fine ? digits[(int)(i - 3 * power)] : 1;

    if (!bytes)
        return digit * pow(10, power);
    return digit * pow(1024, floor(power / 3)) * pow(10, power - 3 * floor(power / 3));
}

/* The last rung that is not above the number. */
static double rung_below(double value, bool fine, bool bytes) {
    double i = floor(log10(value)) * (fine ? 3 : 1);

    while (rung(i, fine, bytes) > value * (1 + SLACK))
        i--;
    while (rung(i + 1, fine, bytes) <= value * (1 + SLACK))
        i++;
    return i;
}

static void make_log(struct scale *scale, unsigned wanted) {
    const bool bytes = scale->unit == CHART_BYTES;
    bool fine = false;
    double from, to, stride;

    for (;; fine = true) {
        from = rung_below(scale->low, fine, bytes);
        to = rung_below(scale->high, fine, bytes);
        if (rung(to, fine, bytes) < scale->high * (1 - SLACK) || to == from)
            to++;
        if (fine || to - from >= 3)
            break;
    }
    stride = ceil((to - from) / (wanted + 1));
    to = from + ceil((to - from) / stride) * stride;
    for (double i = from; i <= to && scale->tick_count < SCALE_TICKS_MAX; i += stride)
        scale->ticks[scale->tick_count++] = rung(i, fine, bytes);
    scale->low = scale->ticks[0];
    scale->high = scale->ticks[scale->tick_count - 1];
}

/* ---- both ---- */

/* A single number, or none, still needs something around it. */
static void widen(struct scale *scale, bool tight) {
    const double close = CLOSE * fmax(fabs(scale->low), fabs(scale->high));

    if (scale->high - scale->low > fmax(SMALLEST, close))
        return;
    if (fabs(scale->low) <= SMALLEST)
        scale->low = 0;
    scale->high = scale->low;
    if (!tight && scale->low > 0)
        scale->low = 0;
    else if (!tight && scale->low < 0)
        scale->high = 0;
    else if (!tight)
        scale->high = 1;
    else if (scale->unit == CHART_WHOLE || scale->low == 0) {
        scale->low -= fmax(0.5, close);
        scale->high += fmax(0.5, close);
    } else {
        const double around = fabs(scale->low) / 10;

        scale->low -= around;
        scale->high += around;
    }
}

struct scale scale_make(const struct chart_axis *axis, double low, double high, unsigned wanted,
                        bool tight) {
    struct scale scale = {.unit = axis->unit, .log = axis->log, .low = low, .high = high};

    if (!(low <= high) || (scale.log && low <= 0)) {
        scale.low = scale.log ? 1 : 0;
        scale.high = fmax(scale.low, isfinite(high) ? high : 1);
    }
    if (scale.log) {
        make_log(&scale, wanted);
        return scale;
    }
    if (!tight && !axis->anywhere) {
        scale.low = fmin(scale.low, 0);
        scale.high = fmax(scale.high, 0);
    }
    widen(&scale, tight);
    make_linear(&scale, wanted, tight);
    return scale;
}

bool scale_adds(double value) {
    return fabs(value) <= LARGEST_SUMMAND;
}

bool scale_shows(const struct scale *scale, double value) {
    return fabs(value) <= LARGEST && (!scale->log || value >= SMALLEST);
}

double scale_share(const struct scale *scale, double value) {
    if (scale->log)
        return (log(value) - log(scale->low)) / (log(scale->high) - log(scale->low));
    return (value - scale->low) / (scale->high - scale->low);
}

/* Digits behind the point that tell two neighbours apart. */
static int decimals(double step) {
    int digits = 0;

    while (digits < 9 && fabs(step - floor(step + 0.5)) > SLACK * step + 1e-12) {
        step *= 10;
        digits++;
    }
    return digits;
}

struct chart_number scale_tick_text(const struct scale *scale, unsigned tick) {
    double value = scale->ticks[tick], divisor = scale->divisor;
    const char *suffix = scale->suffix;
    struct chart_number out;

    if (scale->log) {
        const struct unit unit = unit_for(value, scale->unit);

        divisor = unit.divisor;
        suffix = unit.suffix;
    }
    if (value == 0)
        snprintf(out.text, sizeof out.text, "0");
    else if (scale->unit == CHART_WHOLE)
        snprintf(out.text, sizeof out.text, "%.0f", value);
    else if (scale->log || fabs(value / divisor) >= 1e7 || scale->step / divisor < 1e-6)
        snprintf(out.text, sizeof out.text, "%.5g%s", value / divisor, suffix);
    else
        snprintf(out.text, sizeof out.text, "%.*f%s", decimals(scale->step / divisor),
                 value / divisor, suffix);
    return out;
}
