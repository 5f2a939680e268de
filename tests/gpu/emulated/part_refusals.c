// SPDX-License-Identifier: Apache-2.0
/* Partial patches and tiles that do not fit: the device refuses what the CPU does, with the same status, and
 * writes nothing. Memory that a tile does not hold need not be there. */
#include "tests/gpu/emulated/device.h"
#include "tests/patch/tile_state.h"

#include "gpu/device_diff.h"
#include "gpu/device_second.h"

static const struct form forms[] = {
    {"a", "BF16", {24, 64}, 2, 0}, {"b", "F32", {6, 48}, 2, 0}, {"c", "F8_E4M3", {64}, 1, 0}};
static const char rules[] = "b columns";

/* A rank of the world whose memory is the device's, too. */
struct twin {
    struct on_device device;
    struct device_weights *weights;
};

static struct twin twin_of(const struct world *world, const struct rank *rank) {
    struct twin twin = {.device = device_copy(&rank->held, 0)};

    assert_ok(device_weights_new_tile(twin.device.tensors, twin.device.count, rank->regions,
                                      rank->region_count, &world->parent, NULL, NULL,
                                      &twin.weights));
    return twin;
}

static void twin_free(struct twin *twin) {
    device_weights_free(twin->weights);
    device_release(&twin->device);
}

static enum ulp_status try_part(const struct world *world, const struct twin *twin,
                                const struct state *held, const struct ulp_patch *patch,
                                const struct ulp_root *child) {
    struct device_apply *apply = NULL;
    enum ulp_status status =
        device_apply_prepare_parts(twin->weights, &patch, 1, child, NULL, &apply);

    device_apply_free(apply);
    assert_on_device(&twin->device, held);
    assert_same_root(&twin->weights->weights->root, &world->parent);
    return status;
}

static void test_other_patches(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct bytes whole_bytes = patch_between(&world.base, &world.next, NULL);
    struct ulp_patch *whole = open_bytes(&whole_bytes);

    (void)unused;
    for (unsigned mine = 0; mine <= 3; mine++) {
        const struct rank *rank = &world.ranks[mine];
        struct twin twin = twin_of(&world, rank);

        for (unsigned other = 0; other <= 3; other++)
            assert_int_equal(
                try_part(&world, &twin, &rank->held, world.ranks[other].patch, &world.child),
                mine == other ? ULP_OK : ULP_E_REGIONS);
        assert_fails(try_part(&world, &twin, &rank->held, whole, &world.child), ULP_E_REGIONS,
                     "is a whole patch, but these weights are a tile");
        assert_fails(try_part(&world, &twin, &rank->held, rank->patch, NULL), ULP_E_REGIONS,
                     "or the root that these lead to");
        twin.weights->weights->root.bytes[0] ^= 1;
        world.parent.bytes[0] ^= 1;
        assert_fails(try_part(&world, &twin, &rank->held, rank->patch, &world.child),
                     ULP_E_WRONG_BASE, "starts from state");
        world.parent.bytes[0] ^= 1;
        twin_free(&twin);
    }
    ulp_patch_free(whole);
    bytes_free(&whole_bytes);
    world_free(&world);
}

/* Every bit within the regions counts, and none outside. */
static void test_bits_of_held_weights(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[2];
    unsigned refused = 0;

    (void)unused;
    for (unsigned i = 0; i < 60; i++) {
        const struct ulp_tensor *tensor = &rank->held.tensors[test_random() % COUNT(forms)];
        const size_t bit = test_random() % (8 * tensor->bytes);
        uint8_t *byte = (uint8_t *)tensor->data + bit / 8;
        const struct ulp_patch *patch = rank->patch;
        struct ulp_apply *apply = NULL;
        struct ulp_weights *host;
        enum ulp_status expected, status;
        struct twin twin;

        *byte ^= (uint8_t)(1u << bit % 8);
        host = tile_weights(&rank->held, rank->regions, rank->region_count, &world.parent);
        expected = ulp_apply_prepare_parts(host, &patch, 1, &world.child, NULL, &apply);
        twin = twin_of(&world, rank);
        status = try_part(&world, &twin, &rank->held, patch, &world.child);
        assert_int_equal(status, expected);
        refused += status != ULP_OK;
        *byte ^= (uint8_t)(1u << bit % 8);
        ulp_apply_free(apply);
        ulp_weights_free(host);
        twin_free(&twin);
    }
    assert_true(refused > 5 && refused < 55);
    world_free(&world);
}

