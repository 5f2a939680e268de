// SPDX-License-Identifier: Apache-2.0
/*
 * From a diff to an apply, and damaged in between. The first bytes choose dtypes, coder, history
 * and old weights; the next make the new ones; the last ones, in fours, overwrite bytes of the
 * patch, whose checksums are then made right again. What was not damaged must give the new weights,
 * and the old ones when undone. What was must be refused, the weights untouched, or give exactly
 * the new weights all the same.
 */
#include "base/buffer.h"
#include "base/endian.h"
#include "fuzz/target.h"
#include "patch/patch.h"

#include <string.h>
#include <ulpsync/ulpsync.h>

#define TENSORS 3u
#define ELEMENTS_MAX 96u
#define BYTES_MAX (ELEMENTS_MAX * 8u)
#define SETUP_BYTES 6u

struct state {
    uint8_t data[TENSORS][BYTES_MAX];
    struct ulp_tensor tensors[TENSORS];
};

static const uint64_t shapes[TENSORS][2] = {{8, 12}, {1, 5}, {3, 0}};

static void make_tensors(struct state *state, const uint8_t *setup) {
    static const char *const dtypes[] = {"BF16", "F32", "U8", "F16", "F8_E4M3", "I64", "F64", "F4"};
    static const char *const names[TENSORS] = {"layer.0.weight", "layer.1.weight", "none"};

    for (size_t i = 0; i < TENSORS; i++) {
        struct ulp_tensor *tensor = &state->tensors[i];

        *tensor = (struct ulp_tensor){.name = names[i],
                                      .dtype = dtypes[(setup[0] >> 3 * (i % 2)) & 7],
                                      .shape = shapes[i],
                                      .rank = 2,
                                      .data = state->data[i]};
        if (!strcmp(tensor->dtype, "F4") && i == 1)
            tensor->dtype = "U8"; /* five halves of a byte are no tensor */
        MUST(!ulp_tensor_measure(tensor));
    }
}

static void make_old(struct state *state, uint64_t random) {
    for (size_t i = 0; i < TENSORS; i++) {
        for (size_t k = 0; k < BYTES_MAX; k++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            state->data[i][k] = (uint8_t)(k % 2 ? 0x3c + (random >> 62) : random >> 56);
        }
    }
}

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

static bool same(const struct state *a, const struct state *b) {
    for (size_t i = 0; i < TENSORS; i++) {
        if (memcmp(a->data[i], b->data[i], (size_t)a->tensors[i].bytes) != 0)
            return false;
    }
    return true;
}

/* Chunk checksums stand in the table behind varints, so they are found by opening the undamaged
 * patch. */
struct places {
    size_t table, chunk_count;
    size_t offset[2], bytes[2], checksum[2];
};

static size_t find_u64(const struct buffer *patch, size_t from, uint64_t value) {
    uint8_t bytes[8];

    store_le64(bytes, value);
    while (memcmp(patch->data + from, bytes, 8) != 0)
        from++;
    return from;
}

static void find_places(const struct buffer *patch, const struct ulp_patch *opened,
                        struct places *places) {
    places->table = patch->used - PATCH_TRAILER_BYTES -
                    (size_t)load_le_partial(patch->data + patch->used - 8, 4);
    for (size_t i = 0; i < opened->table.grid.chunk_count; i++) {
        const struct table_chunk *chunk = &opened->table.chunks[i];

        if (!chunk->bytes)
            continue;
        places->offset[places->chunk_count] = (size_t)chunk->offset;
        places->bytes[places->chunk_count] = (size_t)chunk->bytes;
        places->checksum[places->chunk_count++] = find_u64(patch, places->table, chunk->checksum);
    }
}

static void damage(struct buffer *patch, const struct places *places, const uint8_t *data,
                   size_t size) {
    const size_t trailer = patch->used - PATCH_TRAILER_BYTES;

    for (; size >= 4; data += 4, size -= 4) {
        size_t at = ((size_t)data[0] << 8 | data[1]) % trailer;

        patch->data[at] ^= data[2];
    }
    for (size_t i = 0; i < places->chunk_count; i++)
        store_le64(patch->data + places->checksum[i],
                   patch_checksum(patch->data + places->offset[i], places->bytes[i]));
    store_le64(patch->data + trailer,
               patch_checksum(patch->data + places->table, trailer - places->table));
}

