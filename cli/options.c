// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option *find_option(const struct cli_verb *verb, const char *name,
                                            size_t length) {
    for (const struct cli_option *o = verb->options; o->name; o++) {
        if (strlen(o->name) == length && !strncmp(o->name, name, length))
            return o;
    }
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_verb *verb, char letter) {
    for (const struct cli_option *o = verb->options; o->name; o++) {
        if (o->letter == letter)
            return o;
    }
    return NULL;
}

/* "--name", "--name=value", "-n", "-nvalue"; *ret_value is what stands in the same word. */
static const struct cli_option *match(const struct cli_verb *verb, const char *word,
                                      const char **ret_value) {
    const char *equals = strchr(word, '=');

    *ret_value = NULL;
    if (word[1] != '-') {
        if (word[2])
            *ret_value = word + 2;
        return find_letter(verb, word[1]);
    }
    if (equals)
        *ret_value = equals + 1;
    return find_option(verb, word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
}

/* Takes the option at words[*at] and, if it is there, its value in the next word. */
static enum ulp_status take_option(struct cli_args *args, int count, char **words, int *at) {
    const char *word = words[*at], *value;
    const struct cli_option *option = match(args->verb, word, &value);

    if (!option)
        return ulp_fail(ULP_E_USAGE, "unknown option '%s'; see 'ulpsync %s --help'", word,
                        args->verb->name);
    if (!option->value && value)
        return ulp_fail(ULP_E_USAGE, "option '--%s' takes no value", option->name);
    if (option->value && !value) {
        if (*at + 1 >= count)
            return ulp_fail(ULP_E_USAGE, "option '--%s' needs a value: --%s %s", option->name,
                            option->name, option->value);
        value = words[++*at];
    }
    if (args->given_count == CLI_GIVEN_MAX)
        return ulp_fail(ULP_E_USAGE, "more than %u options", CLI_GIVEN_MAX);
    args->values[option - args->verb->options] = value ? value : "";
    args->given[args->given_count].option = option;
    args->given[args->given_count++].value = value;
    return ULP_OK;
}

static enum ulp_status check_operands(const struct cli_args *args) {
    const struct cli_verb *verb = args->verb;

    if (option_given(args, "help"))
        return ULP_OK;
    if (args->operand_count < verb->operands_min)
        return ulp_fail(ULP_E_USAGE, "%.*s is missing: ulpsync %s %s",
                        (int)strcspn(verb->operands, " "), verb->operands, verb->name,
                        verb->operands);
    if (args->operand_count > verb->operands_max)
        return ulp_fail(ULP_E_USAGE, "'%s' is one too many: ulpsync %s %s",
                        args->operands[verb->operands_max], verb->name, verb->operands);
    return ULP_OK;
}

enum ulp_status options_parse(const struct cli_verb *verb, int count, char **words,
                              struct cli_args *ret_args) {
    struct cli_args args = {.verb = verb};
    bool only_operands = false;

    for (int i = 0; i < count; i++) {
        const char *word = words[i];

        if (only_operands || word[0] != '-' || !word[1]) {
            if (args.operand_count == CLI_OPERANDS_MAX)
                return ulp_fail(ULP_E_USAGE, "more than %u operands", CLI_OPERANDS_MAX);
            args.operands[args.operand_count++] = word;
        } else if (!strcmp(word, "--")) {
            only_operands = true;
        } else {
            enum ulp_status status = take_option(&args, count, words, &i);

            if (status)
                return status;
        }
    }
    *ret_args = args;
    return check_operands(&args);
}

const char *option_text(const struct cli_args *args, const char *name) {
    const struct cli_option *option = find_option(args->verb, name, strlen(name));

    assert(option);
    return args->values[option - args->verb->options];
}

const char *option_next(const struct cli_args *args, const char *name, unsigned *cursor) {
    while (*cursor < args->given_count) {
        const unsigned at = (*cursor)++;

        if (!strcmp(args->given[at].option->name, name))
            return args->given[at].value;
    }
    return NULL;
}

bool option_given(const struct cli_args *args, const char *name) {
    return option_text(args, name) != NULL;
}

/* Decimal places that a unit stands for; -1 for what is not a unit. */
static int unit_places(const char *suffix) {
    static const struct {
        const char *suffix;
        int places;
    } units[] = {{"", 0}, {"K", 3}, {"M", 6}, {"G", 9}, {"B", 9}, {"T", 12}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!strcmp(suffix, units[i].suffix))
            return units[i].places;
    }
    return -1;
}

