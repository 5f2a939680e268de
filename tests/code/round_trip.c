// SPDX-License-Identifier: Apache-2.0
/* What is encoded is decoded: any type, any density, any values, on any CPU. */
#include "tests/code/sample.h"
#include "tests/scan/every_feature_set.h"
#include "tests/scan/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const char *dtype;
    uint32_t bits;
} types[] = {{"BF16", 16}, {"F16", 16}, {"F32", 32}, {"F64", 64}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
             {"I8", 8},    {"I16", 16}, {"I32", 32}, {"I64", 64}, {"strange", 4}, {"strange", 128}};

static const uint32_t densities[] = {0, 1, 10, 100, 500, 990, 1000}; /* per mille */
static const uint32_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, 4097, 0, 128, 2048, 8300};

static struct code_kind kind_at(size_t type) {
    return code_kind_of(types[type].dtype, types[type].bits);
}

/* Through every coder. */
static void round_trip(const struct sample *sample) {
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++) {
        struct sample forced = sample_for(sample, (enum code_coder)coder);
        struct buffer bytes = sample_encode(&forced);

        sample_check_decode(&forced, &bytes);
        buffer_release(&bytes);
        free(forced.blocks);
    }
}

static void round_trip_of(size_t type, const uint32_t *block_sizes, size_t count,
                          uint32_t per_mille, enum change change, bool history) {
    struct sample sample =
        sample_make(kind_at(type), block_sizes, count, per_mille, change, history);

    round_trip(&sample);
    sample_free(&sample);
}

static void test_widths(void **state) {
    static const uint8_t expected[COUNT(types)] = {2, 2, 4, 8, 1, 1, 1, 2, 4, 8, 1, 8};

    (void)state;
    for (size_t type = 0; type < COUNT(types); type++)
        assert_int_equal(kind_at(type).width, expected[type]);
}

static void test_every_type_density_and_change(void **state) {
    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        for (size_t d = 0; d < COUNT(densities); d++) {
            for (unsigned c = 0; c < 2 * CHANGES; c++)
                round_trip_of(type, sizes, COUNT(sizes), densities[d], (enum change)(c / 2), c & 1);
        }
    }
}

static void test_single_blocks(void **state) {
    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        for (size_t s = 0; s < COUNT(sizes); s++) {
            round_trip_of(type, &sizes[s], 1, 300, CHANGE_RANDOM, false);
            round_trip_of(type, &sizes[s], 1, 300, CHANGE_ULP, true);
        }
    }
}

static void test_nothing_at_all(void **state) {
    static const uint32_t empty[300];

    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        round_trip_of(type, empty, 0, 0, CHANGE_ULP, false);
        round_trip_of(type, empty, 0, 0, CHANGE_ULP, true);
        round_trip_of(type, empty, COUNT(empty), 0, CHANGE_ULP, false);
        round_trip_of(type, empty, COUNT(empty), 0, CHANGE_ULP, true);
    }
}

static void test_many_blocks(void **state) {
    static uint32_t many[3000];

    (void)state;
    for (size_t b = 0; b < COUNT(many); b++)
        many[b] = (uint32_t)(test_random() % 130);
    round_trip_of(0, many, COUNT(many), 30, CHANGE_ULP, false);
    round_trip_of(0, many, COUNT(many), 30, CHANGE_ULP, true);
    round_trip_of(3, many, COUNT(many), 600, CHANGE_RANDOM, true);
}

/* The largest block, and more elements than the sample of the cells takes. */
static void test_large_blocks(void **state) {
    static const uint32_t large[] = {CODE_BLOCK_MAX, CODE_BLOCK_MAX, 77,
                                     CODE_BLOCK_MAX, CODE_BLOCK_MAX, CODE_BLOCK_MAX - 1};

    (void)state;
    round_trip_of(0, large, COUNT(large), 10, CHANGE_ULP, true);
    round_trip_of(4, large, 2, 995, CHANGE_RANDOM, false);
    round_trip_of(0, large, 1, 0, CHANGE_ULP, false);
}

