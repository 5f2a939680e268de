// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <math.h>
#include <stdio.h>

/* Length of the well-formed UTF-8 sequence that stands here, 0 if there is none. */
static size_t utf8_here(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static FILE *file_of(const struct json_out *out) {
    return out->to ? out->to : stdout;
}

static void print_json_string(FILE *to, const char *text) {
    fputc('"', to);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t length = utf8_here(text);

        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else if (length)
            fwrite(text, 1, length, to);
        else
            fputs("\\ufffd", to);
        text += length ? length : 1;
    }
    fputc('"', to);
}

static void next(struct json_out *out, const char *key) {
    uint32_t bit = 1u << out->depth;

    if (out->has_member & bit)
        fputc(',', file_of(out));
    out->has_member |= bit;
    if (key) {
        print_json_string(file_of(out), key);
        fputc(':', file_of(out));
    }
}

void json_out_begin(struct json_out *out, const char *key, char bracket) {
    if (out->depth)
        next(out, key);
    fputc(bracket, file_of(out));
    out->depth++;
    out->has_member &= ~(1u << out->depth);
}

void json_out_end(struct json_out *out, char bracket) {
    fputc(bracket, file_of(out));
    if (--out->depth == 0)
        fputc('\n', file_of(out));
}

void json_out_text(struct json_out *out, const char *key, const char *text) {
    next(out, key);
    print_json_string(file_of(out), text);
}

void json_out_u64(struct json_out *out, const char *key, uint64_t value) {
    next(out, key);
    fprintf(file_of(out), "%llu", (unsigned long long)value);
}

void json_out_bool(struct json_out *out, const char *key, bool value) {
    next(out, key);
    fputs(value ? "true" : "false", file_of(out));
}

void json_out_null(struct json_out *out, const char *key) {
    next(out, key);
    fputs("null", file_of(out));
}

void json_out_root(struct json_out *out, const char *key, const struct ulp_root *root) {
    char hex[ULP_ROOT_HEX_BYTES];

    ulp_root_hex(root, hex);
    json_out_text(out, key, hex);
}

void json_out_real(struct json_out *out, const char *key, double value) {
    next(out, key);
    if (isfinite(value))
        fprintf(file_of(out), "%.9g", value);
    else
        fputs("null", file_of(out));
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

/* C0 and C1 control characters; the latter are two bytes in UTF-8. */
static bool is_control(const char *text) {
    unsigned char c = (unsigned char)text[0];

    return c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0);
}

/* U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 turn the direction of writing; XML has no
 * U+FFFE and U+FFFF. */
static bool is_deceiving(const char *text) {
    const unsigned char *s = (const unsigned char *)text;

    if (s[0] == 0xe2 && s[1] == 0x80)
        return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae);
    if (s[0] == 0xe2 && s[1] == 0x81)
        return s[2] >= 0xa6 && s[2] <= 0xa9;
    return s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
}

size_t safe_character(const char *text) {
    return is_control(text) || is_deceiving(text) ? 0 : utf8_here(text);
}

void print_safely(FILE *to, const char *text) {
    while (*text) {
        size_t length = safe_character(text);

        if (length)
            fwrite(text, 1, length, to);
        else
            fprintf(to, "\\x%02x", (unsigned char)*text);
        text += length ? length : 1;
    }
}
