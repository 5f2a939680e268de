// SPDX-License-Identifier: Apache-2.0
#include "sync/slice_files.h"

#include "base/clock.h"
#include "base/endian.h"
#include "base/memory.h"
#include "base/quote.h"
#include "digest/root.h"
#include "patch/apply.h"
#include "patch/model_files.h"
#include "patch/place.h"
#include "patch/shard_write.h"
#include "sync/anchor_files.h"
#include "sync/anchor_shard.h"
#include "tensor/model.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- one file ---- */

/* A file that is being written, with the bytes of the whole one. */
struct slice_file {
    struct file_writer writer;
    const uint8_t *data;
    uint64_t tensor; /* where the one that is being written begins */
};

static enum ulp_status put_stretch(void *user, uint64_t offset, size_t bytes) {
    const struct slice_file *file = user;

    return file_writer_put(&file->writer, file->tensor + offset, file->data + file->tensor + offset,
                           bytes);
}

/* The header, and the regions of the tensors that the file has. */
static enum ulp_status put_slice(struct slice_file *file, const struct shard *shard,
                                 const struct slice *slice) {
    struct ulp_region *regions = NULL;
    size_t count = 0;
    enum ulp_status status = slice_regions(slice, shard->tensors, shard->count, &regions, &count);

    if (!status)
        status = file_writer_put(&file->writer, 0, file->data,
                                 SAFETENSORS_LENGTH_BYTES + load_le64(file->data));
    for (size_t i = 0; !status && i < count; i++) {
        const struct ulp_tensor *tensor =
            tensor_find(shard->tensors, shard->count, regions[i].tensor);

        file->tensor = (uint64_t)((const uint8_t *)tensor->data - file->data);
        status = region_each_stretch(tensor, &regions[i], put_stretch, file);
    }
    mem_free(regions);
    return status;
}

/* `changes` adds to what was put, or is NULL. */
static enum ulp_status write_file(const char *path, const struct shard *shard, const uint8_t *data,
                                  size_t bytes, const struct slice *slice,
                                  enum ulp_status (*changes)(void *user, struct file_writer *to),
                                  void *user) {
    struct slice_file file = {.data = data};
    enum ulp_status status = file_writer_open(path, bytes, &file.writer);

    if (!status)
        status = put_slice(&file, shard, slice);
    if (!status && changes)
        status = changes(user, &file.writer);
    if (!status)
        status = file_writer_commit(&file.writer, ULP_COMMIT_NEW);
    file_writer_release(&file.writer);
    return status;
}

/* ---- from an anchor ---- */

struct loading {
    const struct work *work;
    const struct slice *slice;
    const char *directory;
    struct sums sums;
};

static enum ulp_status load_shard(void *user, const struct anchor_file *file,
                                  const struct fetched_shard *fetched) {
    const struct shard *shard = &fetched->shard;
    struct loading *loading = user;
    char path[PATH_MAX];
    enum ulp_status status = anchor_path(loading->directory, file->name, path);

    if (!status)
        status = write_file(path, shard, fetched->data, fetched->bytes, loading->slice, NULL, NULL);
    return status ? status
                  : sums_add(&loading->sums, shard->tensors, shard->count,
                             loading->work->options->pool);
}

enum ulp_status slice_files_load(const struct work *work, const struct slice *slice,
                                 const struct anchor *anchor, const char *directory,
                                 struct ulp_root *ret_root) {
    struct loading loading = {.work = work, .slice = slice, .directory = directory};
    struct ulp_model *model = NULL;
    enum ulp_status status = anchor_files_get_beside(work, anchor, directory);

    if (!status)
        status = anchor_each_shard(work, anchor, load_shard, &loading);
    if (!status)
        status = model_open(directory, &model);
    if (!status)
        status = sums_root(&loading.sums, model->tensors, model->count, ret_root);
    model_free(model);
    sums_release(&loading.sums);
    return status;
}

/* ---- from a model, with or without a step ---- */

struct writing {
    const struct slice *slice;
    const struct ulp_model *model;
    struct ulp_apply *apply; /* NULL: it stays as it is */
    struct tensor_place *places;
    struct shard_writer writer;
    struct file_writer *file; /* being written: shard number `shard` */
    size_t shard;
};

static enum ulp_status put_changed(void *user, size_t shard, uint64_t offset, const void *data,
                                   size_t bytes) {
    const struct writing *w = user;

    (void)shard; /* the one that is being written */
    return file_writer_put(w->file, offset, data, bytes);
}

static enum ulp_status change_this_shard(void *user, const struct staged_block *staged) {
    struct writing *w = user;
    const struct grid_region *region = piece_region(staged->block.grid, staged->block.piece);

