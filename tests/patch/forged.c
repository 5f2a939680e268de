// SPDX-License-Identifier: Apache-2.0
/*
 * Bits flipped and all checksums made right again, so that it is left to the decoder, the table's
 * rules and the root: refused without a crash, or, if the flip does not matter, leading to just the
 * true state.
 */
#include "tests/patch/damage.h"

#include "patch/patch.h"
#include "tests/patch/big_blocks.h"

#define THREADS 2

static const struct form forms[] = {{"model.a", "F32", {300}, 1, 0},
                                    {"model.b", "BF16", {140, 60}, 2, 0},
                                    {"model.c", "F8_E4M3", {1500}, 1, 0},
                                    {"new.d", "X_TYPE", {30}, 1, 45},
                                    {"new.e", "F16", {6, 7, 8}, 3, 0}};

/* For coders that need more bytes. */
static const struct form few[] = {{"model.a", "F32", {30}, 1, 0},
                                  {"model.b", "BF16", {20, 50}, 2, 0},
                                  {"model.c", "F8_E4M3", {99}, 1, 0},
                                  {"new.d", "X_TYPE", {30}, 1, 45},
                                  {"new.e", "F16", {6, 7}, 2, 0}};

/* A good patch and where its parts are. */
struct original {
    struct state before, base, next; /* `before` only with history */
    struct ulp_root child;
    struct bytes bytes;
    struct ulp_patch *patch;
    size_t table;
    bool partial, history;
    bool with_root; /* also the child root is made to fit */
};

static const struct ulp_region regions[] = {
    {"model.a", 0, 1, 0, 300}, {"model.b", 0, 140, 0, 20}, {"model.c", 0, 1, 8, 240}};

/* Puts back what is outside of the regions. */
static void keep_regions(struct state *next, const struct state *base) {
    struct state kept = state_copy(base);

    for (size_t i = 0; i < COUNT(regions); i++) { /* of the first tensors, in their order */
        const struct ulp_region *region = &regions[i];
        const size_t width = (size_t)next->tensors[i].bits / 8;
        const size_t pitch = (size_t)(next->tensors[i].bytes / (i == 1 ? 140 : 1));

        for (size_t row = 0; row < region->rows; row++)
            memcpy((uint8_t *)kept.tensors[i].data + row * pitch + region->column * width,
                   (const uint8_t *)next->tensors[i].data + row * pitch + region->column * width,
                   region->columns * width);
    }
    state_free(next);
    *next = kept;
}

static struct ulp_weights *weights_for(const struct original *original, const struct state *live) {
    struct ulp_weights *weights = weights_of(live);

    if (original->history)
        assert_ok(ulp_weights_remember(weights, original->before.tensors, original->before.count,
                                       NULL, NULL));
    return weights;
}

static void original_finish(struct original *original, enum ulp_coder coder) {
    const struct ulp_diff_options options = {.coder = coder,
                                             .regions = original->partial ? regions : NULL,
                                             .region_count = original->partial ? COUNT(regions) : 0,
                                             .history = 1};
    struct ulp_weights *weights = weights_for(original, &original->base);
    const struct table *table;

    if (original->partial)
        keep_regions(&original->next, &original->base);
    original->child = root_of(&original->next);
    original->bytes = patch_to(weights, &original->next, &options);
    original->patch = open_bytes(&original->bytes);
    table = &original->patch->table;
    assert_int_equal(table->history, original->history);
    original->table = (size_t)(table->chunks[table->grid.chunk_count - 1].offset +
                               table->chunks[table->grid.chunk_count - 1].bytes);
    ulp_weights_free(weights);
}

static struct original original_make(enum ulp_coder coder, const struct form *of) {
    struct original original = {.base = state_make(of, COUNT(forms), 0)};

    original.next = state_copy(&original.base);
    state_step(&original.next, 300);
    original_finish(&original, coder);
    return original;
}

static void original_free(struct original *original) {
    ulp_patch_free(original->patch);
    bytes_free(&original->bytes);
    state_free(&original->before);
    state_free(&original->base);
    state_free(&original->next);
}

/* The first place at or behind `from` where eight bytes spell `value`. */
static size_t find_u64(const struct bytes *bytes, size_t from, uint64_t value) {
    while (from + 8 <= bytes->used && memcmp(bytes->data + from, &value, 8) != 0)
        from++;
    assert_true(from + 8 <= bytes->used);
    return from;
}

/* The table's own copy of the checksum of the chunk that holds `byte`. */
static void mend_chunk(const struct original *original, uint8_t *data, size_t byte) {
    const struct table *table = &original->patch->table;

    for (size_t i = 0; i < table->grid.chunk_count; i++) {
        const struct table_chunk *chunk = &table->chunks[i];
        uint64_t sum;

        if (byte < chunk->offset || byte >= chunk->offset + chunk->bytes)
            continue;
        sum = patch_checksum(data + chunk->offset, (size_t)chunk->bytes);
        memcpy(data + find_u64(&original->bytes, original->table, chunk->checksum), &sum, 8);
    }
}

