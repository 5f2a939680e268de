// SPDX-License-Identifier: Apache-2.0
/* Any bit of a patch flipped, any length it is cut to, anything behind it: refused, nothing
 * written. */
#include "tests/patch/damage.h"

#include "patch/patch.h"

static const struct form forms[] = {{"a", "F32", {5000}, 1, 0},
                                    {"b", "BF16", {300, 600}, 2, 0},
                                    {"c", "F8_E4M3", {20000}, 1, 0},
                                    {"d", "I64", {300}, 1, 0},
                                    {"e", "F16", {20, 30, 40}, 3, 0}};

struct bench {
    struct state base, live;
    struct ulp_weights *weights;
    struct bytes bytes;
};

/* About 64 KiB in several chunks. */
static struct bench bench_make(void) {
    struct bench bench = {.base = state_make(forms, COUNT(forms), 0)};
    struct state next = state_copy(&bench.base);

    state_step(&next, 470);
    bench.bytes = patch_between(&bench.base, &next, NULL);
    assert_in_range(bench.bytes.used, 60000, 80000);
    bench.live = state_copy(&bench.base);
    bench.weights = weights_of(&bench.live);
    state_free(&next);
    return bench;
}

static void bench_free(struct bench *bench) {
    assert_same_state(&bench->live, &bench->base);
    assert_root_of(bench->weights, &bench->base);
    ulp_weights_free(bench->weights);
    bytes_free(&bench->bytes);
    state_free(&bench->base);
    state_free(&bench->live);
}

/* Every chunk is read through this, so it need not be done by whole applications for each bit. */
static void flip_bits_of_chunk(const struct bench *bench, const struct ulp_patch *patch,
                               size_t chunk) {
    const struct table_chunk *entry = &patch->table.chunks[chunk];
    const uint8_t *bytes = NULL;
    struct worker worker = {0}; /* of no use to a patch in memory */

    for (size_t bit = 8 * (size_t)entry->offset; bit < 8 * (size_t)(entry->offset + entry->bytes);
         bit++) {
        flip(bench->bytes.data, bit);
        if (patch_chunk_bytes(patch, chunk, &worker, &bytes) != ULP_E_CHECKSUM)
            fail_msg("bit %zu was not missed", bit);
        if (bit % 4001 == 0)
            assert_int_equal(try_patch(bench->weights, bench->bytes.data, bench->bytes.used),
                             ULP_E_CHECKSUM);
        flip(bench->bytes.data, bit);
    }
    assert_ok(patch_chunk_bytes(patch, chunk, &worker, &bytes));
}

static void test_every_bit_of_every_chunk(void **unused) {
    struct bench bench = bench_make();
    struct ulp_patch *patch = open_bytes(&bench.bytes);
    size_t covered = PATCH_HEADER_BYTES;

    (void)unused;
    for (size_t i = 0; i < patch->table.grid.chunk_count; i++) {
        assert_int_equal(patch->table.chunks[i].offset, covered);
        flip_bits_of_chunk(&bench, patch, i);
        covered += (size_t)patch->table.chunks[i].bytes;
    }
    assert_true(patch->table.grid.chunk_count >= 5);
    assert_true(covered > bench.bytes.used - 1000); /* the rest is table and trailer */
    ulp_patch_free(patch);
    assert_ok(try_patch(bench.weights, bench.bytes.data, bench.bytes.used));
    bench_free(&bench);
}

static enum ulp_status expected_of(size_t byte, size_t total) {
    if (byte < PATCH_HEADER_BYTES - 1)
        return ULP_E_NOT_A_PATCH;
    if (byte < PATCH_HEADER_BYTES)
        return ULP_E_VERSION;
    if (byte >= total - 4)
        return ULP_E_TRUNCATED; /* the end is not there */
    return ULP_E_CHECKSUM;
}