    return w->places[region->tensor].shard == w->shard ? shard_write_block(&w->writer, staged)
                                                       : ULP_OK;
}

static enum ulp_status put_changes(void *user, struct file_writer *to) {
    struct writing *w = user;

    w->file = to;
    return w->apply ? apply_each_block(w->apply, change_this_shard, w) : ULP_OK;
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_shard_of(const struct ulp_model *model, const char *name) {
    for (size_t i = 0; i < model->shard_count; i++) {
        if (!strcmp(name_of(model->shards[i].path), name))
            return true;
    }
    return false;
}

static enum ulp_status copy_beside(const struct writing *w, const char *from, const char *to) {
    struct arena arena = {0};
    struct file_names names = {0};
    char source[PATH_MAX], target[PATH_MAX];
    enum ulp_status status = file_names_list(from, &arena, &names);

    for (size_t i = 0; !status && i < names.count; i++) {
        if (is_shard_of(w->model, names.names[i]))
            continue;
        status = anchor_path(from, names.names[i], source);
        if (!status)
            status = anchor_path(to, names.names[i], target);
        if (!status)
            status = plain_file_copy(source, target);
    }
    arena_release(&arena);
    return status;
}

/* `from` is NULL for a model that is one file on its own. */
static enum ulp_status write_files(struct writing *w, const char *from, const char *to) {
    char path[PATH_MAX];
    enum ulp_status status = tensor_places(w->model, &w->places);

    if (!status)
        status = mem_zeroed(PLACE_BYTES, 1, &w->writer.block);
    w->writer.model = w->model;
    w->writer.places = w->places;
    w->writer.put = put_changed;
    w->writer.user = w;
    for (w->shard = 0; !status && w->shard < w->model->shard_count; w->shard++) {
        const struct shard *shard = &w->model->shards[w->shard];

        status = anchor_path(to, from ? name_of(shard->path) : MODEL_FILE_NAME, path);
        if (!status)
            status = write_file(path, shard, shard->map.data, shard->map.bytes, w->slice,
                                put_changes, w);
    }
    if (!status && from)
        status = copy_beside(w, from, to);
    mem_free(w->places);
    mem_free(w->writer.block);
    return status;
}

enum ulp_status slice_files_take(const struct work *work, const struct slice *slice,
                                 const char *path, const char *directory,
                                 struct ulp_root *ret_root) {
    struct writing w = {.slice = slice};
    struct ulp_model *model = NULL;
    char *from = NULL;
    enum ulp_status status = model_open(path, &model);

    w.model = model;
    if (!status)
        status = model_directory(path, &from);
    if (!status)
        status =
            state_digest(model->tensors, model->count, work->options->pool, NULL, NULL, ret_root);
    if (!status)
        status = write_files(&w, from, directory);
    mem_free(from);
    model_free(model);
    return status;
}

/* The slice of the model as weights, and the patches prepared against them. */
static enum ulp_status prepare(const struct work *work, const struct writing *w,
                               const struct ulp_root *parent, const struct step *step,
                               const char *spill, struct ulp_weights **ret_weights,
                               struct ulp_apply **ret_apply) {
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .progress = work->options->progress,
                                              .staging_bytes = WORK_BYTES,
                                              .spill_directory = spill};
    const struct ulp_model *model = w->model;
    const uint64_t started = clock_monotonic_ns();
    struct ulp_region *regions = NULL;
    size_t count = 0;
    enum ulp_status status =
        slice_regions(w->slice, model->tensors, model->count, &regions, &count);

    if (!status && (!count || !step->count))
        status = fail(ULP_E_REGIONS, "a step has no patch for tile %u, or the tile is empty",
                      w->slice->tile);
    if (!status)
        status = weights_new_tile(model->tensors, model->count, regions, count, parent,
                                  work->options->pool, NULL, ret_weights);
    work_spent(&work->report->phases.digest_ns, started);
    if (!status)
        status = apply_prepare(*ret_weights, step->patches, step->count, step->root, &options,
                               ret_apply);
    mem_free(regions);
    return status;
}

enum ulp_status slice_files_step(const struct work *work, const struct slice *slice,
                                 const char *from, const struct ulp_root *parent,
                                 const struct step *step, const char *directory) {
    struct writing w = {.slice = slice};
    struct ulp_model *model = NULL;
    struct ulp_weights *weights = NULL;
    uint64_t started;
    enum ulp_status status = model_open(from, &model);

    w.model = model;
    if (!status)
        status = prepare(work, &w, parent, step, directory, &weights, &w.apply);
    started = clock_monotonic_ns();
    if (!status)
        status = write_files(&w, from, directory);
    work_spent(&work->report->phases.stage_ns, started);
    if (!status)
        work->report->phases.decode_ns += (uint64_t)(w.apply->report.decode_seconds * 1e9);
    apply_free(w.apply);
    weights_free(weights);
    model_free(model);
    return status;
}