static void check_damaged(const struct buffer *patch, struct ulp_weights *weights,
                          const struct state *held, const struct state *old,
                          const struct state *new) {
    struct ulp_patch *opened = NULL;
    struct ulp_apply *apply = NULL;

    if (!ulp_patch_open_memory(patch->data, patch->used, &opened)) {
        ulp_patch_verify(opened, NULL, NULL);
        if (!ulp_apply_prepare(weights, opened, NULL, &apply)) {
            MUST(!ulp_apply_commit(apply, NULL, NULL));
            MUST(same(held, new) || same(held, old));
            MUST(!ulp_apply_undo(apply));
        }
    }
    MUST(same(held, old));
    ulp_apply_free(apply);
    ulp_patch_free(opened);
}

static void check_whole(struct ulp_patch *patch, struct ulp_weights *weights,
                        const struct state *held, const struct state *old,
                        const struct state *new) {
    const struct ulp_apply_options options = {.staging_bytes = 1 << 20, .remember = 1};
    struct ulp_tensor_report reports[TENSORS];
    struct ulp_apply *apply = NULL;

    MUST(!ulp_patch_verify(patch, NULL, NULL));
    MUST(!ulp_patch_inspect(patch, NULL, NULL, NULL, reports));
    MUST(!ulp_patch_inspect(patch, weights, NULL, NULL, reports));
    MUST(!ulp_apply_prepare(weights, patch, &options, &apply));
    MUST(same(held, old));
    MUST(!ulp_apply_commit(apply, NULL, NULL));
    MUST(same(held, new));
    MUST(!ulp_apply_undo(apply));
    MUST(same(held, old));
    ulp_apply_free(apply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct state before, old, new, held;
    struct ulp_weights *weights = NULL;
    struct buffer bytes = BUFFER(1 << 24);
    const struct ulp_sink sink = {append, &bytes};
    struct ulp_diff_options options = {0};
    struct ulp_patch *patch = NULL;
    struct places places = {0};
    size_t made;

    if (size < SETUP_BYTES)
        return 0;
    make_tensors(&before, data);
    make_tensors(&old, data);
    make_tensors(&new, data);
    make_tensors(&held, data);
    make_old(&old, data[1]);
    memcpy(before.data, old.data, sizeof old.data);
    memcpy(new.data, old.data, sizeof old.data);
    made = data[2] * 2u < size - SETUP_BYTES ? data[2] * 2u : size - SETUP_BYTES;
    for (size_t i = 0; i + 1 < made; i += 2) {
        const uint8_t *change = data + SETUP_BYTES + i;

        new.data[change[0] % 2][change[0] / 2 % ELEMENTS_MAX] ^= change[1];
        before.data[change[0] % 2][change[1] % ELEMENTS_MAX] ^= change[0];
    }
    memcpy(held.data, old.data, sizeof old.data);
    options.coder = (enum ulp_coder)(data[3] & 3);
    options.history = data[3] >> 2 & 1;
    MUST(!ulp_weights_new(held.tensors, TENSORS, NULL, NULL, &weights));
    if (options.history)
        MUST(!ulp_weights_remember(weights, before.tensors, TENSORS, NULL, NULL));
    MUST(!ulp_diff(weights, new.tensors, TENSORS, &options, &sink, NULL));
    MUST(!ulp_patch_open_memory(bytes.data, bytes.used, &patch));
    check_whole(patch, weights, &held, &old, &new);
    find_places(&bytes, patch, &places);
    if (made + 4 <= size - SETUP_BYTES) {
        damage(&bytes, &places, data + SETUP_BYTES + made, size - SETUP_BYTES - made);
        check_damaged(&bytes, weights, &held, &old, &new);
    }
    ulp_patch_free(patch);
    ulp_weights_free(weights);
    buffer_release(&bytes);
    return 0;
}