/* One change at the very end of the largest block: the largest gap there is. */
static void test_lonely_change(void **state) {
    static const uint32_t large = CODE_BLOCK_MAX;
    struct sample sample = sample_make(kind_at(0), &large, 1, 0, CHANGE_ULP, false);

    (void)state;
    memset(sample.old, 0x3c, 2 * (size_t)large);
    memset(sample.new, 0x3c, 2 * (size_t)large);
    sample.new[2 * (size_t)large - 1] ^= 0x80;
    round_trip(&sample);
    sample_free(&sample);
}

/* Only what the sample of the cells passes over changes: the models must still hold all of it. */
static void test_changes_outside_the_sample(void **state) {
    static uint32_t blocks[9];
    struct sample sample;

    (void)state;
    for (size_t b = 0; b < COUNT(blocks); b++)
        blocks[b] = CODE_BLOCK_MAX;
    sample = sample_make(kind_at(0), blocks, COUNT(blocks), 0, CHANGE_ULP, false);
    for (size_t i = 0; i < sample.total; i++) {
        if (i % CODE_BLOCK_MAX / 2048 - 1 > 2) /* the second to the fourth run of 2048 change */
            continue;
        element_put(sample.old, 2, i, test_random());
        element_put(sample.new, 2, i, test_random());
    }
    round_trip(&sample);
    sample_free(&sample);
}

static void test_all_bf16_values(void **state) {
    static const uint16_t targets[] = {0, 0x8000, 1, 0x7f80, 0xff80, 0x7fc1, 0xffff, 0x3c12};
    static const uint32_t size = 65536;
    struct sample sample = sample_make(kind_at(0), &size, 1, 0, CHANGE_ULP, false);

    (void)state;
    for (size_t t = 0; t < COUNT(targets) + 3; t++) {
        for (uint32_t i = 0; i < size; i++) {
            uint32_t new = t < COUNT(targets) ? targets[t] : i + (t & 1 ? 1 : 0xffff);

            element_put(sample.old, 2, i, i);
            element_put(sample.new, 2, i, t == COUNT(targets) + 2 ? ~i : new);
        }
        round_trip(&sample);
    }
    sample_free(&sample);
}

static void test_reused_encoder_gives_the_same(void **state) {
    struct code_encoder *encoder = NULL;

    (void)state;
    assert_ok(code_encoder_new(&encoder));
    for (unsigned i = 0; i < 200; i++) {
        size_t first = test_random() % COUNT(sizes), count = test_random() % (COUNT(sizes) - first);
        struct sample sample =
            sample_make(kind_at(i % COUNT(types)), sizes + first, count,
                        densities[test_random() % COUNT(densities)], i % CHANGES, i / 4 & 1);
        struct buffer fresh, again = BUFFER(OUT_BYTES_MAX);

        if (!sample.history && i % 3)
            sample.coder = i % 3 == 1 ? CODE_PLAIN : CODE_DENSE;
        fresh = sample_encode(&sample);
        assert_ok(buffer_append_text(&again, "in front"));
        assert_ok(code_encode(encoder, sample.kind, sample.coder, sample.blocks, count, &again));
        assert_int_equal(again.used, fresh.used + 8);
        assert_memory_equal(again.data, "in front", 8);
        assert_memory_equal(again.data + 8, fresh.data, fresh.used);
        buffer_release(&fresh);
        buffer_release(&again);
        sample_free(&sample);
    }
    code_encoder_free(encoder);
}

static struct sample unforced;
static struct sample shared[CODE_DENSE + 1]; /* the same one for each coder */
static struct buffer portable[CODE_DENSE + 1];

static void encode_as_portable(void) {
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++) {
        struct buffer bytes = sample_encode(&shared[coder]);

        assert_int_equal(bytes.used, portable[coder].used);
        assert_memory_equal(bytes.data, portable[coder].data, bytes.used);
        sample_check_decode(&shared[coder], &bytes);
        buffer_release(&bytes);
    }
}

