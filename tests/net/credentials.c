// SPDX-License-Identifier: Apache-2.0
/* Where credentials come from: the environment, files, and answers. */
#include "net/credentials.h"

#include "base/clock.h"
#include "base/file.h"
#include "tests/test.h"

#include <unistd.h>

static const char *const variables[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_CONFIG_FILE",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "HOME"};

static void clear_environment(void) {
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
}

static void assert_credentials(struct credentials *c, const char *id, const char *secret,
                               const char *token) {
    assert_string_equal(c->key_id, id);
    assert_string_equal(c->secret, secret);
    if (token)
        assert_string_equal(c->token, token);
    else
        assert_null(c->token);
    credentials_release(c);
    assert_null(c->secret);
}

static struct credential_source *source_of(bool anonymous) {
    struct credential_source *source = NULL;

    assert_ok(credential_source_new(anonymous, NULL, "us-east-1", &source));
    return source;
}

static void test_environment(void **state) {
    struct credentials c = {0};
    struct credential_source *source = source_of(false);

    (void)state;
    clear_environment();
    assert_int_equal(credentials_from_environment(&c), ULP_E_NOT_FOUND);
    assert_fails(credential_source_get(source, &c), ULP_E_PERMISSION, "ULPSYNC_S3_ANONYMOUS=1");
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    assert_fails(credential_source_get(source, &c), ULP_E_PERMISSION, "only one is set");
    setenv("AWS_SECRET_ACCESS_KEY", "", 1);
    assert_fails(credential_source_get(source, &c), ULP_E_PERMISSION, "only one is set");
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    assert_ok(credential_source_get(source, &c));
    assert_credentials(&c, "id", "secret", NULL);
    setenv("AWS_SESSION_TOKEN", "token", 1);
    assert_ok(credential_source_get(source, &c)); /* those that never expire stay */
    assert_credentials(&c, "id", "secret", NULL);
    credential_source_expired(source);
    assert_ok(credential_source_get(source, &c));
    assert_credentials(&c, "id", "secret", "token");
    credential_source_free(source);
    source = source_of(true);
    assert_ok(credential_source_get(source, &c));
    assert_null(c.key_id);
    credential_source_free(source);
}

static void write_text(const char *path, const char *text) {
    assert_ok(file_write(path, text, strlen(text), ULP_COMMIT_REPLACE));
}

static void test_profiles(void **state) {
    char *directory = temp_directory_make(), credentials_file[4096], config_file[4096];
    struct buffer region = BUFFER(100);
    struct credentials c = {0};

    (void)state;
    clear_environment();
    snprintf(credentials_file, sizeof credentials_file, "%s/credentials", directory);
    snprintf(config_file, sizeof config_file, "%s/config", directory);
    setenv("AWS_SHARED_CREDENTIALS_FILE", credentials_file, 1);
    setenv("AWS_CONFIG_FILE", config_file, 1);
    assert_int_equal(credentials_from_profile(&c), ULP_E_NOT_FOUND);
    assert_int_equal(profile_region(&region), ULP_E_NOT_FOUND);
    write_text(credentials_file, "# mine\r\n[default]\r\n"
                                 "aws_access_key_id = id1\r\naws_secret_access_key=s=1\r\n"
                                 "[other]\naws_access_key_id=id2\naws_secret_access_key = s2\n"
                                 "aws_session_token = t2\n[half]\naws_access_key_id = id3");
    write_text(config_file, "[default]\nregion = eu-north-1\n[profile  far ]\nregion=ap-1\n"
                            "aws_access_key_id=id4\naws_secret_access_key=s4\n"
                            "[profile default]\nregion=wrong\n[other]\nregion=wrong\n");
    assert_ok(credentials_from_profile(&c));
    assert_credentials(&c, "id1", "s=1", NULL);
    assert_ok(profile_region(&region));
    assert_string_equal(buffer_text(&region), "eu-north-1");
    setenv("AWS_PROFILE", "other", 1);
    assert_ok(credentials_from_profile(&c));
    assert_credentials(&c, "id2", "s2", "t2");
    assert_int_equal(profile_region(&region), ULP_E_NOT_FOUND);
    setenv("AWS_PROFILE", "far", 1);
    assert_ok(credentials_from_profile(&c));
    assert_credentials(&c, "id4", "s4", NULL);
    setenv("AWS_PROFILE", "half", 1);
    assert_fails(credentials_from_profile(&c), ULP_E_PERMISSION, "'half'");
    setenv("AWS_PROFILE", "missing", 1);
    assert_fails(credentials_from_profile(&c), ULP_E_PERMISSION, "'missing'");
    assert_null(c.key_id);
    buffer_release(&region);
    temp_directory_remove(directory);
}

/* Below the home directory, and a file that is too long. */
static void test_home(void **state) {
    char *directory = temp_directory_make(), path[4096], *large = calloc(1, 100001);
    struct credentials c = {0};

    (void)state;
    clear_environment();
    setenv("HOME", directory, 1);
    assert_int_equal(credentials_from_profile(&c), ULP_E_NOT_FOUND);
    assert_ok(file_make_directory(path_in(directory, ".aws")));
    snprintf(path, sizeof path, "%s/.aws/credentials", directory);
    write_text(path, "[default]\naws_access_key_id=i\naws_secret_access_key=s\n");
    assert_ok(credentials_from_profile(&c));
    assert_credentials(&c, "i", "s", NULL);
    memset(large, '#', 100000);
    write_text(path, large);
    assert_fails(credentials_from_profile(&c), ULP_E_LIMIT, "credentials");
    free(large);
    temp_directory_remove(directory);
}

static void test_lines_of_files(void **state) {
    static const char *const odd[] = {"",
                                      "[",
                                      "]",
                                      "[]",
                                      "[a",
                                      "=",
                                      "[p]\n=",
                                      "[p]\nk=",
                                      "[p]\nk",
                                      "k=v",
                                      "[q]\nk=v\n[p]",
                                      "[p]\n#k=v",
                                      "[p]\n;k=v",
                                      "[p\nk=v",
                                      "[p]\nkk=v"};
    const char *value = NULL;
    size_t length = 0;

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (profile_value(odd[i], strlen(odd[i]), false, "p", "k", &value, &length))
            fail_msg("%s has a value", odd[i]);
    assert_true(profile_value("[ p ]\nk\t= v w ", 15, false, "p", "k", &value, &length));
    assert_true(length == 3 && !memcmp(value, "v w", 3));
    assert_false(profile_value("[p]\nk=v", 7, true, "p", "k", &value, &length));
    assert_false(profile_value("[profilep]\nk=v", 14, true, "p", "k", &value, &length));
    assert_true(profile_value("[profile p]\nk=v", 15, true, "p", "k", &value, &length));
}

static void assert_bad_json(const char *text) {
    struct credentials c = {0};

    if (!credentials_read_json(text, strlen(text), &c))
        fail_msg("%s was taken", text);
    assert_null(c.secret);
}

static void test_answers(void **state) {
    static const char agent[] =
        "{\"RoleArn\":\"r\",\"Code\":{\"a\":[1]},\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"s\","
        "\"Token\" : \"t\",\"Expiration\":\"2026-02-03T04:05:06Z\",\"n\":1}";
    static const char sts[] =
        "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
        "<AssumeRoleWithWebIdentityResult><AccessKeyId>wrong</AccessKeyId><Credentials>"
        "<SessionToken>t</SessionToken><SecretAccessKey>s&amp;</SecretAccessKey>"
        "<Expiration>2026-02-03T04:05:06Z</Expiration><AccessKeyId>i</AccessKeyId></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
    struct credentials c = {0};

    (void)state;
    assert_ok(credentials_read_json(agent, sizeof agent - 1, &c));
    assert_int_equal(c.expires_s, 1770091506);
    assert_credentials(&c, "i", "s", "t");
    assert_ok(credentials_read_xml(sts, sizeof sts - 1, &c));
    assert_int_equal(c.expires_s, 1770091506);
    assert_credentials(&c, "i", "s&", "t");
    for (size_t i = 0; i < sizeof agent - 1; i++) {
        char cut[sizeof agent];

        memcpy(cut, agent, i);
        cut[i] = 0;
        assert_bad_json(cut);
    }
    assert_bad_json("{\"AccessKeyId\":\"i\"}");
    assert_bad_json("{\"AccessKeyId\":\"\",\"SecretAccessKey\":\"s\"}");
    assert_bad_json("{\"AccessKeyId\":\"i\",\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"s\"}");
    assert_bad_json("{\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"s\",\"Expiration\":\"soon\"}");
    assert_fails(credentials_read_xml("<Error/>", 8, &c), ULP_E_IO, "lacks");
}

/* An agent elsewhere is not asked without encryption: whoever listens would have the token. */
static void test_agents_that_are_not_asked(void **state) {
    static const char *const urls[] = {"http://example.com/x", "http://127.0.0.1.example.com/",
                                       "http://169.254.170.22/", "ftp://127.0.0.1/"};
    struct credentials c = {0};

    (void)state;
    clear_environment();
    assert_int_equal(credentials_from_container(NULL, &c), ULP_E_NOT_FOUND);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i], 1);
        assert_int_not_equal(credentials_from_container(NULL, &c), ULP_OK);
    }
    unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

TEST_MAIN(test_environment, test_profiles, test_home, test_lines_of_files, test_answers,
          test_agents_that_are_not_asked)
