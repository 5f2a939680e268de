// SPDX-License-Identifier: Apache-2.0
#include "patch/tile.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "base/word.h"
#include "patch/grid.h"
#include "tensor/tensor.h"

#include <string.h>

enum cut { CUT_ROWS, CUT_COLUMNS, CUT_COMMON };

static const char *const cut_names[] = {"rows", "columns", "common"};

#define CUTS (sizeof cut_names / sizeof cut_names[0])

struct rule {
    const char *pattern;
    enum cut cut;
    size_t line; /* for messages */
};

struct ulp_tiling {
    struct arena arena; /* patterns */
    unsigned count;
    struct rule *rules;
    size_t rule_count, rule_room;
};

/* ---- rules ---- */

/* A stretch of the text. */
struct word {
    const char *at;
    size_t bytes;
};

/* The next word of a line, which is shortened by it; of no bytes when none is left. */
static struct word next_word(struct word *line) {
    struct word word;

    while (line->bytes && (*line->at == ' ' || *line->at == '\t')) {
        line->at++;
        line->bytes--;
    }
    word = (struct word){line->at, 0};
    while (line->bytes && *line->at != ' ' && *line->at != '\t') {
        line->at++;
        line->bytes--;
        word.bytes++;
    }
    return word;
}

static bool printable(struct word line) {
    for (size_t i = 0; i < line.bytes; i++) {
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7f)
            return false;
    }
    return utf8_valid(line.at, line.bytes);
}

static bool cut_named(struct word word, enum cut *ret_cut) {
    for (size_t i = 0; i < CUTS; i++) {
        if (strlen(cut_names[i]) == word.bytes && !memcmp(cut_names[i], word.at, word.bytes)) {
            *ret_cut = (enum cut)i;
            return true;
        }
    }
    return false;
}

/* A pattern that was there before would never be reached. */
static enum ulp_status check_new(const struct ulp_tiling *tiling, const struct rule *rule) {
    for (size_t i = 0; i < tiling->rule_count; i++) {
        if (!strcmp(tiling->rules[i].pattern, rule->pattern))
            return fail(ULP_E_USAGE, "line %zu of the tiling: %s has a rule already, on line %zu",
                        rule->line, quote(rule->pattern).text, tiling->rules[i].line);
    }
    return ULP_OK;
}

static enum ulp_status add_rule(struct ulp_tiling *tiling, struct rule rule, struct word pattern) {
    enum ulp_status status;

    if (tiling->rule_count == LIMIT_TILING_RULES)
        return fail(ULP_E_LIMIT, "line %zu of the tiling: there are more than %u rules", rule.line,
                    LIMIT_TILING_RULES);
    status = arena_text(&tiling->arena, pattern.at, pattern.bytes, &rule.pattern);
    if (!status)
        status = check_new(tiling, &rule);
    if (!status)
        status =
            mem_grow(&tiling->rules, tiling->rule_count, sizeof *tiling->rules, &tiling->rule_room);
    if (!status)
        tiling->rules[tiling->rule_count++] = rule;
    return status;
}

static enum ulp_status read_line(struct ulp_tiling *tiling, struct word line, size_t number) {
    struct rule rule = {.line = number};
    struct word pattern, how;

    if (!printable(line))
        return fail(ULP_E_USAGE,
                    "line %zu of the tiling has a control character or is not UTF-8: %s", number,
                    quote_bytes(line.at, line.bytes).text);
    pattern = next_word(&line);
    if (!pattern.bytes || *pattern.at == '#')
        return ULP_OK;
    how = next_word(&line);
    if (!cut_named(how, &rule.cut))
        return fail(ULP_E_USAGE,
                    "line %zu of the tiling: behind the pattern %s stands %s, which is none of "
                    "rows, columns and common",
                    number, quote_bytes(pattern.at, pattern.bytes).text,
                    how.bytes ? quote_bytes(how.at, how.bytes).text : "nothing");
    if (next_word(&line).bytes)
        return fail(ULP_E_USAGE, "line %zu of the tiling has more than a pattern and one word",
                    number);
    if (pattern.bytes > LIMIT_NAME_BYTES)
        return fail(ULP_E_LIMIT, "line %zu of the tiling: a pattern of %zu bytes; the limit is %u",
                    number, pattern.bytes, LIMIT_NAME_BYTES);
    return add_rule(tiling, rule, pattern);
}

static enum ulp_status read_rules(struct ulp_tiling *tiling, const char *text) {
    const size_t bytes = strnlen(text, (size_t)LIMIT_TILING_BYTES + 1);
    const char *end = text + bytes;
    enum ulp_status status = ULP_OK;

    if (bytes > LIMIT_TILING_BYTES)
        return fail(ULP_E_LIMIT, "the rules of a tiling exceed %u bytes", LIMIT_TILING_BYTES);
    for (size_t number = 1; !status && text < end; number++) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));

        line_end = line_end ? line_end : end;
        status = read_line(tiling, (struct word){text, (size_t)(line_end - text)}, number);
        text = line_end + (line_end < end);
    }
    return status;
}

enum ulp_status tiling_new(const char *rules, unsigned count, struct ulp_tiling **ret_tiling) {
    struct ulp_tiling *tiling = NULL;
    enum ulp_status status;

