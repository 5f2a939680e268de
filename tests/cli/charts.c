// SPDX-License-Identifier: Apache-2.0
/* Axes, numbers and words of charts and pages. */
#include "cli/chart_plot.h"
#include "cli/page.h"
#include "cli/scale.h"
#include "tests/test.h"

#include <math.h>

/* ---- axes ---- */

/* An axis as text: "0 | 0.5 | 1.0". */
static const char *ticks_of(struct chart_axis axis, double low, double high, bool tight) {
    static char words[1024];
    const struct scale scale = scale_make(&axis, low, high, 5, tight);
    size_t used = 0;

    words[0] = 0;
    for (unsigned i = 0; i < scale.tick_count; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? " | " : "",
                                 scale_tick_text(&scale, i).text);
    return words;
}

static void test_linear_ticks(void **unused) {
    const struct chart_axis anywhere = {.anywhere = true}, zero = {0};

    (void)unused;
    assert_string_equal(ticks_of(zero, 0.1, 0.9, false), "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0");
    assert_string_equal(ticks_of(anywhere, 0.301, 0.309, false),
                        "0.300 | 0.302 | 0.304 | 0.306 | 0.308 | 0.310");
    assert_string_equal(ticks_of(zero, -3, 7, false), "-4 | -2 | 0 | 2 | 4 | 6 | 8");
    assert_string_equal(ticks_of(anywhere, 1e9, 1e9 + 4, false),
                        "1e+09 | 1e+09 | 1e+09 | 1e+09 | 1e+09");
    assert_string_equal(ticks_of(zero, 0, 1e-9, false),
                        "0 | 2e-10 | 4e-10 | 6e-10 | 8e-10 | 1e-09");
    assert_string_equal(ticks_of(zero, 0, 0, false), "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0");
    assert_string_equal(ticks_of(zero, 5, 5, false), "0 | 1 | 2 | 3 | 4 | 5");
    assert_string_equal(ticks_of(zero, -5, -5, false), "-5 | -4 | -3 | -2 | -1 | 0");
}

static void test_whole_numbers(void **unused) {
    const struct chart_axis steps = {.unit = CHART_WHOLE};

    (void)unused;
    assert_string_equal(ticks_of(steps, 3, 5, true), "3 | 4 | 5");
    assert_string_equal(ticks_of(steps, 7, 7, true), "7");
    assert_string_equal(ticks_of(steps, 0, 0, true), "0");
    assert_string_equal(ticks_of(steps, 3, 1003, true), "200 | 400 | 600 | 800 | 1000");
    assert_string_equal(ticks_of(steps, 20000000, 20000004, true),
                        "20000000 | 20000001 | 20000002 | 20000003 | 20000004");
}

static void test_units(void **unused) {
    const struct chart_axis bytes = {.unit = CHART_BYTES}, time = {.unit = CHART_SECONDS},
                            share = {.unit = CHART_PERCENT}, count = {.unit = CHART_COUNT};

    (void)unused;
    assert_string_equal(ticks_of(bytes, 0, 3, false), "0 | 1 B | 2 B | 3 B");
    assert_string_equal(ticks_of(bytes, 0, 2.2 * 1048576, false),
                        "0 | 0.5 MiB | 1.0 MiB | 1.5 MiB | 2.0 MiB | 2.5 MiB");
    assert_string_equal(ticks_of(bytes, 0, 1010 * 1024, false),
                        "0 | 500 KiB | 1000 KiB | 1500 KiB");
    assert_string_equal(ticks_of(time, 0, 0.09, false),
                        "0 | 20 ms | 40 ms | 60 ms | 80 ms | 100 ms");
    assert_string_equal(ticks_of(time, 0, 90, false), "0 | 30 s | 60 s | 90 s");
    assert_string_equal(ticks_of(time, 0, 1400, false),
                        "0 | 5 min | 10 min | 15 min | 20 min | 25 min");
    assert_string_equal(ticks_of(time, 0, 2e-6, false),
                        "0 | 0.5 \xc2\xb5s | 1.0 \xc2\xb5s | 1.5 \xc2\xb5s | 2.0 \xc2\xb5s");
    assert_string_equal(ticks_of(share, 0, 0.0112, false), "0 | 0.5 % | 1.0 % | 1.5 %");
    assert_string_equal(ticks_of(count, 0, 2.3e6, false),
                        "0 | 0.5 M | 1.0 M | 1.5 M | 2.0 M | 2.5 M");
}

