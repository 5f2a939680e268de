// SPDX-License-Identifier: Apache-2.0
/*
 * What others do, for comparison: the places of changed 16-bit elements as gaps, their new values,
 * both through zstd at level 1.
 *
 *     link_gaps encode OLD NEW OUT     safetensors files of the same tensors
 *     link_gaps decode OLD IN          in memory; prints how long that took
 */
#define _POSIX_C_SOURCE 200809L
#include "study/gaps.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulpsync/ulpsync.h>
#include <zstd.h>

struct bytes {
    uint8_t *data;
    size_t used, room;
};

static void die(const char *what) {
    fprintf(stderr, "link_gaps: %s: %s\n", what, ulp_last_error());
    exit(1);
}

static void add(struct bytes *bytes, uint8_t byte) {
    if (bytes->used == bytes->room) {
        bytes->room = bytes->room ? 2 * bytes->room : 1 << 20;
        bytes->data = realloc(bytes->data, bytes->room);
        if (!bytes->data)
            die("out of memory");
    }
    bytes->data[bytes->used++] = byte;
}

static void add_gap(struct bytes *bytes, uint64_t gap) {
    uint8_t written[GAP_BYTES_MAX];
    const size_t count = gap_write(written, gap);

    for (size_t i = 0; i < count; i++)
        add(bytes, written[i]);
}

static double now_ms(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Gaps of all tensors, as if they were one, end to end. */
static void compare(const struct ulp_model *old, const struct ulp_model *new, struct bytes *gaps,
                    struct bytes *values) {
    uint64_t gap = 0;

    for (size_t t = 0; t < ulp_model_count(old); t++) {
        const uint16_t *a = ulp_model_tensors(old)[t].data, *b = ulp_model_tensors(new)[t].data;
        const uint64_t elements = ulp_model_tensors(old)[t].bytes / 2;

        for (uint64_t i = 0; i < elements; i++, gap++) {
            if (a[i] == b[i])
                continue;
            add_gap(gaps, gap);
            add(values, (uint8_t)b[i]);
            add(values, (uint8_t)(b[i] >> 8));
            gap = UINT64_MAX; /* and 0 at the next one */
        }
    }
}

static void write_packed(FILE *file, const struct bytes *bytes) {
    size_t bound = ZSTD_compressBound(bytes->used), packed;
    uint8_t *data = malloc(bound);
    uint64_t sizes[2] = {bytes->used, 0};

    packed = data ? ZSTD_compress(data, bound, bytes->data, bytes->used, 1) : 0;
    sizes[1] = packed;
    if (!data || ZSTD_isError(packed) || fwrite(sizes, sizeof sizes, 1, file) != 1 ||
        fwrite(data, packed, 1, file) != 1)
        die("write");
    free(data);
}

static struct bytes read_packed(FILE *file) {
    uint64_t sizes[2];
    struct bytes bytes = {0};
    uint8_t *packed;

    if (fread(sizes, sizeof sizes, 1, file) != 1)
        die("read");
    packed = malloc(sizes[1]);
    bytes.data = malloc(sizes[0]);
    if (!packed || !bytes.data || fread(packed, sizes[1], 1, file) != 1)
        die("read");
    bytes.used = ZSTD_decompress(bytes.data, sizes[0], packed, sizes[1]);
    if (ZSTD_isError(bytes.used))
        die("unpack");
    free(packed);
    return bytes;
}

static int encode(char **paths) {
    struct ulp_model *old = NULL, *new = NULL;
    struct bytes gaps = {0}, values = {0};
    const double started = now_ms();
    FILE *file = fopen(paths[2], "wb");

    if (!file || ulp_model_open(paths[0], &old) || ulp_model_open(paths[1], &new))
        die("open");
    compare(old, new, &gaps, &values);
    write_packed(file, &gaps);
    write_packed(file, &values);
    printf("{\"bytes\": %ld, \"encode_ms\": %.1f}\n", ftell(file), now_ms() - started);
    fclose(file);
    free(gaps.data);
    free(values.data);
    ulp_model_free(old);
    ulp_model_free(new);
    return 0;
}

/* Into a copy of the old state, tensor after tensor. */
static void apply(const struct bytes *gaps, const struct bytes *values, uint8_t *state) {
    uint64_t at = UINT64_MAX;
    size_t value = 0;

    for (size_t i = 0; i < gaps->used;) {
        uint64_t gap = 0;
        unsigned shift = 0;

        for (; gaps->data[i] & 128; shift += 7)
            gap |= (uint64_t)(gaps->data[i++] & 127) << shift;
        gap |= (uint64_t)gaps->data[i++] << shift;
        at += gap + 1;
        memcpy(state + 2 * at, values->data + value, 2);
        value += 2;
    }
}

static int decode(char **paths) {
    struct ulp_model *old = NULL;
    struct bytes gaps, values;
    uint8_t *state, *to;
    double started;
    FILE *file = fopen(paths[1], "rb");

    if (!file || ulp_model_open(paths[0], &old))
        die("open");
    to = state = malloc(ulp_model_bytes(old));
    if (!state)
        die("out of memory");
    for (size_t t = 0; t < ulp_model_count(old); t++) {
        memcpy(to, ulp_model_tensors(old)[t].data, ulp_model_tensors(old)[t].bytes);
        to += ulp_model_tensors(old)[t].bytes;
    }
    started = now_ms();
    gaps = read_packed(file);
    values = read_packed(file);
    apply(&gaps, &values, state);
    printf("{\"decode_ms\": %.1f}\n", now_ms() - started);
    fclose(file);
    free(gaps.data);
    free(values.data);
    free(state);
    ulp_model_free(old);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "encode"))
        return encode(argv + 2);
    if (argc == 4 && !strcmp(argv[1], "decode"))
        return decode(argv + 2);
    fprintf(stderr, "Usage: link_gaps encode OLD NEW OUT | decode OLD IN\n");
    return 2;
}
