// SPDX-License-Identifier: Apache-2.0
/*
 * A page of figures and tables in HTML that needs nothing but itself: no fonts, pictures or scripts
 * from anywhere. Light or dark as the reader's system is, in two columns or, on a phone, one.
 *
 *     struct text page = {0};
 *     page_begin(&page, &(struct page_head){.title = "A run"});
 *     page_section(&page, "Size");
 *     page_figures_begin(&page);
 *     page_figure_begin(&page, "Bytes of each step");
 *     chart_lines(&page, &chart);                                   (cli/chart.h)
 *     page_figure_end(&page, "The patch of each step beside the state that it changes.");
 *     page_figures_end(&page);
 *     page_end(&page);
 *     status = page_write(&page, "report.html");
 *     text_release(&page);
 *
 * All words are plain text, escaped here; NULL for those that are not wanted. Only what is
 * called extra is markup. The result is well-formed XML too, which the tests hold it to.
 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "cli/chart.h"

struct page_head {
    const char *title;      /* of the window, and the heading */
    const char *subtitle;   /* a line below the heading */
    const char *extra_head; /* markup for <head>: who serves a live page adds its own here */
    const char *extra_body; /* markup before all else */
    const char *nonce;      /* of letters and digits, for who forbids all other styles */
};

void page_begin(struct text *out, const struct page_head *head);
void page_end(struct text *out);

/* A heading, until the next one. */
void page_section(struct text *out, const char *title);
void page_paragraph(struct text *out, const char *words);

/* A sentence in place of a figure: what is missing, and why. */
void page_note(struct text *out, const char *words);

/* Figures side by side, where there is space. Between begin and end of a figure stand charts. */
void page_figures_begin(struct text *out);
void page_figures_end(struct text *out);
void page_figure_begin(struct text *out, const char *title);
void page_figure_end(struct text *out, const char *caption);

/* Large numbers in a row: "Ratio", "142x", "full state : patch". */
void page_facts_begin(struct text *out);
void page_fact(struct text *out, const char *name, const char *value, const char *more);
void page_facts_end(struct text *out);

/* A table that can be folded away; `columns` and `count` are the same in all calls. */
enum page_cell {
    PAGE_TEXT,
    PAGE_NUMBER, /* to the right */
    PAGE_CODE,   /* roots, paths: letters of one width */
};

struct page_column {
    const char *title;
    enum page_cell kind;
};

void page_table_begin(struct text *out, const char *caption, const struct page_column *columns,
                      size_t count);
void page_row(struct text *out, const struct page_column *columns, const char *const *cells,
              size_t count);
void page_table_end(struct text *out);

/* Writes the page to a file, which appears complete, over the one before; "-" is standard output. */
enum ulp_status page_write(const struct text *page, const char *path);

#endif
