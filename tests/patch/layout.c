// SPDX-License-Identifier: Apache-2.0
/* The tensors' descriptions in a table: what is written is read, and there is one way to write it.
 * */
#include "tests/patch/damage.h"

#include "base/limits.h"
#include "patch/layout.h"
#include "patch/patch.h"

static void sort(struct ulp_tensor *tensors, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct ulp_tensor tensor = tensors[i];
        size_t at = i;

        for (; at && strcmp(tensors[at - 1].name, tensor.name) > 0; at--)
            tensors[at] = tensors[at - 1];
        tensors[at] = tensor;
    }
}

static bool same_form(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return !strcmp(a->dtype, b->dtype) && a->rank == b->rank && a->bytes == b->bytes &&
           (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

/* Each dtype and each form is said once. */
static void check_counts(const struct ulp_tensor *tensors, size_t count, struct cursor cursor) {
    size_t dtypes = 0, forms = 0;

    for (size_t i = 0; i < count; i++) {
        size_t dtype = 0, form = 0;

        while (strcmp(tensors[dtype].dtype, tensors[i].dtype) != 0)
            dtype++;
        while (!same_form(&tensors[form], &tensors[i]))
            form++;
        dtypes += dtype == i;
        forms += form == i;
    }
    assert_int_equal(cursor_varint(&cursor), count);
    assert_int_equal(cursor_varint(&cursor), dtypes);
    assert_int_equal(cursor_varint(&cursor), forms);
}

/* Sorted by name; returns how many bytes they take. */
static size_t round_trip(const struct ulp_tensor *tensors, size_t count) {
    struct buffer bytes = BUFFER(1 << 26);
    struct ulp_tensor *read = NULL;
    struct arena arena = {0};
    struct cursor cursor;
    size_t read_count = 0, used;

    assert_ok(layout_write(tensors, count, &bytes));
    cursor = (struct cursor){bytes.data, bytes.data + bytes.used, false};
    check_counts(tensors, count, cursor);
    assert_ok(layout_read(&cursor, &arena, &read, &read_count));
    assert_true(cursor.at == cursor.end && !cursor.failed);
    assert_int_equal(read_count, count);
    assert_ok(layout_compare(tensors, count, read, read_count, "one", "other"));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(read[i].bytes, tensors[i].bytes);
        assert_int_equal(read[i].bits, tensors[i].bits);
        assert_int_equal(read[i].elements, tensors[i].elements);
    }
    used = bytes.used;
    /* all of it is needed */
    for (size_t cut = used; cut-- > (used > 400 ? used - 400 : 0);) {
        struct ulp_tensor *none = NULL;

        cursor = (struct cursor){bytes.data, bytes.data + cut, false};
        assert_true(layout_read(&cursor, &arena, &none, &read_count) || cursor.failed);
    }
    arena_release(&arena);
    buffer_release(&bytes);
    return used;
}

static void test_every_dtype(void **unused) {
    struct state state = state_make(every_form, every_form_count, 0);

    (void)unused;
    sort(state.tensors, state.count);
    round_trip(state.tensors, state.count);
    round_trip(state.tensors, 1);
    assert_int_equal(round_trip(state.tensors, 0), 3);
    state_free(&state);
}

static void test_extremes(void **unused) {
    static uint64_t ones[LIMIT_RANK];
    static char long_name[LIMIT_NAME_BYTES + 1], longer[LIMIT_NAME_BYTES + 1];
    struct ulp_tensor tensors[] = {
        {.name = long_name, .dtype = "F64", .shape = ones, .rank = LIMIT_RANK},
        {.name = longer, .dtype = "F64", .shape = ones, .rank = 0},
        {.name = "z", .dtype = "BF16", .shape = (const uint64_t[]){UINT64_C(1) << 57}, .rank = 1},
        {.name = "zz", .dtype = "x", .shape = (const uint64_t[]){3, 0, 9}, .rank = 3}};

    (void)unused;
    for (size_t i = 0; i < LIMIT_RANK; i++)
        ones[i] = 1;
    memset(long_name, 'n', LIMIT_NAME_BYTES);
    memset(longer, 'n', LIMIT_NAME_BYTES);
    longer[LIMIT_NAME_BYTES / 2] = 'o';
    for (size_t i = 0; i < COUNT(tensors); i++)
        assert_ok(ulp_tensor_measure(&tensors[i]));
    round_trip(tensors, COUNT(tensors));
}

/* Thousands of names as models have them cost a few bytes each. */
static void test_thousands_of_names(void **unused) {
    enum { MANY = 5000 };
    static const uint64_t shapes[][2] = {{4096, 4096}, {1024, 4096}, {4096, 1}};
    static char names[MANY][64];
    static struct ulp_tensor tensors[MANY];

    (void)unused;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "model.layers.%03zu.part_%c.weight", i / 10,
                 (char)('a' + i % 10));
        tensors[i] = (struct ulp_tensor){
            .name = names[i], .dtype = i % 10 ? "BF16" : "F32", .shape = shapes[i % 3], .rank = 2};
        assert_ok(ulp_tensor_measure(&tensors[i]));
    }
    assert_true(round_trip(tensors, MANY) < 6 * MANY);
}

