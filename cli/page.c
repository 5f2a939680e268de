// SPDX-License-Identifier: Apache-2.0
#include "cli/page.h"

#include "cli/whole_file.h"

#include <stdio.h>

/* Colours with a contrast of 4.5 and more against their background; the q are shades that get
 * steadily darker, or lighter in the dark. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--muted:#55606b;--grid:#dfe3e8;"
    "--box:#f5f7f9;\n"
    "--c0:#0b62c4;--c1:#c2410c;--c2:#00795c;--c3:#8b3fb0;--c4:#8f6a00;--c5:#b3184f;--c6:#33707f;"
    "--c7:#5c5c5c;--c8:#5b7300;--c9:#a04a3c;--c10:#4b4fc4;\n"
    "--q0:#eef5fc;--q1:#d5e6f6;--q2:#b5d3ee;--q3:#8dbce3;--q4:#62a1d6;--q5:#3d85c6;--q6:#2167ad;"
    "--q7:#114a8c;--q8:#082f63}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6e9ed;--muted:#a3adb8;"
    "--grid:#333b45;--box:#1d232a;\n"
    "--c0:#6cb2ff;--c1:#ff9a5c;--c2:#4fd1a5;--c3:#cf9bf5;--c4:#e8c15a;--c5:#ff7fa8;--c6:#86c5da;"
    "--c7:#b8b8b8;--c8:#b5cf5a;--c9:#f0a090;--c10:#a9acff;\n"
    "--q0:#1b2733;--q1:#1d3550;--q2:#20466e;--q3:#265b90;--q4:#3273b1;--q5:#4a8fce;--q6:#70aee3;"
    "--q7:#a1cdf2;--q8:#dceefc}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:16px}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.4em 0 .1em;overflow-wrap:anywhere}\n"
    "h2{font-size:1.2rem;margin:1.6em 0 .5em;border-bottom:1px solid var(--grid);"
    "padding-bottom:.2em}\n"
    "h3{font-size:1rem;margin:0 0 .5em}\n"
    "a{color:var(--c0)}li{padding:.35em 0}\n"
    "p{margin:.4em 0;max-width:75ch;overflow-wrap:anywhere}\n"
    ".subtitle,figcaption,summary{color:var(--muted)}\n"
    ".note{border-left:4px solid var(--c4);background:var(--box);padding:.5em .8em}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));"
    "gap:16px;align-items:start}\n"
    "figure{margin:0;padding:14px;border:1px solid var(--grid);border-radius:8px;min-width:0}\n"
    "figcaption{font-size:.85rem;margin-top:.6em;overflow-wrap:anywhere}\n"
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(130px,1fr));gap:12px;"
    "margin:12px 0}\n"
    ".facts div{background:var(--box);border-radius:8px;padding:10px 12px;min-width:0;"
    "overflow-wrap:anywhere}\n"
    ".facts dt{color:var(--muted);font-size:.85rem}\n"
    ".facts dd{margin:0;font-size:1.2rem;font-variant-numeric:tabular-nums}\n"
    ".facts dd+dd{font-size:.8rem;color:var(--muted)}\n"
    ".table{overflow-x:auto;max-width:100%}\n"
    /* A shadow at an edge beyond which there is more. */
    ".table{background:linear-gradient(to right,var(--bg) 50%,transparent) local 0 0/32px 100% "
    "no-repeat,linear-gradient(to left,var(--bg) 50%,transparent) local 100% 0/32px 100% "
    "no-repeat,\n"
    "linear-gradient(to right,var(--grid),transparent) 0 0/14px 100% no-repeat,"
    "linear-gradient(to left,var(--grid),transparent) 100% 0/14px 100% no-repeat}\n"
    "table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}\n"
    "summary{cursor:pointer;font-size:.87rem;padding:.3em 0}\n"
    "th,td{padding:.25em .5em;border-bottom:1px solid var(--grid);text-align:left;"
    "white-space:nowrap}\n"
    "th{font-weight:600}\n"
    ".n{text-align:right}\n"
    ".code{font-family:ui-monospace,\"DejaVu Sans Mono\",monospace;font-size:.76em}\n"
    "@media(max-width:600px){main{padding:10px}figure{padding:10px 8px}}\n"
    "@media(min-width:900px){td.code{white-space:normal;overflow-wrap:anywhere;min-width:20em}}\n"
    ".hidden{position:absolute}\n"
    ":focus-visible{outline:2px solid var(--c0);outline-offset:2px}\n";

