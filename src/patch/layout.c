// SPDX-License-Identifier: Apache-2.0
#include "patch/layout.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* The least that one of each takes in a table. */
#define DTYPE_BYTES_MIN 2u
#define FORM_BYTES_MIN 2u
#define TENSOR_BYTES_MIN 4u

/* ---- forms: what tensors have in common, numbered by first use ---- */

struct form_entry {
    const struct ulp_tensor *tensor;
    size_t index;
    uint32_t number;
};

static int compare_shapes(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return a->shape[i] < b->shape[i] ? -1 : 1;
    }
    return 0;
}

static int compare_forms(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    int order = strcmp(a->dtype, b->dtype);

    if (!order)
        order = compare_shapes(a, b);
    if (!order && a->bytes != b->bytes) /* of a dtype that is not known */
        order = a->bytes < b->bytes ? -1 : 1;
    return order;
}

static int compare_dtypes(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return strcmp(a->dtype, b->dtype);
}

typedef int (*tensor_order)(const struct ulp_tensor *, const struct ulp_tensor *);

static int by_form(const void *a, const void *b) {
    const struct form_entry *x = a, *y = b;
    int order = compare_forms(x->tensor, y->tensor);

    return order ? order : x->index < y->index ? -1 : 1;
}

static int by_index(const void *a, const void *b) {
    const struct form_entry *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

/* Numbers equal tensors alike, in order of first use. entries come sorted by form, which sorts them
 * by dtype as well, and go sorted by index. Returns how many numbers there are. */
static uint32_t number_alike(struct form_entry *entries, size_t count, tensor_order alike) {
    uint32_t numbers = 0;
    size_t first = 0;

    /* first, every entry gets the index of the first that is like it ... */
    for (size_t i = 0; i < count; i++) {
        if (i && (alike(entries[i - 1].tensor, entries[i].tensor) ||
                  entries[i].index < entries[first].index))
            first = i;
        entries[i].number = (uint32_t)entries[first].index;
    }
    for (size_t i = count; i-- > 1;) { /* ... also those in front of it in the sorted order */
        if (!alike(entries[i - 1].tensor, entries[i].tensor))
            entries[i - 1].number = entries[i].number;
    }
    qsort(entries, count, sizeof *entries, by_index);
    for (size_t i = 0; i < count; i++)
        entries[i].number = entries[i].number == i ? numbers++ : entries[entries[i].number].number;
    return numbers;
}

static enum ulp_status number_by(const struct ulp_tensor *tensors, size_t count, tensor_order alike,
                                 struct form_entry **ret_entries, uint32_t *ret_numbers) {
    struct form_entry *entries = NULL;
    enum ulp_status status = mem_zeroed(count, sizeof *entries, &entries);

    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct form_entry){&tensors[i], i, 0};
    qsort(entries, count, sizeof *entries, by_form);
    *ret_numbers = number_alike(entries, count, alike);
    *ret_entries = entries;
    return ULP_OK;
}

/* ---- writing ---- */

static size_t common_start(const char *a, const char *b) {
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Of what is left behind the common start. */
static size_t common_end(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t n = 0;

    while (n < a_length && n < b_length && a[a_length - 1 - n] == b[b_length - 1 - n])
        n++;
    return n;
}

static enum ulp_status put_text(struct buffer *out, const char *text, size_t length) {
    enum ulp_status status = put_varint(out, length);

    return status ? status : buffer_append(out, text, length);
}

static enum ulp_status put_name(struct buffer *out, const char *last, const char *name) {
    size_t start = common_start(last, name);
    size_t length = strlen(name) - start;
    size_t end = common_end(last + start, strlen(last) - start, name + start, length);
    enum ulp_status status = put_varint(out, start);

    if (!status)
        status = put_varint(out, end);
    return status ? status : put_text(out, name + start, length - end);
}

static enum ulp_status put_form(struct buffer *out, const struct ulp_tensor *tensor,
                                uint32_t dtype) {
    enum ulp_status status = put_varint(out, dtype);

    if (!status)
        status = put_varint(out, tensor->rank);
    for (uint32_t i = 0; !status && i < tensor->rank; i++)
        status = put_varint(out, tensor->shape[i]);
    if (!status && !dtype_bits(tensor->dtype))
        status = put_varint(out, tensor->bytes);
    return status;
}

static enum ulp_status put_all(struct buffer *out, const struct ulp_tensor *tensors, size_t count,
                               const struct form_entry *dtypes, const struct form_entry *forms) {
    uint32_t next = 0;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++) {
        if (dtypes[i].number == next && ++next)
            status = put_text(out, tensors[i].dtype, strlen(tensors[i].dtype));
    }
    next = 0;
    for (size_t i = 0; !status && i < count; i++) {
        if (forms[i].number == next && ++next)
            status = put_form(out, &tensors[i], dtypes[i].number);
    }
    for (size_t i = 0; !status && i < count; i++) {
        status = put_name(out, i ? tensors[i - 1].name : "", tensors[i].name);
        if (!status)
            status = put_varint(out, forms[i].number);
    }
    return status;
}

