// SPDX-License-Identifier: Apache-2.0
/*
 * Patches at the cast, on a GPU or on fibers that stand in for one: masters step, are cast in place, and
 * patches are made, lost, committed and undone in any order. The weights must be those that the
 * twin's cast gives, and the patches, byte for byte, the CPU's from the committed state to the
 * present one. No test framework, so that it builds where nothing can be installed.
 */
#include "gpu_cases.h"
#include "gpu_step.h"

#include "base/buffer.h"
#include "cuda/memory.h"
#include "gpu/cast_portable.h"
#include "gpu/device_apply.h"
#include "gpu/device_cast.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATCH_MAX (UINT64_C(1) << 32)

struct shape {
    const char *dtype;
    uint64_t elements;
    bool master;
};

/* A model on both sides. */
struct model {
    const char *name;
    size_t count, master_count;
    char (*names)[24];
    uint64_t *extents;
    struct ulp_tensor *base; /* the committed state, which the CPU's twin holds */
    struct ulp_tensor *now;  /* the present one */
    struct ulp_tensor *masters;
    size_t *master_of; /* of each master: its tensor */
    struct uploaded on, masters_on;
    struct ulp_weights *twin;
    struct device_weights *weights;
    struct buffer patch; /* the last that was made */
    bool history;        /* it was asked for with */
    uint64_t patches, changes;
};

static uint64_t random_state;

static uint64_t next_random(void) {
    return random_after(&random_state);
}

/* ---- making one ---- */

/* What masters may be: weights as a network has them, and now and then anything at all. */
static uint32_t random_master(void) {
    static const uint8_t edges[] = {0, 1, 102, 112, 113, 142, 143, 255}; /* of BF16 and F16 */
    const uint64_t random = next_random();
    const uint32_t spread = (uint32_t)__builtin_ctzll(next_random() | 1u << 20);

    if (random % 500 == 0) /* infinities, NaNs, zeros, denormals of all three, ties */
        return (uint32_t)(next_random() & 0x807fffff) | (uint32_t)edges[random >> 32 & 7] << 23;
    if (random % 500 == 1)
        return (uint32_t)(random >> 32) & 0xff808000u;
    return (uint32_t)(random >> 32 & 0x807fffff) | (126 - spread) << 23;
}

static struct ulp_tensor tensor_like(const struct ulp_tensor *like, const char *dtype) {
    struct ulp_tensor tensor = *like;

    tensor.dtype = dtype;
    tensor.bytes = 0;
    must(ulp_tensor_measure(&tensor), "measuring");
    tensor.data = must_alloc(tensor.bytes);
    return tensor;
}

static void make_tensor(struct model *model, size_t i, const struct shape *shape) {
    struct ulp_tensor like = {
        .name = model->names[i], .dtype = shape->dtype, .shape = &model->extents[i], .rank = 1};
    uint8_t *data;

    snprintf(model->names[i], sizeof model->names[i], "t%07zu", i);
    model->extents[i] = shape->elements;
    must(ulp_tensor_measure(&like), "measuring");
    model->base[i] = tensor_like(&like, shape->dtype);
    model->now[i] = tensor_like(&like, shape->dtype);
    data = model->base[i].data;
    for (uint64_t at = 0; at < model->base[i].bytes; at++)
        data[at] = (uint8_t)(next_random() >> 13 & (at % 2 ? 0x3f : 0xff));
    memcpy(model->now[i].data, data, model->base[i].bytes);
    if (shape->master) {
        struct ulp_tensor *master = &model->masters[model->master_count];

        *master = tensor_like(&like, "F32");
        for (uint64_t k = 0; k < master->elements; k++)
            ((uint32_t *)master->data)[k] = random_master();
        model->master_of[model->master_count++] = i;
    }
}

static struct model make_model(const char *name, const struct shape *shapes, size_t count,
                               size_t shift) {
    static unsigned made;
    struct model model = {.name = name, .count = count, .patch = BUFFER(PATCH_MAX)};

    model.names = must_alloc(count * sizeof *model.names);
    model.extents = must_alloc(count * sizeof *model.extents);
    model.base = must_alloc(count * sizeof *model.base);
    model.now = must_alloc(count * sizeof *model.now);
    model.masters = must_alloc(count * sizeof *model.masters);
    model.master_of = must_alloc(count * sizeof *model.master_of);
    for (size_t i = 0; i < count; i++)
        make_tensor(&model, i, &shapes[i]);
    model.on = upload(model.base, count, shift);
    model.masters_on = upload(model.masters, model.master_count, 2 * shift);
    must(ulp_weights_new(model.base, count, NULL, NULL, &model.twin), name);
    must(device_weights_new(model.on.tensors, count, NULL, NULL, &model.weights), name);
    model.weights->round_bytes = made++ % 2; /* every other model by rounds, a chunk each */
    return model;
}

