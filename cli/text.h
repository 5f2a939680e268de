// SPDX-License-Identifier: Apache-2.0
/*
 * Text that grows while a page is made. Zeroed is empty. Nothing fails on the way: who runs out of
 * memory, or writes more than TEXT_BYTES_MAX, learns of it at the end, from text_status().
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <ulpsync/ulpsync.h>

#define TEXT_BYTES_MAX ((size_t)256 << 20)

struct text {
    char *data; /* ends with a NUL; NULL while nothing was added */
    size_t length, room;
    bool out_of_memory, too_long;
};

/* As it is: words of our own, markup. */
void text_add(struct text *text, const char *words);
void text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Text from outside, between tags or within a quoted attribute, of HTML and of XML. What drives
 * terminals, turns the direction of writing around or is not UTF-8 is shown as "\x1b".
 */
void text_add_escaped(struct text *text, const char *words);

/* The same, of the first `bytes` of it. */
void text_add_escaped_part(struct text *text, const char *words, size_t bytes);

/* ULP_E_NOMEM or ULP_E_LIMIT if something is missing. */
enum ulp_status text_status(const struct text *text);

/* Never NULL. */
const char *text_words(const struct text *text);

void text_release(struct text *text);

#endif
