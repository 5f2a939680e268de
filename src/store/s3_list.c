// SPDX-License-Identifier: Apache-2.0
/* Listing a bucket, page by page. */
#include "base/memory.h"
#include "base/quote.h"
#include "net/xml.h"
#include "store/s3.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN_BYTES_MAX 4096u

/* Pages one behind the other that bring nothing new. */
#define IDLE_PAGES_MAX 16u

/* Encoded, a key may have three times its bytes. */
#define KEY_TEXT_BYTES (3 * 1024 + 1)

struct entry {
    char *key; /* without the store's prefix */
    uint64_t bytes;
};

/* One page. The entries come before what tells how to read them, so they are kept. */
struct page {
    struct remote *remote;
    struct entry *entries;
    size_t count, room;
    char key[KEY_TEXT_BYTES];
    uint64_t bytes;
    bool coded, more;
    struct buffer token;
};

static void page_clear(struct page *page) {
    for (size_t i = 0; i < page->count; i++)
        mem_free(page->entries[i].key);
    page->count = 0;
    page->coded = page->more = false;
    buffer_clear(&page->token);
}

static enum ulp_status end_entry(struct page *page) {
    enum ulp_status status =
        mem_grow(&page->entries, page->count, sizeof *page->entries, &page->room);

    if (!status)
        status = mem_copy_text(page->key, &page->entries[page->count].key);
    if (!status)
        page->entries[page->count++].bytes = page->bytes;
    *page->key = 0;
    page->bytes = 0;
    return status;
}

static enum ulp_status read_size(struct page *page, const char *text) {
    const size_t digits = strspn(text, "0123456789");

    if (!digits || digits > 18 || text[digits])
        return fail(ULP_E_IO, "store %s: its listing has an object of %s bytes",
                    quote(page->remote->name).text, quote(text).text);
    page->bytes = strtoull(text, NULL, 10);
    return ULP_OK;
}

/* A key that is too long is not ours, as are all that are no keys. */
static enum ulp_status hear(void *user, const char *path, const char *text) {
    static const char within[] = "ListBucketResult/";
    struct page *page = user;

    if (strncmp(path, within, sizeof within - 1) != 0)
        return ULP_OK;
    path += sizeof within - 1;
    if (!strcmp(path, "Contents/Key") && strlen(text) < sizeof page->key)
        memcpy(page->key, text, strlen(text) + 1);
    else if (!strcmp(path, "Contents/Size"))
        return read_size(page, text);
    else if (!strcmp(path, "Contents"))
        return end_entry(page);
    else if (!strcmp(path, "IsTruncated"))
        page->more = !strcmp(text, "true");
    else if (!strcmp(path, "NextContinuationToken"))
        return buffer_append_text(&page->token, text);
    else if (!strcmp(path, "EncodingType"))
        page->coded = !strcmp(text, "url");
    return ULP_OK;
}

static enum ulp_status fetch_page(struct page *page, const char *prefix, const char *after,
                                  const char *token) {
    struct query_pair query[6] = {
        {"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", "1000"}, {"prefix", prefix}};
    struct remote_request request = {
        .method = "GET", .query = query, .query_count = 4, .answer_bytes_max = LIMIT_XML_BYTES};
    struct http_response response = {0};
    enum ulp_status status;

    if (*token)
        query[request.query_count++] = (struct query_pair){"continuation-token", token};
    else if (*after)
        query[request.query_count++] = (struct query_pair){"start-after", after};
    status = remote_send(page->remote, &request, &response);
    if (!status && !http_success(&response))
        status = remote_failed(page->remote, &request, &response);
    page_clear(page);
    if (!status)
        status = xml_read("a listing", buffer_text(&response.body), response.body.used, hear, page);
    if (!status && page->more && !page->token.used)
        status = fail(ULP_E_IO, "store %s: a listing is cut and does not say how to go on",
                      quote(page->remote->name).text);
    http_response_release(&response);
    return status;
}

struct listing {
    const char *prefix, *after; /* as the caller gave them */
    ulp_store_entry entry;
    void *user;
    char last[ULP_KEY_BYTES_MAX + 1]; /* told of last */
};

/* NULL if it is not one of ours, or not one that was asked for. */
static const char *key_of(const struct page *page, const struct listing *listing, char *text) {
    const char *prefix = page->remote->prefix;
    size_t length = strlen(text);

    if (page->coded && !decode_percent(text, length, &length))
        return NULL;
    text[length] = 0;
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return NULL;
    text += strlen(prefix);
    if (key_check(text) || strncmp(text, listing->prefix, strlen(listing->prefix)) != 0 ||
        strcmp(text, listing->after) <= 0)
        return NULL;
    return text;
}

/* In order, or not at all: whoever lists without end, or in circles, is not believed. */
static enum ulp_status tell(struct page *page, struct listing *listing, bool *moved) {
    *moved = false;
    for (size_t i = 0; i < page->count; i++) {
        const char *key = key_of(page, listing, page->entries[i].key);

        if (!key)
            continue;
        if (strcmp(key, listing->last) <= 0)
            return fail(ULP_E_IO, "store %s: its listing is not in order at %s",
                        quote(page->remote->name).text, quote(key).text);
        memcpy(listing->last, key, strlen(key) + 1);
        *moved = true;
        if (listing->entry(listing->user, key, page->entries[i].bytes))
            return fail(ULP_E_CANCELLED, "the listing of store %s was stopped at %s",
                        quote(page->remote->name).text, quote(key).text);
    }
    return ULP_OK;
}

static enum ulp_status list_pages(struct page *page, struct listing *listing, const char *prefix,
                                  const char *after) {
    struct buffer token = BUFFER(TOKEN_BYTES_MAX);
    unsigned idle = 0;
    bool moved = false;
    enum ulp_status status;

    do {
        status = fetch_page(page, prefix, after, buffer_text(&token));
        if (!status)
            status = tell(page, listing, &moved);
        idle = moved ? 0 : idle + 1;
        if (!status && page->more && idle > IDLE_PAGES_MAX)
            status = fail(ULP_E_IO, "store %s: its listing does not come to an end",
                          quote(page->remote->name).text);
        buffer_clear(&token);
        if (!status)
            status = buffer_append_text(&token, buffer_text(&page->token));
    } while (!status && page->more);
    buffer_release(&token);
    return status;
}

/* The store's prefix and a text. */
static enum ulp_status join(const struct remote *remote, const char *text, struct buffer *into) {
    enum ulp_status status = buffer_append_text(into, remote->prefix);

    return status ? status : buffer_append_text(into, text);
}

enum ulp_status s3_list(void *self, const char *prefix, const char *after, ulp_store_entry entry,
                        void *user) {
    struct listing listing = {.prefix = prefix, .after = after, .entry = entry, .user = user};
    struct buffer whole_prefix = BUFFER(4096), whole_after = BUFFER(4096);
    struct page *page = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *page, &page);

    if (status)
        return status;
    page->remote = self;
    page->token = BUFFER(TOKEN_BYTES_MAX);
    status = join(self, prefix, &whole_prefix);
    if (!status && *after)
        status = join(self, after, &whole_after);
    if (!status)
        status = list_pages(page, &listing, buffer_text(&whole_prefix), buffer_text(&whole_after));
    page_clear(page);
    buffer_release(&page->token);
    mem_free(page->entries);
    mem_free(page);
    buffer_release(&whole_prefix);
    buffer_release(&whole_after);
    return status;
}
