// SPDX-License-Identifier: Apache-2.0
#include "study/gaps.h"
#include "study/squeeze.h"
#include "study/wire.h"

#include <stdlib.h>
#include <string.h>

/* Twice what zstd looks back at level 1, so cutting here costs next to nothing. */
#define FRAME ((size_t)1 << 20)

/* A change adds at most this much to a stream at once. */
#define MARGIN 16u

struct stream {
    uint8_t *data;
    size_t used;
};

struct wire_streams {
    struct stream gaps, values, gaps16, xors;
    uint8_t *room, *scratch;
    size_t room_bytes;
    struct wire_made made;
};

enum ulp_status wire_streams_new(struct wire_streams **ret_streams) {
    struct wire_streams *streams;
    uint8_t *data;

    if (!squeeze_available())
        return ULP_OK;
    streams = calloc(1, sizeof *streams);
    if (streams) {
        streams->room_bytes = squeeze_room(FRAME);
        streams->room = malloc(5 * FRAME + streams->room_bytes);
    }
    if (!streams || !streams->room) {
        free(streams);
        return ulp_fail(ULP_E_NOMEM, "out of memory for what zstd is to squeeze");
    }
    data = streams->room + streams->room_bytes;
    streams->gaps.data = data;
    streams->values.data = data + FRAME;
    streams->gaps16.data = data + 2 * FRAME;
    streams->xors.data = data + 3 * FRAME;
    streams->scratch = data + 4 * FRAME;
    *ret_streams = streams;
    return ULP_OK;
}

void wire_streams_free(struct wire_streams *streams) {
    if (streams)
        free(streams->room);
    free(streams);
}

static enum ulp_status press(const struct wire_streams *streams, const void *data, size_t bytes,
                             uint64_t *sum) {
    const size_t after = bytes ? squeeze(data, bytes, streams->room, streams->room_bytes) : 0;

    if (bytes && !after)
        return ulp_fail(ULP_E_NOMEM, "zstd could not squeeze %zu bytes", bytes);
    *sum += after;
    return ULP_OK;
}

static enum ulp_status flush(struct wire_streams *streams, struct stream *a, struct stream *b,
                             uint64_t *sum) {
    enum ulp_status status = press(streams, a->data, a->used, sum);

    if (!status)
        status = press(streams, b->data, b->used, sum);
    a->used = b->used = 0;
    return status;
}

static void put(struct stream *stream, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        stream->data[stream->used++] = (uint8_t)(value >> 8 * i);
}

static enum ulp_status change16(struct wire_streams *streams, uint64_t gap, uint64_t flipped,
                                unsigned width) {
    for (;;) {
        const bool far = gap > UINT16_MAX; /* an entry that flips nothing on the way */

        if (streams->xors.used + MARGIN > FRAME || streams->gaps16.used + MARGIN > FRAME) {
            enum ulp_status status =
                flush(streams, &streams->gaps16, &streams->xors, &streams->made.gaps_xor);

            if (status)
                return status;
        }
        put(&streams->gaps16, far ? UINT16_MAX : gap, 2);
        put(&streams->xors, far ? 0 : flipped, width);
        if (!far)
            return ULP_OK;
        gap -= UINT16_MAX + 1u;
    }
}

enum ulp_status wire_streams_change(struct wire_streams *streams, uint64_t gap, uint64_t old,
                                    uint64_t new, unsigned width) {
    if (streams->gaps.used + MARGIN > FRAME || streams->values.used + MARGIN > FRAME) {
        enum ulp_status status =
            flush(streams, &streams->gaps, &streams->values, &streams->made.gaps);

        if (status)
            return status;
    }
    streams->gaps.used += gap_write(streams->gaps.data + streams->gaps.used, gap);
    put(&streams->values, new, width);
    return change16(streams, gap, old ^ new, width);
}

enum ulp_status wire_streams_flush(struct wire_streams *streams) {
    enum ulp_status status = flush(streams, &streams->gaps, &streams->values, &streams->made.gaps);

    if (!status)
        status = flush(streams, &streams->gaps16, &streams->xors, &streams->made.gaps_xor);
    return status;
}

enum ulp_status wire_streams_sample(struct wire_streams *streams, const void *old, const void *new,
                                    size_t bytes) {
    const uint8_t *a = old, *b = new;
    enum ulp_status status = ULP_OK;

    streams->made.sampled += bytes;
    for (size_t at = 0; !status && at < bytes; at += FRAME) {
        const size_t here = bytes - at < FRAME ? bytes - at : FRAME;

        for (size_t i = 0; i < here; i++)
            streams->scratch[i] = a[at + i] ^ b[at + i];
        status = press(streams, b + at, here, &streams->made.state);
        if (!status)
            status = press(streams, streams->scratch, here, &streams->made.xor_of_state);
    }
    return status;
}

struct wire_made wire_streams_made(const struct wire_streams *streams) {
    return streams->made;
}