static void test_log_ticks(void **unused) {
    const struct chart_axis bytes = {.unit = CHART_BYTES, .log = true}, plain = {.log = true},
                            time = {.unit = CHART_SECONDS, .log = true};

    (void)unused;
    assert_string_equal(ticks_of(bytes, 9e4, 2e9, false),
                        "10 KiB | 100 KiB | 1 MiB | 10 MiB | 100 MiB | 1 GiB | 10 GiB");
    assert_string_equal(ticks_of(bytes, 9e4, 1.1e5, false), "50 KiB | 100 KiB | 200 KiB");
    assert_string_equal(ticks_of(bytes, 5, 5, false), "5 B | 10 B");
    assert_string_equal(ticks_of(plain, 1e-3, 1e3, false),
                        "0.001 | 0.01 | 0.1 | 1 | 10 | 100 | 1000");
    assert_string_equal(ticks_of(plain, 1, 1e60, false), "1 | 1e+10 | 1e+20 | 1e+30 | 1e+40 | "
                                                         "1e+50 | 1e+60");
    assert_string_equal(ticks_of(time, 0.02, 0.3, false),
                        "20 ms | 50 ms | 100 ms | 200 ms | 500 ms");
}

/* Whatever the numbers, an axis spans them, ascends, and has ticks on it. */
static void check_axis(struct chart_axis axis, double low, double high, bool tight) {
    const struct scale scale = scale_make(&axis, low, high, 5, tight);

    assert_true(scale.low < scale.high);
    assert_true(scale.tick_count <= SCALE_TICKS_MAX);
    assert_true(scale_share(&scale, low) >= -1e-6 && scale_share(&scale, high) <= 1 + 1e-6);
    for (unsigned i = 0; i < scale.tick_count; i++) {
        const double share = scale_share(&scale, scale.ticks[i]);

        if (!(share >= -1e-6 && share <= 1 + 1e-6))
            fail_msg("axis from %g to %g (unit %d, log %d, tight %d) has a tick at %g", low, high,
                     (int)axis.unit, axis.log, tight, scale.ticks[i]);
        assert_true(!i || scale.ticks[i] > scale.ticks[i - 1]);
    }
    assert_true(tight || scale.tick_count >= 2);
}

static void test_any_numbers(void **unused) {
    (void)unused;
    for (unsigned i = 0; i < 20000; i++) {
        const double size = pow(10, (double)(test_random() % 480) - 240);
        const double low = size * (double)(test_random() % 1000 + 1);
        const double high = low * (1 + (double)(test_random() % 1000) / 7);
        const double sign = test_random() % 2 ? 1 : -1;
        struct chart_axis axis = {.unit = (enum chart_unit)(test_random() % 6)};

        axis.log = test_random() % 2;
        axis.anywhere = test_random() % 2;
        check_axis(axis, low, high, !axis.log && axis.unit != CHART_WHOLE && test_random() % 2);
        axis.log = false;
        check_axis(axis, fmin(sign * low, high), high, false);
    }
}

/* Their quotient is no number, or their difference is next to nothing. */
static void test_far_apart_and_close(void **unused) {
    const struct chart_axis log = {.log = true}, anywhere = {.anywhere = true}, zero = {0},
                            steps = {.unit = CHART_WHOLE};
    static const double ones[] = {1, 1e200, -7e18, 18446744073709551615.};

    (void)unused;
    check_axis(log, 1e-240, 1e240, false);
    for (unsigned i = 0; i < sizeof ones / sizeof *ones; i++) {
        const double next = nextafter(ones[i], INFINITY);

        check_axis(anywhere, ones[i], next, false);
        check_axis(zero, ones[i], next, true);
        check_axis(steps, ones[i], ones[i], true);
        check_axis(steps, ones[i], next, true);
    }
}

static void test_what_an_axis_shows(void **unused) {
    const struct scale linear = {.log = false}, log = {.log = true};

    (void)unused;
    assert_true(scale_shows(&linear, 0) && scale_shows(&linear, -1e200));
    assert_false(scale_shows(&linear, NAN) || scale_shows(&linear, INFINITY) ||
                 scale_shows(&linear, 1e300));
    assert_true(scale_shows(&log, 1e-200));
    assert_true(scale_adds(-1e200) && !scale_adds(1e201) && !scale_adds(NAN));
    assert_false(scale_shows(&log, 0) || scale_shows(&log, -1) || scale_shows(&log, 1e-300));
}

static void test_numbers(void **unused) {
    (void)unused;
    assert_string_equal(chart_number(0.25, CHART_PLAIN).text, "0.25");
    assert_string_equal(chart_number(NAN, CHART_BYTES).text, "-");
    assert_string_equal(chart_number(1536, CHART_BYTES).text, "1.50 KiB");
    assert_string_equal(chart_number(17, CHART_BYTES).text, "17 B");
    assert_string_equal(chart_number(0.0123, CHART_SECONDS).text, "12.3 ms");
    assert_string_equal(chart_number(0, CHART_SECONDS).text, "0 s");
    assert_string_equal(chart_number(150, CHART_SECONDS).text, "2.50 min");
    assert_string_equal(chart_number(0.00913, CHART_PERCENT).text, "0.913 %");
    assert_string_equal(chart_number(0.25, CHART_PERCENT).text, "25.0 %");
    assert_string_equal(chart_number(1234567, CHART_COUNT).text, "1.23 M");
    assert_string_equal(chart_number(1234567890, CHART_WHOLE).text, "1234567890");
    assert_string_equal(chart_number(8.64e204, CHART_SECONDS).text, "1e+200 d"); /* not cut */
}

