// SPDX-License-Identifier: Apache-2.0
/*
 * Partial patches and tiles, on the device and on the CPU: the same bytes of the same regions, the same
 * weights, sums and roots after the same patches, the same statuses for the same damage.
 */
#include "gpu_cases.h"
#include "part_states.h"

#include "base/buffer.h"
#include "gpu/device_apply.h"
#include "gpu/device_diff.h"
#include "patch/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same weights here and there. */
struct pair {
    const char *name;
    struct part_state here;
    struct uploaded there;
    struct ulp_weights *cpu;
    struct device_weights *gpu;
};

/* Patches that were made by both. */
struct made {
    struct buffer bytes[PARTS_MAX];
    struct ulp_patch *patches[PARTS_MAX];
    size_t count;
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

/* ---- weights ---- */

static void must_agree(const struct pair *pair) {
    const struct ulp_weights *of_gpu = pair->gpu->weights;

    must_hold(!memcmp(of_gpu->sums, pair->cpu->sums,
                      pair->cpu->grid.piece_count * sizeof *pair->cpu->sums),
              "the sums differ", pair->name, 0);
    must_hold(!memcmp(&of_gpu->root, &pair->cpu->root, sizeof of_gpu->root), "the roots differ",
              pair->name, 0);
    must_hold(!of_gpu->moves == !pair->cpu->moves && !pair->gpu->moves == !pair->cpu->moves,
              "one of them remembers", pair->name, 0);
    must(device_weights_audit(pair->gpu), pair->name);
    must_be_on(&pair->there, &pair->here, pair->name);
}

/* Without regions a whole state; `root` is for a tile. */
static struct pair pair_of(const char *name, const struct part_state *state,
                           const struct ulp_region *regions, size_t count,
                           const struct ulp_root *root, size_t shift) {
    struct pair pair = {.name = name, .here = state_like(state)};

    if (count)
        state_spoil(&pair.here, regions, count);
    pair.there = upload(pair.here.tensors, pair.here.count, shift);
    if (count) {
        must(ulp_weights_new_tile(pair.here.tensors, state->count, regions, count, root, NULL, NULL,
                                  &pair.cpu),
             name);
        must(device_weights_new_tile(pair.there.tensors, state->count, regions, count, root, NULL,
                                     NULL, &pair.gpu),
             name);
    } else {
        must(ulp_weights_new(pair.here.tensors, state->count, NULL, NULL, &pair.cpu), name);
        must(device_weights_new(pair.there.tensors, state->count, NULL, NULL, &pair.gpu), name);
    }
    must_agree(&pair);
    return pair;
}

static void pair_free(struct pair *pair) {
    device_weights_free(pair->gpu);
    ulp_weights_free(pair->cpu);
    release(&pair->there);
    state_release(&pair->here);
}

/* ---- making ---- */

static void compare(const char *name, const struct buffer *made, const struct buffer *expected) {
    for (size_t i = 0; i < made->used && i < expected->used; i++)
        must_hold(made->data[i] == expected->data[i], "the bytes part here", name, i);
    must_hold(made->used == expected->used, "another length", name, made->used);
}

static void make(const struct pair *pair, const struct part_state *next,
                 const struct uploaded *on_device, const struct ulp_diff_options *options,
                 struct made *made) {
    struct buffer *bytes = &made->bytes[made->count], expected = BUFFER(UINT64_C(1) << 32);
    const struct ulp_sink to_made = {append, bytes}, to_expected = {append, &expected};
    struct ulp_diff_report here, there;

    *bytes = (struct buffer)BUFFER(UINT64_C(1) << 32);
    must(ulp_diff(pair->cpu, next->tensors, next->count, options, &to_expected, &here), pair->name);
    must(device_diff(pair->gpu, on_device->tensors, next->count, options, &to_made, &there),
         pair->name);
    compare(pair->name, bytes, &expected);
    must_hold(here.changed == there.changed && here.elements == there.elements &&
                  here.history == there.history,
              "the reports differ", pair->name, 0);
    must(ulp_patch_open_memory(bytes->data, bytes->used, &made->patches[made->count++]),
         pair->name);
    buffer_release(&expected);
}

static void made_free(struct made *made) {
    for (size_t i = 0; i < made->count; i++) {
        ulp_patch_free(made->patches[i]);
        buffer_release(&made->bytes[i]);
    }
    made->count = 0;
}

/* ---- applying ---- */

/* Both prepare and say the same; returns what. */
static enum ulp_status both(const struct pair *pair, const struct ulp_patch *const *parts,
                            size_t count, const struct ulp_root *child,
                            const struct ulp_apply_options *options, struct ulp_apply **ret_cpu,
                            struct device_apply **ret_gpu) {
    const enum ulp_status expected =
        ulp_apply_prepare_parts(pair->cpu, parts, count, child, options, ret_cpu);
    const enum ulp_status status =
        device_apply_prepare_parts(pair->gpu, parts, count, child, options, ret_gpu);