static bool append_digit(uint64_t *value, int digit) {
    return !__builtin_mul_overflow(*value, 10u, value) &&
           !__builtin_add_overflow(*value, (uint64_t)digit, value);
}

/* "8.03B" is 803 with seven more zeros: digits, with a point anywhere, moved by the unit. */
static bool parse_count(const char *text, uint64_t *ret_value) {
    size_t length = strspn(text, "0123456789.");
    int places = unit_places(text + length);
    bool behind_point = false, digits = false;
    uint64_t value = 0;

    if (places < 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && behind_point)
            return false;
        if (text[i] == '.') {
            behind_point = true;
            continue;
        }
        if (behind_point && places-- == 0)
            return false; /* a fraction is left */
        digits = true;
        if (!append_digit(&value, text[i] - '0'))
            return false;
    }
    for (; places > 0; places--) {
        if (!append_digit(&value, 0))
            return false;
    }
    *ret_value = value;
    return digits;
}

enum ulp_status option_count(const struct cli_args *args, const char *name, uint64_t min,
                             uint64_t max, uint64_t *value) {
    const char *text = option_text(args, name);
    uint64_t number = 0;

    if (!text)
        return ULP_OK;
    if (!parse_count(text, &number) || number < min || number > max)
        return ulp_fail(
            ULP_E_USAGE,
            "--%s '%s': give a whole number from %llu to %llu, such as 12, 64K, 1.5M or 2B", name,
            text, (unsigned long long)min, (unsigned long long)max);
    *value = number;
    return ULP_OK;
}

/* Bytes that a unit stands for, 0 for what is not a unit. */
static uint64_t unit_bytes(const char *suffix) {
    static const char letters[] = "kmgt";
    const char *letter = *suffix ? strchr(letters, tolower((unsigned char)*suffix)) : NULL;
    uint64_t unit = 1, step = 1024;

    if (!*suffix || !strcmp(suffix, "B"))
        return 1;
    if (!letter)
        return 0;
    if (!strcmp(suffix + 1, "B"))
        step = 1000;
    else if (suffix[1] && strcmp(suffix + 1, "iB") != 0)
        return 0;
    for (ptrdiff_t i = letter - letters; i >= 0; i--)
        unit *= step;
    return unit;
}

enum ulp_status option_size(const struct cli_args *args, const char *name, uint64_t min,
                            uint64_t max, uint64_t *value) {
    const char *text = option_text(args, name);
    uint64_t unit;
    double number;
    char *end;

    if (!text)
        return ULP_OK;
    number = strtod(text, &end);
    unit = unit_bytes(end);
    /* only plain digits may start it: strtod() also knows "inf", "0x10" and signs */
    if (strspn(text, "0123456789.") != (size_t)(end - text) || end == text || !unit ||
        !(number * (double)unit >= (double)min && number * (double)unit <= (double)max))
        return ulp_fail(ULP_E_USAGE,
                        "--%s '%s': give a size such as 4096, 256MiB, 1.5GiB or 2g, from %llu to "
                        "%llu bytes",
                        name, text, (unsigned long long)min, (unsigned long long)max);
    *value = (uint64_t)(number * (double)unit);
    return ULP_OK;
}

enum ulp_status option_real(const struct cli_args *args, const char *name, double min, double max,
                            double *value) {
    const char *text = option_text(args, name);
    char *end;
    double number;

    if (!text)
        return ULP_OK;
    number = strtod(text, &end);
    if (end == text || *end || !(number >= min && number <= max))
        return ulp_fail(ULP_E_USAGE, "--%s '%s': give a number from %g to %g", name, text, min,
                        max);
    *value = number;
    return ULP_OK;
}

enum ulp_status option_choice(const struct cli_args *args, const char *name,
                              const char *const *choices, unsigned *index) {
    const char *text = option_text(args, name);
    char listed[256] = "";

    if (!text)
        return ULP_OK;
    for (unsigned i = 0; choices[i]; i++) {
        if (!strcmp(choices[i], text)) {
            *index = i;
            return ULP_OK;
        }
        if (i)
            strncat(listed, ", ", sizeof listed - strlen(listed) - 1);
        strncat(listed, choices[i], sizeof listed - strlen(listed) - 1);
    }
    return ulp_fail(ULP_E_USAGE, "--%s '%s': choose one of %s", name, text, listed);
}

enum ulp_status option_pool(const struct cli_args *args, struct ulp_pool **ret_pool) {
    uint64_t threads = 0; /* one per CPU */
    enum ulp_status status = option_count(args, "threads", 1, UINT_MAX, &threads);

    return status ? status : ulp_pool_new((unsigned)threads, ret_pool);
}
