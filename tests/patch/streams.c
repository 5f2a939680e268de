// SPDX-License-Identifier: Apache-2.0
/* Sources and sinks that fail at any call: the failure is passed on, and nothing was changed or
 * left. */
#include "tests/patch/state.h"
#include "tests/tensor/sample.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

struct remote {
    const struct bytes *bytes;
    atomic_long calls;
    long fail_at;       /* this read and all after it fail; -1: none */
    size_t from, lying; /* bytes from here on come as others, so many of them */
};

static enum ulp_status fetch(void *user, uint64_t offset, void *data, size_t bytes) {
    struct remote *remote = user;
    long call = atomic_fetch_add(&remote->calls, 1);

    if (remote->fail_at >= 0 && call >= remote->fail_at)
        return ulp_fail(ULP_E_IO, "the wire broke at %ld", call);
    if (offset > remote->bytes->used || bytes > remote->bytes->used - offset)
        return ulp_fail(ULP_E_FILE_CHANGED, "only %zu bytes are there", remote->bytes->used);
    memcpy(data, remote->bytes->data + offset, bytes);
    for (size_t i = 0; i < remote->lying; i++) {
        size_t at = remote->from + i;

        if (at >= offset && at < offset + bytes)
            ((uint8_t *)data)[at - offset] ^= 0x5a;
    }
    return ULP_OK;
}

static struct ulp_source source_of(struct remote *remote) {
    return (struct ulp_source){fetch, remote, remote->bytes->used};
}

struct bench {
    struct state base, next, live;
    struct ulp_weights *weights;
    struct bytes bytes;
};

static struct bench bench_make(void) {
    struct bench bench = {.base = state_make(every_form, every_form_count, 0)};

    bench.next = state_copy(&bench.base);
    state_step(&bench.next, 100);
    bench.live = state_copy(&bench.base);
    bench.weights = weights_of(&bench.live);
    bench.bytes = patch_to(bench.weights, &bench.next, NULL);
    return bench;
}

static void bench_free(struct bench *bench) {
    ulp_weights_free(bench->weights);
    bytes_free(&bench->bytes);
    state_free(&bench->base);
    state_free(&bench->next);
    state_free(&bench->live);
}

/* Opened, verified and prepared, as far as it goes. */
static enum ulp_status use(const struct bench *bench, struct remote *remote,
                           struct ulp_pool *pool) {
    const struct ulp_apply_options options = {.pool = pool};
    struct ulp_source source = source_of(remote);
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_patch_open_source(&source, &patch);

    if (!status)
        status = ulp_patch_verify(patch, pool, NULL);
    if (!status)
        status = ulp_apply_prepare(bench->weights, patch, &options, &apply);
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    return status;
}

static void test_a_patch_that_is_elsewhere(void **unused) {
    struct bench bench = bench_make();
    struct remote remote = {.bytes = &bench.bytes, .fail_at = -1};
    struct ulp_source source = source_of(&remote);
    struct ulp_pool *pool = pool_of(4);
    const struct ulp_apply_options options = {.pool = pool};
    struct ulp_patch *patch = NULL;

    (void)unused;
    assert_ok(ulp_patch_open_source(&source, &patch));
    assert_int_equal(atomic_load(&remote.calls), 3); /* header, trailer, table */
    assert_ok(ulp_apply(bench.weights, patch, &options, NULL));
    assert_same_state(&bench.live, &bench.next);
    ulp_patch_free(patch);
    ulp_pool_free(pool);
    bench_free(&bench);
}

static void break_reads(unsigned threads, unsigned times) {
    struct bench bench = bench_make();
    struct ulp_pool *pool = pool_of(threads);

    for (unsigned again = 0; again < times; again++) {
        enum ulp_status status = ULP_E_IO;
        long fail_at;

        for (fail_at = 0; status; fail_at++) {
            struct remote remote = {.bytes = &bench.bytes, .fail_at = fail_at};

            status = use(&bench, &remote, pool);
            if (status) {
                assert_int_equal(status, ULP_E_IO);
                assert_non_null(strstr(ulp_last_error(), "the wire broke"));
            }
            assert_same_state(&bench.live, &bench.base);
        }
        assert_true(fail_at > 20); /* several chunks, twice */
    }
    assert_root_of(bench.weights, &bench.base);
    ulp_pool_free(pool);
    bench_free(&bench);
}

static void test_reads_that_fail(void **unused) {
    (void)unused;
    break_reads(1, 1);
    break_reads(4, 8);
}

/* The other side has fewer bytes than it said, or more, or others. */
static void test_sources_that_lie(void **unused) {
    struct bench bench = bench_make();
    struct bytes less = bench.bytes;
    struct remote remote = {.bytes = &less, .fail_at = -1};
    struct ulp_source source = source_of(&remote);
    struct ulp_patch *patch = NULL;

    (void)unused;
    less.used -= 1;
    assert_fails(ulp_patch_open_source(&source, &patch), ULP_E_FILE_CHANGED, "are there");
    source.bytes -= 1;
    assert_fails(ulp_patch_open_source(&source, &patch), ULP_E_TRUNCATED, "");
    source.bytes = UINT64_MAX;
    assert_fails(ulp_patch_open_source(&source, &patch), ULP_E_FILE_CHANGED, "are there");
    source.bytes = 3;
    assert_fails(ulp_patch_open_source(&source, &patch), ULP_E_TRUNCATED, "3 bytes");
    assert_null(patch);
    for (size_t from = 0; from + 16 < bench.bytes.used; from += 97) {
        struct remote lying = {.bytes = &bench.bytes, .fail_at = -1, .from = from, .lying = 5};
        enum ulp_status status = use(&bench, &lying, NULL);

        assert_true(status == (from < 8 ? ULP_E_NOT_A_PATCH : ULP_E_CHECKSUM));
    }
    assert_same_state(&bench.live, &bench.base);
    bench_free(&bench);
}