static void free_model(struct model *model) {
    device_weights_free(model->weights);
    ulp_weights_free(model->twin);
    release(&model->on);
    release(&model->masters_on);
    for (size_t i = 0; i < model->count; i++) {
        free(model->base[i].data);
        free(model->now[i].data);
    }
    for (size_t i = 0; i < model->master_count; i++)
        free(model->masters[i].data);
    free(model->names);
    free(model->extents);
    free(model->base);
    free(model->now);
    free(model->masters);
    free(model->master_of);
    buffer_release(&model->patch);
}

/* ---- what happens to it ---- */

/* One master in `every` moves: by its lower half, which mostly is too little to change a weight; some
 * by more; and some return to where they were rounded from. */
static void step_masters(struct model *model, uint32_t every) {
    for (size_t m = 0; m < model->master_count; m++) {
        struct ulp_tensor *master = &model->masters[m];
        uint32_t *values = master->data;

        for (uint64_t i = 0; every && i < master->elements; i++) {
            const uint64_t random = next_random();

            if (random % every == 0)
                values[i] += (uint32_t)(random >> 32 & 0x1ffff) - 0x10000;
            if (every < 100 && i % 97 == 0) /* again and again, to another exponent */
                values[i] ^= (uint32_t)(random >> 20 & 1) << 23;
            if (random >> 50 == 0)
                values[i] = random_master();
        }
        must(cuda_copy_in(model->masters_on.tensors[m].data, values, master->bytes, NULL),
             "uploading masters");
    }
}

static void check_weights(const struct model *model, const struct ulp_tensor *expected) {
    for (size_t i = 0; i < model->count; i++) {
        uint8_t *there = must_alloc(expected[i].bytes);

        must(cuda_copy_out(there, model->on.tensors[i].data, expected[i].bytes, NULL), "reading");
        must(cuda_wait(NULL), "reading");
        for (uint64_t at = 0; at < expected[i].bytes; at++)
            must_hold(there[at] == ((const uint8_t *)expected[i].data)[at], "weights differ",
                      expected[i].name, at);
        free(there);
    }
}

static void cast_twin(struct model *model) {
    for (size_t m = 0; m < model->master_count; m++) {
        struct ulp_tensor *to = &model->now[model->master_of[m]];
        const struct code_kind kind = code_kind_of(to->dtype, to->bits);
        uint32_t *positions = must_alloc(to->elements * sizeof *positions);
        uint32_t *values = must_alloc(to->elements * sizeof *values);

        cast_portable(kind, model->masters[m].data, (uint32_t)to->elements, to->data, positions,
                      values);
        free(positions);
        free(values);
    }
}

static void cast(struct model *model) {
    cast_twin(model);
    must(device_cast(model->weights, model->masters_on.tensors, model->master_count), model->name);
    check_weights(model, model->now);
}

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

/* Takes some bytes, and then no more. */
static enum ulp_status append_some(void *user, const void *data, size_t bytes) {
    size_t *left = user;

    (void)data;
    if (bytes > *left)
        return ULP_E_IO;
    *left -= bytes;
    return ULP_OK;
}

static void make_patch(struct model *model, bool history) {
    const struct ulp_diff_options options = {.history = history};
    struct buffer expected = BUFFER(PATCH_MAX);
    const struct ulp_sink to = {append, &model->patch}, to_expected = {append, &expected};
    struct ulp_diff_report report;

    buffer_clear(&model->patch);
    must(ulp_diff(model->twin, model->now, model->count, &options, &to_expected, NULL), "the CPU");
    must(device_cast_diff(model->weights, &options, &to, &report), model->name);
    for (size_t i = 0; i < model->patch.used && i < expected.used; i++)
        must_hold(model->patch.data[i] == expected.data[i], "the bytes part here", model->name, i);
    must_hold(model->patch.used == expected.used, "another length", model->name, expected.used);
    must(device_weights_audit(model->weights), model->name);
    model->history = history;
    model->patches++;
    model->changes += report.changed;
    buffer_release(&expected);
}

/* What fails changes nothing: the patch before it can still be committed. */
static void lose_patch(struct model *model) {
    const struct ulp_diff_options options = {.history = 1};
    size_t left = next_random() % 100;
    const struct ulp_sink narrow = {append_some, &left};
    const enum ulp_status status = device_cast_diff(model->weights, &options, &narrow, NULL);

    must_hold(status == ULP_E_IO, "a sink that fails", model->name, (size_t)status);
}

