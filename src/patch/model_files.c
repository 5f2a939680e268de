// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* flock, O_NOFOLLOW */
#include "patch/model_files.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/fit.h"
#include "patch/journal.h"
#include "patch/place.h"
#include "patch/shard_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A model whose files may be written. Zeroed means none. */
struct open_model {
    struct ulp_model *model;
    char *journal;
    int *files; /* of the shards: descriptors + 1 */
    struct tensor_place *places;
    struct shard_writer writer;
};

static void close_model(struct open_model *open) {
    for (size_t i = 0; open->files && i < open->model->shard_count; i++) {
        if (open->files[i])
            close(open->files[i] - 1);
    }
    mem_free(open->files);
    mem_free(open->journal);
    mem_free(open->places);
    mem_free(open->writer.block);
    model_free(open->model);
    *open = (struct open_model){0};
}

static bool same_file(int a, int b) {
    struct stat x, y;

    return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A link may lead into a cache that others use. What is written must be what was mapped and
 * verified, and not a file that has taken its name since. */
static enum ulp_status open_shard(const struct shard *shard, int *ret_file) {
    int file = open(shard->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0 && errno == ELOOP)
        return fail(ULP_E_FILE_KIND,
                    "%s is a symbolic link, so others may use that file; write a copy instead (-o)",
                    quote(shard->path).text);
    if (file < 0)
        return fail_errno("open for writing", shard->path);
    *ret_file = file + 1;
    if (!same_file(file, shard->map.file - 1))
        return fail(ULP_E_FILE_CHANGED, "%s was replaced while it was being opened",
                    quote(shard->path).text);
    return file_map_lock(&shard->map, FILE_LOCK_ALONE, shard->path);
}

static enum ulp_status put_in_place(void *user, size_t shard, uint64_t offset, const void *data,
                                    size_t bytes) {
    const struct open_model *open = user;

    return file_put(open->files[shard] - 1, open->model->shards[shard].path, offset, data, bytes);
}

static enum ulp_status open_for_writing(const char *path, struct open_model *open) {
    enum ulp_status status = model_open_interrupted(path, &open->model);

    if (!status)
        status = mem_zeroed(open->model->shard_count, sizeof *open->files, &open->files);
    for (size_t i = 0; !status && i < open->model->shard_count; i++)
        status = open_shard(&open->model->shards[i], &open->files[i]);
    if (!status)
        status = model_journal_path(path, &open->journal);
    if (!status)
        status = tensor_places(open->model, &open->places);
    if (!status)
        status = mem_zeroed(PLACE_BYTES, 1, &open->writer.block);
    open->writer.model = open->model;
    open->writer.places = open->places;
    open->writer.put = put_in_place;
    open->writer.user = open;
    return status;
}

/* ---- the journal's life ---- */

static enum ulp_status sync_files(const struct open_model *open) {
    for (size_t i = 0; i < open->model->shard_count; i++) {
        if (fsync(open->files[i] - 1))
            return fail_errno("sync", open->model->shards[i].path);
    }
    return ULP_OK;
}

/* Everything is in place; only then may the journal go. */
static enum ulp_status finish(const struct open_model *open) {
    enum ulp_status status = sync_files(open);

    return status ? status : file_remove(open->journal);
}

static enum ulp_status replace_in_sums(void *user, const struct staged_block *staged) {
    struct ulp_weights *weights = user;
    const struct block_walk *block = &staged->block;

    place_replace(block, weights->tensors[piece_region(block->grid, block->piece)->tensor].data,
                  staged->positions, staged->count, staged->values, &weights->sums[block->piece]);
    return ULP_OK;
}

/* Whether the journal, written over what is there now, gives the state that it was made for: asked
 * before anything is written, so a journal that strayed here does no harm. */
static enum ulp_status check_journal(const struct journal *journal, struct ulp_weights *weights) {
    struct ulp_root root;
    enum ulp_status status = journal_each_block(journal, &weights->grid, replace_in_sums, weights);

    if (!status)
        status = table_root(&weights->grid, weights->sums, &root);
    if (!status && !same_root(&root, &journal->child))
        status = fail(ULP_E_JOURNAL,
                      "the journal leads to state %s..., but with these files it would give %s...",
                      short_root(&journal->child).hex, short_root(&root).hex);
    return status;
}

static enum ulp_status finish_journal(struct open_model *open, bool *ret_recovered) {
    struct journal journal = {0};
    struct ulp_weights *weights = NULL;
    enum ulp_status status;

    *ret_recovered = false;
    if (access(open->journal, F_OK))
        return errno == ENOENT ? ULP_OK : fail_errno("look for", open->journal);
    log_message(ULP_LOG_WARN, "finishing an interrupted change: %s", quote(open->journal).text);
    status = journal_open(open->journal, &journal);
    if (!status)
        status = weights_new(open->model->tensors, open->model->count, NULL, NULL, &weights);
    if (!status)
        status = check_journal(&journal, weights);
    if (!status)
        status = journal_each_block(&journal, &weights->grid, shard_write_block, &open->writer);
    if (!status)
        status = finish(open);
    *ret_recovered = !status;
    weights_free(weights);
    journal_release(&journal);
    return status;
}

/* Files may be reached by themselves and through their directory. A journal that was begun the
 * other way cannot be finished from here, and nothing may be changed under it. */
static enum ulp_status recover(const char *path, struct open_model *open, bool *ret_recovered) {
    enum ulp_status status = finish_journal(open, ret_recovered);

    return status ? status : model_refuse_interrupted(path, open->model);
}

enum ulp_status model_recover(const char *path, int *ret_recovered) {
    struct open_model open = {0};
    bool recovered = false;
    enum ulp_status status = open_for_writing(path, &open);

    if (!status)
        status = recover(path, &open, &recovered);
    close_model(&open);
    if (!status)
        *ret_recovered = recovered;
    return status;
}

/* ---- applying ---- */

enum ulp_status model_prepare(const struct ulp_model *model, const struct ulp_patch *const *patches,
                              size_t count, const struct ulp_model *history,
                              const struct ulp_apply_options *options,
                              struct ulp_weights **ret_weights, struct ulp_apply **ret_apply) {
    struct ulp_pool *pool = options ? options->pool : NULL;
    const struct ulp_progress *progress = options ? options->progress : NULL;
    enum ulp_status status = weights_new(model->tensors, model->count, pool, progress, ret_weights);

    if (!status && history)
        status = weights_remember_in(*ret_weights, history->tensors, history->count,
                                     apply_room(options), pool, progress);
    return status ? status : apply_prepare(*ret_weights, patches, count, NULL, options, ret_apply);
}

/* Once the journal is there, there is no way back, only forward. */
static enum ulp_status say_how_to_go_on(enum ulp_status status) {
    return fail(status,
                "%s; what was begun is kept in a journal: run `ulpsync recover` on the model",
                ulp_last_error());
}

/* Who put another file in the place of one meanwhile would not see what is written, and a journal
 * beside that file would keep others from reading it. */
static enum ulp_status check_names(const struct open_model *open) {
    for (size_t i = 0; i < open->model->shard_count; i++) {
        if (!file_still_named(open->files[i] - 1, open->model->shards[i].path))
            return fail(ULP_E_FILE_CHANGED, "%s was replaced while it was being read",
                        quote(open->model->shards[i].path).text);
    }
    return ULP_OK;
}

static enum ulp_status write_in_place(struct open_model *open, const struct ulp_apply *apply) {
    enum ulp_status status = journal_write(open->journal, apply);

    if (status)
        return status;
    status = apply_each_block(apply, shard_write_block, &open->writer);
    if (!status)
        status = finish(open);
    return status ? say_how_to_go_on(status) : ULP_OK;
}

enum ulp_status model_patch_in_place(const char *path, const struct ulp_patch *patch,
                                     const struct ulp_model *history,
                                     const struct ulp_apply_options *options,
                                     struct ulp_apply_report *ret_report) {
    struct open_model open = {0};
    struct ulp_weights *weights = NULL;
    struct ulp_apply *apply = NULL;
    uint64_t started;
    bool recovered;
    enum ulp_status status;

    if (!patch->table.grid.whole) /* the journal speaks of blocks of whole tensors */
        return fail(ULP_E_REGIONS,
                    "%s covers only regions; files are patched in place by whole patches",
                    quote(patch->name).text);
    status = open_for_writing(path, &open);
    if (!status)
        status = recover(path, &open, &recovered);
    if (!status)
        status = model_prepare(open.model, &patch, 1, history, options, &weights, &apply);
    if (!status)
        status = check_names(&open);
    started = clock_monotonic_ns();
    if (!status && !apply->already)
        status = write_in_place(&open, apply);
    if (!status && ret_report) {
        *ret_report = apply->report;
        ret_report->write_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    }
    apply_free(apply);
    weights_free(weights);
    close_model(&open);
    return status;
}
