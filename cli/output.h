// SPDX-License-Identifier: Apache-2.0
/* What goes to standard output: JSON for machines, safe text and readable sizes for people. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <ulpsync/ulpsync.h>

/* A JSON object or array being printed. Keys are NULL inside arrays. */
struct json_out {
    FILE *to; /* NULL: standard output */
    unsigned depth;
    uint32_t has_member; /* bit d: something was printed at depth d */
};

void json_out_begin(struct json_out *out, const char *key, char bracket);
void json_out_end(struct json_out *out, char bracket);
void json_out_text(struct json_out *out, const char *key, const char *text);
void json_out_u64(struct json_out *out, const char *key, uint64_t value);
void json_out_bool(struct json_out *out, const char *key, bool value);
void json_out_null(struct json_out *out, const char *key);
void json_out_root(struct json_out *out, const char *key, const struct ulp_root *root);

/* What is not a number, such as the size per change of nothing, becomes null. */
void json_out_real(struct json_out *out, const char *key, double value);

/* "1.50 GiB"; lives until the end of the full expression. */
struct readable {
    char text[32];
};
struct readable readable_bytes(uint64_t bytes);
struct readable readable_count(uint64_t count);

/* Bytes of the character that stands here; 0 if it is none, or one that must not be shown as it is:
 * it drives terminals, or turns the direction of writing. */
size_t safe_character(const char *text);

/* Prints text from outside with control characters and ill-formed UTF-8 escaped, so that it cannot
 * drive the terminal. */
void print_safely(FILE *to, const char *text);

#endif
