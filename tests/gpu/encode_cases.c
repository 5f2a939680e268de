// SPDX-License-Identifier: Apache-2.0
/*
 * Two steps of a model, made into patches on the device and on the CPU, which must give the same
 * bytes; between them the device's weights take the first patch, so the second is made with what they
 * remember. Then the same from a snapshot in the host's memory. On a GPU, or on fibers that stand in for one. No test framework, so that it builds where
 * nothing can be installed.
 */
#include "gpu_cases.h"
#include "host_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATES 3

/* `every`: small weights, one in 32, nearly always step: their classes are flipped. */
#define SMALL_STEP UINT32_MAX
/* The first step changes few, the second so many that blocks are sorted by somebody else. */
#define FEW_THEN_MANY (UINT32_MAX - 1)
/* Small weights step, but in one tensor of three: its blocks have more unchanged elements in flipped
 * classes than changes. */
#define LOPSIDED (UINT32_MAX - 2)

static uint64_t random_state;

static uint64_t next_random(void) {
    return random_after(&random_state);
}

/* ---- states ---- */

/* Weights as a network has them: their exponents are spread over a dozen values. */
static uint64_t random_weight(struct code_kind kind) {
    uint64_t random = next_random(), spread = (uint64_t)__builtin_ctzll(next_random() | 1u << 20);
    uint64_t middle, exponent, mantissa;

    if (!kind.exponent_bits)
        return random;
    middle = (UINT64_C(1) << (kind.exponent_bits - 1)) - 2;
    exponent = middle > spread ? middle - spread : 0;
    mantissa = random & ((UINT64_C(1) << kind.exponent_shift) - 1);
    return random >> 63 << (8 * kind.width - 1) | exponent << kind.exponent_shift | mantissa;
}

static bool steps(uint64_t random, uint64_t value, struct code_kind kind, uint32_t every) {
    uint64_t exponent = value >> kind.exponent_shift & ((UINT64_C(1) << kind.exponent_bits) - 1);

    if (every != SMALL_STEP)
        return every && random % every == 0;
    if (exponent + 7 < UINT64_C(1) << (kind.exponent_bits - 1))
        return random % 16 != 0;
    return random % 4096 == 0;
}

/* One element in `every` steps, by little more often than by much. */
static uint64_t stepped(uint64_t value, struct code_kind kind, uint32_t every) {
    uint64_t random = next_random(), size = 1;

    if (!steps(random, value, kind, every))
        return value;
    if (random >> 32 & 1)
        size += (uint64_t)__builtin_ctzll(next_random() | UINT64_C(1) << 40);
    if ((random >> 33 & 1023) == 0)
        size = next_random() | 1;
    return random >> 50 & 1 ? value + size : value - size;
}

struct shape {
    const char *dtype;
    uint64_t elements;
};

struct states {
    char (*names)[32];
    uint64_t *extents;
    struct ulp_tensor *of[STATES]; /* in host memory */
    size_t count;
};

static uint32_t every_of(uint32_t every, size_t tensor, int step) {
    if (every == FEW_THEN_MANY)
        return step ? 15 : 400;
    if (every == LOPSIDED)
        return tensor % 3 == 2 ? 2000 : SMALL_STEP;
    return every;
}

static void fill(struct states *states, size_t tensor, uint32_t every) {
    const struct ulp_tensor *first = &states->of[0][tensor];
    struct code_kind kind = code_kind_of(first->dtype, first->bits);

    for (uint64_t at = 0; at < first->bytes; at += kind.width) {
        uint64_t value = random_weight(kind);

        for (int s = 0; s < STATES; s++) {
            memcpy((uint8_t *)states->of[s][tensor].data + at, &value, kind.width);
            value = stepped(value, kind, every_of(every, tensor, s));
        }
    }
}

static struct states make_states(const struct shape *shapes, size_t count, uint32_t every) {
    struct states states = {.count = count};

    states.names = must_alloc(count * sizeof *states.names);
    states.extents = must_alloc(count * sizeof *states.extents);
    for (int s = 0; s < STATES; s++)
        states.of[s] = must_alloc(count * sizeof *states.of[s]);
    for (size_t i = 0; i < count; i++) {
        snprintf(states.names[i], sizeof states.names[i], "t%07zu", i);
        states.extents[i] = shapes[i].elements;
        for (int s = 0; s < STATES; s++) {
            struct ulp_tensor *tensor = &states.of[s][i];

            *tensor = (struct ulp_tensor){.name = states.names[i],
                                          .dtype = shapes[i].dtype,
                                          .shape = &states.extents[i],
                                          .rank = 1};
            must(ulp_tensor_measure(tensor), "measuring");
            tensor->data = must_alloc(tensor->bytes);
        }
        fill(&states, i, every);
    }
    return states;
}