static void element(struct text *out, const char *open, const char *words, const char *close) {
    if (!words)
        return;
    text_add(out, open);
    text_add_escaped(out, words);
    text_add(out, close);
}

void page_begin(struct text *out, const struct page_head *head) {
    text_add(out, "<!DOCTYPE html>\n"
                  "<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                  "<meta charset=\"utf-8\"/>\n"
                  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n");
    element(out, "<title>", head->title, "</title>\n");
    text_add(out, "<style");
    element(out, " nonce=\"", head->nonce, "\"");
    text_add(out, ">\n");
    text_add(out, style);
    text_add(out, chart_style);
    text_add(out, "</style>\n");
    text_add(out, head->extra_head ? head->extra_head : "");
    text_add(out, "</head>\n<body>\n");
    text_add(out, head->extra_body ? head->extra_body : "");
    text_add(out, "<main>\n");
    chart_add_hatchings(out);
    element(out, "<h1>", head->title, "</h1>\n");
    element(out, "<p class=\"subtitle\">", head->subtitle, "</p>\n");
}

void page_end(struct text *out) {
    text_add(out, "</main>\n</body>\n</html>\n");
}

void page_section(struct text *out, const char *title) {
    element(out, "<h2>", title, "</h2>\n");
}

void page_paragraph(struct text *out, const char *words) {
    element(out, "<p>", words, "</p>\n");
}

void page_note(struct text *out, const char *words) {
    element(out, "<p class=\"note\">", words, "</p>\n");
}

void page_figures_begin(struct text *out) {
    text_add(out, "<div class=\"figures\">\n");
}

void page_figures_end(struct text *out) {
    text_add(out, "</div>\n");
}

void page_figure_begin(struct text *out, const char *title) {
    text_add(out, "<figure>\n");
    element(out, "<h3>", title, "</h3>\n");
}

void page_figure_end(struct text *out, const char *caption) {
    element(out, "<figcaption>", caption, "</figcaption>\n");
    text_add(out, "</figure>\n");
}

void page_facts_begin(struct text *out) {
    text_add(out, "<dl class=\"facts\">\n");
}

void page_fact(struct text *out, const char *name, const char *value, const char *more) {
    text_add(out, "<div>");
    element(out, "<dt>", name, "</dt>");
    element(out, "<dd>", value, "</dd>");
    element(out, "<dd>", more, "</dd>");
    text_add(out, "</div>\n");
}

void page_facts_end(struct text *out) {
    text_add(out, "</dl>\n");
}

/* ---- tables ---- */

static const char *const cell_classes[] = {"", " class=\"n\"", " class=\"code\""};

/* A wide one is scrolled, by keyboard too, which needs the focus. */
void page_table_begin(struct text *out, const char *caption, const struct page_column *columns,
                      size_t count) {
    element(out, "<details open=\"open\"><summary>", caption ? caption : "Table", "</summary>\n");
    text_add(out, "<div class=\"table\" tabindex=\"0\"><table>\n");
    text_add(out, "<thead><tr>");
    for (size_t i = 0; i < count; i++) {
        text_addf(out, "<th scope=\"col\"%s>",
                  columns[i].kind == PAGE_NUMBER ? cell_classes[PAGE_NUMBER] : "");
        text_add_escaped(out, columns[i].title);
        text_add(out, "</th>");
    }
    text_add(out, "</tr></thead>\n<tbody>\n");
}

void page_row(struct text *out, const struct page_column *columns, const char *const *cells,
              size_t count) {
    text_add(out, "<tr>");
    for (size_t i = 0; i < count; i++) {
        text_addf(out, "<td%s>", cell_classes[columns[i].kind]);
        text_add_escaped(out, cells[i] ? cells[i] : "");
        text_add(out, "</td>");
    }
    text_add(out, "</tr>\n");
}

void page_table_end(struct text *out) {
    text_add(out, "</tbody></table></div></details>\n");
}

enum ulp_status page_write(const struct text *page, const char *path) {
    enum ulp_status status = text_status(page);

    if (status)
        return status;
    return whole_file_write(path, text_words(page), page->length);
}