/* ---- which slice it is ---- */

#define MARK_NAME ".slice"
#define MARK_MAGIC_BYTES 8u

static const uint8_t mark_magic[MARK_MAGIC_BYTES] = "ulpslic"; /* and version 0 */

/* Read by the library that wrote it, on the same machine; no exchange format. */
struct mark {
    uint8_t magic[MARK_MAGIC_BYTES];
    struct ulp_root root;
    struct hash slice; /* its regions */
    struct hash hash;  /* of what is in front */
};

static enum ulp_status hash_region(struct sha256 *hash, const struct ulp_region *region) {
    const uint64_t numbers[] = {region->row, region->rows, region->column, region->columns};
    enum ulp_status status = sha256_add(hash, region->tensor, strlen(region->tensor) + 1);

    for (size_t i = 0; !status && i < sizeof numbers / sizeof numbers[0]; i++) {
        uint8_t bytes[8];

        store_le64(bytes, numbers[i]);
        status = sha256_add(hash, bytes, sizeof bytes);
    }
    return status;
}

static enum ulp_status hash_slice(const struct slice *slice, const char *directory,
                                  struct hash *ret_hash) {
    struct ulp_model *model = NULL;
    struct ulp_region *regions = NULL;
    struct sha256 *hash = NULL;
    size_t count = 0;
    enum ulp_status status = model_open(directory, &model);

    if (!status)
        status = slice_regions(slice, model->tensors, model->count, &regions, &count);
    if (!status)
        status = sha256_begin(&hash);
    for (size_t i = 0; !status && i < count; i++)
        status = hash_region(hash, &regions[i]);
    if (!status)
        status = sha256_end(hash, ret_hash->bytes);
    sha256_free(hash);
    mem_free(regions);
    model_free(model);
    return status;
}

enum ulp_status slice_mark_write(const struct slice *slice, const char *directory,
                                 const struct ulp_root *root) {
    struct mark mark = {.root = *root};
    char path[PATH_MAX];
    enum ulp_status status = anchor_path(directory, MARK_NAME, path);

    memcpy(mark.magic, mark_magic, sizeof mark_magic);
    if (!status)
        status = hash_slice(slice, directory, &mark.slice);
    if (!status)
        status = hash_of(&mark, offsetof(struct mark, hash), &mark.hash);
    return status ? status : file_write(path, &mark, sizeof mark, ULP_COMMIT_NEW);
}

static enum ulp_status other_slice(const char *directory, const char *what) {
    return fail(ULP_E_OTHER_RUN, "%s holds %s; use another directory", quote(directory).text, what);
}

static enum ulp_status check_mark(const struct mark *mark, const char *directory) {
    struct hash hash;
    enum ulp_status status = hash_of(mark, offsetof(struct mark, hash), &hash);

    if (!status && (memcmp(mark->magic, mark_magic, sizeof mark_magic) != 0 ||
                    memcmp(&hash, &mark->hash, sizeof hash) != 0))
        status = other_slice(directory, "a slice whose mark is damaged");
    return status;
}

enum ulp_status slice_mark_read(const struct slice *slice, const char *directory,
                                struct ulp_root *ret_root) {
    struct buffer bytes = BUFFER(sizeof(struct mark));
    struct mark mark;
    struct hash hash;
    char path[PATH_MAX];
    enum ulp_status status = anchor_path(directory, MARK_NAME, path);

    if (!status)
        status = file_read(path, FILE_REFUSE_LINKS, &bytes);
    if (status == ULP_E_NOT_FOUND)
        status = other_slice(directory, "a whole model, and no slice");
    if (!status && bytes.used != sizeof mark)
        status = other_slice(directory, "a slice whose mark is damaged");
    if (!status) {
        memcpy(&mark, bytes.data, sizeof mark);
        status = check_mark(&mark, directory);
    }
    if (!status)
        status = hash_slice(slice, directory, &hash);
    if (!status && memcmp(&hash, &mark.slice, sizeof hash) != 0)
        status = other_slice(directory, "another tile, or one of another tiling");
    if (!status)
        *ret_root = mark.root;
    buffer_release(&bytes);
    return status;
}

bool slice_mark_exists(const char *directory) {
    char path[PATH_MAX];
    struct stat info;

    return !anchor_path(directory, MARK_NAME, path) && !lstat(path, &info);
}