/* ---- what there cannot be ---- */

static void test_tiles_that_cannot_be(void **unused) {
    static const struct {
        struct ulp_region regions[2];
        size_t count;
        enum ulp_status status;
    } cases[] = {{{{"a", 0, 8, 0, 64}}, 0, ULP_E_REGIONS},
                 {{{"a", 0, 8, 0, 64}, {"a", 4, 8, 0, 64}}, 2, ULP_E_REGIONS},
                 {{{"b", 0, 1, 0, 48}, {"a", 0, 1, 0, 64}}, 2, ULP_E_REGIONS},
                 {{{"a", 0, 25, 0, 64}}, 1, ULP_E_REGIONS},
                 {{{"a", 0, 2, 0, 3}}, 1, ULP_E_REGIONS},
                 {{{"z", 0, 1, 0, 4}}, 1, ULP_E_LAYOUT}};
    struct state state = state_make(forms, COUNT(forms), 0);
    const struct ulp_root root = root_of(&state);
    struct on_device device = device_copy(&state, 0);
    struct device_weights *weights = NULL;
    struct ulp_weights *host = NULL;
    void *data;

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(device_weights_new_tile(device.tensors, device.count, cases[i].regions,
                                                 cases[i].count, &root, NULL, NULL, &weights),
                         cases[i].status);
        assert_int_equal(ulp_weights_new_tile(state.tensors, state.count, cases[i].regions,
                                              cases[i].count, &root, NULL, NULL, &host),
                         cases[i].status);
    }
    data = device.tensors[1].data; /* nothing is held of the others */
    device.tensors[0].data = NULL;
    device.tensors[2].data = NULL;
    assert_ok(device_weights_new_tile(device.tensors, device.count,
                                      &(struct ulp_region){"b", 0, 6, 16, 16}, 1, &root, NULL, NULL,
                                      &weights));
    assert_ok(device_weights_audit(weights));
    device_weights_free(weights);
    device.tensors[1].data = NULL;
    assert_fails(device_weights_new_tile(device.tensors, device.count,
                                         &(struct ulp_region){"b", 0, 6, 16, 16}, 1, &root, NULL,
                                         NULL, &weights),
                 ULP_E_USAGE, "lacks its data");
    device.tensors[1].data = (uint8_t *)data + 2;
    assert_fails(device_weights_new_tile(device.tensors, device.count,
                                         &(struct ulp_region){"b", 0, 6, 16, 16}, 1, &root, NULL,
                                         NULL, &weights),
                 ULP_E_USAGE, "not aligned");
    device_release(&device);
    state_free(&state);
}

static void test_regions_that_cannot_be(void **unused) {
    static const struct {
        struct ulp_region regions[2];
        size_t count;
        enum ulp_status status;
    } cases[] = {{{{"a", 0, 2, 0, 3}}, 1, ULP_E_REGIONS},
                 {{{"a", 0, 25, 0, 64}}, 1, ULP_E_REGIONS},
                 {{{"a", 4, 2, 0, 64}, {"a", 0, 2, 0, 64}}, 2, ULP_E_REGIONS},
                 {{{"a", 4, 2, 0, 64}, {"a", 5, 2, 0, 64}}, 2, ULP_E_REGIONS},
                 {{{"z", 0, 1, 0, 4}}, 1, ULP_E_LAYOUT},
                 {{{"a", 0, 1, 0, 4}}, 0, ULP_E_USAGE}};
    const struct ulp_diff_options other[] = {{.region_count = 1}, {.coder = (enum ulp_coder)4}};
    struct state state = state_make(forms, COUNT(forms), 0);
    struct on_device device = device_copy(&state, 0);
    struct device_weights *weights = device_weights_of(&device);
    struct ulp_weights *host = weights_of(&state);
    struct bytes bytes = {0};
    const struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    for (size_t i = 0; i < COUNT(cases) + COUNT(other); i++) {
        const bool of_regions = i < COUNT(cases);
        const struct ulp_diff_options options =
            of_regions ? (struct ulp_diff_options){.regions = cases[i].regions,
                                                   .region_count = cases[i].count}
                       : other[i - COUNT(cases)];
        const enum ulp_status expected = of_regions ? cases[i].status : ULP_E_USAGE;

        assert_int_equal(ulp_diff(host, state.tensors, state.count, &options, &sink, NULL),
                         expected);
        assert_int_equal(device_diff(weights, device.tensors, device.count, &options, &sink, NULL),
                         expected);
    }
    bytes_free(&bytes);
    device_weights_free(weights);
    ulp_weights_free(host);
    device_release(&device);
    state_free(&state);
}