    if (status != expected)
        fprintf(stderr, "the device says %s: %s; the CPU said %s\n", ulp_status_name(status),
                ulp_last_error(), ulp_status_name(expected));
    must_hold(status == expected, "another status", pair->name, 0);
    return status;
}

static void must_say(const struct pair *pair, const struct ulp_patch *const *parts, size_t count,
                     const struct ulp_root *child, enum ulp_status expected) {
    struct ulp_apply *cpu = NULL;
    struct device_apply *gpu = NULL;

    must_hold(both(pair, parts, count, child, NULL, &cpu, &gpu) == expected, "not refused so",
              pair->name, (size_t)expected);
    ulp_apply_free(cpu);
    device_apply_free(gpu);
}

/* There, back, and there again. */
static void apply(const struct pair *pair, const struct made *made, const struct ulp_root *child) {
    const struct ulp_patch *const *parts = (const struct ulp_patch *const *)made->patches;
    const struct ulp_apply_options options = {.remember = 1};
    struct ulp_apply_report here, there;
    struct ulp_apply *cpu = NULL;
    struct device_apply *gpu = NULL;

    must(both(pair, parts, made->count, child, &options, &cpu, &gpu), pair->name);
    must_agree(pair);
    for (int turn = 0; turn < 2; turn++) {
        must(ulp_apply_commit(cpu, NULL, &here), pair->name);
        must(device_apply_commit(gpu, &there), pair->name);
        must_hold(here.changed == there.changed && here.already == there.already &&
                      !memcmp(&here.child, &there.child, sizeof here.child),
                  "the reports differ", pair->name, 0);
        must_agree(pair);
        if (turn)
            break;
        must(ulp_apply_undo(cpu), pair->name);
        must(device_apply_undo(gpu), pair->name);
        must_agree(pair);
    }
    ulp_apply_free(cpu);
    device_apply_free(gpu);
}

/* ---- damage ---- */

/* A bit of a chunk, with its checksum made right again. */
static void flip(struct made *made, size_t part, size_t chunk, size_t bit) {
    struct table_chunk *entry = &made->patches[part]->table.chunks[chunk];
    uint8_t *bytes = made->bytes[part].data + entry->offset;

    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    entry->checksum = patch_checksum(bytes, (size_t)entry->bytes);
}

/* Whatever the CPU says, the device says, too. */
static void damage(const struct pair *pair, struct made *made, const struct ulp_root *child) {
    const struct ulp_patch *const *parts = (const struct ulp_patch *const *)made->patches;

    for (int i = 0; i < 2; i++) {
        const size_t part = (size_t)(part_random() % made->count);
        const struct table *table = &made->patches[part]->table;
        const size_t chunk = (size_t)(part_random() % table->grid.chunk_count);
        struct ulp_apply *cpu = NULL;
        struct device_apply *gpu = NULL;
        size_t bit;

        if (!table->chunks[chunk].bytes)
            continue;
        bit = (size_t)(part_random() % (8 * table->chunks[chunk].bytes));
        flip(made, part, chunk, bit);
        (void)both(pair, parts, made->count, child, NULL, &cpu, &gpu);
        flip(made, part, chunk, bit);
        ulp_apply_free(cpu);
        device_apply_free(gpu);
    }
    must_agree(pair);
}

/* ---- a case ---- */

struct part_case {
    const char *name;
    const struct part_shape *shapes;
    size_t count;
    uint32_t every; /* one element in so many changes */
    size_t parts;
    bool holes;
    size_t shift;       /* bytes off the alignment */
    size_t packed_most; /* 0: as ever */
    enum ulp_coder coder;
};

static const struct ulp_root *child_of(const struct part_state *state, struct ulp_root *root) {
    struct ulp_weights *weights = NULL;

    must(ulp_weights_new(state->tensors, state->count, NULL, NULL, &weights), "the child");
    ulp_weights_root(weights, root);
    ulp_weights_free(weights);
    return root;
}

/* All parts are made and applied to the whole state; `next` becomes what they lead to. */
static void step_in_parts(const struct part_case *of, const struct pair *pair,
                          const struct part_regions *regions, struct part_state *next,
                          struct made *made) {
    struct part_state wanted = state_like(next);
    struct uploaded on_device = upload(next->tensors, next->count, of->shift);
    struct ulp_root root;

