// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <stdio.h>

static void print_json_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void next(struct json_out *out, const char *key) {
    uint32_t bit = 1u << out->depth;

    if (out->has_member & bit)
        putchar(',');
    out->has_member |= bit;
    if (key) {
        print_json_string(key);
        putchar(':');
    }
}

void json_out_begin(struct json_out *out, const char *key, char bracket) {
    if (out->depth)
        next(out, key);
    putchar(bracket);
    out->depth++;
    out->has_member &= ~(1u << out->depth);
}

void json_out_end(struct json_out *out, char bracket) {
    putchar(bracket);
    if (--out->depth == 0)
        putchar('\n');
}

void json_out_text(struct json_out *out, const char *key, const char *text) {
    next(out, key);
    print_json_string(text);
}

void json_out_u64(struct json_out *out, const char *key, uint64_t value) {
    next(out, key);
    printf("%llu", (unsigned long long)value);
}

void json_out_real(struct json_out *out, const char *key, double value) {
    next(out, key);
    printf("%.9g", value);
}

void json_out_bool(struct json_out *out, const char *key, bool value) {
    next(out, key);
    fputs(value ? "true" : "false", stdout);
}

static struct readable scaled(uint64_t value, double step, const char *const *units) {
    struct readable out;
    double number = (double)value;
    unsigned unit = 0;

    while (number >= step && units[unit + 1]) {
        number /= step;
        unit++;
    }
    if (unit)
        snprintf(out.text, sizeof out.text, "%.2f %s", number, units[unit]);
    else
        snprintf(out.text, sizeof out.text, "%.0f%s%s", number, *units[0] ? " " : "", units[0]);
    return out;
}

struct readable readable_bytes(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};

    return scaled(bytes, 1024, units);
}

struct readable readable_count(uint64_t count) {
    static const char *const units[] = {"", "K", "M", "B", "T", NULL};

    return scaled(count, 1000, units);
}

void print_name(const char *name) {
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;

        if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}