    if (!count)
        return fail(ULP_E_USAGE, "a tiling of 0 tiles; the least is 1");
    if (count > LIMIT_TILES)
        return fail(ULP_E_LIMIT, "a tiling of %u tiles; the limit is %u", count, LIMIT_TILES);
    status = mem_zeroed(1, sizeof *tiling, &tiling);
    if (!status) {
        tiling->count = count;
        status = rules ? read_rules(tiling, rules) : ULP_OK;
    }
    if (status) {
        tiling_free(tiling);
        return status;
    }
    *ret_tiling = tiling;
    return ULP_OK;
}

void tiling_free(struct ulp_tiling *tiling) {
    if (!tiling)
        return;
    mem_free(tiling->rules);
    arena_release(&tiling->arena);
    mem_free(tiling);
}

unsigned tiling_count(const struct ulp_tiling *tiling) {
    return tiling->count;
}

/* Each `*` first takes nothing; where that fails, the last one takes a byte more. An earlier one
 * need not be tried again: whatever it could take, the last one can. */
static bool matches(const char *pattern, const char *name) {
    const char *star = NULL, *resume = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static const struct rule *rule_for(const struct ulp_tiling *tiling, const char *name) {
    for (size_t i = 0; i < tiling->rule_count; i++) {
        if (matches(tiling->rules[i].pattern, name))
            return &tiling->rules[i];
    }
    return NULL;
}

/* ---- regions ---- */

/* The first of `count` bands; the others are as long and begin on words when this one ends on one.
 * False when the tensor does not divide, or a word would be torn. */
static bool first_band(const struct ulp_tensor *tensor, enum cut cut, unsigned count,
                       struct ulp_region *ret_band) {
    struct ulp_region band = {.tensor = tensor->name};
    uint64_t *divided = cut == CUT_ROWS ? &band.rows : &band.columns;

    grid_view(tensor, &band.rows, &band.columns);
    if (*divided % count)
        return false;
    *divided /= count;
    *ret_band = band;
    return grid_on_words(tensor, &band);
}

static enum ulp_status cannot_cut(const struct ulp_tiling *tiling, const struct rule *rule,
                                  const struct ulp_tensor *tensor) {
    uint64_t rows, columns;

    grid_view(tensor, &rows, &columns);
    return fail(ULP_E_REGIONS,
                "tensor %s, %llu rows of %llu columns of %u bytes, cannot be cut into %u bands of "
                "%s, as line %zu of the tiling says: they do not divide, or a word of 8 bytes "
                "would be torn; make it common",
                quote(tensor->name).text, (unsigned long long)rows, (unsigned long long)columns,
                word_bytes_of(tensor->bits), tiling->count, cut_names[rule->cut], rule->line);
}

/* The region that `tile` has of a tensor; of no rows when it has none. */
static enum ulp_status region_of(const struct ulp_tiling *tiling, const struct ulp_tensor *tensor,
                                 unsigned tile, struct ulp_region *ret_region) {
    const struct rule *rule = rule_for(tiling, tensor->name);
    enum cut cut = rule ? rule->cut : tensor->rank >= 2 ? CUT_ROWS : CUT_COMMON;
    struct ulp_region region = {.tensor = tensor->name};

    if (cut != CUT_COMMON && !first_band(tensor, cut, tiling->count, &region)) {
        if (rule)
            return cannot_cut(tiling, rule, tensor);
        cut = CUT_COMMON;
    }
    if (cut == CUT_COMMON) {
        region = (struct ulp_region){.tensor = tensor->name};
        grid_view(tensor, &region.rows, &region.columns);
    }
    if ((cut == CUT_COMMON) != (tile == 0))
        region.rows = 0;
    else if (cut == CUT_ROWS)
        region.row = (tile - 1) * region.rows;
    else if (cut == CUT_COLUMNS)
        region.column = (tile - 1) * region.columns;
    *ret_region = region;
    return ULP_OK;
}

static enum ulp_status sorted_copy(const struct ulp_tensor *tensors, size_t count,
                                   struct ulp_tensor **ret_sorted) {
    struct ulp_tensor *sorted = NULL;
    enum ulp_status status = tensor_check_all(tensors, count, TENSOR_WITHOUT_DATA);

    if (!status)
        status = mem_zeroed(count, sizeof *sorted, &sorted);
    if (status)
        return status;
    if (count)
        memcpy(sorted, tensors, count * sizeof *sorted);
    status = tensor_sort("a state", sorted, count);
    if (status)
        mem_free(sorted);
    else
        *ret_sorted = sorted;
    return status;
}

enum ulp_status tiling_regions(const struct ulp_tiling *tiling, const struct ulp_tensor *tensors,
                               size_t count, unsigned tile, struct ulp_region **ret_regions,
                               size_t *ret_region_count) {
    struct ulp_tensor *sorted = NULL;
    struct ulp_region *regions = NULL;
    size_t used = 0;
    enum ulp_status status;

    if (tile > tiling->count)
        return fail(ULP_E_USAGE, "there is no tile %u: the tiling has %u, and tile 0 in common",
                    tile, tiling->count);
    status = sorted_copy(tensors, count, &sorted);
    if (!status)
        status = mem_zeroed(count, sizeof *regions, &regions);
    for (size_t i = 0; !status && i < count; i++) {
        if (!sorted[i].bytes)
            continue;
        status = region_of(tiling, &sorted[i], tile, &regions[used]);
        used += !status && regions[used].rows;
    }
    mem_free(sorted);
    if (status || !used) {
        mem_free(regions);
        regions = NULL;
    }
    if (!status) {
        *ret_regions = regions;
        *ret_region_count = used;
    }
    return status;
}
