// SPDX-License-Identifier: Apache-2.0
/* SHA-256: the vectors of FIPS 180-4, and the portable one against whichever the build uses. */
#include "hash/sha256.h"
#include "hash/sha256_portable.h"
#include "tests/test.h"

static void hex(const uint8_t digest[SHA256_BYTES], char text[65]) {
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void assert_digest(const char *message, size_t repeat, const char *expected) {
    struct sha256_portable portable;
    struct sha256 *hash = NULL;
    uint8_t digest[SHA256_BYTES];
    char text[65];

    sha256_portable_begin(&portable);
    assert_ok(sha256_begin(&hash));
    for (size_t i = 0; i < repeat; i++) {
        sha256_portable_add(&portable, message, strlen(message));
        assert_ok(sha256_add(hash, message, strlen(message)));
    }
    sha256_portable_end(&portable, digest);
    hex(digest, text);
    assert_string_equal(text, expected);
    assert_ok(sha256_end(hash, digest));
    hex(digest, text);
    assert_string_equal(text, expected);
    sha256_free(hash);
}

static void test_published_vectors(void **state) {
    (void)state;
    assert_digest("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* All lengths around the block boundaries, in two pieces. */
static void test_both_agree_on_every_length(void **state) {
    uint8_t data[300], x[SHA256_BYTES], y[SHA256_BYTES];

    (void)state;
    test_random_bytes(data, sizeof data);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        struct sha256_portable portable;
        struct sha256 *hash = NULL;

        sha256_portable_begin(&portable);
        sha256_portable_add(&portable, data, bytes / 3);
        sha256_portable_add(&portable, data + bytes / 3, bytes - bytes / 3);
        sha256_portable_end(&portable, x);
        assert_ok(sha256_begin(&hash));
        assert_ok(sha256_add(hash, data, bytes));
        assert_ok(sha256_end(hash, y));
        sha256_free(hash);
        assert_memory_equal(x, y, SHA256_BYTES);
    }
}

TEST_MAIN(test_published_vectors, test_both_agree_on_every_length)
