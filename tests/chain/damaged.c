// SPDX-License-Identifier: Apache-2.0
/* Records that were damaged, and records that somebody made to look right. */
#include "chain/record.h"

#include "tests/chain/sample.h"

static void test_every_truncation(void **unused) {
    struct sample *s = sample_new(SAMPLE_ANCHORS, 10);
    struct buffer bytes = written(&s->record, NULL);

    (void)unused;
    for (size_t count = 0; count < bytes.used; count++)
        assert_true(is_refusal(read_exactly(bytes.data, count)));
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
    free(s);
}

static void test_every_bit(void **unused) {
    struct sample *s = sample_new(3, 6);
    struct buffer bytes = written(&s->record, NULL);

    (void)unused;
    for (size_t bit = 0; bit < 8 * bytes.used; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(is_refusal(read_exactly(bytes.data, bytes.used)));
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(read_exactly(bytes.data, bytes.used));
    buffer_release(&bytes);
    free(s);
}

/* The parser behind the hash: what it lets through is canonical, or read_exactly() would say so. */
static void check_forged(const uint8_t *data, size_t count, unsigned *accepted) {
    enum ulp_status status = read_forged(data, count);

    assert_true(!status || is_refusal(status));
    *accepted += !status;
}

static void test_every_forged_bit_and_truncation(void **unused) {
    struct sample *s = sample_new(3, 6);
    struct buffer bytes = written(&s->record, NULL);
    const size_t count = bytes.used - SHA256_BYTES;
    unsigned flipped = 0, cut = 0;

    (void)unused;
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        check_forged(bytes.data, count, &flipped);
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t length = 0; length < count; length++)
        check_forged(bytes.data, length, &cut);
    assert_true(flipped > 1000); /* hashes, roots, numbers: other records, and well-formed */
    assert_int_equal(cut, 0);
    buffer_release(&bytes);
    free(s);
}

/* Where lists begin: from the number of handovers on. */
static void test_random_bytes_behind_the_head(void **unused) {
    struct sample *s = sample_new(0, 0);
    struct buffer bytes = written(&s->record, NULL);
    const size_t head = bytes.used - SHA256_BYTES - 4;
    unsigned accepted = 0;
    uint8_t *data = malloc(head + 300);

    (void)unused;
    assert_non_null(data);
    memcpy(data, bytes.data, head);
    for (unsigned i = 0; i < 20000; i++) {
        size_t more = (size_t)(test_random() % 300);

        test_random_bytes(data + head, more);
        for (size_t k = 0; k < 4 && k < more; k++)
            data[head + k] &= 1; /* few of each, so that something is reached behind them */
        check_forged(data, head + more, &accepted);
    }
    free(data);
    buffer_release(&bytes);
    free(s);
}

/* Bytes of one record in another: whatever stands there, nothing is read that is not canonical. */
static void test_spliced(void **unused) {
    struct sample *s = sample_new(SAMPLE_ANCHORS, 12);
    struct buffer bytes = written(&s->record, NULL);
    const size_t count = bytes.used - SHA256_BYTES;
    uint8_t *data = malloc(count);
    unsigned accepted = 0;

    (void)unused;
    assert_non_null(data);
    for (unsigned i = 0; i < 20000; i++) {
        size_t from = test_random() % count, to = test_random() % count;
        size_t left = count - (from > to ? from : to);

        memcpy(data, bytes.data, count);
        memmove(data + to, data + from, 1 + test_random() % (left < 64 ? left : 64));
        check_forged(data, count, &accepted);
    }
    assert_true(accepted > 1000);
    free(data);
    buffer_release(&bytes);
    free(s);
}

TEST_MAIN(test_every_truncation, test_every_bit, test_every_forged_bit_and_truncation,
          test_random_bytes_behind_the_head, test_spliced)
