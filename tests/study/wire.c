// SPDX-License-Identifier: Apache-2.0
/* Sizes of others' encodings: the same however a tensor is cut. */
#include "study/wire.h"
#include "study/gaps.h"
#include "study/squeeze.h"
#include "tests/test.h"

#include <stdlib.h>

static const uint64_t places[] = {0, 1, 128, 129, 300, 70000, 70001, 16777216, 5000000000};
#define PLACES (sizeof places / sizeof places[0])

/* Runs that are cut in front of each place whose bit is set. */
static struct wire_run joined(unsigned cuts) {
    struct wire_run all = {0}, part = {0};
    uint64_t start = 0;

    for (unsigned i = 0; i < PLACES; i++) {
        if (cuts >> i & 1) {
            wire_run_join(&all, &part);
            part = (struct wire_run){0};
            start = places[i] - (places[i] ? 1 : 0);
        }
        wire_run_add(&part, places[i], start);
    }
    wire_run_join(&all, &part);
    return all;
}

static void test_cuts_do_not_matter(void **state) {
    const struct wire_run whole = joined(0);
    uint64_t bytes = 0, next = 0, rice = 0;

    (void)state;
    for (unsigned i = 0; i < PLACES; i++) {
        bytes += gap_bytes(places[i] - next);
        rice += ((places[i] - next) >> 7) + 8;
        next = places[i] + 1;
    }
    assert_true(whole.gap_bytes == bytes && whole.rice_bits[7] == rice);
    assert_true(whole.changed == PLACES && whole.gap_most == 5000000000 - 16777217);
    for (unsigned cuts = 1; cuts < 1u << PLACES; cuts++) {
        const struct wire_run run = joined(cuts);

        assert_memory_equal(&run, &whole, sizeof run);
    }
}

static void test_gaps_as_varints(void **state) {
    static const struct {
        uint64_t gap;
        size_t bytes;
    } known[] = {{0, 1}, {127, 1}, {128, 2}, {16383, 2}, {16384, 3}, {UINT64_MAX, GAP_BYTES_MAX}};
    uint8_t written[GAP_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(gap_bytes(known[i].gap), known[i].bytes);
        assert_int_equal(gap_write(written, known[i].gap), known[i].bytes);
    }
    gap_write(written, 300);
    assert_int_equal(written[0], 0xac);
    assert_int_equal(written[1], 0x02);
}

static void test_sizes_of_a_tensor(void **state) {
    const struct wire_run run = joined(0);
    const struct ulp_tensor tensor = {.bytes = 8000, .dtype = "BF16", .bits = 16};
    struct wire_sizes sizes = {0}, twice = {0};

    (void)state;
    wire_sizes_tensor(&sizes, &tensor, 2, &run);
    assert_true(sizes.formats[WIRE_STATE].bytes == 8000);
    assert_true(sizes.formats[WIRE_PAIRS].bytes == 6 * PLACES);
    assert_true(sizes.formats[WIRE_BITMAP].bytes == 500 + 2 * PLACES);
    assert_true(sizes.formats[WIRE_GAPS16].bytes == 6 * PLACES); /* one gap is too large for 2 */
    assert_true(sizes.formats[WIRE_GAPS].bytes == (double)(run.gap_bytes + 2 * PLACES));
    assert_int_equal(sizes.formats[WIRE_GAPS].basis, WIRE_COUNTED);
    assert_int_equal(sizes.formats[WIRE_GAPS_ZSTD].basis, WIRE_NOT_KNOWN);
    wire_sizes_add(&twice, &sizes);
    wire_sizes_add(&twice, &sizes);
    assert_true(twice.formats[WIRE_PAIRS].bytes == 12 * PLACES);
}

/* More than a frame, and a gap that needs entries which flip nothing. */
static void test_streams_are_squeezed(void **state) {
    struct wire_streams *streams = NULL;
    struct wire_made made;

    (void)state;
    assert_int_equal(wire_streams_new(&streams), ULP_OK);
    if (!squeeze_available()) {
        assert_null(streams);
        return;
    }
    for (unsigned i = 0; i < 1000000; i++)
        assert_int_equal(wire_streams_change(streams, 3, 0x3c00, 0x3c01, 2), ULP_OK);
    made = wire_streams_made(streams);
    assert_true(made.gaps > 0); /* the frames that are full */
    assert_int_equal(wire_streams_change(streams, 1000000, 0x3c00, 0x3c01, 2), ULP_OK);
    assert_int_equal(wire_streams_flush(streams), ULP_OK);
    made = wire_streams_made(streams);
    assert_true(made.gaps > 100 && made.gaps < 10000 && made.gaps_xor < 10000);
    assert_true(made.sampled == 0);
    assert_int_equal(wire_streams_sample(streams, places, places, sizeof places), ULP_OK);
    made = wire_streams_made(streams);
    assert_true(made.sampled == sizeof places && made.xor_of_state < made.state);
    wire_streams_free(streams);
}

TEST_MAIN(test_cuts_do_not_matter, test_gaps_as_varints, test_sizes_of_a_tensor,
          test_streams_are_squeezed)
