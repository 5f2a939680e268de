// SPDX-License-Identifier: Apache-2.0
#include "tests/patch/state.h"

#include "base/word.h"

const struct form every_form[] = {
    {"z.bf16", "BF16", {37, 129}, 2, 0},
    {"a.bf16", "BF16", {5001}, 1, 0},
    {"f16", "F16", {11, 7, 13}, 3, 0},
    {"f32", "F32", {1023}, 1, 0},
    {"f64", "F64", {257}, 1, 0},
    {"f8.e4m3", "F8_E4M3", {3, 333}, 2, 0},
    {"f8.e5m2", "F8_E5M2", {1001}, 1, 0},
    {"f8.e4m3fnuz", "F8_E4M3FNUZ", {99}, 1, 0},
    {"f8.e5m2fnuz", "F8_E5M2FNUZ", {98}, 1, 0},
    {"f8.e8m0", "F8_E8M0", {97}, 1, 0},
    {"f4", "F4", {63, 2}, 2, 0},
    {"f6.a", "F6_E2M3", {44}, 1, 0},
    {"f6.b", "F6_E3M2", {4}, 1, 0},
    {"flags", "BOOL", {501}, 1, 0},
    {"u8", "U8", {1}, 1, 0},
    {"i8", "I8", {1003}, 1, 0},
    {"i16", "I16", {515}, 1, 0},
    {"u16", "U16", {3}, 1, 0},
    {"i32", "I32", {2, 2, 2, 33}, 4, 0},
    {"u32", "U32", {1}, 1, 0},
    {"i64", "I64", {65}, 1, 0},
    {"u64", "U64", {2}, 1, 0},
    {"c64", "C64", {19}, 1, 0},
    {"scalar.bf16", "BF16", {0}, 0, 0},
    {"scalar.f64", "F64", {0}, 0, 0},
    {"empty", "BF16", {0, 3}, 2, 0},
    {"empty.too", "I64", {7, 0}, 2, 0},
    {"future", "F3_X", {80}, 1, 30},
    {"future.wide", "Q128", {9}, 1, 144},
    {"future.empty", "X9", {0}, 1, 0},
};
const size_t every_form_count = COUNT(every_form);

/* Steps of 64 bytes keep tensors as aligned, or as skewed, as the first. */
static size_t room_of(uint64_t bytes) {
    return ((size_t)bytes + 63) / 64 * 64 + 64;
}

static unsigned width_of(const struct ulp_tensor *tensor) {
    return word_bytes_of(tensor->bits);
}

static uint64_t get(const struct ulp_tensor *tensor, uint64_t index) {
    const unsigned width = width_of(tensor);
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)tensor->data + index * width, width);
    return value;
}

static void put(const struct ulp_tensor *tensor, uint64_t index, uint64_t value) {
    const unsigned width = width_of(tensor);

    memcpy((uint8_t *)tensor->data + index * width, &value, width);
}

/* A few exponents, any mantissa, for the common types; anything for the others. */
static uint64_t usual(const struct ulp_tensor *tensor) {
    uint64_t bits = test_random();

    if (!strcmp(tensor->dtype, "BF16"))
        return (bits & 0x807f) | (110 + bits / 65536 % 12) << 7;
    if (!strcmp(tensor->dtype, "F32"))
        return (bits & 0x807fffff) | (110 + (bits >> 40) % 12) << 23;
    return bits;
}

struct state state_make(const struct form *forms, size_t count, size_t skew) {
    struct state state = {.count = count};
    uint8_t *at;

    state.tensors = calloc(count ? count : 1, sizeof *state.tensors);
    assert_non_null(state.tensors);
    for (size_t i = 0; i < count; i++) {
        state.tensors[i] = (struct ulp_tensor){.name = forms[i].name,
                                               .dtype = forms[i].dtype,
                                               .shape = forms[i].shape,
                                               .rank = forms[i].rank,
                                               .bytes = forms[i].bytes};
        assert_ok(ulp_tensor_measure(&state.tensors[i]));
        state.bytes += room_of(state.tensors[i].bytes);
    }
    state.bytes += 64 + skew;
    state.data = calloc(state.bytes, 1);
    assert_non_null(state.data);
    at = state.data + (64 - (uintptr_t)state.data % 64) % 64 + skew;
    for (size_t i = 0; i < count; i++) {
        struct ulp_tensor *tensor = &state.tensors[i];

        tensor->data = at;
        at += room_of(tensor->bytes);
        for (uint64_t k = 0; tensor->bytes && k < tensor->bytes / width_of(tensor); k++)
            put(tensor, k, usual(tensor));
    }
    return state;
}

