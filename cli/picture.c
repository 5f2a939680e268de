// SPDX-License-Identifier: Apache-2.0
#include "cli/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the C library would choose the locale, without changing ours: numbers keep their points. */
bool takes_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = "";

    for (unsigned i = 0; i < 3 && !*locale; i++) {
        const char *value = getenv(names[i]);

        locale = value ? value : "";
    }
    return strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "UTF8") ||
           strstr(locale, "utf-8");
}

static void print_eighths(unsigned eighths) {
    /* U+2588 is a full block; the seven behind it are ever narrower */
    for (; eighths >= 8; eighths -= 8)
        fputs("\xe2\x96\x88", stdout);
    if (eighths)
        printf("\xe2\x96%c", 0x88 + (int)(8 - eighths));
}

void print_bar(double share, unsigned width) {
    bool fine = isatty(STDOUT_FILENO) && takes_utf8();
    unsigned parts = fine ? 8 : 1, columns;
    double exact = share > 0 ? (share < 1 ? share : 1) * width * parts : 0;
    unsigned filled = (unsigned)(exact + 0.5);

    if (!filled && share > 0)
        filled = 1;
    columns = (filled + parts - 1) / parts;
    if (fine)
        print_eighths(filled);
    for (unsigned i = 0; !fine && i < filled; i++)
        putchar('#');
    for (; columns < width; columns++)
        putchar(' ');
}