/* Of a tile only what it holds can be asked for. */
static void test_a_region_not_held(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    const struct rank *rank = &world.ranks[1];
    struct twin twin = twin_of(&world, rank);
    const struct ulp_region part = {"a", 0, 4, 0, 64}; /* of a region that has eight rows */
    const struct ulp_diff_options options = {.regions = &part, .region_count = 1};
    struct bytes bytes = {0};
    const struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    assert_fails(
        device_diff(twin.weights, twin.device.tensors, twin.device.count, &options, &sink, NULL),
        ULP_E_REGIONS, "not one of the regions that the weights hold");
    bytes_free(&bytes);
    twin_free(&twin);
    world_free(&world);
}

/* ---- parts of a whole state ---- */

static void test_parts_that_do_not_fit(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct bytes whole_bytes = patch_between(&world.base, &world.next, NULL);
    struct ulp_patch *whole = open_bytes(&whole_bytes);
    const struct ulp_patch *parts[TILES_MAX + 1];
    const size_t count = world_parts(&world, parts);
    const struct ulp_patch *const twice[] = {parts[0], parts[1], parts[1]};
    const struct ulp_patch *const mixed[] = {parts[0], whole};
    struct on_device device = device_copy(&world.base, 0);
    struct device_weights *weights = device_weights_of(&device);
    struct device_apply *apply = NULL, *again = NULL, *old = NULL;

    (void)unused;
    assert_fails(device_apply_prepare_parts(weights, parts, count - 1, NULL, NULL, &apply),
                 ULP_E_REGIONS, "the parts cover");
    assert_fails(device_apply_prepare_parts(weights, parts, count - 1, &world.child, NULL, &apply),
                 ULP_E_WRONG_RESULT, "would lead to state");
    assert_fails(device_apply_prepare_parts(weights, twice, 3, &world.child, NULL, &apply),
                 ULP_E_REGIONS, "");
    assert_fails(device_apply_prepare_parts(weights, mixed, 2, &world.child, NULL, &apply),
                 ULP_E_REGIONS, "is a whole patch");
    assert_fails(device_apply_prepare(weights, parts[1], NULL, &apply), ULP_E_REGIONS,
                 "the parts cover");
    /* of several that are prepared one is committed; what the others need stays theirs */
    assert_ok(device_apply_prepare_parts(weights, parts, count, NULL, NULL, &old));
    assert_ok(device_apply_prepare_parts(weights, parts, count, &world.child, NULL, &again));
    assert_ok(device_apply_prepare(weights, whole, NULL, &apply));
    device_apply_free(old);
    device_weights_trim(weights);
    assert_on_device(&device, &world.base);
    assert_ok(device_apply_commit(again, NULL));
    assert_on_device(&device, &world.next);
    assert_fails(device_apply_commit(apply, NULL), ULP_E_WRONG_BASE, "have changed since");
    assert_ok(device_apply_undo(again));
    assert_on_device(&device, &world.base);
    assert_ok(device_apply_commit(apply, NULL));
    assert_fails(device_apply_commit(again, NULL), ULP_E_WRONG_BASE, "have changed since");
    device_apply_free(apply);
    device_apply_free(again);
    *weights->poisoned = 1;
    assert_fails(device_apply_prepare_parts(weights, parts, count, NULL, NULL, &apply),
                 ULP_E_POISONED, "");
    *weights->poisoned = 0;
    assert_ok(device_weights_audit(weights));
    device_weights_free(weights);
    device_release(&device);
    ulp_patch_free(whole);
    bytes_free(&whole_bytes);
    world_free(&world);
}

