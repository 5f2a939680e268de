// SPDX-License-Identifier: Apache-2.0
#include "net/credentials.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* So long before they expire new ones are fetched, and after a failure of that so soon again. */
#define REFRESH_BEFORE_S 300u
#define REFRESH_AGAIN_S 30u

struct credential_source {
    bool anonymous;
    struct http_client *client;
    char *region;
    struct lock lock; /* guards what follows */
    struct credentials known;
    bool has_known;
    uint64_t next_try_s;
};

const char *environment(const char *name) {
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* ---- in memory ---- */

static void wipe_text(char *text) {
    if (text)
        mem_wipe(text, strlen(text));
    mem_free(text);
}

void credentials_release(struct credentials *credentials) {
    wipe_text(credentials->key_id);
    wipe_text(credentials->secret);
    wipe_text(credentials->token);
    *credentials = (struct credentials){0};
}

enum ulp_status credentials_copy(const struct credentials *from, struct credentials *ret_copy) {
    struct credentials copy = {.expires_s = from->expires_s};
    enum ulp_status status = ULP_OK;

    if (from->key_id)
        status = mem_copy_text(from->key_id, &copy.key_id);
    if (!status && from->secret)
        status = mem_copy_text(from->secret, &copy.secret);
    if (!status && from->token)
        status = mem_copy_text(from->token, &copy.token);
    if (status)
        credentials_release(&copy);
    else
        *ret_copy = copy;
    return status;
}

/* ---- where they come from ---- */

enum ulp_status credentials_from_environment(struct credentials *ret) {
    const struct credentials found = {(char *)environment("AWS_ACCESS_KEY_ID"),
                                      (char *)environment("AWS_SECRET_ACCESS_KEY"),
                                      (char *)environment("AWS_SESSION_TOKEN"), 0};

    if (!found.key_id && !found.secret)
        return ULP_E_NOT_FOUND;
    if (!found.key_id || !found.secret)
        return fail(ULP_E_PERMISSION, "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is "
                                      "set: set both or none");
    return credentials_copy(&found, ret);
}

static enum ulp_status fetch(struct credential_source *source, struct credentials *ret) {
    enum ulp_status status = credentials_from_environment(ret);

    if (status == ULP_E_NOT_FOUND)
        status = credentials_from_web_identity(source->client, source->region, ret);
    if (status == ULP_E_NOT_FOUND)
        status = credentials_from_profile(ret);
    if (status == ULP_E_NOT_FOUND)
        status = credentials_from_container(source->client, ret);
    if (status == ULP_E_NOT_FOUND)
        status = fail(ULP_E_PERMISSION,
                      "there are no credentials for S3: set AWS_ACCESS_KEY_ID and "
                      "AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials; for what everybody may "
                      "read, set ULPSYNC_S3_ANONYMOUS=1");
    return status;
}

enum ulp_status credential_source_new(bool anonymous, struct http_client *client,
                                      const char *region, struct credential_source **ret_source) {
    struct credential_source *source = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *source, &source);

    if (!status)
        status = mem_copy_text(region, &source->region);
    if (status) {
        mem_free(source);
        return status;
    }
    source->anonymous = anonymous;
    source->client = client;
    lock_make(&source->lock);
    *ret_source = source;
    return ULP_OK;
}

void credential_source_free(struct credential_source *source) {
    if (!source)
        return;
    credentials_release(&source->known);
    lock_destroy(&source->lock);
    mem_free(source->region);
    mem_free(source);
}

/* ---- giving them ---- */

static uint64_t now_s(void) {
    return clock_wall_ns() / 1000000000u;
}

static bool is_due(const struct credential_source *source, uint64_t now) {
    const uint64_t expires = source->known.expires_s;

    if (!source->has_known)
        return true;
    if (!expires || now + REFRESH_BEFORE_S < expires)
        return false;
    return now >= source->next_try_s || now + REFRESH_AGAIN_S >= expires;
}

/* Old ones that still hold are better than none. */
static enum ulp_status refresh(struct credential_source *source, uint64_t now) {
    struct credentials fresh = {0};
    enum ulp_status status = fetch(source, &fresh);

    source->next_try_s = now + REFRESH_AGAIN_S;
    if (!status) {
        credentials_release(&source->known);
        source->known = fresh;
        source->has_known = true;
        return ULP_OK;
    }
    if (!source->has_known || source->known.expires_s <= now)
        return status;
    log_message(ULP_LOG_WARN, "credentials that expire soon were not renewed: %s",
                ulp_last_error());
    return ULP_OK;
}

enum ulp_status credential_source_get(struct credential_source *source,
                                      struct credentials *ret_credentials) {
    const uint64_t now = now_s();
    enum ulp_status status = ULP_OK;

    if (source->anonymous) {
        *ret_credentials = (struct credentials){0};
        return ULP_OK;
    }
    lock_take(&source->lock);
    if (is_due(source, now))
        status = refresh(source, now);
    if (!status)
        status = credentials_copy(&source->known, ret_credentials);
    lock_give(&source->lock);
    return status;
}

bool credential_source_renews(struct credential_source *source) {
    bool renews;

    lock_take(&source->lock);
    renews = source->has_known && source->known.expires_s;
    lock_give(&source->lock);
    return renews;
}

void credential_source_expired(struct credential_source *source) {
    lock_take(&source->lock);
    credentials_release(&source->known);
    source->has_known = false;
    lock_give(&source->lock);
}