enum ulp_status layout_write(const struct ulp_tensor *tensors, size_t count, struct buffer *out) {
    struct form_entry *dtypes = NULL, *forms = NULL;
    uint32_t dtype_count = 0, form_count = 0;
    enum ulp_status status = number_by(tensors, count, compare_dtypes, &dtypes, &dtype_count);

    if (!status)
        status = number_by(tensors, count, compare_forms, &forms, &form_count);
    if (!status)
        status = put_varint(out, count);
    if (!status)
        status = put_varint(out, dtype_count);
    if (!status)
        status = put_varint(out, form_count);
    if (!status)
        status = put_all(out, tensors, count, dtypes, forms);
    mem_free(dtypes);
    mem_free(forms);
    return status;
}

/* ---- reading ---- */

static enum ulp_status malformed(const char *what) {
    return fail(ULP_E_TABLE, "the table of the patch is damaged: %s", what);
}

struct layout_reader {
    struct cursor *cursor;
    struct arena *arena;
    size_t count, dtype_count, form_count;
    const char **dtypes;
    struct ulp_tensor *forms, *tensors;
    uint64_t name_bytes;
};

static enum ulp_status read_dtypes(struct layout_reader *reader) {
    enum ulp_status status =
        arena_zeroed(reader->arena, reader->dtype_count, sizeof *reader->dtypes, &reader->dtypes);

    for (size_t i = 0; !status && i < reader->dtype_count; i++) {
        size_t length = (size_t)cursor_varint_upto(reader->cursor, LIMIT_DTYPE_BYTES);
        const uint8_t *text = cursor_bytes(reader->cursor, length);

        if (!text || memchr(text, 0, length))
            return malformed("a dtype");
        status = arena_text(reader->arena, (const char *)text, length, &reader->dtypes[i]);
        if (!status && !dtype_name_allowed(reader->dtypes[i]))
            return malformed("a dtype that cannot be");
    }
    return status;
}

static enum ulp_status read_form(struct layout_reader *reader, struct ulp_tensor *form) {
    size_t dtype = (size_t)cursor_varint(reader->cursor);
    uint64_t *shape = NULL;
    enum ulp_status status;

    if (dtype >= reader->dtype_count)
        return malformed("a dtype that is not listed");
    form->name = "a tensor";
    form->dtype = reader->dtypes[dtype];
    form->rank = (uint32_t)cursor_varint_upto(reader->cursor, LIMIT_RANK);
    status = arena_zeroed(reader->arena, form->rank, sizeof *shape, &shape);
    for (uint32_t i = 0; !status && i < form->rank; i++)
        shape[i] = cursor_varint(reader->cursor);
    form->shape = shape;
    if (status)
        return status;
    if (dtype_bits(form->dtype))
        status = tensor_bytes("patch", form, &form->bytes);
    else
        form->bytes = cursor_varint(reader->cursor);
    return status ? status : tensor_measure("patch", form, form->bytes);
}

static enum ulp_status read_forms(struct layout_reader *reader) {
    enum ulp_status status =
        arena_zeroed(reader->arena, reader->form_count, sizeof *reader->forms, &reader->forms);

    for (size_t i = 0; !status && i < reader->form_count; i++) {
        status = read_form(reader, &reader->forms[i]);
        if (!status && reader->cursor->failed)
            status = malformed("it ends within the shapes");
    }
    return status;
}

static enum ulp_status read_name(struct layout_reader *reader, const char *last,
                                 const char **ret_name) {
    char text[LIMIT_NAME_BYTES + 1];
    size_t last_length = strlen(last);
    size_t start = (size_t)cursor_varint_upto(reader->cursor, last_length);
    size_t end = (size_t)cursor_varint_upto(reader->cursor, last_length - start);
    size_t middle = (size_t)cursor_varint_upto(reader->cursor, LIMIT_NAME_BYTES);
    const uint8_t *bytes = cursor_bytes(reader->cursor, middle);
    enum ulp_status status;

    if (!bytes || start + end + middle > LIMIT_NAME_BYTES)
        return malformed("a name");
    memcpy(text, last, start);
    memcpy(text + start, bytes, middle);
    memcpy(text + start + middle, last + last_length - end, end);
    text[start + middle + end] = 0;
    reader->name_bytes += start + middle + end;
    if (reader->name_bytes > LIMIT_HEADER_BYTES)
        return fail(ULP_E_LIMIT, "the names in the patch take more than %u bytes",
                    LIMIT_HEADER_BYTES);
    if (strlen(text) != start + middle + end || strcmp(last, text) >= 0)
        return malformed("names that are not in order");
    status = tensor_check_name("patch", text);
    return status ? status : arena_text(reader->arena, text, start + middle + end, ret_name);
}