/* ---- sinks ---- */

struct tap {
    long calls, fail_at;
};

static enum ulp_status drip(void *user, const void *data, size_t bytes) {
    struct tap *tap = user;

    (void)data;
    (void)bytes;
    return tap->calls++ == tap->fail_at ? ulp_fail(ULP_E_NO_SPACE, "the tap is closed") : ULP_OK;
}

/* A chunk waits for its turn while another one fails: nobody waits for ever. */
static void close_tap(unsigned threads, unsigned times) {
    struct bench bench = bench_make();
    struct ulp_patch *patch = open_bytes(&bench.bytes);
    struct ulp_pool *pool = pool_of(threads);
    const struct ulp_diff_options options = {.pool = pool};

    for (unsigned again = 0; again < times; again++) {
        enum ulp_status status = ULP_E_NO_SPACE;
        long fail_at;

        for (fail_at = 0; status; fail_at++) {
            struct tap tap = {.fail_at = fail_at};
            const struct ulp_sink sink = {drip, &tap};

            if (again % 2)
                status = ulp_squash(bench.weights, (const struct ulp_patch *const *)&patch, 1,
                                    &options, &sink, NULL);
            else
                status = ulp_diff(bench.weights, bench.next.tensors, bench.next.count, &options,
                                  &sink, NULL);
            if (status)
                assert_int_equal(status, ULP_E_NO_SPACE);
            if (status)
                assert_string_equal(ulp_last_error(), "the tap is closed");
            assert_int_equal(tap.calls, status ? fail_at + 1 : fail_at);
        }
        assert_true(fail_at > 10);
    }
    ulp_pool_free(pool);
    ulp_patch_free(patch);
    bench_free(&bench);
}

static void test_writes_that_fail(void **unused) {
    (void)unused;
    close_tap(1, 2);
    close_tap(4, 16);
}

static int stop_after_two(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)total;
    return done >= 2;
}

static void test_stopped_by_progress(void **unused) {
    static const struct ulp_progress progress = {stop_after_two, NULL};
    struct bench bench = bench_make();
    struct ulp_pool *pool = pool_of(4);
    const struct ulp_diff_options options = {.pool = pool, .progress = &progress};
    struct tap tap = {.fail_at = -1};
    const struct ulp_sink sink = {drip, &tap};

    (void)unused;
    for (unsigned again = 0; again < 50; again++)
        assert_fails(
            ulp_diff(bench.weights, bench.next.tensors, bench.next.count, &options, &sink, NULL),
            ULP_E_CANCELLED, "stopped by the caller");
    ulp_pool_free(pool);
    bench_free(&bench);
}

/* Nothing is asserted while the limit is on, since even a report might run into it. */
static enum ulp_status diff_within(const struct bench *bench, rlim_t most, const char *path,
                                   const struct ulp_diff_options *options) {
    struct rlimit before, limit;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    enum ulp_status status;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = ulp_diff_file(bench->weights, bench->next.tensors, bench->next.count, options, path,
                           ULP_COMMIT_REPLACE, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    return status;
}

/* On a full disk the file from before stays, and nothing else is there. */
static void test_a_full_disk(void **unused) {
    struct bench bench = bench_make();
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "step.ulp");
    struct ulp_pool *pool = pool_of(4);
    const struct ulp_diff_options options = {.pool = pool};
    struct ulp_patch *patch = NULL;

    (void)unused;
    for (size_t most = 0; most < bench.bytes.used; most += bench.bytes.used / 37) {
        assert_int_equal(diff_within(&bench, most, path, &options), ULP_E_NO_SPACE);
        assert_int_equal(entries_in(directory), 0);
    }
    assert_ok(diff_within(&bench, bench.bytes.used, path, &options));
    assert_int_equal(diff_within(&bench, 100, path, &options), ULP_E_NO_SPACE);
    assert_fails(ulp_diff_file(bench.weights, bench.next.tensors, bench.next.count, NULL, path,
                               ULP_COMMIT_NEW, NULL),
                 ULP_E_EXISTS, "");
    assert_int_equal(entries_in(directory), 1);
    assert_ok(ulp_patch_open(path, &patch));
    assert_ok(ulp_apply(bench.weights, patch, NULL, NULL));
    assert_same_state(&bench.live, &bench.next);
    ulp_patch_free(patch);
    ulp_pool_free(pool);
    temp_directory_remove(directory);
    bench_free(&bench);
}

TEST_MAIN(test_a_patch_that_is_elsewhere, test_reads_that_fail, test_sources_that_lie,
          test_writes_that_fail, test_stopped_by_progress, test_a_full_disk)