/* What was prepared or committed by regions before a second state came knows nothing of it. */
static void test_parts_before_a_second_state(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    const struct ulp_patch *parts[TILES_MAX + 1];
    const size_t count = world_parts(&world, parts);

    (void)unused;
    for (int committed = 0; committed < 2; committed++) {
        const struct state *at = committed ? &world.next : &world.base;
        struct on_device sets[2] = {device_copy(&world.base, 0), device_copy(&world.base, 0)};
        struct device_weights *weights = device_weights_of(&sets[0]);
        struct device_apply *apply = NULL;

        assert_ok(device_apply_prepare_parts(weights, parts, count, NULL, NULL, &apply));
        if (committed)
            assert_ok(device_apply_commit(apply, NULL));
        assert_ok(device_second_attach(weights, sets[1].tensors, sets[1].count, NULL));
        assert_fails(committed ? device_apply_undo(apply) : device_apply_commit(apply, NULL),
                     ULP_E_REGIONS, "take whole ones");
        assert_int_equal(weights->second->front, 0);
        assert_on_device(&sets[0], at);
        assert_on_device(&sets[1], at);
        assert_ok(device_weights_audit(weights));
        device_apply_free(apply);
        device_weights_free(weights);
        device_release(&sets[0]);
        device_release(&sets[1]);
    }
    world_free(&world);
}

/* ---- encoders ---- */

static size_t encoders_kept(const struct device_weights *weights) {
    size_t kept = 0;

    for (size_t i = 0; i < weights->part_encoders.count; i++)
        kept += weights->part_encoders.list[i].encoder != NULL;
    return kept;
}

/* Kept while the same regions come again, and let go of when they have not for a while. */
static void test_kept_encoders(void **unused) {
    static const struct ulp_region regions[] = {{"a", 0, 8, 0, 64}, {"b", 0, 6, 16, 16}};
    struct state state = state_make(forms, COUNT(forms), 0), next = state_copy(&state);
    struct on_device device = device_copy(&state, 0), on_device;
    struct device_weights *weights = device_weights_of(&device);
    struct cuda_encoder *first = NULL;
    struct bytes bytes = {0};
    const struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    state_step(&next, 100);
    on_device = device_copy(&next, 0);
    for (unsigned i = 0; i < 10; i++) {
        const unsigned which = i < 4 ? i % 2 : 1;
        const struct ulp_diff_options options = {.regions = &regions[which], .region_count = 1};

        assert_ok(device_diff(weights, on_device.tensors, on_device.count, &options, &sink, NULL));
        first = i ? first : weights->part_encoders.list[0].encoder;
        if (i < 5)
            assert_ptr_equal(weights->part_encoders.list[0].encoder, first);
        assert_int_equal(encoders_kept(weights), i == 0 || i > 5 ? 1 : 2);
    }
    device_weights_trim(weights);
    assert_int_equal(encoders_kept(weights), 0);
    bytes_free(&bytes);
    device_weights_free(weights);
    device_release(&device);
    device_release(&on_device);
    state_free(&state);
    state_free(&next);
}

/* ---- a band of rows, held alone ---- */

#define BAND_ROW 8u
#define BAND_BYTES ((size_t)8 * 64 * 2)

static struct ulp_tensor band_of(const struct ulp_tensor *whole, uint8_t **ret_memory) {
    struct ulp_tensor tensor = *whole;
    uint8_t *memory = malloc(BAND_BYTES);