/* Header, table and trailer are checked by opening. */
static void test_every_bit_around_the_chunks(void **unused) {
    struct bench bench = bench_make();
    struct ulp_patch *whole = open_bytes(&bench.bytes), *patch = NULL;
    const size_t chunks = whole->table.grid.chunk_count, total = bench.bytes.used;
    const size_t table =
        (size_t)(whole->table.chunks[chunks - 1].offset + whole->table.chunks[chunks - 1].bytes);

    (void)unused;
    ulp_patch_free(whole);
    for (size_t bit = 0; bit < 8 * total; bit++) {
        enum ulp_status status;

        if (bit / 8 == PATCH_HEADER_BYTES)
            bit = 8 * table;
        flip(bench.bytes.data, bit);
        status = ulp_patch_open_memory(bench.bytes.data, total, &patch);
        flip(bench.bytes.data, bit);
        if (bit / 8 >= total - 8 &&
            bit / 8 < total - 4) /* a length that is too large, or not right */
            assert_true(status == ULP_E_CHECKSUM || status == ULP_E_TRUNCATED ||
                        status == ULP_E_LIMIT);
        else
            assert_int_equal(status, expected_of(bit / 8, total));
        assert_null(patch);
    }
    bench_free(&bench);
}

static void test_every_length(void **unused) {
    struct bench bench = bench_make();
    struct ulp_patch *patch = NULL;

    (void)unused;
    for (size_t bytes = 0; bytes < bench.bytes.used; bytes++) {
        /* memory of just that length, so that a sanitizer sees reading beyond it */
        uint8_t *cut = bytes % 64 == 0 ? malloc(bytes ? bytes : 1) : NULL;

        if (cut)
            memcpy(cut, bench.bytes.data, bytes);
        assert_int_equal(ulp_patch_open_memory(cut ? cut : bench.bytes.data, bytes, &patch),
                         ULP_E_TRUNCATED);
        assert_null(patch);
        free(cut);
    }
    bench_free(&bench);
}

static void test_bytes_behind_the_end(void **unused) {
    struct bench bench = bench_make();
    struct ulp_sink sink = bytes_sink(&bench.bytes);

    (void)unused;
    for (unsigned i = 0; i < 40; i++) {
        assert_ok(sink.write(sink.user, &"\0ulpe"[i % 5], 1));
        assert_int_equal(try_patch(bench.weights, bench.bytes.data, bench.bytes.used),
                         ULP_E_TRUNCATED);
    }
    bench_free(&bench);
}

/* A patch behind a patch, or two chunks swapped, are made of good parts and yet refused. */
static void test_good_parts_in_the_wrong_place(void **unused) {
    struct bench bench = bench_make();
    struct bytes twice = {0};
    struct ulp_sink sink = bytes_sink(&twice);
    struct ulp_patch *patch = NULL;

    (void)unused;
    assert_ok(sink.write(sink.user, bench.bytes.data, bench.bytes.used));
    assert_ok(sink.write(sink.user, bench.bytes.data, bench.bytes.used));
    assert_fails(ulp_patch_open_memory(twice.data, twice.used, &patch), ULP_E_TABLE,
                 "do not fill the file");
    bytes_free(&twice);
    bench_free(&bench);
}

static void test_files(void **unused) {
    char *directory = temp_directory_make();
    struct ulp_patch *patch = NULL;
    FILE *file = fopen(path_in(directory, "empty"), "w");

    (void)unused;
    assert_non_null(file);
    fclose(file);
    assert_fails(ulp_patch_open(path_in(directory, "empty"), &patch), ULP_E_TRUNCATED, "0 bytes");
    assert_fails(ulp_patch_open(path_in(directory, "missing"), &patch), ULP_E_NOT_FOUND, "missing");
    assert_fails(ulp_patch_open(directory, &patch), ULP_E_FILE_KIND, "");
    assert_fails(ulp_patch_open_memory("ulpatcs\1ulpatch\1ulpatch\1", 24, &patch),
                 ULP_E_NOT_A_PATCH, "");
    assert_fails(ulp_patch_open_memory("ulpatch\2ulpatch\1ulpatch\1", 24, &patch), ULP_E_VERSION,
                 "version 2");
    temp_directory_remove(directory);
}

TEST_MAIN(test_every_bit_of_every_chunk, test_every_bit_around_the_chunks, test_every_length,
          test_bytes_behind_the_end, test_good_parts_in_the_wrong_place, test_files)