    for (size_t i = 0; i < next->count; i++)
        memcpy(next->tensors[i].data, pair->here.tensors[i].data, next->tensors[i].bytes);
    for (size_t i = 0; i < regions->parts; i++) {
        const struct ulp_diff_options options = {.coder = of->coder,
                                                 .history = 1,
                                                 .regions = regions->boxes[i],
                                                 .region_count = regions->count[i]};

        if (regions->count[i])
            make(pair, &wanted, &on_device, &options, made);
        state_take(next, &wanted, regions->boxes[i], regions->count[i]);
    }
    if (made->count) {
        const struct ulp_root *child = child_of(next, &root);

        damage(pair, made, child);
        if (!regions->complete)
            must_say(pair, (const struct ulp_patch *const *)made->patches, made->count, NULL,
                     ULP_E_REGIONS);
        apply(pair, made, regions->complete ? NULL : child);
        must_say(pair, (const struct ulp_patch *const *)made->patches, made->count, child, ULP_OK);
    }
    release(&on_device);
    state_release(&wanted);
}

static void step_whole(const struct part_case *of, const struct pair *pair,
                       const struct part_state *next) {
    const struct ulp_diff_options options = {.coder = of->coder, .history = 1};
    struct uploaded on_device = upload(next->tensors, next->count, of->shift);
    struct made made = {.count = 0};

    make(pair, next, &on_device, &options, &made);
    apply(pair, &made, NULL);
    made_free(&made);
    release(&on_device);
}

/* A tile of each part, and one of the first two, which takes both. */
static void step_tiles(const struct part_case *of, const struct part_state *base,
                       const struct part_regions *regions, const struct part_state *next,
                       const struct made *parts) {
    struct ulp_region *boxes = must_alloc(2 * BOXES_MAX * sizeof *boxes);
    struct uploaded on_device = upload(next->tensors, next->count, of->shift);
    struct ulp_root parent, child;
    size_t at = 0;

    (void)child_of(base, &parent);
    (void)child_of(next, &child);
    for (size_t i = 0; i < regions->parts; i++) {
        struct made made = {.count = 0};
        struct pair tile;

        if (!regions->count[i])
            continue;
        tile = pair_of(of->name, base, regions->boxes[i], regions->count[i], &parent, of->shift);
        if (of->packed_most)
            tile.gpu->packed_most = of->packed_most;
        make(&tile, next, &on_device, &(struct ulp_diff_options){.coder = of->coder}, &made);
        compare(of->name, &made.bytes[0], &parts->bytes[at++]);
        damage(&tile, &made, &child);
        apply(&tile, &made, &child);
        must_say(&tile, (const struct ulp_patch *const *)made.patches, 1, &child, ULP_OK);
        made_free(&made);
        pair_free(&tile);
    }
    if (regions->parts > 1 && regions->count[0] && regions->count[1]) {
        const size_t count = merge_parts(regions, 0, 1, boxes);
        const struct ulp_diff_options options = {
            .coder = of->coder, .regions = regions->boxes[1], .region_count = regions->count[1]};
        struct pair tile = pair_of(of->name, base, boxes, count, &parent, of->shift);
        struct made made = {.count = 0}, two = *parts;

        make(&tile, next, &on_device, &options, &made);
        compare(of->name, &made.bytes[0], &parts->bytes[1]);
        must_say(&tile, (const struct ulp_patch *const *)made.patches, 1, &child, ULP_E_REGIONS);
        two.count = 2;
        apply(&tile, &two, &child);
        made_free(&made);
        pair_free(&tile);
    }
    release(&on_device);
    free(boxes);
}

/* Whole, in parts, whole again, and with history. Returns how many bands of columns there were. */
static size_t check_case(const struct part_case *of) {
    struct part_regions *regions = must_alloc(sizeof *regions);
    struct part_state state = state_random(of->shapes, of->count), base;
    struct pair pair = pair_of(of->name, &state, NULL, 0, NULL, of->shift);
    struct made made = {.count = 0};
    size_t boxes = 0, bands;

    if (of->packed_most)
        pair.gpu->packed_most = of->packed_most;
    state_move(&state, of->every);
    step_whole(of, &pair, &state);
    base = state_like(&state);
    cut_at_random(&state, of->parts, of->holes, regions);
    bands = count_bands(&state, regions);
    state_move(&state, of->every);
    step_in_parts(of, &pair, regions, &state, &made);
    step_tiles(of, &base, regions, &state, &made);
    made_free(&made);
    for (int turn = 0; turn < 2; turn++) {
        state_move(&state, of->every);
        step_whole(of, &pair, &state);
    }
    cut_at_random(&state, of->parts, of->holes,
                  regions); /* other regions, and without what is kept */
    device_weights_trim(pair.gpu);
    state_move(&state, of->every);
    step_in_parts(of, &pair, regions, &state, &made);
    for (size_t i = 0; i < of->parts; i++)
        boxes += regions->count[i];
    printf("parts: %-24s %zu tensors, %zu regions in %zu parts: equal\n", of->name, of->count,
           boxes, made.count);
    made_free(&made);
    state_release(&base);
    pair_free(&pair);
    state_release(&state);
    free(regions);
    return bands;
}

void part_cases(uint64_t scale) {
    const bool few = scale == 0;
    const struct part_shape one[] = {{"BF16", 60 * (scale += few), 96}};
    const struct part_shape several[] = {
        {"BF16", 40, 64 * scale}, {"F32", 7 * scale, 6},   {"F8_E4M3", 0, 4099},   {"I64", 9, 5},
        {"BF16", 33, 30},         {"F16", 12 * scale, 40}, {"F64", 0, 77 * scale}, {"U8", 64, 24},
        {"BF16", 0, 0},           {"BF16", 5, 12 * scale}};
    static const char *const dtypes[] = {"BF16", "F32", "F8_E5M2", "F64",
                                         "I16",  "U8",  "I32",     "F16"};
    const struct part_shape deep[] = {{"BF16", 5, 8}, {"BF16", 7000 * scale, 64}};
    const struct part_shape narrow[] = {
        {"BF16", 40, 64 * scale}, {"F16", 30, 44}, {"BF16", 20 * scale, 8}, {"I16", 0, 999}};
    struct part_shape random[12];
    size_t bands = 0;

    bands += check_case(&(struct part_case){"one tensor", one, 1, 40, 2, .holes = false});
    bands += check_case(&(struct part_case){"one tensor, again", one, 1, 40, 3, .holes = true});
    bands += check_case(&(struct part_case){"several", several, 10, 20, 3, .holes = false});
    bands += check_case(&(struct part_case){"off the alignment", several, 10, 20, 3, .shift = 8});
    bands += check_case(&(struct part_case){"off words", narrow, 4, 20, 3, .shift = 2});
    bands +=
        check_case(&(struct part_case){"small rounds", several, 10, 12, 2, .packed_most = 256});
    if (few)
        return;
    bands +=
        check_case(&(struct part_case){"hardly anything", several, 10, 3000, 2, .holes = true});
    bands += check_case(&(struct part_case){"everything", several, 10, 1, 2, .holes = true});
    bands +=
        check_case(&(struct part_case){"several blocks", deep, 2, 60, 2, .packed_most = 1u << 19});
    for (int coder = ULP_CODER_CONTEXT; coder <= ULP_CODER_DENSE; coder++)
        bands += check_case(&(struct part_case){"a coder that was chosen", several, 10, 15, 2,
                                                .coder = (enum ulp_coder)coder});
    for (unsigned i = 0; i < (scale > 1 ? 12 : 3); i++) {
        for (size_t k = 0; k < 12; k++)
            random[k] = (struct part_shape){dtypes[part_random() % 8], part_random() % (9 * scale),
                                            1 + part_random() % (90 + 2 * scale)};
        bands += check_case(&(struct part_case){
            "at random", random, 12, 2 + (uint32_t)(part_random() % 90),
            1 + part_random() % PARTS_MAX, .holes = i % 2, .packed_most = i % 3 ? 0 : 2000});
    }
    must_hold(bands >= 10, "too few bands of columns to have tested them", "parts", bands);
}

/* Pieces end within a row of a band of columns, between its rows, and within a stretch. */
void part_piece_cases(void) {
    static const struct part_shape wide = {"U8", 2, (1u << 24) + 64};
    static const struct ulp_region columns = {"t000", 0, 2, (1u << 24) - 16, 32};
    static const struct ulp_region stretches[] = {{"t000", 0, 1, (1u << 24) + 16, 48},
                                                  {"t000", 1, 1, (1u << 24) - 1024, 1008}};
    struct part_case of = {"pieces end within", &wide, 1, 4, 2, .packed_most = 1};
    struct part_regions *regions = must_alloc(sizeof *regions);
    struct part_state state = state_random(&wide, 1);
    struct pair pair = pair_of(of.name, &state, NULL, 0, NULL, 0);
    struct made made = {.count = 0};

    regions->parts = 2;
    regions->count[0] = 1;
    regions->boxes[0][0] = columns;
    regions->count[1] = 2;
    memcpy(regions->boxes[1], stretches, sizeof stretches);
    pair.gpu->packed_most = of.packed_most;
    must_hold(pair.cpu->grid.piece_count == 3, "not three pieces", of.name, 0);
    for (int turn = 0; turn < 2; turn++) { /* by the host, so little there is; by the device */
        of.coder = turn ? ULP_CODER_CONTEXT : ULP_CODER_BEST;
        state_move(&state, of.every);
        step_in_parts(&of, &pair, regions, &state, &made);
        made_free(&made);
    }
    printf("parts: %-24s equal\n", of.name);
    pair_free(&pair);
    state_release(&state);
    free(regions);
}
