// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/device_state.h"

#include "base/clock.h"
#include "cuda/memory.h"
#include "gpu/device_apply.h"
#include "gpu/device_second.h"
#include "patch/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must_be_ok(enum ulp_status status, const char *what) {
    if (!status)
        return;
    fprintf(stderr, "gpu check: %s: %s: %s\n", what, ulp_status_name(status), ulp_last_error());
    exit(1);
}

static void must(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "gpu check: %s\n", what);
    exit(1);
}

static void *room(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);

    must(memory != NULL, "no memory");
    return memory;
}

static uint64_t next_random(void) {
    static uint64_t state = 1;
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

/* ---- patches in memory ---- */

struct grown {
    uint8_t *data;
    size_t used, room;
};

static enum ulp_status grow(void *user, const void *data, size_t bytes) {
    struct grown *grown = user;

    if (grown->used + bytes > grown->room) {
        grown->room = 2 * (grown->used + bytes);
        grown->data = realloc(grown->data, grown->room);
        must(grown->data != NULL, "no memory");
    }
    memcpy(grown->data + grown->used, data, bytes);
    grown->used += bytes;
    return ULP_OK;
}

/* ---- followers ---- */

struct followers {
    struct ulp_tensor *host, *device; /* the same tensors in both memories */
    size_t count;
    struct ulp_pool *pool;
    struct ulp_weights *weights;
    struct device_weights *on_device;
    uint64_t shape; /* of the only tensor of a benchmark */
};

static void same_everything(const struct followers *followers) {
    const struct ulp_weights *host = followers->weights, *device = followers->on_device->weights;

    must(!memcmp(host->sums, device->sums, host->grid.piece_count * sizeof *host->sums),
         "the sums differ from the CPU's");
    must(!memcmp(&host->root, &device->root, sizeof host->root), "the roots differ");
    must_be_ok(device_weights_audit(followers->on_device), "digesting what was written");
}

static void same_moves(const struct followers *followers) {
    const struct device_weights *device = followers->on_device;
    const struct ulp_weights *host = followers->weights;
    const size_t bytes = device->moves->room.bytes;
    decode_move *moves = room(bytes);

    must_be_ok(cuda_copy_out(moves, device->moves->room.memory, bytes, NULL), "copying moves");
    must_be_ok(cuda_wait(NULL), "copying moves");
    for (uint32_t i = 0; i < device->plan.device.block_count; i++) {
        const struct cuda_block *block = &device->plan.blocks[i];
        struct code_block expected = {0};

        chunk_moves_of(&host->moves->chunks[block->segment], block->index, &expected);
        must(device->moves->count[i] == expected.move_count, "the number of moves differs");
        for (uint32_t k = 0; k < expected.move_count; k++) {
            const decode_move move = moves[device->moves->first[i] + k];

            must(move >> 8 == expected.moves[k].position &&
                     (int8_t)(move & 255) == expected.moves[k].move,
                 "moves differ from the CPU's");
        }
    }
    free(moves);
}

static void start(struct followers *followers) {
    must_be_ok(ulp_pool_new(0, &followers->pool), "starting threads");
    must_be_ok(ulp_weights_new(followers->host, followers->count, followers->pool, NULL,
                               &followers->weights),
               "digesting on the CPU");
    must_be_ok(
        device_weights_new(followers->device, followers->count, NULL, NULL, &followers->on_device),
        "digesting on the device");
    same_everything(followers);
}

struct followers *followers_new(void *host, void *device, uint64_t elements) {
    struct followers *followers = room(sizeof *followers);

    memset(followers, 0, sizeof *followers);
    followers->count = 1;
    followers->shape = elements;
    followers->host = room(sizeof *followers->host);
    followers->device = room(sizeof *followers->device);
    *followers->host = (struct ulp_tensor){
        .name = "weight", .dtype = "BF16", .shape = &followers->shape, .rank = 1, .data = host};
    must_be_ok(ulp_tensor_measure(followers->host), "measuring");
    *followers->device = *followers->host;
    followers->device->data = device;
    start(followers);
    return followers;
}

void followers_double(struct followers *followers, void *second) {
    struct ulp_tensor tensor = *followers->device;

    tensor.data = second;
    must_be_ok(device_second_attach(followers->on_device, &tensor, 1, NULL),
               "attaching a second state");
}

void followers_free(struct followers *followers) {
    device_weights_free(followers->on_device);
    ulp_weights_free(followers->weights);
    ulp_pool_free(followers->pool);
    free(followers->host);
    free(followers->device);
    free(followers);
}

static struct ulp_patch *make_patch(const struct followers *followers,
                                    const struct ulp_tensor *next,
                                    const struct ulp_diff_options *options, struct grown *bytes) {
    const struct ulp_sink sink = {grow, bytes};
    struct ulp_patch *patch = NULL;

    must_be_ok(ulp_diff(followers->weights, next, followers->count, options, &sink, NULL),
               "making a patch");
    must_be_ok(ulp_patch_open_memory(bytes->data, bytes->used, &patch), "opening the patch");
    return patch;
}

static double ms_since(uint64_t started) {
    return (double)(clock_monotonic_ns() - started) / 1e6;
}

void followers_step(struct followers *followers, const void *next,
                    void (*time)(void *user, const struct cuda_decode *decode,
                                 const struct cuda_plan *plan, uint32_t *poisoned),
                    void *user, struct step_report *ret_report) {
    const struct ulp_diff_options options = {.pool = followers->pool, .history = 1};
    const struct ulp_apply_options apply_options = {.pool = followers->pool, .remember = 1};
    struct ulp_tensor tensor = *followers->host;
    struct grown bytes = {0};
    struct device_apply *apply = NULL;
    struct ulp_apply_report report;
    struct ulp_patch *patch;
    uint64_t started = clock_monotonic_ns();

    tensor.data = (void *)(uintptr_t)next;
    patch = make_patch(followers, &tensor, &options, &bytes);
    ret_report->encode_ms = ms_since(started);
    for (int round = 0; round < 2; round++) { /* memory is there the second time */
        device_apply_free(apply);
        started = clock_monotonic_ns();
        must_be_ok(device_apply_prepare(followers->on_device, patch, &apply_options, &apply),
                   "preparing on the device");
        ret_report->prepare_ms = ms_since(started);
    }
    if (time)
        time(user, device_apply_decode(apply), &followers->on_device->plan.device,
             followers->on_device->poisoned);
    started = clock_monotonic_ns();
    must_be_ok(device_apply_commit(apply, &report), "writing on the device");
    ret_report->commit_ms = ms_since(started);
    ret_report->changed = report.changed;
    ret_report->patch_bytes = bytes.used;
    ret_report->device_bytes = report.staged_bytes;
    ret_report->history = patch->table.history;
    must_be_ok(ulp_apply(followers->weights, patch, &apply_options, NULL), "writing on the CPU");
    same_everything(followers);
    same_moves(followers);
    device_apply_free(apply);
    ulp_patch_free(patch);
    free(bytes.data);
}

/* ---- the check ---- */

#define NAME_BYTES 16

/* Tensors of one dtype in one piece of memory on each side; the second of two starts one element
 * behind an aligned address. */
struct set {
    struct followers followers;
    char (*names)[NAME_BYTES];
    uint64_t *shapes;
    uint8_t *host, *next, *device;
    size_t bytes, *offsets;
    unsigned width;
};

static struct set set_make(const char *dtype, unsigned width, size_t count, uint64_t elements) {
    struct set set = {.width = width};
    struct followers *followers = &set.followers;

    followers->count = count;
    followers->host = room(count * sizeof *followers->host);
    followers->device = room(count * sizeof *followers->device);
    set.names = room(count * sizeof *set.names);
    set.shapes = room(count * sizeof *set.shapes);
    set.offsets = room(count * sizeof *set.offsets);
    for (size_t i = 0; i < count; i++) {
        struct ulp_tensor *tensor = &followers->host[i];

        snprintf(set.names[i], NAME_BYTES, "t%07zu", i);
        set.shapes[i] = count > 1000 ? 1 + i % elements : elements - i % 7;
        *tensor = (struct ulp_tensor){
            .name = set.names[i], .dtype = dtype, .shape = &set.shapes[i], .rank = 1};
        must_be_ok(ulp_tensor_measure(tensor), "measuring");
        set.offsets[i] = set.bytes + i % 2 * width;
        set.bytes += ((size_t)tensor->bytes + width + 63) / 64 * 64;
    }
    set.host = room(set.bytes);
    set.next = room(set.bytes);
    for (size_t i = 0; i < set.bytes; i += 8) {
        uint64_t bits = next_random();

        memcpy(set.host + i, &bits, 8);
    }
    memcpy(set.next, set.host, set.bytes);
    must_be_ok(cuda_memory_new(set.bytes, (void **)&set.device), "taking device memory");
    must_be_ok(cuda_copy_in(set.device, set.host, set.bytes, NULL), "copying");
    for (size_t i = 0; i < count; i++) {
        followers->host[i].data = set.host + set.offsets[i];
        followers->device[i] = followers->host[i];
        followers->device[i].data = set.device + set.offsets[i];
    }
    start(followers);
    return set;
}

static void set_free(struct set *set) {
    struct followers *followers = room(sizeof *followers);

    *followers = set->followers;
    followers_free(followers);
    cuda_memory_free(set->device);
    free(set->names);
    free(set->shapes);
    free(set->offsets);
    free(set->host);
    free(set->next);
}

/* About one element in `one_in` steps; 0: just one of all. */
static void set_step(struct set *set, uint64_t one_in) {
    const size_t elements = set->bytes / set->width;

    for (size_t i = 0; i < elements; i++) {
        uint8_t *element = set->next + i * set->width;
        uint64_t draw = next_random(), value = 0;

        if (one_in ? draw % one_in : i != set->offsets[0] / set->width)
            continue;
        memcpy(&value, element, set->width);
        value += draw >> 32 & 1 ? 1 + (draw >> 40) % 3 : UINT64_MAX - (draw >> 40) % 40;
        memcpy(element, &value, set->width);
    }
}

/* What is between tensors is nobody's, and not compared. */
static void same_elements(const struct set *set) {
    uint8_t *device = room(set->bytes);

    must_be_ok(cuda_copy_out(device, set->device, set->bytes, NULL), "copying");
    must_be_ok(cuda_wait(NULL), "copying");
    for (size_t i = 0; i < set->followers.count; i++)
        must(!memcmp(device + set->offsets[i], set->followers.host[i].data,
                     (size_t)set->followers.host[i].bytes),
             "weights differ from the CPU's");
    free(device);
}

static void set_follow(struct set *set, enum ulp_coder coder, int history) {
    struct followers *followers = &set->followers;
    const struct ulp_diff_options options = {
        .pool = followers->pool, .history = history, .coder = coder};
    const struct ulp_apply_options remember = {.pool = followers->pool, .remember = 1};
    struct ulp_tensor *next = room(followers->count * sizeof *next);
    struct grown bytes = {0};
    struct device_apply *apply = NULL;
    struct ulp_patch *patch;

    for (size_t i = 0; i < followers->count; i++) {
        next[i] = followers->host[i];
        next[i].data = set->next + set->offsets[i];
    }
    patch = make_patch(followers, next, &options, &bytes);
    must_be_ok(device_apply_prepare(followers->on_device, patch, &remember, &apply), "preparing");
    same_elements(set);
    must_be_ok(device_apply_commit(apply, NULL), "writing");
    must_be_ok(device_apply_undo(apply), "undoing");
    same_elements(set);
    must_be_ok(device_apply_commit(apply, NULL), "writing again");
    must_be_ok(ulp_apply(followers->weights, patch, &remember, NULL), "writing on the CPU");
    same_elements(set);
    same_everything(followers);
    same_moves(followers);
    device_apply_free(apply);
    ulp_patch_free(patch);
    free(bytes.data);
    free(next);
}

/* Bits of chunks flipped, their checksums made right: the same status as the CPU gives. */
static unsigned set_damage(struct set *set, unsigned times) {
    struct followers *followers = &set->followers;
    const struct ulp_diff_options options = {.history = 1, .coder = ULP_CODER_CONTEXT};
    struct ulp_tensor *next = room(followers->count * sizeof *next);
    struct grown bytes = {0};
    struct ulp_patch *patch;
    unsigned refused = 0;

    set_step(set, 50);
    for (size_t i = 0; i < followers->count; i++) {
        next[i] = followers->host[i];
        next[i].data = set->next + set->offsets[i];
    }
    patch = make_patch(followers, next, &options, &bytes);
    for (unsigned i = 0; i < times; i++) {
        struct table_chunk *chunk =
            &patch->table.chunks[next_random() % patch->table.grid.chunk_count];
        uint8_t *byte = bytes.data + chunk->offset + next_random() % chunk->bytes;
        const uint64_t checksum = chunk->checksum;
        const uint8_t mask = (uint8_t)(1u << next_random() % 8);
        struct ulp_apply *apply = NULL;
        struct device_apply *on_device = NULL;
        enum ulp_status expected;

        *byte ^= mask;
        chunk->checksum = patch_checksum(bytes.data + chunk->offset, (size_t)chunk->bytes);
        expected = ulp_apply_prepare(followers->weights, patch, NULL, &apply);
        must(device_apply_prepare(followers->on_device, patch, NULL, &on_device) == expected,
             "a damaged patch gets another status than on the CPU");
        refused += expected != ULP_OK;
        ulp_apply_free(apply);
        device_apply_free(on_device);
        *byte ^= mask;
        chunk->checksum = checksum;
    }
    same_elements(set);
    same_everything(followers);
    ulp_patch_free(patch);
    free(bytes.data);
    free(next);
    return refused;
}

/* One bit of the last tensor's last byte. */
static void set_audit(struct set *set) {
    const struct ulp_tensor *tensor = &set->followers.device[set->followers.count - 1];
    uint8_t *byte = (uint8_t *)tensor->data + tensor->bytes - 1, value;

    for (int flipped = 1; flipped >= 0; flipped--) {
        must_be_ok(cuda_copy_out(&value, byte, 1, NULL), "copying a byte");
        must_be_ok(cuda_wait(NULL), "copying a byte");
        value ^= 0x20;
        must_be_ok(cuda_copy_in(byte, &value, 1, NULL), "copying a byte");
        must(device_weights_audit(set->followers.on_device) ==
                 (flipped ? ULP_E_WRONG_BASE : ULP_OK),
             "an audit misses a flipped bit, or sees one where there is none");
    }
}

static void check_set(const char *dtype, unsigned width, size_t count, uint64_t elements,
                      unsigned damages) {
    static const uint64_t one_in[] = {100, 80, 8, 300, 0, 1, 3};
    struct set set = set_make(dtype, width, count, elements);
    unsigned refused;

    for (size_t i = 0; i < sizeof one_in / sizeof *one_in; i++) {
        set_step(&set, one_in[i]);
        set_follow(&set, i == 2 ? ULP_CODER_BEST : ULP_CODER_CONTEXT, i > 0);
    }
    set_step(&set, 40);
    set_follow(&set, ULP_CODER_PLAIN, 0);
    set_step(&set, 4);
    set_follow(&set, ULP_CODER_DENSE, 0);
    refused = set_damage(&set, damages);
    set_audit(&set);
    printf(
        "%7zu tensors %-8s %9.3f M elements: 9 patches as on the CPU, %u of %u damaged refused\n",
        count, dtype, (double)set.bytes / width / 1e6, refused, damages);
    set_free(&set);
}

void check_decoding(int small) {
    static const struct {
        const char *dtype;
        unsigned width;
        size_t count, small_count;
        uint64_t elements, small_elements;
    } sets[] = {{"BF16", 2, 3, 3, 9000001, 20003},   {"F16", 2, 5, 2, 300001, 9001},
                {"F32", 4, 2, 2, 2000003, 9001},     {"F64", 8, 2, 2, 700001, 9001},
                {"F8_E4M3", 1, 3, 3, 1000003, 9001}, {"I32", 4, 2, 2, 300007, 301},
                {"BF16", 2, 20000, 1200, 40, 40}};

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        check_set(sets[i].dtype, sets[i].width, small ? sets[i].small_count : sets[i].count,
                  small ? sets[i].small_elements : sets[i].elements, small ? 6 : 100);
}
