// SPDX-License-Identifier: Apache-2.0
#include "sync/join.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/fit.h"
#include "patch/layout.h"
#include "sync/commit.h"
#include "sync/contribution.h"
#include "sync/sealed_patch.h"
#include "sync/slice.h"
#include "sync/tile_holder.h"

#include <string.h>

struct joining {
    struct ulp_follower *follower;
    const struct work *work;
    uint64_t step;
    struct arena arena;
    unsigned tiles;
    struct contributed_patch *by_tile; /* from 0; without parts: not there */
    struct ulp_patch **patches;        /* those that there are, opened */
    size_t patch_count;
    uint64_t changes;
    size_t parts;
    uint64_t folder; /* the oldest that parts lie in */
};

static const struct record *newest(const struct joining *j) {
    return &j->follower->holder->seen.record;
}

/* ---- what was contributed ---- */

/* Whether it is for the version that is to come. */
static enum ulp_status check_fits(const struct joining *j, const struct contribution *c) {
    const struct record *record = newest(j);

    if (memcmp(c->run, record->run, RUN_ID_BYTES) != 0)
        return fail(ULP_E_OTHER_RUN, "a contribution is for another run than %s",
                    quote(j->work->run).text);
    if (c->tiles != j->tiles)
        return fail(ULP_E_REGIONS, "a contribution is one of %u tiles, and here are %u", c->tiles,
                    j->tiles);
    if (c->version < record->version)
        return fail(ULP_E_FENCED,
                    "a contribution starts from version %llu, but version %llu of run %s was "
                    "published meanwhile",
                    (unsigned long long)c->version, (unsigned long long)record->version,
                    quote(j->work->run).text);
    if (c->version > record->version || !same_root(&c->root, &record->root))
        return fail(ULP_E_WRONG_BASE, "a contribution starts from another version %llu than run %s",
                    (unsigned long long)c->version, quote(j->work->run).text);
    if (c->step != j->step)
        return fail(ULP_E_USAGE, "a contribution is for step %llu, and not for %llu",
                    (unsigned long long)c->step, (unsigned long long)j->step);
    return ULP_OK;
}

static enum ulp_status add_patch(struct joining *j, const struct contributed_patch *patch) {
    if (j->by_tile[patch->tile].stored.part_count)
        return fail(ULP_E_DUPLICATE, "tile %u was contributed twice", patch->tile);
    j->by_tile[patch->tile] = *patch;
    j->changes += patch->changes;
    j->parts += patch->stored.part_count;
    if (j->parts > LIMIT_PARTS)
        return fail(ULP_E_LIMIT, "patches of more than %u parts", LIMIT_PARTS);
    for (size_t i = 0; i < patch->stored.part_count; i++) {
        const uint64_t folder = patch->stored.parts[i].folder;

        j->folder = folder < j->folder ? folder : j->folder;
    }
    return ULP_OK;
}

static enum ulp_status add_contribution(struct joining *j, const void *bytes, size_t count) {
    struct contribution c;
    enum ulp_status status = contribution_read(bytes, count, &j->arena, &c);

    if (!status)
        status = check_fits(j, &c);
    for (size_t i = 0; !status && i < c.count; i++)
        status = add_patch(j, &c.patches[i]);
    return status;
}

/* A deletion that was announced since may hit them. */
static enum ulp_status overtaken(const struct joining *j) {
    return fail(ULP_E_PART_MISSING,
                "old parts of run %s are being deleted, and those that were contributed may be "
                "among them; contribute again",
                quote(j->work->run).text);
}

/* ---- whether they hold ---- */

static bool same_box(const struct ulp_region *a, const struct ulp_region *b) {
    return !strcmp(a->tensor, b->tensor) && a->row == b->row && a->rows == b->rows &&
           a->column == b->column && a->columns == b->columns;
}

/* Who follows a tile takes no patch that covers anything else. */
static enum ulp_status check_covers(const struct ulp_patch *patch, const struct ulp_region *regions,
                                    size_t count, unsigned tile) {
    const struct grid *grid = &patch->table.grid;
    bool same = !grid->whole && grid->region_count == count;

    for (size_t i = 0; same && i < count; i++)
        same = same_box(&grid->regions[i].box, &regions[i]);
    return same ? ULP_OK
                : fail(ULP_E_REGIONS,
                       "the patch of tile %u covers other regions than the tiling gives it; use "
                       "the same rules on all ranks",
                       tile);
}