static void free_states(struct states *states) {
    for (int s = 0; s < STATES; s++) {
        for (size_t i = 0; i < states->count; i++)
            free(states->of[s][i].data);
        free(states->of[s]);
    }
    free(states->names);
    free(states->extents);
}

static bool from_host; /* the old weights are in the host's memory */
static bool few_cases; /* without those that take long */

/* By rounds, as a large state is. The steps write to the first state, so they come last. */
static void check_rounds(const char *name, const struct states *states, const struct uploaded *on) {
    struct device_weights *weights = NULL;
    struct ulp_weights *twin = NULL;

    must(device_weights_new(on[0].tensors, states->count, NULL, NULL, &weights), name);
    must(ulp_weights_new(states->of[0], states->count, NULL, NULL, &twin), name);
    weights->round_bytes = 1; /* a chunk each */
    step(name, weights, twin, &on[1], states->of[1]);
    step(name, weights, twin, &on[2], states->of[2]);
    must_hold(!weights->plan.device.segment_count || (weights->rounds && !weights->encoder),
              "it was made at once", name, 0);
    device_weights_free(weights);
    ulp_weights_free(twin);
}

static void check_device(const char *name, const struct states *states, const struct uploaded *on,
                         const struct cuda_encoder_options *encoder) {
    struct device_weights *weights = NULL;
    struct ulp_weights *twin = NULL;
    struct ulp_diff_report first, second;

    must(device_weights_new(on[0].tensors, states->count, NULL, NULL, &weights), name);
    must(ulp_weights_new(states->of[0], states->count, NULL, NULL, &twin), name);
    if (encoder) {
        struct cuda_plan plan = weights->plan.device;

        plan.segments = weights->plan.segments;
        plan.blocks = weights->plan.blocks;
        must(cuda_encoder_new(&plan, encoder, &weights->encoder), name);
    }
    first = step(name, weights, twin, &on[1], states->of[1]);
    second = step(name, weights, twin, &on[2], states->of[2]);
    printf("encode: %-22s %9llu elements, %8llu changes, %8llu and %8llu bytes: equal\n", name,
           (unsigned long long)first.elements, (unsigned long long)first.changed,
           (unsigned long long)first.patch_bytes, (unsigned long long)second.patch_bytes);
    device_weights_free(weights);
    ulp_weights_free(twin);
}

static void check_host(const char *name, const struct states *states, const struct uploaded *on,
                       size_t shift) {
    host_steps(name, states->of, on, STATES, (struct host_source){false, 1, shift, false});
    host_steps(name, states->of, on, STATES, (struct host_source){true, 0, shift, false});
    printf("from the host: %-22s equal, pinned and not\n", name);
}

static void check_case(const char *name, const struct shape *shapes, size_t count, uint32_t every,
                       size_t shift, const struct cuda_encoder_options *encoder) {
    struct states states = make_states(shapes, count, every);
    struct uploaded on[STATES];

    for (int s = 0; s < STATES; s++)
        on[s] = upload(states.of[s], count, shift);
    if (from_host)
        check_host(name, &states, on, shift);
    else
        check_device(name, &states, on, encoder);
    if (!from_host && count > 1 && !encoder)
        check_rounds(name, &states, on);
    for (int s = 0; s < STATES; s++)
        release(&on[s]);
    free_states(&states);
}

/* Device memory beside the weights, when they are in the host's. */
static size_t host_memory(const struct shape *shapes, size_t count, uint32_t every, bool pinned) {
    struct states states = make_states(shapes, count, every);
    struct uploaded on[STATES];
    size_t bytes;

    for (int s = 0; s < STATES; s++)
        on[s] = upload(states.of[s], count, 0);
    bytes = host_steps("windows", states.of, on, count > 1 ? STATES : 2,
                       (struct host_source){pinned, 1, 0, count > 3});
    for (int s = 0; s < STATES; s++)
        release(&on[s]);
    free_states(&states);
    return bytes;
}

/* Hardly anything changes, so the next step is expected to fit one wave: it does not. */
static void crowded_window(void) {
    const struct shape shapes[] = {{"BF16", 500000}, {"F16", 500000}};
    struct states states = make_states(shapes, 2, 24);
    struct uploaded on[STATES];

    for (size_t i = 0; i < 2; i++) {
        memcpy(states.of[1][i].data, states.of[0][i].data, states.of[0][i].bytes);
        *(uint8_t *)states.of[1][i].data ^= 1;
    }
    for (int s = 0; s < STATES; s++)
        on[s] = upload(states.of[s], 2, 0);
    host_steps("crowded", states.of, on, STATES, (struct host_source){true, 0, 0, false});
    for (int s = 0; s < STATES; s++)
        release(&on[s]);
    free_states(&states);
}