/* ---- words ---- */

static void assert_escaped(const char *words, const char *expected) {
    struct text text = {0};

    text_add_escaped(&text, words);
    assert_ok(text_status(&text));
    assert_string_equal(text_words(&text), expected);
    text_release(&text);
}

static void test_escaping(void **unused) {
    (void)unused;
    assert_escaped("", "");
    assert_escaped("<b a='1' c=\"2\">&amp;", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;");
    assert_escaped("\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f");
    assert_escaped("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_escaped("\xff\xc0\x80\xed\xa0\x80", "\\xff\\xc0\\x80\\xed\\xa0\\x80");
    assert_escaped("\xc2\x85", "\\xc2\\x85");          /* a C1 control character */
    assert_escaped("\xe2\x80\xae", "\\xe2\\x80\\xae"); /* right to left from here */
    assert_escaped("\xef\xbf\xbf", "\\xef\\xbf\\xbf"); /* not allowed in XML */
    assert_escaped("\xe2\x80", "\\xe2\\x80");          /* cut off */
}

static void assert_fits(const char *words, double width, const char *expected) {
    struct text text = {0};

    plot_add_fitting(&text, words, width);
    assert_string_equal(text_words(&text), expected);
    text_release(&text);
}

static void test_words_that_are_cut(void **unused) {
    (void)unused;
    assert_fits("short", 100, "short");
    assert_fits("model.layers.7.mlp.up", 98, "model\xe2\x80\xa6mlp.up");
    assert_fits("<<<<<<<<<<<<<<<<<<<<<<<<", 40, "&lt;\xe2\x80\xa6&lt;&lt;");
    assert_fits("abc", 0, "\xe2\x80\xa6");
    for (double width = 0; width < 400; width += 3.7) {
        struct text text = {0};

        plot_add_fitting(&text, "\xff\xe2\x82\xac\xc3\xa4&<\x1b plain words \xf0\x9f\x98\x80\xff",
                         width);
        assert_ok(text_status(&text));
        text_release(&text);
    }
}

static void test_text_grows_to_its_limit(void **unused) {
    struct text text = {0};
    char block[4097];

    (void)unused;
    memset(block, 'x', 4096);
    block[4096] = 0;
    for (unsigned i = 0; i < 1000; i++)
        text_addf(&text, "%s%u", block, i);
    assert_ok(text_status(&text));
    assert_int_equal(text.length, 4096 * 1000 + 10 + 180 + 2700);
    assert_int_equal(strlen(text.data), text.length);
    while (!text_status(&text) && text.length < 2 * TEXT_BYTES_MAX)
        text_add(&text, block);
    assert_fails(text_status(&text), ULP_E_LIMIT, "longer than 256 MiB");
    assert_true(text.length < TEXT_BYTES_MAX);
    text_release(&text);
    assert_string_equal(text_words(&text), "");
}

/* ---- charts ---- */

static size_t count_of(const char *words, const char *part) {
    size_t count = 0;

    for (words = strstr(words, part); words; words = strstr(words + 1, part))
        count++;
    return count;
}

/* A line with two gaps: three strokes, and a marker with a tooltip for each point that is there. */
static void test_gaps(void **unused) {
    const double x[] = {1, 2, 3, 4, 5, 6, 7}, y[] = {1, 2, NAN, 4, INFINITY, 6, 7};
    const struct chart_series series = {.name = "a<b", .x = x, .y = y, .count = 7};
    struct text text = {0};
    const char *line;
    char strokes[512];

    (void)unused;
    chart_lines(&text, &(struct chart){.label = "l\"<",
                                       .x = {.title = "step", .unit = CHART_WHOLE},
                                       .series = &series,
                                       .series_count = 1});
    line = strstr(text_words(&text), "class=\"line");
    assert_non_null(line);
    snprintf(strokes, sizeof strokes, "%.*s", (int)strcspn(line, "\n"), line);
    assert_int_equal(count_of(strstr(strokes, "d=\"M"), "M"), 3);
    assert_int_equal(count_of(text_words(&text), "<title>"), 5);
    assert_non_null(strstr(text_words(&text), "<title>a&lt;b: 4 (step 4)</title>"));
    assert_non_null(strstr(text_words(&text), "role=\"img\" aria-label=\"l&quot;&lt;\""));
    assert_null(strstr(text_words(&text), "nan"));
    assert_null(strstr(text_words(&text), "inf"));
    text_release(&text);
}

typedef void (*chart_kind)(struct text *out, const struct chart *chart);
static const chart_kind kinds[] = {chart_lines,   chart_points, chart_bars,
                                   chart_stacked, chart_rows,   chart_heat};

/* Nothing, one point, and what cannot be drawn: never a number that is none. */
static void test_little(void **unused) {
    static const double values[] = {0,      1,      -1,     NAN,    INFINITY, 1e308,
                                    -1e308, 5e-324, 1e-300, 1e-240, 1e240};
    enum { COUNT = sizeof values / sizeof *values };

    (void)unused;
    for (unsigned k = 0; k < 6; k++) {
        for (unsigned i = 0; i < COUNT * COUNT * 2; i++) {
            const double x[] = {0, 1}, y[] = {values[i % COUNT], values[i / COUNT % COUNT]};
            const struct chart_series series = {.name = "s", .x = x, .y = y, .count = 1 + i % 2};
            struct text text = {0};

            kinds[k](&text, &(struct chart){.label = "l",
                                            .y = {.log = i >= COUNT * COUNT,
                                                  .anywhere = i % 3,
                                                  .unit = (enum chart_unit)(i % 6)},
                                            .series = &series,
                                            .series_count = i % 7 ? 1 : 0});
            assert_ok(text_status(&text));
            if (strstr(text_words(&text), "nan") || strstr(text_words(&text), "inf"))
                fail_msg("kind %u of %g and %g, case %u:\n%s", k, y[0], y[1], i, text_words(&text));
            assert_non_null(strstr(text_words(&text), "</svg>"));
            text_release(&text);
        }
    }
}

/* However much is given, a chart has a size. */
static void test_much(void **unused) {
    const size_t count = 100000;
    double *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y);
    struct chart_series *series = calloc(500, sizeof *series);

    (void)unused;
    assert_true(x && y && series);
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)i;
        y[i] = (double)(test_random() % 1000) + 1;
    }
    for (unsigned i = 0; i < 500; i++)
        series[i] = (struct chart_series){"name", x, y, i ? 1000 : count};
    for (unsigned k = 0; k < 6; k++) {
        struct text text = {0};

        for (unsigned i = 0; i < 500; i++)
            series[i].count = k >= 2 && i ? count : series[i].count;
        kinds[k](&text,
                 &(struct chart){.label = "l", .series = series, .series_count = k == 5 ? 500 : 1});
        assert_ok(text_status(&text));
        assert_true(text.length > 1000 && text.length < 1000000);
        text_release(&text);
    }
    free(x);
    free(y);
    free(series);
}

