// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_pages.h"

#include "cli/live_page.h"
#include "cli/page.h"
#include "cli/serve_metrics.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define RUN_PATH "/~/run/"
#define FIGURES_PATH "/~/figures/"
#define ICON_PATH "/~/icon.svg"
#define NONCE_BYTES 33u

static const char icon[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">"
    "<rect width=\"16\" height=\"16\" rx=\"3\" fill=\"#0b62c4\"/>"
    "<path d=\"M3 11l3-4 3 2 4-6\" fill=\"none\" stroke=\"#fff\" stroke-width=\"1.8\"/></svg>\n";

/* What stands behind `prefix`, if the path begins with it; else NULL. */
static const char *behind(const char *path, const char *prefix) {
    const size_t length = strlen(prefix);

    return strncmp(path, prefix, length) ? NULL : path + length;
}

/* ---- answers ---- */

/* Takes over the text. */
static void reply_text(struct http_reply *reply, struct text *text, const char *type) {
    const enum ulp_status status = text_status(text);

    if (status || !text->data) {
        text_release(text);
        serve_failure(status ? status : ULP_E_INTERNAL, reply);
        return;
    }
    reply->code = 200;
    reply->text = text->data;
    reply->length = text->length;
    http_reply_header(reply, "Content-Type", "%s", type);
    http_reply_header(reply, "Referrer-Policy", "no-referrer");
}

static bool make_nonce(char ret_nonce[NONCE_BYTES]) {
    unsigned char bytes[NONCE_BYTES / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret_nonce + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Nothing but what this page brings itself is run, shown or asked, whatever a run may be called. */
static void reply_page(struct http_reply *reply, struct text *page, const char *nonce) {
    reply_text(reply, page, "text/html; charset=utf-8");
    http_reply_header(reply, "Cache-Control", "no-store");
    http_reply_header(reply, "Content-Security-Policy",
                      "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
                      "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'",
                      nonce, nonce);
}

/* ---- one run ---- */

/* What was drawn, and why it may be old. */
static void add_figures(struct text *out, const struct serve_run *run) {
    char words[400];

    if (run->status && run->status != ULP_E_NO_RUN) { /* which the figures say by themselves */
        snprintf(words, sizeof words, "The run cannot be read at the moment: %s", run->message);
        page_note(out, words);
    }
    text_add(out, text_words(&run->figures));
}

/* The run of this name with its figures, or NULL and an answer. */
static struct serve_run *draw(struct serve_pages *pages, const char *name,
                              struct http_reply *reply) {
    struct serve_run *run = serve_runs_find(&pages->runs, &pages->objects, name);
    enum ulp_status status = run ? ULP_OK : ULP_E_NO_RUN;

    if (run) {
        serve_run_look(run, &pages->objects);
        status = run->opened ? serve_run_draw(run) : run->status;
    }
    if (status) {
        serve_failure(status, reply);
        return NULL;
    }
    return run;
}

/* One that fails has another tag, since its words may change. */
static void reply_figures(struct serve_pages *pages, const char *name,
                          const struct http_asked *asked, struct http_reply *reply) {
    struct serve_run *run = draw(pages, name, reply);
    char tag[SERVE_TAG_BYTES + 16];
    struct text text = {0};

    if (!run)
        return;
    snprintf(tag, sizeof tag, "%s-%d", run->tag, (int)run->status);
    if (serve_unchanged(asked, tag)) {
        reply->code = 304;
    } else {
        add_figures(&text, run);
        reply_text(reply, &text, "text/html; charset=utf-8");
    }
    http_reply_header(reply, "Cache-Control", "no-cache");
    http_reply_header(reply, "ETag", "\"%s\"", tag);
}

static void reply_run(struct serve_pages *pages, const char *name, struct http_reply *reply) {
    struct serve_run *run = draw(pages, name, reply);
    char nonce[NONCE_BYTES], title[ULP_KEY_PART_BYTES_MAX + 8], from[ULP_KEY_PART_BYTES_MAX + 16];
    struct text page = {0};

    if (!run)
        return;
    if (!make_nonce(nonce)) {
        serve_failure(ULP_E_IO, reply);
        return;
    }
    snprintf(title, sizeof title, "Run %s", name);
    snprintf(from, sizeof from, FIGURES_PATH "%s", name);
    live_page_begin(&page, title, ICON_PATH, from, nonce);
    add_figures(&page, run);
    live_page_end(&page, nonce);
    reply_page(reply, &page, nonce);
}

/* ---- all of them ---- */

static void add_run(struct text *out, struct serve_run *run, const struct serve_objects *objects) {
    const struct ulp_run_record *head = &run->story.head;

    serve_run_look(run, objects);
    text_add(out, "<li><a href=\"" RUN_PATH);
    text_add_escaped(out, run->name);
    text_add(out, "\">");
    text_add_escaped(out, run->name);
    text_add(out, "</a>");
    if (run->opened && head->sequence)
        text_addf(out, ": version %llu, step %llu", (unsigned long long)head->version,
                  (unsigned long long)head->step);
    if (run->status) {
        text_add(out, ": ");
        text_add_escaped(out, run->message);
    }
    text_add(out, "</li>\n");
}

static void add_list(struct text *out, struct serve_pages *pages) {
    if (!pages->runs.count)
        page_note(out, "There is no run yet. 'ulpsync publish' begins one.");
    text_add(out, "<ul>\n");
    for (size_t i = 0; i < pages->runs.count; i++)
        add_run(out, pages->runs.list[i], &pages->objects);
    text_add(out, "</ul>\n");
    if (pages->runs.more)
        page_note(out, "There are more, which are not shown: serve one by itself with --run NAME.");
}

static void reply_list(struct serve_pages *pages, struct http_reply *reply) {
    const enum ulp_status status = serve_runs_list(&pages->runs, &pages->objects);
    char nonce[NONCE_BYTES];
    struct text page = {0};

    if (status) {
        serve_failure(status, reply);
        return;
    }
    if (pages->runs.count == 1) {
        http_reply_line(reply, 302, "the run is over there");
        http_reply_header(reply, "Location", RUN_PATH "%s", pages->runs.list[0]->name);
        return;
    }
    if (!make_nonce(nonce)) {
        serve_failure(ULP_E_IO, reply);
        return;
    }
    page_begin(&page,
               &(struct page_head){.title = "Runs",
                                   .subtitle = "Kept here, for followers and for you",
                                   .extra_head = "<meta http-equiv=\"refresh\" content=\"10\"/>\n"
                                                 "<link rel=\"icon\" href=\"" ICON_PATH "\"/>\n",
                                   .nonce = nonce});
    add_list(&page, pages);
    page_end(&page);
    reply_page(reply, &page, nonce);
}

static void reply_icon(struct http_reply *reply) {
    struct text text = {0};

    text_add(&text, icon);
    reply_text(reply, &text, "image/svg+xml");
    http_reply_header(reply, "Cache-Control", "max-age=86400");
}

/* ---- which ---- */

bool serve_page_is(const struct serve_pages *pages, const struct http_asked *asked) {
    const char *name = behind(asked->path, RUN_PATH);

    if (!name)
        name = behind(asked->path, FIGURES_PATH);
    if (name)
        return serve_run_name(&pages->objects, name);
    return !strcmp(asked->path, "/") || !strcmp(asked->path, "/metrics") ||
           !strcmp(asked->path, ICON_PATH);
}

void serve_page(struct serve_pages *pages, const struct http_asked *asked,
                struct http_reply *reply) {
    const char *name;

    if (!strcmp(asked->path, "/"))
        reply_list(pages, reply);
    else if (!strcmp(asked->path, "/metrics"))
        serve_metrics(pages, reply);
    else if (!strcmp(asked->path, ICON_PATH))
        reply_icon(reply);
    else if ((name = behind(asked->path, FIGURES_PATH)))
        reply_figures(pages, name, asked, reply);
    else if ((name = behind(asked->path, RUN_PATH)))
        reply_run(pages, name, reply);
    else
        serve_failure(ULP_E_NOT_FOUND, reply);
}

void serve_pages_release(struct serve_pages *pages) {
    serve_runs_release(&pages->runs);
}