/* A chunk of each kind, all of one size, so that each fills a window: with three or with ten, the windows
 * are as large. */
static void window_cases(uint64_t scale) {
    const struct shape shapes[] = {{"F64", 16000 * scale},      {"F32", 32000 * scale},
                                   {"BF16", 64000 * scale},     {"I64", 16000 * scale},
                                   {"I32", 32000 * scale},      {"F16", 64000 * scale},
                                   {"U16", 64000 * scale},      {"F8_E4M3", 128000 * scale},
                                   {"F8_E5M2", 128000 * scale}, {"U8", 128000 * scale}};
    const size_t three = host_memory(shapes, 3, 60, true), ten = host_memory(shapes, 10, 60, false);

    host_memory((const struct shape[]){{"F64", 1060000}}, 1, 1 << 14, false); /* in pieces */
    must_hold(ten <= three + three / 4, "windows grow with the state", "windows", ten);
    printf("windows: %zu and %zu bytes of device memory for three and ten chunks\n", three, ten);
}

static void all_cases(uint64_t scale) {
    const char *dtypes[] = {"BF16",    "F16", "F32", "F64", "F8_E4M3",
                            "F8_E5M2", "I64", "I32", "U16", "U8"};
    const struct shape one = {"BF16", 60000 * scale};
    const struct shape kinds[] = {{"BF16", 250000}, {"F16", 249000}, {"U16", 251000}};
    const struct shape three[] = {
        {"BF16", 55000 * scale}, {"BF16", 54000 * scale}, {"BF16", 53000 * scale}};
    const struct cuda_encoder_options narrow = {1, 1, 1};
    const size_t tiny_count = few_cases ? 150 : 700;
    struct shape tiny[700], mixed[16];

    random_state = 1;
    check_case("one tensor", &one, 1, 90, 0, NULL);
    check_case("denser", &one, 1, 20, 0, NULL);
    check_case("flipped classes", &one, 1, SMALL_STEP, 0, NULL);
    check_case("nothing changes", &one, 1, 0, 0, NULL);
    check_case("no tensors", NULL, 0, 1, 0, NULL);
    check_case("no elements", (const struct shape[]){{"BF16", 0}, {"F32", 0}}, 2, 1, 0, NULL);
    check_case("one element", (const struct shape[]){{"BF16", 1}}, 1, 1, 0, NULL);
    check_case("hardly anything", &one, 1, (uint32_t)(200 * scale), 0, NULL);
    check_case("a handful", &one, 1, (uint32_t)(12000 * scale), 0, NULL);
    check_case("a handful of F64", (const struct shape[]){{"F64", 30000 * scale}}, 1,
               (uint32_t)(9000 * scale), 0, NULL);
    check_case("off the alignment", &one, 1, 90, 2, NULL);
    check_case("an eighth and more", &one, 1, 4, 0, NULL);
    check_case("everything", &one, 1, 1, 0, NULL);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const struct shape shape = {dtypes[i], 14001 * scale};

        check_case(dtypes[i], &shape, 1, 40, 0, NULL);
    }
    for (size_t i = 0; i < tiny_count; i++)
        tiny[i] = (struct shape){i % 5 ? "BF16" : "F32", next_random() % 90};
    check_case("tiny tensors", tiny, tiny_count, 30, 0, NULL);
    if (!few_cases)
        check_case("more than has room", kinds, 3, 11, 0, &narrow);
    check_case("few, then many", &(const struct shape){"BF16", 90000}, 1, FEW_THEN_MANY, 0, NULL);
    check_case("lopsided", three, 3, LOPSIDED, 0, NULL);
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        mixed[i] = (struct shape){dtypes[next_random() % 10], next_random() % (4000 * scale)};
    check_case("mixed", mixed, sizeof mixed / sizeof *mixed, 50, 0, NULL);
}

void encode_cases(uint64_t scale) {
    from_host = false;
    few_cases = scale == 0;
    all_cases(few_cases ? 1 : scale);
}

void host_cases(uint64_t scale) {
    from_host = true;
    few_cases = scale == 0;
    all_cases(few_cases ? 1 : scale);
    if (few_cases)
        return;
    crowded_window();
    window_cases(scale);
}