static void commit(struct model *model) {
    const struct ulp_apply_options options = {.remember = model->history};
    struct ulp_patch *patch = NULL;

    must(ulp_patch_open_memory(model->patch.data, model->patch.used, &patch), model->name);
    must(ulp_apply(model->twin, patch, &options, NULL), model->name);
    ulp_patch_free(patch);
    must(device_cast_commit(model->weights), model->name);
    must_hold(memcmp(&model->weights->weights->root, &model->twin->root, ULP_ROOT_BYTES) == 0,
              "another root", model->name, 0);
    must_hold(!model->weights->moves == !model->twin->moves, "another history", model->name, 0);
}

static void undo(struct model *model) {
    must(device_cast_undo(model->weights), model->name);
    check_weights(model, model->base);
    for (size_t i = 0; i < model->count; i++)
        memcpy(model->now[i].data, model->base[i].data, model->base[i].bytes);
    must(device_weights_audit(model->weights), model->name);
}

/* ---- stories ---- */

static void tell(const struct model *model) {
    printf("cast: %-26s %4zu tensors, %3llu patches, %8llu changes: equal\n", model->name,
           model->count, (unsigned long long)model->patches, (unsigned long long)model->changes);
}

/* The steps of everyday, then one of each accident. */
static void check_story(const char *name, const struct shape *shapes, size_t count, uint32_t every,
                        size_t shift, uint32_t pool) {
    struct model model = make_model(name, shapes, count, shift);

    model.weights->cast_pool = pool;
    make_patch(&model, false); /* nothing was cast */
    commit(&model);
    cast(&model); /* far from what was there */
    make_patch(&model, true);
    commit(&model);
    for (int i = 0; i < 2; i++) {
        step_masters(&model, every);
        cast(&model);
        make_patch(&model, true);
        commit(&model);
    }
    step_masters(&model, every); /* two casts, a patch that is lost, another cast */
    cast(&model);
    step_masters(&model, every);
    cast(&model);
    make_patch(&model, true);
    step_masters(&model, every);
    cast(&model);
    make_patch(&model, true);
    step_masters(&model, every); /* a cast between patch and commit */
    cast(&model);
    commit(&model);
    make_patch(&model, false);
    make_patch(&model, true);
    commit(&model);
    step_masters(&model, every); /* undone with a patch that was made, and casts after it */
    cast(&model);
    make_patch(&model, true);
    step_masters(&model, every);
    cast(&model);
    undo(&model);
    cast(&model);
    make_patch(&model, true);
    commit(&model);
    tell(&model);
    free_model(&model);
}

/* The steps of everyday alone. */
static void check_steps(const char *name, const struct shape *shapes, size_t count,
                        uint32_t every) {
    struct model model = make_model(name, shapes, count, 0);

    for (int i = 0; i < 3; i++) {
        cast(&model);
        step_masters(&model, every);
        cast(&model);
        make_patch(&model, true);
        commit(&model);
    }
    tell(&model);
    free_model(&model);
}

/* One of the things that can happen; `made` is whether there is a patch to commit. Returns whether there
 * is one then. */
static bool happen(struct model *model, uint64_t random, bool made) {
    switch (random % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        cast(model);
        return made;
    case 5:
    case 6:
    case 7:
    case 8:
        make_patch(model, random >> 10 & 3);
        return true;
    case 9:
    case 10:
    case 11:
        if (made)
            commit(model);
        return false;
    case 12:
        undo(model);
        return false;
    case 13:
    case 14:
        lose_patch(model);
        return made;
    default:
        device_weights_trim(model->weights);
        return made;
    }
}

static void check_random(const char *name, const struct shape *shapes, size_t count,
                         unsigned steps) {
    struct model model = make_model(name, shapes, count, 0);
    bool made = false;

    for (unsigned i = 0; i < steps; i++) {
        const uint64_t random = next_random();

        model.weights->cast_pool = random >> 60 ? 0 : 1;
        if (random >> 20 & 1)
            step_masters(&model, (uint32_t)(1 + (random >> 24 & 63)));
        made = happen(&model, random, made);
    }
    tell(&model);
    free_model(&model);
}

static void refuse(enum ulp_status status, enum ulp_status expected, const char *what) {
    must_hold(status == expected, what, "what is refused", (size_t)status);
}

