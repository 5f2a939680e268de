// SPDX-License-Identifier: Apache-2.0
#include "sync/state_part.h"

#include "base/memory.h"
#include "patch/weights.h"
#include "sync/parts.h"
#include "tensor/model.h"
#include "tensor/safetensors.h"

#include <stdlib.h>

struct placed {
    uint64_t offset;
    struct piece piece;
};

static int by_offset(const void *a, const void *b) {
    const struct placed *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The header, then the tensors in the order of their places in the file. */
static enum ulp_status lay_out(const struct ulp_weights *weights, struct buffer *header,
                               struct placed *placed, struct piece *pieces) {
    uint64_t *offsets = NULL, bytes = 0;
    enum ulp_status status = mem_zeroed(weights->count, sizeof *offsets, &offsets);

    if (!status)
        status = safetensors_encode_header(MODEL_FILE_NAME, weights->tensors, weights->count, NULL,
                                           0, header, offsets, &bytes);
    for (size_t i = 0; !status && i < weights->count; i++)
        placed[i] = (struct placed){offsets[i],
                                    {weights->tensors[i].data, (size_t)weights->tensors[i].bytes}};
    mem_free(offsets);
    if (status)
        return status;
    qsort(placed, weights->count, sizeof *placed, by_offset);
    pieces[0] = (struct piece){header->data, header->used};
    for (size_t i = 0; i < weights->count; i++)
        pieces[i + 1] = placed[i].piece;
    return ULP_OK;
}

static enum ulp_status put_weights(const struct ulp_weights *weights,
                                   const struct piece_reader *reader, const struct work *work,
                                   uint64_t folder, struct anchor_file *file) {
    struct buffer header = BUFFER((size_t)1 << 30);
    struct placed *placed = NULL;
    struct piece *pieces = NULL;
    enum ulp_status status = mem_zeroed(weights->count, sizeof *placed, &placed);

    if (!status)
        status = mem_zeroed(weights->count + 1, sizeof *pieces, &pieces);
    if (!status)
        status = lay_out(weights, &header, placed, pieces);
    if (!status)
        status = part_put_read(work->store, work->run, folder, pieces, weights->count + 1, reader,
                               &file->part);
    work->report->stored_bytes += status ? 0 : file->part.bytes;
    work->report->stored_objects += !status;
    buffer_release(&header);
    mem_free(placed);
    mem_free(pieces);
    return status;
}

enum ulp_status state_part_put(const struct ulp_weights *weights, const struct piece_reader *reader,
                               const struct work *work, uint64_t folder, struct arena *arena,
                               struct anchor *anchor) {
    struct anchor_file *file = NULL;
    enum ulp_status status = arena_zeroed(arena, 1, sizeof *file, &file);

    anchor->files = file;
    anchor->file_count = !*anchor->reference;
    if (status || *anchor->reference)
        return status;
    file->name = MODEL_FILE_NAME;
    return put_weights(weights, reader, work, folder, file);
}
