// SPDX-License-Identifier: Apache-2.0
/* Where S3's buckets are: URL, options and environment, in this order; and addresses of web servers. */
#include "store/s3.h"
#include "tests/store/stores.h"

static const char *const variables[] = {
    "AWS_ENDPOINT_URL_S3",      "AWS_ENDPOINT_URL",     "AWS_REGION",
    "AWS_DEFAULT_REGION",       "AWS_PROFILE",          "HOME",
    "AWS_CONFIG_FILE",          "ULPSYNC_S3_ANONYMOUS", "ULPSYNC_STALL_SECONDS",
    "ULPSYNC_OPERATION_SECONDS"};

static void clear_environment(void) {
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
}

static void assert_place(const char *url, const struct ulp_store_options *options, const char *base,
                         const char *prefix, const char *region) {
    static const struct ulp_store_options usual = {0};
    struct s3_place place;

    assert_ok(s3_place_find(url, options ? options : &usual, &place));
    assert_string_equal(buffer_text(&place.base), base);
    assert_string_equal(buffer_text(&place.prefix), prefix);
    assert_string_equal(buffer_text(&place.region), region);
    s3_place_release(&place);
}

static void test_aws(void **state) {
    const struct ulp_store_options path = {.style = ULP_STYLE_PATH, .region = "r-1"};

    (void)state;
    clear_environment();
    assert_place("s3://bucket", NULL, "https://bucket.s3.us-east-1.amazonaws.com", "", "us-east-1");
    assert_place("s3://bucket/", NULL, "https://bucket.s3.us-east-1.amazonaws.com", "",
                 "us-east-1");
    assert_place("s3://bu.cket/a/b//", NULL, "https://s3.us-east-1.amazonaws.com/bu.cket", "a/b/",
                 "us-east-1");
    assert_place("s3://bucket/a", &path, "https://s3.r-1.amazonaws.com/bucket", "a/", "r-1");
    setenv("AWS_DEFAULT_REGION", "r-2", 1);
    assert_place("s3://b", NULL, "https://b.s3.r-2.amazonaws.com", "", "r-2");
    setenv("AWS_REGION", "r-3", 1);
    assert_place("s3://b", NULL, "https://b.s3.r-3.amazonaws.com", "", "r-3");
    assert_place("s3://b", &path, "https://s3.r-1.amazonaws.com/b", "", "r-1");
    assert_place("s3://b?region=r-4", &path, "https://s3.r-4.amazonaws.com/b", "", "r-4");
}

static void test_endpoints(void **state) {
    const struct ulp_store_options options = {.endpoint = "https://h:443/s3//",
                                              .style = ULP_STYLE_VIRTUAL};

    (void)state;
    clear_environment();
    setenv("AWS_ENDPOINT_URL", "http://one:80/", 1);
    assert_place("s3://b/p", NULL, "http://one/b", "p/", "us-east-1");
    setenv("AWS_ENDPOINT_URL_S3", "http://two:8080", 1);
    assert_place("s3://b/p", NULL, "http://two:8080/b", "p/", "us-east-1");
    assert_place("s3://b/p", &options, "https://b.h/s3", "p/", "us-east-1");
    assert_place("s3://b/p?endpoint=https://three:80&style=path&region=x", &options,
                 "https://three:80/b", "p/", "x");
    assert_place("s3://b?style=virtual", NULL, "http://b.two:8080", "", "us-east-1");
    clear_environment();
}

static void assert_no_place(const char *url, enum ulp_status expected, const char *text) {
    struct ulp_store *store = NULL;

    assert_fails(ulp_store_open(url, &store), expected, text);
    assert_null(store);
}

