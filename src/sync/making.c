// SPDX-License-Identifier: Apache-2.0
#include "sync/making.h"

#include "base/clock.h"
#include "base/memory.h"
#include "patch/diff.h"
#include "patch/patch.h"
#include "patch/tile.h"
#include "patch/weights.h"

enum ulp_status making_begin(struct making *m, const struct work *work, uint64_t folder) {
    return upload_begin(&m->upload, work->store, work->run, folder);
}

static enum ulp_status add_made(struct making *m, const struct made *made) {
    enum ulp_status status = mem_grow(&m->made, m->count, sizeof *m->made, &m->room);

    if (!status)
        m->made[m->count++] = *made;
    return status;
}

/* The last part goes when the next patch begins, or in the end: what turns out not to be needed is
 * not sent. */
static enum ulp_status finish_last(struct making *m) {
    struct made *last = m->filling ? &m->made[m->filling - 1] : NULL;
    size_t parts = 0;
    enum ulp_status status = last ? upload_cut(&m->upload, &parts) : ULP_OK;

    if (!status && last) {
        last->part_count = parts - m->parts_cut;
        last->first_part = m->parts_cut;
        m->parts_cut = parts;
        m->filling = 0;
    }
    return status;
}

enum ulp_status making_add(struct making *m, struct holder *holder,
                           const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                           size_t count, const struct ulp_diff_options *options) {
    const struct ulp_sink sink = {upload_write, &m->upload};
    struct ulp_diff_report report = {0};
    struct made made = {.first_byte = m->upload.bytes};
    enum ulp_status status = finish_last(m);

    if (!status)
        status = holder->ops->diff
                     ? holder->ops->diff(holder, tensors, count, options, &sink, &report)
                     : diff(weights, tensors, count, options, &sink, &report);
    made.bytes = m->upload.bytes - made.first_byte;
    made.changes = report.changed;
    if (!status)
        status = add_made(m, &made);
    if (status)
        return status;
    m->filling = m->count;
    report.changed += m->report.changed;
    report.patch_bytes += m->report.patch_bytes;
    m->report = report;
    return ULP_OK;
}

enum ulp_status making_add_tile(struct making *m, struct holder *holder,
                                const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                                size_t count, const struct ulp_tiling *tiling, unsigned tile,
                                const struct work *work) {
    struct ulp_diff_options options = {.pool = work->options->pool,
                                       .progress = work->options->progress};
    struct ulp_region *regions = NULL;
    enum ulp_status status = tiling_regions(tiling, weights->tensors, weights->count, tile,
                                            &regions, &options.region_count);

    options.regions = regions;
    if (!status)
        status = regions ? making_add(m, holder, weights, tensors, count, &options)
                         : add_made(m, &(struct made){0});
    mem_free(regions);
    return status;
}

enum ulp_status making_open(struct making *m) {
    const uint8_t *data = NULL;
    size_t bytes = 0;
    enum ulp_status status = spool_view(&m->upload.copy, &data, &bytes);

    if (!status)
        status = mem_zeroed(m->count, sizeof(struct ulp_patch *), &m->patches);
    for (size_t i = 0; !status && i < m->count; i++) {
        const struct made *one = &m->made[i];

        if (!one->bytes)
            continue;
        status = patch_open_memory(data + one->first_byte, (size_t)one->bytes,
                                   &m->patches[m->patch_count]);
        m->patch_count += !status;
    }
    return status;
}

enum ulp_status making_end(struct making *m, const struct work *work) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = finish_last(m);

    if (!status)
        status = upload_end(&m->upload);
    work_spent(&work->report->phases.store_ns, started);
    work->report->stored_bytes += m->report.patch_bytes;
    work->report->stored_objects += (unsigned)m->upload.count;
    return status;
}

enum ulp_status making_stored(const struct making *m, struct arena *arena,
                              const struct stored_patch **ret_patches) {
    struct stored_patch *patches = NULL;
    enum ulp_status status = arena_zeroed(arena, m->count, sizeof *patches, &patches);

    if (status)
        return status;
    for (size_t i = 0; i < m->count; i++) {
        const struct made *one = &m->made[i];

        if (one->part_count)
            patches[i] = (struct stored_patch){m->upload.parts + one->first_part, one->part_count};
    }
    *ret_patches = patches;
    return ULP_OK;
}

void making_release(struct making *m) {
    for (size_t i = 0; i < m->patch_count; i++)
        patch_free(m->patches[i]);
    mem_free(m->patches);
    mem_free(m->made);
    upload_release(&m->upload);
    *m = (struct making){0};
}
