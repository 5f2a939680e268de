// SPDX-License-Identifier: Apache-2.0
/* Where a bucket is: URL, options, environment, in this order. */
#include "base/quote.h"
#include "store/s3.h"

#include <string.h>

#define REGION_BYTES_MAX 64u
#define BUCKET_BYTES_MAX 255u

/* What the URL says behind its question mark; NULL and 0 where it says nothing. */
struct asked {
    struct buffer endpoint, region;
    int style;
    bool anonymous;
};

static enum ulp_status bad(const char *url, const char *why) {
    return fail(ULP_E_USAGE, "%s: %s", http_show_url(url).text, why);
}

static bool takes(const char **at, const char *name) {
    const size_t length = strlen(name);

    if (strncmp(*at, name, length) != 0)
        return false;
    *at += length;
    return true;
}

static enum ulp_status read_option(const char *url, const char *at, size_t length,
                                   struct asked *asked) {
    const char *end = at + length;

    if (takes(&at, "endpoint="))
        return buffer_append(&asked->endpoint, at, (size_t)(end - at));
    if (takes(&at, "region="))
        return buffer_append(&asked->region, at, (size_t)(end - at));
    if (takes(&at, "style=path") && at == end)
        asked->style = ULP_STYLE_PATH;
    else if (takes(&at, "style=virtual") && at == end)
        asked->style = ULP_STYLE_VIRTUAL;
    else if (takes(&at, "anonymous=1") && at == end)
        asked->anonymous = true;
    else
        return bad(url,
                   "behind the '?' may stand endpoint=, region=, style=path, style=virtual and "
                   "anonymous=1");
    return ULP_OK;
}

static enum ulp_status read_options(const char *url, const char *at, struct asked *asked) {
    enum ulp_status status = ULP_OK;

    while (!status && *at) {
        size_t length = strcspn(at, "&");

        status = read_option(url, at, length, asked);
        at += length + (at[length] == '&');
    }
    return status;
}

/* ---- region and endpoint ---- */

static enum ulp_status find_region(const char *given, struct buffer *region) {
    static const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    enum ulp_status status;

    for (size_t i = 0; i < 2 && !given; i++)
        given = environment(variables[i]);
    status = given ? buffer_append_text(region, given) : profile_region(region);
    if (status == ULP_E_NOT_FOUND)
        status = buffer_append_text(region, "us-east-1");
    if (status == ULP_E_LIMIT ||
        (!status && strspn(buffer_text(region), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                                "UVWXYZ0123456789-_") != region->used))
        return fail(ULP_E_USAGE, "%s is not the name of a region",
                    quote(given ? given : buffer_text(region)).text);
    return status;
}

static const char *find_endpoint(const char *given) {
    if (!given)
        given = environment("AWS_ENDPOINT_URL_S3");
    return given ? given : environment("AWS_ENDPOINT_URL");
}

/* A dot in a bucket's name would make it a host that no certificate is for. */
static bool in_host(int style, const char *endpoint, const char *bucket, size_t length) {
    if (style)
        return style == ULP_STYLE_VIRTUAL;
    return !endpoint && !memchr(bucket, '.', length);
}

/* scheme://host/path without the slashes at its end, and without the port that goes without saying,
 * since it is signed as it is sent. */
static enum ulp_status clean_endpoint(const char *endpoint, struct buffer *clean) {
    const bool encrypted = !strncmp(endpoint, "https://", 8);
    const char *port = encrypted ? ":443" : ":80", *path = http_url_path(endpoint);
    size_t host = (size_t)(path - endpoint), tail = strlen(path);
    enum ulp_status status = http_url_check(endpoint);

    if (!status && endpoint[strcspn(endpoint, "?#")])
        status = bad(endpoint, "an endpoint has no query");
    if (status)
        return status;
    if (host > strlen(port) && !memcmp(path - strlen(port), port, strlen(port)))
        host -= strlen(port);
    while (tail && path[tail - 1] == '/')
        tail--;
    status = buffer_append(clean, endpoint, host);
    return status ? status : buffer_append(clean, path, tail);
}