/* Of neighbours that share a bar the mean is shown, without those that are missing. */
static void test_means(void **unused) {
    double y[200];
    const struct chart_series series = {.name = "s", .y = y, .count = 200};
    struct text text = {0};

    (void)unused;
    for (unsigned i = 0; i < 200; i++)
        y[i] = i % 3 ? 10 : NAN;
    y[1] = 30;
    chart_stacked(&text, &(struct chart){.label = "l",
                                         .x = {.title = "step", .unit = CHART_WHOLE},
                                         .series = &series,
                                         .series_count = 1});
    assert_non_null(strstr(text_words(&text), "<title>s: 20 (step 0 to 2, mean)</title>"));
    assert_non_null(strstr(text_words(&text), "<title>s: 10 (step 3 to 5, mean)</title>"));
    text_release(&text);
}

/* ---- pages ---- */

static void test_a_page_on_disk(void **unused) {
    char *directory = temp_directory_make();
    struct text page = {0};
    char words[4] = "";
    FILE *file;

    (void)unused;
    text_add(&page, "one");
    assert_ok(page_write(&page, path_in(directory, "page.html")));
    text_add(&page, "two");
    page.out_of_memory = true; /* a page with holes replaces nothing */
    assert_fails(page_write(&page, path_in(directory, "page.html")), ULP_E_NOMEM, "out of memory");
    file = fopen(path_in(directory, "page.html"), "r");
    assert_non_null(file);
    assert_int_equal(fread(words, 1, 4, file), 3);
    fclose(file);
    assert_memory_equal(words, "one", 3);
    page.out_of_memory = false;
    assert_fails(page_write(&page, path_in(directory, "no/page.html")), ULP_E_NOT_FOUND,
                 "no/page.html");
    assert_fails(page_write(&page, directory), ULP_E_FILE_KIND, "directory");
    text_release(&page);
    temp_directory_remove(directory);
}

TEST_MAIN(test_linear_ticks, test_whole_numbers, test_units, test_log_ticks, test_any_numbers,
          test_far_apart_and_close, test_what_an_axis_shows, test_numbers, test_escaping,
          test_words_that_are_cut, test_text_grows_to_its_limit, test_gaps, test_little, test_much,
          test_means, test_a_page_on_disk)
