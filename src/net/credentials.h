// SPDX-License-Identifier: Apache-2.0
/*
 * Credentials for S3, from where AWS's own tools take them, in this order: the environment
 * (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); a token of a web identity
 * (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN), which STS changes into credentials; the profile
 * AWS_PROFILE ("default") of ~/.aws/credentials and ~/.aws/config; the container's agent
 * (AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI). Those that expire are fetched anew
 * before they do. Secrets are wiped from our own memory when they are done with.
 */
#ifndef NET_CREDENTIALS_H
#define NET_CREDENTIALS_H

#include "base/buffer.h"
#include "base/status.h"
#include "net/http.h"
#include "net/retry.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nobody in particular. */
struct credentials {
    char *key_id, *secret, *token; /* `token` NULL: none needed */
    uint64_t expires_s;            /* 0: never */
};

void credentials_release(struct credentials *credentials);
enum ulp_status credentials_copy(const struct credentials *from, struct credentials *ret_copy);

struct credential_source;

/* With `anonymous` nobody is asked, and requests are not signed. The client is the caller's, to be
 * kept longer. */
enum ulp_status credential_source_new(bool anonymous, struct http_client *client,
                                      const char *region, struct credential_source **ret_source);
void credential_source_free(struct credential_source *source);

/* A copy, for one request. `key_id` NULL: do not sign. Safe from several threads at once.
 * ULP_E_PERMISSION if there are none, or they cannot be had. */
enum ulp_status credential_source_get(struct credential_source *source,
                                      struct credentials *ret_credentials);

/* The server says that these have expired: they are not given again if others can be had. */
void credential_source_expired(struct credential_source *source);

/* Whether those that were given last expire, so that others can be had. */
bool credential_source_renews(struct credential_source *source);

/* ---- one source each; ULP_E_NOT_FOUND if it is not configured. For credentials.c and tests. ---- */

enum ulp_status credentials_from_environment(struct credentials *ret);
enum ulp_status credentials_from_profile(struct credentials *ret);
enum ulp_status credentials_from_web_identity(struct http_client *client, const char *region,
                                              struct credentials *ret);
enum ulp_status credentials_from_container(struct http_client *client, struct credentials *ret);

/* The region of the profile; ULP_E_NOT_FOUND. */
enum ulp_status profile_region(struct buffer *ret_region);

/* A value in the text of such a file; in ~/.aws/config (`is_config`) sections are called "profile
 * NAME", but for the default. False if there is none. */
bool profile_value(const char *text, size_t bytes, bool is_config, const char *profile,
                   const char *name, const char **ret_value, size_t *ret_length);

/* What the container's agent and STS answer. */
enum ulp_status credentials_read_json(const char *text, size_t bytes, struct credentials *ret);
enum ulp_status credentials_read_xml(const char *text, size_t bytes, struct credentials *ret);

/* A variable that is set and not empty, or NULL. */
const char *environment(const char *name);

#endif