static enum ulp_status write_base(struct s3_place *place, const char *endpoint, bool virtual_host,
                                  const char *bucket, size_t length) {
    const char *host = strstr(endpoint, "://") + 3;
    enum ulp_status status;

    if (!virtual_host) {
        status = buffer_append_text(&place->base, endpoint);
        if (!status)
            status = buffer_append_text(&place->base, "/");
        return status ? status : buffer_append(&place->base, bucket, length);
    }
    status = buffer_append(&place->base, endpoint, (size_t)(host - endpoint));
    if (!status)
        status = buffer_append(&place->base, bucket, length);
    if (!status)
        status = buffer_append_text(&place->base, ".");
    return status ? status : buffer_append_text(&place->base, host);
}

static enum ulp_status find_base(struct s3_place *place, const char *endpoint, int style,
                                 const char *bucket, size_t length) {
    const bool virtual_host = in_host(style, endpoint, bucket, length);
    struct buffer clean = BUFFER(HTTP_URL_BYTES_MAX);
    enum ulp_status status;

    if (endpoint) {
        status = clean_endpoint(endpoint, &clean);
    } else {
        status = buffer_append_text(&clean, "https://s3.");
        if (!status)
            status = buffer_append_text(&clean, buffer_text(&place->region));
        if (!status)
            status = buffer_append_text(&clean, ".amazonaws.com");
    }
    if (!status)
        status = write_base(place, buffer_text(&clean), virtual_host, bucket, length);
    buffer_release(&clean);
    return status;
}

/* ---- the whole ---- */

static enum ulp_status check_bucket(const char *url, const char *bucket, size_t length) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    if (!length || length > BUCKET_BYTES_MAX || strspn(bucket, letters) < length || *bucket == '.')
        return bad(url, "write s3:// and the name of a bucket, and perhaps '/' and a prefix");
    return ULP_OK;
}

static enum ulp_status find_prefix(const char *prefix, size_t length, struct buffer *into) {
    enum ulp_status status;

    while (length && prefix[length - 1] == '/')
        length--;
    if (!length)
        return ULP_OK;
    status = buffer_append(into, prefix, length);
    if (!status)
        status = key_check(buffer_text(into));
    return status ? status : buffer_append_text(into, "/");
}

static enum ulp_status find(const char *url, const struct ulp_store_options *options,
                            struct asked *asked, struct s3_place *place) {
    const char *bucket = url + 5;
    const size_t length = strcspn(bucket, "/?"), all = strcspn(bucket, "?");
    const char *endpoint = asked->endpoint.used ? buffer_text(&asked->endpoint) : options->endpoint;
    const char *region = asked->region.used ? buffer_text(&asked->region) : options->region;
    const int style = asked->style ? asked->style : options->style;
    enum ulp_status status = check_bucket(url, bucket, length);

    if (!status && all > length)
        status = find_prefix(bucket + length + 1, all - length - 1, &place->prefix);
    if (!status)
        status = find_region(region, &place->region);
    if (!status)
        status = find_base(place, find_endpoint(endpoint), style, bucket, length);
    if (!status)
        status = buffer_append(&place->name, url, 5 + all);
    place->anonymous = asked->anonymous || options->anonymous;
    return status;
}

enum ulp_status s3_place_find(const char *url, const struct ulp_store_options *options,
                              struct s3_place *ret_place) {
    struct s3_place place = {.base = BUFFER(HTTP_URL_BYTES_MAX),
                             .prefix = BUFFER(ULP_KEY_BYTES_MAX),
                             .region = BUFFER(REGION_BYTES_MAX),
                             .name = BUFFER(HTTP_URL_BYTES_MAX)};
    struct asked asked = {.endpoint = BUFFER(HTTP_URL_BYTES_MAX),
                          .region = BUFFER(REGION_BYTES_MAX)};
    const char *mark = strchr(url, '?');
    enum ulp_status status = mark ? read_options(url, mark + 1, &asked) : ULP_OK;

    if (!status)
        status = find(url, options, &asked, &place);
    buffer_release(&asked.endpoint);
    buffer_release(&asked.region);
    if (status)
        s3_place_release(&place);
    else
        *ret_place = place;
    return status;
}

void s3_place_release(struct s3_place *place) {
    buffer_release(&place->base);
    buffer_release(&place->prefix);
    buffer_release(&place->region);
    buffer_release(&place->name);
}