static void test_random_names(void **unused) {
    enum { MANY = 300 };
    static const uint64_t shape[] = {2, 3};
    static char names[MANY][12];
    struct ulp_tensor tensors[MANY];

    (void)unused;
    for (unsigned turn = 0; turn < 20; turn++) {
        size_t count = 0;

        for (size_t i = 0; i < MANY; i++) {
            size_t length = 1 + test_random() % 10;

            for (size_t k = 0; k < length; k++)
                names[i][k] = (char)('a' + test_random() % 2);
            names[i][length] = 0;
            tensors[i] = (struct ulp_tensor){.name = names[i],
                                             .dtype = test_random() & 1 ? "BF16" : "I8",
                                             .shape = shape,
                                             .rank = (uint32_t)(test_random() % 3)};
            assert_ok(ulp_tensor_measure(&tensors[i]));
        }
        sort(tensors, MANY);
        for (size_t i = 0; i < MANY; i++) { /* each name once */
            if (!count || strcmp(tensors[count - 1].name, tensors[i].name) != 0)
                tensors[count++] = tensors[i];
        }
        round_trip(tensors, count);
    }
}

/* ---- tables with other descriptions than the canonical one ---- */

/* Header, the table made of these bytes of a layout (and no more), trailer: it is opened. */
static enum ulp_status open_layout(const uint8_t *layout, size_t bytes, size_t sums) {
    uint8_t file[1024] = {0};
    size_t used = PATCH_HEADER_BYTES;
    struct ulp_patch *patch = NULL;
    uint64_t checksum;
    enum ulp_status status;

    header_write(file);
    used += 1 + 2 * ULP_ROOT_BYTES; /* flags and roots: zero */
    memcpy(file + used, layout, bytes);
    used += bytes + 17 * sums; /* chunks without changes, sums of zero */
    checksum = patch_checksum(file + PATCH_HEADER_BYTES, used - PATCH_HEADER_BYTES);
    memcpy(file + used, &checksum, 8);
    file[used + 8] = (uint8_t)(used - PATCH_HEADER_BYTES);
    memcpy(file + used + 12, PATCH_END_MAGIC, 4);
    status = ulp_patch_open_memory(file, used + PATCH_TRAILER_BYTES, &patch);
    assert_null(patch);
    return status;
}

#define ASSERT_LAYOUT(text, sums, expected, why)                                                   \
    assert_fails(open_layout((const uint8_t *)(text), sizeof(text) - 1, sums), expected, why)