static void make_shared(unsigned i) {
    static const size_t two_bytes_wide[] = {0, 1, 7}; /* those that have a twin */
    static const uint32_t densities_here[] = {300, 0, 10, 900, 1000};

    unforced = sample_make(kind_at(two_bytes_wide[i % 3]), sizes, COUNT(sizes),
                           densities_here[i / 3 % 5], i / 15 % CHANGES, i & 1);
    cpu_allow(0);
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++) {
        shared[coder] = sample_for(&unforced, (enum code_coder)coder);
        portable[coder] = sample_encode(&shared[coder]);
        sample_check_decode(&shared[coder], &portable[coder]);
    }
    cpu_allow(CPU_ALL);
}

static void free_shared(void) {
    for (int coder = CODE_CONTEXT; coder <= CODE_DENSE; coder++) {
        buffer_release(&portable[coder]);
        free(shared[coder].blocks);
    }
    sample_free(&unforced);
}

static void test_this_cpu_gives_the_same(void **state) {
    (void)state;
    for (unsigned i = 0; i < 3 * 5 * CHANGES; i++) {
        make_shared(i);
        encode_as_portable();
        free_shared();
    }
}

static void test_every_cpu_gives_the_same(void **state) {
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        make_shared(i);
        with_every_feature_set(encode_as_portable);
        free_shared();
    }
}

/* A block that ends where memory ends, both ways. */
static void test_nothing_beyond_is_read(void **state) {
    struct guarded old = guarded_make(2 * 4300), new = guarded_make(2 * 4300);

    (void)state;
    for (uint32_t size = 0; size <= 4300; size += size < 130 || size > 4090 ? 1 : 99) {
        struct sample sample = sample_make(kind_at(0), &size, 1, 400, CHANGE_ULP, size & 1);
        size_t bytes = 2 * (size_t)size;

        sample.blocks[0].old = memcpy(old.end - bytes, sample.old, bytes);
        sample.blocks[0].new = memcpy(new.end - bytes, sample.new, bytes);
        round_trip(&sample);
        sample.blocks[0].old = memcpy(old.begin, sample.old, bytes);
        sample.blocks[0].new = memcpy(new.begin, sample.new, bytes);
        round_trip(&sample);
        sample_free(&sample);
    }
    guarded_free(&old);
    guarded_free(&new);
}

/* Elements anywhere in memory: a file may put them behind an odd number of bytes. */
static void test_unaligned_elements(void **state) {
    static const uint32_t size = 4200;
    static uint8_t old[8 * 4200 + 1], new[8 * 4200 + 1];

    (void)state;
    for (size_t type = 0; type < COUNT(types); type++) {
        struct sample sample = sample_make(kind_at(type), &size, 1, 100, CHANGE_ULP, type & 1);
        size_t bytes = (size_t)sample.kind.width * size;

        sample.blocks[0].old = memcpy(old + 1, sample.old, bytes);
        sample.blocks[0].new = memcpy(new + 1, sample.new, bytes);
        round_trip(&sample);
        sample_free(&sample);
    }
}

static void test_limits(void **state) {
    struct code_block block = {.elements = CODE_BLOCK_MAX + 1};
    struct code_encoder *encoder = NULL;
    struct code_segment *segment = NULL;
    struct buffer out = BUFFER(OUT_BYTES_MAX);

    (void)state;
    assert_ok(code_encoder_new(&encoder));
    assert_fails(code_encode(encoder, kind_at(0), CODE_CONTEXT, &block, 1, &out), ULP_E_LIMIT,
                 "block");
    assert_int_equal(out.used, 0);
    assert_fails(code_open(kind_at(0), NULL, CODE_BLOCKS_MAX + 1, NULL, 0, &segment), ULP_E_LIMIT,
                 "blocks");
    assert_null(segment);
    code_encoder_free(encoder);
    buffer_release(&out);
}

TEST_MAIN(test_widths, test_every_type_density_and_change, test_single_blocks, test_nothing_at_all,
          test_many_blocks, test_large_blocks, test_lonely_change, test_changes_outside_the_sample,
          test_all_bf16_values, test_reused_encoder_gives_the_same, test_this_cpu_gives_the_same,
          test_every_cpu_gives_the_same, test_nothing_beyond_is_read, test_unaligned_elements,
          test_limits)
