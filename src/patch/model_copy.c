// SPDX-License-Identifier: Apache-2.0
/* A patched copy of a model: made under another name, then put into place. */
#define _GNU_SOURCE /* renameat2, flock */
#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/model_files.h"
#include "patch/place.h"
#include "patch/shard_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct copier {
    struct ulp_model *model;
    struct ulp_weights *weights;
    struct ulp_apply *apply;
    struct tensor_place *places;
    struct shard_writer writer;
    struct file_writer file; /* being written: shard number `shard` */
    size_t shard;
    const struct ulp_progress *progress; /* in bytes */
    uint64_t done, total;
};

/* So many bytes are copied between two reports. */
#define COPY_PIECE_BYTES ((size_t)64 << 20)

static enum ulp_status copy_bytes(struct copier *copier, const struct file_map *map) {
    const bool cloned = file_writer_clone(&copier->file, map->file - 1, map->bytes);
    const size_t piece = cloned ? map->bytes : COPY_PIECE_BYTES;
    enum ulp_status status = ULP_OK;

    for (size_t at = 0; !status && at < map->bytes; at += piece) {
        size_t left = map->bytes - at, bytes = left < piece ? left : piece;

        if (!cloned)
            status = file_writer_put(&copier->file, at, map->data + at, bytes);
        copier->done += bytes;
        if (!status && copier->progress &&
            copier->progress->report(copier->progress->user, copier->done, copier->total))
            status = fail(ULP_E_CANCELLED, "stopped while copying; nothing of the copy is left");
    }
    return status;
}

static enum ulp_status put_in_copy(void *user, size_t shard, uint64_t offset, const void *data,
                                   size_t bytes) {
    const struct copier *copier = user;

    (void)shard; /* the one that is being written: see below */
    return file_writer_put(&copier->file, offset, data, bytes);
}

/* One file is written at a time, so blocks of the other shards wait for their turn. */
static enum ulp_status patch_this_shard(void *user, const struct staged_block *staged) {
    struct copier *copier = user;
    const struct grid_region *region = piece_region(staged->block.grid, staged->block.piece);

    if (copier->places[region->tensor].shard != copier->shard)
        return ULP_OK;
    return shard_write_block(&copier->writer, staged);
}

static enum ulp_status copy_shard(struct copier *copier, size_t shard, const char *to) {
    const struct file_map *map = &copier->model->shards[shard].map;
    enum ulp_status status = file_writer_open(to, map->bytes, &copier->file);

    copier->shard = shard;
    if (!status)
        status = copy_bytes(copier, map);
    if (!status)
        status = apply_each_block(copier->apply, patch_this_shard, copier);
    if (!status)
        status = file_writer_permissions(&copier->file, map->file - 1);
    if (!status)
        status = file_writer_commit(&copier->file, ULP_COMMIT_NEW);
    file_writer_release(&copier->file);
    return status;
}

static enum ulp_status copy_plain(const char *from, const char *to) {
    struct file_map map = {0};
    struct file_writer file = {0};
    enum ulp_status status = file_map_open_kept(from, FILE_FOLLOW_LINKS, &map);

    if (!status)
        status = file_writer_open(to, map.bytes, &file);
    if (!status && !file_writer_clone(&file, map.file - 1, map.bytes))
        status = file_writer_put(&file, 0, map.data, map.bytes);
    if (!status)
        status = file_writer_permissions(&file, map.file - 1);
    if (!status)
        status = file_writer_commit(&file, ULP_COMMIT_NEW);
    file_writer_release(&file);
    file_map_release(&map);
    return status;
}

/* ---- a directory ---- */

static size_t shard_named(const struct ulp_model *model, const char *name) {
    for (size_t i = 0; i < model->shard_count; i++) {
        const char *slash = strrchr(model->shards[i].path, '/');

        if (!strcmp(slash ? slash + 1 : model->shards[i].path, name))
            return i;
    }
    return model->shard_count;
}

/* What lies beside the weights belongs to the model: configuration, tokenizer. Hidden files and
 * directories do not. */
static enum ulp_status copy_entry(struct copier *copier, const char *from, const char *to,
                                  const char *name) {
    char *source = NULL, *target = NULL;
    size_t shard = shard_named(copier->model, name);
    struct stat info;
    enum ulp_status status = model_path_join(from, name, &source);

    if (!status)
        status = model_path_join(to, name, &target);
    if (!status && shard < copier->model->shard_count)
        status = copy_shard(copier, shard, target);
    else if (!status && name[0] != '.' && !stat(source, &info) && S_ISREG(info.st_mode))
        status = copy_plain(source, target);
    mem_free(source);
    mem_free(target);
    return status;
}

static enum ulp_status copy_entries(struct copier *copier, const char *from, const char *to) {
    DIR *directory = opendir(from);
    struct dirent *entry;
    enum ulp_status status = ULP_OK;

    if (!directory)
        return fail_errno("list", from);
    while (!status && (errno = 0, entry = readdir(directory)))
        status = copy_entry(copier, from, to, entry->d_name);
    if (!status && errno)
        status = fail_errno("list", from);
    closedir(directory);
    return status;
}

/* Only what copy_entries() makes is in it: plain files. */
static void empty_directory(int descriptor) {
    int again = dup(descriptor);
    DIR *directory = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;

    if (directory)
        rewinddir(directory); /* the two descriptors share their place */
    while (directory && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(descriptor, entry->d_name, 0);
    }
    if (directory)
        closedir(directory);
    else if (again >= 0)
        close(again);
}

