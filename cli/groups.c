// SPDX-License-Identifier: Apache-2.0
#include "cli/groups.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

/* "model.layers.7.mlp.up_proj.weight" belongs to "model.layers.7"; without a number, all of it. */
static size_t group_length(const char *name) {
    for (const char *part = name; part; part = strchr(part, '.')) {
        size_t digits;

        part += *part == '.';
        digits = strspn(part, DIGITS);
        if (digits && part[digits] == '.')
            return (size_t)(part - name) + digits;
    }
    return strlen(name);
}

void report_add(struct ulp_tensor_report *to, const struct ulp_tensor_report *from) {
    to->elements += from->elements;
    to->changed += from->changed;
    to->bits += from->bits;
    for (unsigned i = 0; i < ULP_STEP_BUCKETS; i++)
        to->steps[i] += from->steps[i];
    for (unsigned i = 0; i < 4; i++)
        to->chunks[i] += from->chunks[i];
}

/* Where the digits at the end of a group's name begin. */
static size_t number_start(const struct group *group) {
    size_t at = group->length;

    while (at && isdigit((unsigned char)group->name[at - 1]))
        at--;
    return at;
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}

/* By name, but 9 comes before 10: of numbers the longer one is larger. */
static int by_name_and_number(const void *x, const void *y) {
    const struct group *a = x, *b = y;
    size_t a_at = number_start(a), b_at = number_start(b);
    int order = compare_text(a->name, a_at, b->name, b_at);

    if (order)
        return order;
    if (a->length - a_at != b->length - b_at)
        return a->length - a_at < b->length - b_at ? -1 : 1;
    return compare_text(a->name, a->length, b->name, b->length);
}

enum ulp_status groups_make(const struct ulp_tensor *tensors,
                            const struct ulp_tensor_report *reports, size_t count,
                            struct group **ret_groups, size_t *ret_count) {
    struct group *groups = calloc(count + 1, sizeof *groups);
    size_t used = 0;

    if (!groups)
        return ulp_fail(ULP_E_NOMEM, "out of memory for the groups of the tensors");
    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        size_t length = group_length(name);
        const struct group *last = used ? &groups[used - 1] : NULL;

        /* in name order, the tensors of a group stand together */
        if (!last || last->length != length || memcmp(last->name, name, length) != 0)
            groups[used++] = (struct group){.name = name, .length = length};
        groups[used - 1].tensors++;
        report_add(&groups[used - 1].total, &reports[i]);
    }
    if (used)
        qsort(groups, used, sizeof *groups, by_name_and_number);
    *ret_groups = groups;
    *ret_count = used;
    return ULP_OK;
}

/* ---- by kind ---- */

/* Whether this part of a name, up to the next dot, is a number; *ret_next is the part behind it. */
static bool part_is_number(const char *part, size_t *ret_length, const char **ret_next) {
    *ret_length = strcspn(part, ".");
    *ret_next = part[*ret_length] ? part + *ret_length + 1 : NULL;
    return *ret_length && strspn(part, DIGITS) == *ret_length;
}

static bool has_number(const char *name) {
    const char *next = name;
    size_t length;

    while (next) {
        if (part_is_number(next, &length, &next))
            return true;
    }
    return false;
}

/* Into `kind`, which has room for the name. */
static void kind_of(const char *name, char *kind) {
    const char *part = name, *next;
    bool numbered = !has_number(name);
    char *end = kind;

    for (; part; part = next) {
        size_t length;

        if (part_is_number(part, &length, &next)) {
            numbered = true;
            continue;
        }
        if (!numbered || (!next && end > kind && !strcmp(part, "weight")))
            continue;
        if (end > kind)
            *end++ = '.';
        memcpy(end, part, length);
        end += length;
    }
    *end = 0;
    if (end == kind)
        memcpy(kind, name, strlen(name) + 1);
}

static int by_name(const void *x, const void *y) {
    const struct group *a = x, *b = y;

    return compare_text(a->name, a->length, b->name, b->length);
}

enum ulp_status groups_make_by_kind(const struct ulp_tensor *tensors,
                                    const struct ulp_tensor_report *reports, size_t count,
                                    struct group **ret_groups, size_t *ret_count) {
    struct group *groups;
    size_t used = 0, text = 0;
    char *names;

    for (size_t i = 0; i < count; i++)
        text += strlen(tensors[i].name) + 1;
    groups = calloc(1, (count + 1) * sizeof *groups + text); /* names are behind the groups */
    if (!groups)
        return ulp_fail(ULP_E_NOMEM, "out of memory for the kinds of the tensors");
    names = (char *)(groups + count + 1);
    for (size_t i = 0; i < count; i++) {
        kind_of(tensors[i].name, names);
        groups[i] = (struct group){
            .name = names, .length = strlen(names), .tensors = 1, .total = reports[i]};
        names += groups[i].length + 1;
    }
    qsort(groups, count, sizeof *groups, by_name);
    for (size_t i = 0; i < count; i++) {
        if (used && !by_name(&groups[used - 1], &groups[i])) {
            groups[used - 1].tensors++;
            report_add(&groups[used - 1].total, &groups[i].total);
        } else {
            groups[used++] = groups[i];
        }
    }
    *ret_groups = groups;
    *ret_count = used;
    return ULP_OK;
}