/* What does not go together with casts, and masters that do not fit. */
static void check_refusals(void) {
    const struct shape shapes[] = {{"BF16", 3000, true}, {"U16", 300, false}, {"F32", 9, true}};
    struct model model = make_model("refusals", shapes, 3, 0);
    struct ulp_tensor *masters = model.masters_on.tensors, other;
    const struct ulp_sink sink = {append, &model.patch};
    struct device_weights *weights = model.weights;
    struct device_apply *apply = NULL, *stale = NULL;
    struct ulp_patch *patch = NULL;
    uint64_t shape[2] = {1000, 3};

    refuse(device_cast_commit(weights), ULP_E_USAGE, "a commit of nothing");
    must(device_cast_undo(weights), "undoing nothing");
    other = masters[0];
    other.name = "t0000009";
    refuse(device_cast(weights, &other, 1), ULP_E_LAYOUT, "a master of nothing");
    other = masters[0];
    other.shape = shape;
    other.rank = 2;
    refuse(device_cast(weights, &other, 1), ULP_E_LAYOUT, "another shape");
    other = model.on.tensors[0];
    refuse(device_cast(weights, &other, 1), ULP_E_LAYOUT, "masters in BF16");
    other = masters[0];
    other.name = "t0000001";
    refuse(device_cast(weights, &other, 1), ULP_E_LAYOUT, "integers with a master");
    other = masters[0];
    other.data = (uint8_t *)other.data + 2;
    refuse(device_cast(weights, &other, 1), ULP_E_USAGE, "off its alignment");
    refuse(device_cast(weights, (const struct ulp_tensor[]){masters[0], masters[0]}, 2),
           ULP_E_DUPLICATE, "two masters of one name");
    must(device_cast(weights, NULL, 0), "no masters");
    check_weights(&model, model.base);

    cast(&model);
    make_patch(&model, false);
    must(ulp_patch_open_memory(model.patch.data, model.patch.used, &patch), "opening");
    refuse(device_apply_prepare(weights, patch, NULL, &apply), ULP_E_USAGE, "an apply");
    refuse(device_diff(weights, model.on.tensors, 3, NULL, &sink, NULL), ULP_E_USAGE, "a diff");
    step_masters(&model, 1);
    cast(&model);
    refuse(device_weights_audit(weights), ULP_E_USAGE, "an audit after a cast after a patch");
    undo(&model);
    refuse(device_cast_commit(weights), ULP_E_USAGE, "a commit of what was undone");
    must(device_apply_prepare(weights, patch, NULL, &stale), "preparing");
    cast(&model);
    refuse(device_weights_audit(weights), ULP_E_USAGE, "an audit");
    refuse(device_apply_commit(stale, NULL), ULP_E_USAGE, "a commit of a patch after a cast");
    undo(&model);
    must(device_apply_commit(stale, NULL), "a patch that the casts made");
    must(device_weights_audit(weights), "a patch that the casts made");
    device_apply_free(stale);
    ulp_patch_free(patch);
    tell(&model);
    free_model(&model);
}

void cast_cases(uint64_t scale) {
    const bool few = scale == 0;
    const struct shape one = {"BF16", 24000 * (scale += few), true};
    const struct shape odd[] = {{"BF16", 8191, true},
                                {"F16", 4099 * scale, true},
                                {"BF16", 0, true},
                                {"F32", 5003 * scale, true},
                                {"U8", 700, false},
                                {"F64", 300, false},
                                {"BF16", 9000 * scale, false},
                                {"F16", 1, true}};
    struct shape tiny[3000];

    random_state = 1;
    check_story("one tensor", &one, 1, 40, 0, 0);
    check_story("denser", &one, 1, 8, 0, 0);
    check_story("few change", &one, 1, 20000, 0, 0);
    check_story("an eighth and more", &one, 1, 1, 0, 0);
    check_story("a small pool", &one, 1, 3, 0, 1);
    check_story("F16", (const struct shape[]){{"F16", 14000 * scale, true}}, 1, 30, 0, 0);
    check_story("F32", (const struct shape[]){{"F32", 10000 * scale, true}}, 1, 30, 0, 0);
    check_story("odd ones", odd, sizeof odd / sizeof *odd, 30, 0, 0);
    check_story("off the alignment", odd, 3, 30, 2, 0);
    check_story("F32 off the alignment", odd + 1, 4, 30, 4, 0);
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++)
        tiny[i] = (struct shape){i % 7 ? "BF16" : "F32", next_random() % 40, i % 3 != 0};
    check_story("tiny tensors", tiny, scale > 1 ? 3000 : 80, 10, 0, 0);
    if (!few)
        check_steps("several blocks", &(struct shape){"BF16", 550000, true}, 1, 40);
    check_random("in any order", odd, sizeof odd / sizeof *odd, scale > 1 ? 80 : few ? 15 : 50);
    check_refusals();
}