static void mend_table(const struct original *original, uint8_t *data) {
    const size_t bytes = original->bytes.used - PATCH_TRAILER_BYTES - original->table;
    uint64_t sum = patch_checksum(data + original->table, bytes);

    memcpy(data + original->bytes.used - PATCH_TRAILER_BYTES, &sum, 8);
}

/* The root that the sums at the end of the table give, whatever they are now. */
static void mend_child(const struct original *original, uint8_t *data) {
    const struct table *table = &original->patch->table;
    struct ulp_sum sums[COUNT(forms)];
    struct ulp_root root;

    assert_int_equal(table->grid.piece_count, COUNT(forms));
    memcpy(sums, data + original->bytes.used - PATCH_TRAILER_BYTES - sizeof sums, sizeof sums);
    assert_ok(table_root(&table->grid, sums, &root));
    memcpy(data + original->table + 1 + ULP_ROOT_BYTES, root.bytes, ULP_ROOT_BYTES);
}

static bool expected(enum ulp_status status) {
    static const enum ulp_status known[] = {
        ULP_E_LIMIT,        ULP_E_TRUNCATED,     ULP_E_UTF8,    ULP_E_SIZE,
        ULP_E_NAME,         ULP_E_CODE,          ULP_E_TABLE,   ULP_E_LAYOUT,
        ULP_E_CHECKSUM,     ULP_E_NOT_A_PATCH,   ULP_E_SCHEMA,  ULP_E_WRONG_BASE,
        ULP_E_WRONG_RESULT, ULP_E_NEEDS_HISTORY, ULP_E_REGIONS, ULP_E_VERSION};

    for (size_t i = 0; i < COUNT(known); i++) {
        if (status == known[i])
            return true;
    }
    return false;
}

struct share {
    struct original *original;
    size_t number; /* of the thread: it takes every THREADS-th bit */
    size_t refused, harmless, odd;
    enum ulp_status odd_status;
};

/* As far as it goes; committed and compared with the true state if it goes to the end. */
static enum ulp_status try_forged(const struct original *original, struct ulp_weights *weights,
                                  const struct state *live, const uint8_t *data, bool verify,
                                  bool *ret_true) {
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_patch_open_memory(data, original->bytes.used, &patch);

    if (!status && verify)
        status = ulp_patch_verify(patch, NULL, NULL);
    if (!status && original->partial)
        status = ulp_apply_prepare_parts(weights, (const struct ulp_patch *const *)&patch, 1,
                                         &original->child, NULL, &apply);
    else if (!status)
        status = ulp_apply_prepare(weights, patch, NULL, &apply);
    if (!status) {
        *ret_true = !ulp_apply_commit(apply, NULL, NULL) &&
                    !memcmp(live->data, original->next.data, live->bytes) && !ulp_apply_undo(apply);
    }
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    return status;
}

static void forge_one(struct share *share, struct ulp_weights *weights, const struct state *live,
                      uint8_t *data, size_t bit) {
    const struct original *original = share->original;
    bool is_true = false;
    enum ulp_status status;

    memcpy(data, original->bytes.data, original->bytes.used);
    flip(data, bit);
    mend_chunk(original, data, bit / 8);
    if (original->with_root)
        mend_child(original, data);
    if (bit / 8 < original->bytes.used - PATCH_TRAILER_BYTES)
        mend_table(original, data);
    status = try_forged(original, weights, live, data, bit % 5 == 0, &is_true);
    if (status && expected(status)) {
        share->refused++;
    } else if (is_true) {
        share->harmless++;
    } else {
        share->odd++;
        share->odd_status = status;
    }
}

static enum ulp_status forge_share(void *user, uint64_t number) {
    struct share *share = (struct share *)user + number;
    struct state live = state_copy(&share->original->base);
    struct ulp_weights *weights = weights_for(share->original, &live);
    uint8_t *data = malloc(share->original->bytes.used);

    for (size_t bit = share->number; bit < 8 * share->original->bytes.used; bit += THREADS)
        forge_one(share, weights, &live, data, bit);
    if (memcmp(live.data, share->original->base.data, live.bytes) != 0)
        share->odd++;
    free(data);
    ulp_weights_free(weights);
    state_free(&live);
    big_blocks_drop();
    return ULP_OK;
}