static enum ulp_status open_patch(struct joining *j, unsigned tile,
                                  const struct ulp_region *regions, size_t region_count) {
    const struct contributed_patch *given = &j->by_tile[tile];
    struct ulp_patch *patch = NULL;
    size_t count;
    const struct ulp_tensor *tensors = tile_holder_tensors(j->follower->holder, &count);
    uint64_t bytes = 0;
    enum ulp_status status = patch_open_sealed(j->work->store, j->work->run, &given->stored,
                                               &given->seal, &patch, &bytes);

    if (status)
        return status;
    j->patches[j->patch_count++] = patch;
    j->work->report->fetched_bytes += bytes;
    j->work->report->fetched_objects++;
    status = layout_compare(tensors, count, patch->table.tensors, patch->table.tensor_count,
                            "the model", "the contributed patch");
    if (!status)
        status = check_covers(patch, regions, region_count, tile);
    if (!status && patch->table.changes != given->changes)
        status =
            fail(ULP_E_PART, "the patch of tile %u has other changes than were announced", tile);
    if (!status && !same_root(&patch->table.parent, &newest(j)->root))
        status = fail(ULP_E_WRONG_BASE, "the patch of tile %u starts from another state", tile);
    return status;
}

/* Every tile that has something is there, and no other. */
static enum ulp_status open_tile(struct joining *j, unsigned tile) {
    size_t count, region_count = 0;
    const struct ulp_tensor *tensors = tile_holder_tensors(j->follower->holder, &count);
    const bool given = j->by_tile[tile].stored.part_count != 0;
    struct ulp_region *regions = NULL;
    enum ulp_status status = tiling_regions(j->follower->holder->slice->tiling, tensors, count,
                                            tile, &regions, &region_count);

    if (!status && given && !regions)
        status =
            fail(ULP_E_REGIONS, "tile %u has nothing, and still a patch was contributed", tile);
    if (!status && !given && regions)
        status = fail(ULP_E_REGIONS, "tile %u was not contributed%s; nothing is published", tile,
                      tile ? "" : ", which the rank of tile 1 does");
    if (!status && given)
        status = open_patch(j, tile, regions, region_count);
    mem_free(regions);
    return status;
}

/* ---- one version ---- */

static enum ulp_status add_version(struct joining *j, const struct ulp_root *root) {
    const struct record *record = newest(j);
    struct stored_patch *stored = NULL;
    struct way way = {.from = record->version,
                      .to = record->version + 1,
                      .changes = j->changes,
                      .patch_count = (size_t)j->tiles + 1};
    const struct addition addition = {.way = &way,
                                      .version = true,
                                      .step = j->step,
                                      .root = *root,
                                      .key = j->work->options->sign};
    bool moved = false;
    enum ulp_status status = arena_zeroed(&j->arena, way.patch_count, sizeof *stored, &stored);

    if (status)
        return status;
    for (unsigned i = 0; i <= j->tiles; i++)
        stored[i] = j->by_tile[i].stored;
    way.patches = stored;
    status = commit(j->follower, &addition, j->work->report, &moved);
    return !status && moved ? overtaken(j) : status;
}

static enum ulp_status check_room(const struct joining *j) {
    const struct record *record = newest(j);

    if (j->folder < record->boundary)
        return overtaken(j);
    if (record->way_count == LIMIT_WAYS)
        return fail(ULP_E_LIMIT,
                    "the map of run %s is full; whoever holds the whole state makes an anchor "
                    "first: ulp_publisher_anchor()",
                    quote(j->work->run).text);
    return ULP_OK;
}

static enum ulp_status join(struct joining *j, const void *const *contributions,
                            const size_t *sizes, size_t count) {
    struct ulp_root root;
    enum ulp_status status =
        arena_zeroed(&j->arena, (size_t)j->tiles + 1, sizeof *j->by_tile, &j->by_tile);

    if (!status)
        status = mem_zeroed((size_t)j->tiles + 1, sizeof(struct ulp_patch *), &j->patches);
    for (size_t i = 0; !status && i < count; i++)
        status = add_contribution(j, contributions[i], sizes[i]);
    if (!status)
        status = check_room(j);
    for (unsigned tile = 0; !status && tile <= j->tiles; tile++)
        status = open_tile(j, tile);
    if (!status)
        status = parts_root((const struct ulp_patch *const *)j->patches, j->patch_count, &root);
    return status ? status : add_version(j, &root);
}

enum ulp_status join_and_commit(struct ulp_follower *f, const struct work *work,
                                const void *const *contributions, const size_t *sizes, size_t count,
                                uint64_t step) {
    struct joining j = {.follower = f,
                        .work = work,
                        .step = step,
                        .tiles = tiling_count(f->holder->slice->tiling),
                        .folder = UINT64_MAX};
    enum ulp_status status = join(&j, contributions, sizes, count);

    for (size_t i = 0; i < j.patch_count; i++)
        patch_free(j.patches[i]);
    mem_free(j.patches);
    arena_release(&j.arena);
    return status;
}
