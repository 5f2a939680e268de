// SPDX-License-Identifier: Apache-2.0
/* The files in which AWS's tools keep profiles: sections, and names with values. */
#include "base/file.h"
#include "base/memory.h"
#include "base/quote.h"
#include "net/credentials.h"

#include <string.h>

struct text {
    const char *at;
    size_t length;
};

static struct text trimmed(const char *at, size_t length) {
    while (length && (*at == ' ' || *at == '\t')) {
        at++;
        length--;
    }
    while (length && strchr(" \t\r", at[length - 1]))
        length--;
    return (struct text){at, length};
}

static bool is(struct text text, const char *word) {
    return text.length == strlen(word) && !memcmp(text.at, word, text.length);
}

/* Whether a line such as "[profile name]" begins the section that is looked for. */
static bool begins(struct text line, bool is_config, const char *profile) {
    static const char word[] = "profile";
    struct text name = trimmed(line.at + 1, line.length - 2);

    if (!is_config || is(name, "default"))
        return is(name, profile);
    if (name.length <= sizeof word || memcmp(name.at, word, sizeof word - 1) != 0 ||
        !strchr(" \t", name.at[sizeof word - 1]))
        return false;
    return is(trimmed(name.at + sizeof word, name.length - sizeof word), profile);
}

bool profile_value(const char *text, size_t bytes, bool is_config, const char *profile,
                   const char *name, const char **ret_value, size_t *ret_length) {
    const char *end = text + bytes;
    bool inside = false;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((stop ? stop : end) - text);
        struct text line = trimmed(text, length);
        const char *equals = line.length ? memchr(line.at, '=', line.length) : NULL;

        text += length + 1;
        if (!line.length || *line.at == '#' || *line.at == ';')
            continue;
        if (*line.at == '[' && line.at[line.length - 1] == ']') {
            inside = line.length > 2 && begins(line, is_config, profile);
        } else if (inside && equals && is(trimmed(line.at, (size_t)(equals - line.at)), name)) {
            struct text value = trimmed(equals + 1, line.length - (size_t)(equals + 1 - line.at));

            *ret_value = value.at;
            *ret_length = value.length;
            return value.length;
        }
    }
    return false;
}

static enum ulp_status copy_value(const struct buffer *file, bool is_config, const char *name,
                                  char **ret_text) {
    const char *profile = environment("AWS_PROFILE"), *value = NULL;
    size_t length = 0;
    char *copy = NULL;
    enum ulp_status status;

    if (!profile_value(buffer_text(file), file->used, is_config, profile ? profile : "default",
                       name, &value, &length))
        return ULP_OK;
    status = mem_zeroed(length + 1, 1, &copy);
    if (status)
        return status;
    memcpy(copy, value, length);
    *ret_text = copy;
    return ULP_OK;
}

/* One that is not there is empty. */
static enum ulp_status read_file(const char *variable, const char *below_home,
                                 struct buffer *file) {
    const char *path = environment(variable), *home = environment("HOME");
    struct buffer name = BUFFER(4096);
    enum ulp_status status = buffer_reserve(file, LIMIT_CREDENTIALS_BYTES);

    if (!status && !path && home) {
        status = buffer_append_text(&name, home);
        if (!status)
            status = buffer_append_text(&name, below_home);
        path = buffer_text(&name);
    }
    if (!status && path)
        status = file_read(path, FILE_FOLLOW_LINKS, file);
    buffer_release(&name);
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

static enum ulp_status read_credentials_file(struct buffer *file) {
    return read_file("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", file);
}

static enum ulp_status read_config_file(struct buffer *file) {
    return read_file("AWS_CONFIG_FILE", "/.aws/config", file);
}

static void release_file(struct buffer *file) {
    if (file->data)
        mem_wipe(file->data, file->room);
    buffer_release(file);
}

static enum ulp_status take_from(const struct buffer *file, bool is_config,
                                 struct credentials *found) {
    enum ulp_status status = copy_value(file, is_config, "aws_access_key_id", &found->key_id);

    if (!status)
        status = copy_value(file, is_config, "aws_secret_access_key", &found->secret);
    return status ? status : copy_value(file, is_config, "aws_session_token", &found->token);
}

enum ulp_status credentials_from_profile(struct credentials *ret) {
    struct buffer file = BUFFER(LIMIT_CREDENTIALS_BYTES);
    struct credentials found = {0};
    const char *profile = environment("AWS_PROFILE");
    enum ulp_status status = read_credentials_file(&file);

    if (!status)
        status = take_from(&file, false, &found);
    if (!status && !found.key_id && !found.secret) {
        buffer_clear(&file);
        status = read_config_file(&file);
        if (!status)
            status = take_from(&file, true, &found);
    }
    release_file(&file);
    if (!status && !found.key_id && !found.secret && !profile)
        status = ULP_E_NOT_FOUND;
    else if (!status && (!found.key_id || !found.secret))
        status = fail(ULP_E_PERMISSION, "the profile %s of ~/.aws has no access key, or no secret",
                      quote(profile ? profile : "default").text);
    if (status)
        credentials_release(&found);
    else
        *ret = found;
    return status;
}

enum ulp_status profile_region(struct buffer *ret_region) {
    struct buffer file = BUFFER(LIMIT_CREDENTIALS_BYTES);
    char *region = NULL;
    enum ulp_status status = read_config_file(&file);

    if (!status)
        status = copy_value(&file, true, "region", &region);
    if (!status)
        status = region ? buffer_append_text(ret_region, region) : ULP_E_NOT_FOUND;
    mem_free(region);
    release_file(&file);
    return status;
}