static void forge_all(struct original *original) {
    struct share shares[THREADS] = {{0}};
    struct ulp_pool *pool;
    size_t refused = 0, harmless = 0;

    big_blocks_install();
    pool = pool_of(THREADS);
    for (size_t i = 0; i < THREADS; i++)
        shares[i] = (struct share){.original = original, .number = i};
    assert_ok(ulp_pool_run(pool, THREADS, forge_share, shares, NULL));
    ulp_pool_free(pool);
    big_blocks_drop();
    for (size_t i = 0; i < THREADS; i++) {
        if (shares[i].odd)
            fail_msg("%zu odd outcomes, the last %s", shares[i].odd,
                     ulp_status_name(shares[i].odd_status));
        refused += shares[i].refused;
        harmless += shares[i].harmless;
    }
    assert_int_equal(refused + harmless, 8 * original->bytes.used);
    print_message("%zu of %zu made no difference\n", harmless, 8 * original->bytes.used);
    if (original->with_root)
        harmless -= 8 * ULP_ROOT_BYTES; /* flips of the child root, which are mended away */
    if (original->partial) /* sums of regions serve to find the child, which is given here */
        harmless -= 8 * sizeof(struct ulp_sum) * original->patch->table.grid.piece_count;
    assert_true(harmless < original->bytes.used / 40);
    original_free(original);
    mem_install(NULL);
}

static void test_the_forger_is_right_without_a_flip(void **unused) {
    struct original original = original_make(ULP_CODER_BEST, forms);
    struct ulp_weights *weights = weights_of(&original.base);
    uint8_t *data = malloc(original.bytes.used);

    (void)unused;
    memcpy(data, original.bytes.data, original.bytes.used);
    mend_chunk(&original, data, PATCH_HEADER_BYTES);
    mend_child(&original, data);
    mend_table(&original, data);
    assert_memory_equal(data, original.bytes.data, original.bytes.used);
    assert_ok(try_patch(weights, data, original.bytes.used));
    free(data);
    ulp_weights_free(weights);
    original_free(&original);
}

static void test_context_coded(void **unused) {
    struct original original = original_make(ULP_CODER_CONTEXT, forms);

    (void)unused;
    forge_all(&original);
}

static void test_with_the_root_made_to_fit(void **unused) {
    struct original original = original_make(ULP_CODER_BEST, forms);

    (void)unused;
    original.with_root = true;
    forge_all(&original);
}

static void test_plain_coded(void **unused) {
    struct original original = original_make(ULP_CODER_PLAIN, few);

    (void)unused;
    forge_all(&original);
}

static void test_dense_coded(void **unused) {
    struct original original = original_make(ULP_CODER_DENSE, few);

    (void)unused;
    forge_all(&original);
}

static void test_of_regions(void **unused) {
    struct original original = {.partial = true, .base = state_make(forms, COUNT(forms), 0)};

    (void)unused;
    original.next = state_copy(&original.base);
    state_step(&original.next, 300);
    original_finish(&original, ULP_CODER_BEST);
    forge_all(&original);
}

static void test_with_history(void **unused) {
    struct original original = {.history = true, .before = state_make(few, COUNT(few), 0)};

    (void)unused;
    original.base = state_copy(&original.before);
    state_step(&original.base, 300);
    original.next = state_copy(&original.base);
    state_step(&original.next, 300);
    original_finish(&original, ULP_CODER_CONTEXT);
    forge_all(&original);
}

/* The root is the same when what one piece of a tensor gains another one loses; the pieces are not.
 * */
static void test_sums_moved_between_pieces(void **unused) {
    static const struct form form = {"t", "F8_E4M3", {(1 << 24) + 8}, 1, 0};
    struct original original = {.base = state_make(&form, 1, 0)};
    struct ulp_weights *weights;
    struct ulp_sum sums[2];
    uint8_t *at;

    (void)unused;
    original.next = state_copy(&original.base);
    ((uint8_t *)original.next.tensors[0].data)[77] ^= 1;
    original.bytes = patch_between(&original.base, &original.next, NULL);
    original.patch = open_bytes(&original.bytes);
    original.table =
        (size_t)(original.patch->table.chunks[0].offset + original.patch->table.chunks[0].bytes);
    at = original.bytes.data + original.bytes.used - PATCH_TRAILER_BYTES - sizeof sums;
    memcpy(sums, at, sizeof sums);
    sums[0].lane[0] += 1;
    sums[1].lane[0] -= 1;
    memcpy(at, sums, sizeof sums);
    mend_table(&original, original.bytes.data);
    weights = weights_of(&original.base);
    assert_int_equal(try_patch(weights, original.bytes.data, original.bytes.used),
                     ULP_E_WRONG_RESULT);
    ulp_weights_free(weights);
    original_free(&original);
}

TEST_MAIN(test_the_forger_is_right_without_a_flip, test_context_coded,
          test_with_the_root_made_to_fit, test_plain_coded, test_dense_coded, test_of_regions,
          test_with_history, test_sums_moved_between_pieces)