static enum ulp_status read_tensors(struct layout_reader *reader) {
    enum ulp_status status =
        arena_zeroed(reader->arena, reader->count, sizeof *reader->tensors, &reader->tensors);

    for (size_t i = 0; !status && i < reader->count; i++) {
        const char *name = NULL;
        size_t form;

        status = read_name(reader, i ? reader->tensors[i - 1].name : "", &name);
        if (status)
            return status;
        form = (size_t)cursor_varint(reader->cursor);
        if (reader->cursor->failed || form >= reader->form_count)
            return malformed("a form that is not listed");
        reader->tensors[i] = reader->forms[form];
        reader->tensors[i].name = name;
    }
    return status;
}

enum ulp_status layout_read(struct cursor *cursor, struct arena *arena,
                            struct ulp_tensor **ret_tensors, size_t *ret_count) {
    struct layout_reader reader = {.cursor = cursor, .arena = arena};
    uint64_t count = cursor_varint(cursor);
    enum ulp_status status;

    if (count > LIMIT_TENSORS)
        return fail(ULP_E_LIMIT, "the patch names %llu tensors; the limit is %u",
                    (unsigned long long)count, LIMIT_TENSORS);
    reader.count = (size_t)count;
    reader.dtype_count = (size_t)cursor_varint_upto(cursor, count);
    reader.form_count = (size_t)cursor_varint_upto(cursor, count);
    /* each takes some bytes; looked at before memory is taken for them */
    if (DTYPE_BYTES_MIN * reader.dtype_count + FORM_BYTES_MIN * reader.form_count +
            TENSOR_BYTES_MIN * reader.count >
        (size_t)(cursor->end - cursor->at))
        cursor->failed = true;
    if (cursor->failed)
        return malformed("the number of tensors");
    status = read_dtypes(&reader);
    if (!status)
        status = read_forms(&reader);
    if (!status)
        status = read_tensors(&reader);
    if (status)
        return status;
    *ret_tensors = reader.tensors;
    *ret_count = reader.count;
    return ULP_OK;
}

/* ---- comparing and copying ---- */

enum ulp_status layout_compare(const struct ulp_tensor *have, size_t have_count,
                               const struct ulp_tensor *want, size_t want_count,
                               const char *have_name, const char *want_name) {
    for (size_t i = 0; i < have_count || i < want_count; i++) {
        int order = i == have_count ? 1 : i == want_count ? -1 : strcmp(have[i].name, want[i].name);

        if (order)
            return fail(ULP_E_LAYOUT, "tensor %s is in %s, but not in %s",
                        quote(order < 0 ? have[i].name : want[i].name).text,
                        order < 0 ? have_name : want_name, order < 0 ? want_name : have_name);
        if (strcmp(have[i].dtype, want[i].dtype) != 0)
            return fail(ULP_E_LAYOUT, "tensor %s is %s in %s and %s in %s",
                        quote(have[i].name).text, quote(have[i].dtype).text, have_name,
                        quote(want[i].dtype).text, want_name);
        if (compare_forms(&have[i], &want[i]))
            return fail(ULP_E_LAYOUT, "tensor %s has another shape in %s than in %s",
                        quote(have[i].name).text, have_name, want_name);
    }
    return ULP_OK;
}

enum ulp_status layout_copy(const struct ulp_tensor *tensors, size_t count, struct arena *arena,
                            struct ulp_tensor **ret_tensors) {
    struct ulp_tensor *copies = NULL;
    enum ulp_status status;

    if (count > LIMIT_TENSORS)
        return fail(ULP_E_LIMIT, "%zu tensors; the limit is %u", count, LIMIT_TENSORS);
    status = arena_zeroed(arena, count, sizeof *copies, &copies);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t *shape = NULL;

        copies[i] = tensors[i];
        status = arena_text(arena, tensors[i].name, strlen(tensors[i].name), &copies[i].name);
        if (!status)
            status =
                arena_text(arena, tensors[i].dtype, strlen(tensors[i].dtype), &copies[i].dtype);
        if (!status)
            status = arena_zeroed(arena, tensors[i].rank, sizeof *shape, &shape);
        if (!status && tensors[i].rank)
            memcpy(shape, tensors[i].shape, tensors[i].rank * sizeof *shape);
        copies[i].shape = shape;
    }
    if (!status)
        status = tensor_sort("state", copies, count);
    if (!status)
        *ret_tensors = copies;
    return status;
}