    assert_non_null(memory);
    memcpy(memory, (const uint8_t *)whole->data + BAND_ROW * 64 * 2, BAND_BYTES);
    *ret_memory = memory;
    tensor.data = (void *)((uintptr_t)memory - BAND_ROW * 64 * 2);
    return tensor;
}

static void test_a_band_alone(void **unused) {
    static const struct ulp_region region = {"a", BAND_ROW, 8, 0, 64};
    struct state base = state_make(forms, 1, 0), next = state_copy(&base);
    const struct ulp_root parent = root_of(&base), child = {{1}};
    struct ulp_weights *host = weights_of(&base);
    struct bytes made = {0}, expected;
    const struct ulp_sink sink = bytes_sink(&made);
    uint8_t *old_memory, *new_memory;
    const struct ulp_tensor old = band_of(&base.tensors[0], &old_memory);
    struct ulp_tensor new;
    struct device_weights *weights = NULL;
    struct device_apply *apply = NULL;
    struct ulp_patch *patch;
    const struct ulp_patch *part;

    (void)unused;
    state_step(&next, 100);
    new = band_of(&next.tensors[0], &new_memory);
    expected =
        patch_to(host, &next, &(struct ulp_diff_options){.regions = &region, .region_count = 1});
    assert_ok(device_weights_new_tile(&old, 1, &region, 1, &parent, NULL, NULL, &weights));
    assert_ok(device_diff(weights, &new, 1, NULL, &sink, NULL));
    assert_same_bytes(&made, &expected);
    part = patch = open_bytes(&made);
    assert_ok(device_apply_prepare_parts(weights, &part, 1, &child, NULL, &apply));
    assert_ok(device_apply_commit(apply, NULL));
    assert_memory_equal(old_memory, new_memory, BAND_BYTES);
    assert_ok(device_weights_audit(weights));
    old_memory[BAND_BYTES - 1] ^= 1;
    assert_fails(device_weights_audit(weights), ULP_E_WRONG_BASE, "'a'");
    device_apply_free(apply);
    ulp_patch_free(patch);
    device_weights_free(weights);
    free(old_memory);
    free(new_memory);
    bytes_free(&made);
    bytes_free(&expected);
    ulp_weights_free(host);
    state_free(&base);
    state_free(&next);
}

/* ---- without memory ---- */

/* At any point: a status, nothing lost, nothing written. */
static enum ulp_status use_tile(const struct world *world, const struct rank *rank,
                                const struct on_device *device, const struct on_device *next,
                                const struct ulp_sink *sink) {
    const struct ulp_patch *patch = rank->patch;
    struct device_weights *weights = NULL;
    struct device_apply *apply = NULL;
    enum ulp_status status =
        device_weights_new_tile(device->tensors, device->count, rank->regions, rank->region_count,
                                &world->parent, NULL, NULL, &weights);

    if (!status)
        status = device_diff(weights, next->tensors, next->count, NULL, sink, NULL);
    if (!status)
        status = device_apply_prepare_parts(weights, &patch, 1, &world->child, NULL, &apply);
    device_apply_free(apply);
    device_weights_free(weights);
    return status;
}

static void test_no_memory(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    const struct rank *rank = &world.ranks[1];
    struct on_device device = device_copy(&rank->held, 0), next = device_copy(&world.next, 0);
    enum ulp_status status = ULP_E_NOMEM;
    struct bytes bytes = {0};
    const struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    for (uint64_t at = 0; status; at++) {
        bytes.used = 0;
        failing_allocator_start(at, 0);
        status = use_tile(&world, rank, &device, &next, &sink);
        failing_allocator_stop();
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
        assert_true(status || at > 30);
        assert_on_device(&device, &rank->held);
    }
    assert_same_bytes(&bytes, &rank->bytes);
    bytes_free(&bytes);
    device_release(&device);
    device_release(&next);
    world_free(&world);
}

TEST_MAIN(test_other_patches, test_bits_of_held_weights, test_tiles_that_cannot_be,
          test_regions_that_cannot_be, test_a_region_not_held, test_parts_that_do_not_fit,
          test_parts_before_a_second_state, test_kept_encoders, test_a_band_alone, test_no_memory)