/* The canonical one fails only on its roots, which are zero here; the others before that. */
static void test_one_way_to_write_it(void **unused) {
    (void)unused;
    /* two tensors "a", "b" of U8 [2]: 2 tensors, 1 dtype, 1 form; "U8"; form 0: dtype 0, rank 1, 2;
     * names */
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\2\0\0\1a\0\0\0\1b\0", 0, ULP_E_TABLE, "sums");
    ASSERT_LAYOUT("\1\1\1\2U8\0\1\2\0\0\1a\0", 1, ULP_E_TABLE, "the root that it leads to");
    ASSERT_LAYOUT("\1\2\1\2U8\2U9\0\1\2\0\0\1a\0", 1, ULP_E_TABLE, "");           /* count */
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\2\0\0\1b\0\0\0\1a\0", 1, ULP_E_TABLE, "order"); /* b, a */
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\2\0\0\1a\0\0\0\1a\0", 1, ULP_E_TABLE, "order"); /* a, a */
    ASSERT_LAYOUT("\1\1\1\2U8\1\1\2\0\0\1a\0", 1, ULP_E_TABLE, "not listed");
    ASSERT_LAYOUT("\1\1\1\2U8\0\1\2\0\0\1a\1", 1, ULP_E_TABLE, "not listed");
    ASSERT_LAYOUT("\1\1\1\2U8\0\1\2\1\0\1a\0", 1, ULP_E_TABLE, "name"); /* shares with nothing */
    ASSERT_LAYOUT("\1\1\1\2U8\0\1\202\0\0\0\1a\0", 1, ULP_E_TABLE, ""); /* a long 2 */
    ASSERT_LAYOUT("\1\1\1\0\0\1\2\0\0\1a\0", 1, ULP_E_TABLE, "dtype");
    ASSERT_LAYOUT("\1\1\1\2U\0\0\1\2\0\0\1a\0", 1, ULP_E_TABLE, "dtype");
    ASSERT_LAYOUT("\1\1\1\2U8\0\1\2\0\0\2a\0\0", 1, ULP_E_TABLE, "order"); /* NUL in a name */
    ASSERT_LAYOUT("\1\1\1\2U8\0\101\2\0\0\1a\0", 1, ULP_E_TABLE, "");      /* rank 65 */
    ASSERT_LAYOUT("\377\377\177", 0, ULP_E_LIMIT, "tensors");
}

/* Read without complaint, but not as it would be written. */
static void test_not_canonical(void **unused) {
    (void)unused;
    /* a dtype and a form that nobody uses */
    ASSERT_LAYOUT("\2\2\1\2U8\2U9\0\1\0\0\0\1a\0\0\0\1b\0", 0, ULP_E_TABLE, "canonical");
    ASSERT_LAYOUT("\2\1\2\2U8\0\1\0\0\2\0\0\0\0\1a\0\0\0\1b\0", 0, ULP_E_TABLE, "canonical");
    /* forms in another order than that of their first use */
    ASSERT_LAYOUT("\2\1\2\2U8\0\1\0\0\2\0\0\0\0\1a\1\0\0\1b\0", 0, ULP_E_TABLE, "canonical");
    /* one form twice */
    ASSERT_LAYOUT("\2\1\2\2U8\0\1\0\0\1\0\0\0\1a\0\0\0\1b\1", 0, ULP_E_TABLE, "canonical");
    /* a name that shares less with the one before than it could */
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\0\0\0\2xa\0\0\0\2xb\0", 0, ULP_E_TABLE, "canonical");
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\0\0\0\2ax\0\0\0\2bx\0", 0, ULP_E_TABLE, "canonical");
    /* and the canonical one of those, for comparison */
    ASSERT_LAYOUT("\2\1\1\2U8\0\1\0\0\0\2ax\0\0\1\1b\0", 0, ULP_E_TABLE, "the root that it leads");
}

TEST_MAIN(test_every_dtype, test_extremes, test_thousands_of_names, test_random_names,
          test_one_way_to_write_it, test_not_canonical)