/* The hidden directory, empty and locked as long as it is open. What an interrupted copy left in it
 * goes; one that is still being filled by another process, or has just been put into place by it,
 * does not. */
static enum ulp_status claim_directory(const char *path, int *ret_directory) {
    int directory;

    if (mkdir(path, 0777) && errno != EEXIST)
        return fail_errno("make directory", path);
    directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 && (errno == ENOTDIR || errno == ELOOP))
        return fail(ULP_E_FILE_KIND, "%s is in the way; remove it", quote(path).text);
    if (directory < 0)
        return fail_errno("open directory", path);
    if (flock(directory, LOCK_EX | LOCK_NB) || !file_still_named(directory, path)) {
        close(directory);
        return fail(ULP_E_BUSY, "%s is being written by another process", quote(path).text);
    }
    empty_directory(directory);
    *ret_directory = directory;
    return ULP_OK;
}

/* PATH without slashes at its end, and the hidden name beside it. */
static enum ulp_status name_unfinished(const char *path, char **ret_path, char **ret_unfinished) {
    struct buffer text = BUFFER(PATH_MAX + 64);
    const char *slash;
    char *clean = NULL;
    size_t length;
    enum ulp_status status = mem_copy_text(path, &clean);

    if (status)
        return status;
    for (length = strlen(clean); length > 1 && clean[length - 1] == '/'; length--)
        clean[length - 1] = 0;
    slash = strrchr(clean, '/');
    length = slash ? (size_t)(slash - clean) + 1 : 0;
    status = buffer_append(&text, clean, length);
    if (!status)
        status = buffer_append_text(&text, ".");
    if (!status)
        status = buffer_append_text(&text, clean + length);
    if (!status)
        status = buffer_append_text(&text, ".ulpsync-unfinished");
    if (!status)
        status = mem_copy_text(buffer_text(&text), ret_unfinished);
    buffer_release(&text);
    if (status)
        mem_free(clean);
    else
        *ret_path = clean;
    return status;
}

/* Not every file system can refuse to replace; there, rename() replaces nothing but an empty
 * directory. */
static int rename_to_free_name(const char *from, const char *to) {
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    return errno == EINVAL || errno == ENOSYS ? rename(from, to) : -1;
}

static enum ulp_status copy_directory(struct copier *copier, const char *from, const char *out) {
    char *path = NULL, *unfinished = NULL;
    int directory = -1;
    enum ulp_status status = name_unfinished(out, &path, &unfinished);

    if (!status)
        status = claim_directory(unfinished, &directory);
    if (!status) {
        status = copy_entries(copier, from, unfinished);
        if (!status && rename_to_free_name(unfinished, path))
            status = fail_errno("put into place", path);
        if (!status)
            status = file_sync_parent(path);
        if (status && file_still_named(directory, unfinished)) {
            empty_directory(directory);
            rmdir(unfinished);
        }
        close(directory);
    }
    mem_free(path);
    mem_free(unfinished);
    return status;
}

/* ---- either ---- */

static enum ulp_status prepare(struct copier *copier, const char *path,
                               const struct ulp_patch *const *patches, size_t count,
                               const struct ulp_model *history,
                               const struct ulp_apply_options *options) {
    enum ulp_status status = model_open(path, &copier->model);

    if (!status)
        status = model_prepare(copier->model, patches, count, history, options, &copier->weights,
                               &copier->apply);
    if (!status)
        status = tensor_places(copier->model, &copier->places);
    if (!status)
        status = mem_zeroed(PLACE_BYTES, 1, &copier->writer.block);
    copier->progress = options ? options->progress : NULL;
    for (size_t i = 0; copier->model && i < copier->model->shard_count; i++)
        copier->total += copier->model->shards[i].map.bytes;
    copier->writer.model = copier->model;
    copier->writer.places = copier->places;
    copier->writer.put = put_in_copy;
    copier->writer.user = copier;
    return status;
}

enum ulp_status model_directory(const char *path, char **ret_directory) {
    static const char index_end[] = ".index.json";
    const size_t length = strlen(path), end = sizeof index_end - 1;
    struct stat info;
    char *directory = NULL, *slash;
    enum ulp_status status;

    if (stat(path, &info))
        return fail_errno("open", path);
    if (!S_ISDIR(info.st_mode) && (length < end || strcmp(path + length - end, index_end) != 0))
        return ULP_OK;
    status = mem_copy_text(path, &directory);
    if (status || S_ISDIR(info.st_mode)) {
        *ret_directory = directory;
        return status;
    }
    slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    else
        memcpy(directory, ".", 2); /* an index has a longer name */
    *ret_directory = directory;
    return ULP_OK;
}

enum ulp_status model_patch(const char *path, const struct ulp_patch *const *patches, size_t count,
                            const struct ulp_model *history, const char *out,
                            const struct ulp_apply_options *options,
                            struct ulp_apply_report *ret_report) {
    struct copier copier = {0};
    char *directory = NULL;
    uint64_t started;
    enum ulp_status status = file_name_is_free(out);

    if (!status)
        status = model_directory(path, &directory);
    if (!status)
        status = prepare(&copier, path, patches, count, history, options);
    started = clock_monotonic_ns();
    if (!status)
        status = directory ? copy_directory(&copier, directory, out) : copy_shard(&copier, 0, out);
    if (!status && ret_report) {
        *ret_report = copier.apply->report;
        ret_report->write_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    }
    apply_free(copier.apply);
    weights_free(copier.weights);
    mem_free(copier.places);
    mem_free(copier.writer.block);
    model_free(copier.model);
    mem_free(directory);
    return status;
}