static void test_what_is_none(void **state) {
    struct ulp_store_options options = {.endpoint = "two words"};
    struct ulp_store *store = NULL;

    (void)state;
    clear_environment();
    assert_no_place("s3://", ULP_E_USAGE, "bucket");
    assert_no_place("s3:///a", ULP_E_USAGE, "bucket");
    assert_no_place("s3://.a", ULP_E_USAGE, "bucket");
    assert_no_place("s3://a b/c", ULP_E_USAGE, "bucket");
    assert_no_place("s3://u:p@bucket/c", ULP_E_USAGE, "bucket");
    assert_no_place("s3://bucket/../c", ULP_E_NAME, "../c");
    assert_no_place("s3://bucket/a//c", ULP_E_NAME, "a//c");
    assert_no_place("s3://bucket/c?x=y", ULP_E_USAGE, "anonymous=1");
    assert_no_place("s3://bucket/c?anonymous=yes", ULP_E_USAGE, "anonymous=1");
    assert_no_place("s3://bucket/c?region=a/b", ULP_E_USAGE, "region");
    assert_no_place("s3://bucket/c?endpoint=host", ULP_E_USAGE, "http://");
    assert_no_place("s3://bucket/c?endpoint=http://host/?a", ULP_E_USAGE, "query");
    assert_no_place("http://", ULP_E_USAGE, "host");
    assert_no_place("https://user:password@host/x", ULP_E_USAGE, "password in an address");
    assert_null(strstr(ulp_last_error(), "user"));
    assert_no_place("https://host/x?y", ULP_E_USAGE, "query");
    assert_fails(ulp_store_open_with("s3://bucket/x", &options, &store), ULP_E_USAGE, "two words");
}

static void assert_variable(const char *name, const char *value, bool good) {
    static const char *const urls[] = {"s3://bucket/x", "http://host/x"};
    const size_t count = strcmp(name, "ULPSYNC_S3_ANONYMOUS") ? COUNT(urls) : 1;

    setenv(name, value, 1);
    for (size_t i = 0; i < count; i++) {
        struct ulp_store *store = NULL;
        enum ulp_status status = ulp_store_open(urls[i], &store);

        if (good)
            assert_true(!status || status == ULP_E_UNSUPPORTED);
        else
            assert_fails(status, ULP_E_USAGE, name);
        ulp_store_free(store);
    }
    unsetenv(name);
}

static void test_variables(void **state) {
    static const char *const durations[] = {"ULPSYNC_STALL_SECONDS", "ULPSYNC_OPERATION_SECONDS"};
    static const char *const none[] = {"x", "60s", "-1", "1.5", " 7", "0x10"};
    static const char *const some[] = {"", "0", "60", "99999999999999999999999"};

    (void)state;
    clear_environment();
    for (size_t i = 0; i < COUNT(durations); i++) {
        for (size_t j = 0; j < COUNT(none); j++)
            assert_variable(durations[i], none[j], false);
        for (size_t j = 0; j < COUNT(some); j++)
            assert_variable(durations[i], some[j], true);
    }
    assert_variable("ULPSYNC_S3_ANONYMOUS", "", true);
    assert_variable("ULPSYNC_S3_ANONYMOUS", "0", true);
    assert_variable("ULPSYNC_S3_ANONYMOUS", "1", true);
    assert_variable("ULPSYNC_S3_ANONYMOUS", "no", false);
    assert_variable("ULPSYNC_S3_ANONYMOUS", "10", false);
}

/* Where there is no HTTP, it is said how to have it; else opening asks nobody anything. */
static void test_open(void **state) {
    static const char *const urls[] = {"s3://bucket/x", "https://example.com/x/",
                                       "http://example.com"};

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct ulp_store *store = NULL;
        enum ulp_status status = ulp_store_open(urls[i], &store);

        if (status)
            assert_fails(status, ULP_E_UNSUPPORTED, "-DULPSYNC_CURL=ON");
        else
            assert_string_equal(ulp_store_name(store), urls[i]);
        ulp_store_free(store);
    }
}

static void test_failing_allocations(void **state) {
    static const char *const urls[] = {"s3://bucket/x?region=r&endpoint=http://h", "http://h/x"};

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        enum ulp_status status = ULP_E_NOMEM;
        uint64_t at;

        for (at = 0; status == ULP_E_NOMEM && at < 1000; at++) {
            struct ulp_store *store = NULL;

            failing_allocator_start(at, 0);
            status = ulp_store_open(urls[i], &store);
            ulp_store_free(store);
            failing_allocator_stop();
        }
        assert_in_range(at, 4, 999);
    }
}

TEST_MAIN(test_aws, test_endpoints, test_what_is_none, test_variables, test_open,
          test_failing_allocations)