/* Tensors may lie otherwise in the copy, since malloc aligns to less than 64; nobody may care. */
struct state state_copy(const struct state *from) {
    struct state to = *from;

    to.tensors = calloc(to.count ? to.count : 1, sizeof *to.tensors);
    to.data = malloc(to.bytes);
    assert_true(to.tensors && to.data);
    memcpy(to.data, from->data, to.bytes);
    for (size_t i = 0; i < to.count; i++) {
        to.tensors[i] = from->tensors[i];
        to.tensors[i].data = to.data + ((const uint8_t *)from->tensors[i].data - from->data);
    }
    return to;
}

void state_free(struct state *state) {
    free(state->tensors);
    free(state->data);
    *state = (struct state){0};
}

void state_reverse(struct state *state) {
    for (size_t i = 0; i < state->count / 2; i++) {
        struct ulp_tensor swapped = state->tensors[i];

        state->tensors[i] = state->tensors[state->count - 1 - i];
        state->tensors[state->count - 1 - i] = swapped;
    }
}

static void change(struct state *state, unsigned per_mille, int any) {
    for (size_t i = 0; i < state->count; i++) {
        const struct ulp_tensor *tensor = &state->tensors[i];

        for (uint64_t k = 0; tensor->bytes && k < tensor->bytes / width_of(tensor); k++) {
            uint64_t draw = test_random(), step = 1 + (draw >> 20) % 3;

            if (draw % 1000 < per_mille)
                put(tensor, k,
                    any ? test_random() : get(tensor, k) + (draw >> 40 & 1 ? step : 0 - step));
        }
    }
}

void state_step(struct state *state, unsigned per_mille) {
    change(state, per_mille, 0);
}

void state_scramble(struct state *state, unsigned per_mille) {
    change(state, per_mille, 1);
}

void assert_same_state(const struct state *a, const struct state *b) {
    assert_int_equal(a->bytes, b->bytes);
    if (memcmp(a->data, b->data, a->bytes) != 0)
        fail_msg("the states differ");
}

struct ulp_root root_of(const struct state *state) {
    struct ulp_root root;

    assert_ok(ulp_state_digest(state->tensors, state->count, NULL, NULL, NULL, &root));
    return root;
}

void assert_same_root(const struct ulp_root *a, const struct ulp_root *b) {
    assert_memory_equal(a->bytes, b->bytes, ULP_ROOT_BYTES);
}

void assert_root_of(const struct ulp_weights *weights, const struct state *state) {
    struct ulp_root known, root = root_of(state);

    ulp_weights_root(weights, &known);
    assert_same_root(&known, &root);
}

struct ulp_weights *weights_of(const struct state *state) {
    struct ulp_weights *weights = NULL;

    assert_ok(ulp_weights_new(state->tensors, state->count, NULL, NULL, &weights));
    return weights;
}

static enum ulp_status append(void *user, const void *data, size_t count) {
    struct bytes *bytes = user;

    while (count > bytes->room - bytes->used) {
        bytes->room = bytes->room ? 2 * bytes->room : 4096;
        bytes->data = realloc(bytes->data, bytes->room);
        assert_non_null(bytes->data);
    }
    memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
    return ULP_OK;
}

struct ulp_sink bytes_sink(struct bytes *bytes) {
    return (struct ulp_sink){append, bytes};
}

void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

void assert_same_bytes(const struct bytes *a, const struct bytes *b) {
    assert_int_equal(a->used, b->used);
    if (memcmp(a->data, b->data, a->used) != 0)
        fail_msg("bytes differ");
}

struct bytes patch_to(const struct ulp_weights *weights, const struct state *to,
                      const struct ulp_diff_options *options) {
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);

    assert_ok(ulp_diff(weights, to->tensors, to->count, options, &sink, NULL));
    return bytes;
}

struct bytes patch_between(const struct state *from, const struct state *to,
                           const struct ulp_diff_options *options) {
    struct ulp_weights *weights = weights_of(from);
    struct bytes bytes = patch_to(weights, to, options);

    ulp_weights_free(weights);
    return bytes;
}

struct ulp_patch *open_bytes(const struct bytes *bytes) {
    struct ulp_patch *patch = NULL;

    assert_ok(ulp_patch_open_memory(bytes->data, bytes->used, &patch));
    return patch;
}

struct ulp_pool *pool_of(unsigned threads) {
    struct ulp_pool *pool = NULL;

    assert_ok(ulp_pool_new(threads, &pool));
    return pool;
}
