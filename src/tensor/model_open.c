// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "tensor/model.h"
#include "tensor/shard_index.h"
#include "tensor/tensor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Names of the files in a directory that end in ".safetensors", by name. */
struct file_names {
    char **items;
    size_t count, room;
};

static void file_names_release(struct file_names *names) {
    for (size_t i = 0; i < names->count; i++)
        mem_free(names->items[i]);
    mem_free(names->items);
    *names = (struct file_names){0};
}

enum ulp_status model_path_join(const char *directory, const char *name, char **ret_path) {
    size_t bytes = strlen(directory) + strlen(name) + 2;
    char *path = NULL;
    enum ulp_status status = mem_zeroed(bytes, 1, &path);

    if (status)
        return status;
    snprintf(path, bytes, "%s/%s", directory, name);
    *ret_path = path;
    return ULP_OK;
}

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);

    return length >= tail && !strcmp(text + length - tail, suffix);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Hidden files are not part of a model: they may be half-written. */
static bool is_shard_name(const char *name) {
    return name[0] != '.' && ends_with(name, ".safetensors");
}

static enum ulp_status list_shards(const char *directory, struct file_names *names) {
    struct dirent *entry;
    enum ulp_status status = ULP_OK;
    DIR *open_directory = opendir(directory);

    if (!open_directory)
        return fail_errno("open directory", directory);
    while (!status && (errno = 0, entry = readdir(open_directory))) {
        if (!is_shard_name(entry->d_name))
            continue;
        if (names->count == LIMIT_SHARDS)
            status = fail(ULP_E_LIMIT, "%s holds more than %u safetensors files",
                          quote(directory).text, LIMIT_SHARDS);
        if (!status)
            status = mem_grow(&names->items, names->count, sizeof *names->items, &names->room);
        if (!status)
            status = mem_copy_text(entry->d_name, &names->items[names->count]);
        if (!status)
            names->count++;
    }
    if (!status && errno)
        status = fail_errno("list directory", directory);
    closedir(open_directory);
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, by_text);
    return status;
}

static enum ulp_status open_shards(struct ulp_model *model, const char *directory,
                                   const char *const *files, size_t count) {
    enum ulp_status status = mem_zeroed(count, sizeof *model->shards, &model->shards);

    for (size_t i = 0; !status && i < count; i++) {
        char *path = NULL;

        status = model_path_join(directory, files[i], &path);
        if (!status)
            status = shard_open(path, &model->shards[i]);
        if (!status)
            model->shard_count++;
        mem_free(path);
    }
    return status;
}

/* The index must name every tensor of its files, each in the file that holds it. */
static enum ulp_status check_index(const char *what, const struct shard_index *index,
                                   const struct ulp_model *model) {
    size_t held = 0;

    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        const char **file =
            bsearch(&entry->file, index->files, index->file_count, sizeof *index->files, by_text);
        const struct shard *shard = &model->shards[file - index->files];

        if (!tensor_find(shard->tensors, shard->count, entry->tensor))
            return fail(ULP_E_SHARDS, "%s says that tensor %s is in %s, but it is not",
                        quote(what).text, quote(entry->tensor).text, quote(entry->file).text);
    }
    for (size_t i = 0; i < model->shard_count; i++)
        held += model->shards[i].count;
    if (held != index->count)
        return fail(ULP_E_SHARDS, "%s names %zu tensors, but its files hold %zu", quote(what).text,
                    index->count, held);
    return ULP_OK;
}

static enum ulp_status open_by_index(struct ulp_model *model, const char *directory,
                                     const char *index_path) {
    struct buffer text = BUFFER(LIMIT_INDEX_BYTES);
    struct shard_index index = {0};
    enum ulp_status status = file_read(index_path, FILE_FOLLOW_LINKS, &text);

    if (!status)
        status = shard_index_parse(index_path, text.data, text.used, &index);
    if (!status)
        status = open_shards(model, directory, index.files, index.file_count);
    if (!status)
        status = check_index(index_path, &index, model);
    shard_index_release(&index);
    buffer_release(&text);
    return status;
}

/* "model-00002-of-00005.safetensors" is one of 5; other names are one of 1. */
static unsigned long announced_shards(const char *name) {
    const char *of = strstr(name, "-of-");
    unsigned long count = of ? strtoul(of + 4, NULL, 10) : 0;

    return count ? count : 1;
}

/* Without an index, what is there may be the first files of a model that is still being written. */
static enum ulp_status check_complete(const char *directory, const struct file_names *names) {
    for (size_t i = 0; i < names->count; i++) {
        unsigned long announced = announced_shards(names->items[i]);

        if (announced > names->count)
            return fail(ULP_E_SHARDS, "%s: %s is one of %lu files, but there are %zu and no index",
                        quote(directory).text, quote(names->items[i]).text, announced,
                        names->count);
    }
    return ULP_OK;
}

static enum ulp_status open_all(struct ulp_model *model, const char *directory) {
    struct file_names names = {0};
    enum ulp_status status = list_shards(directory, &names);

    if (!status && !names.count)
        status = fail(ULP_E_NO_MODEL, "%s holds no safetensors file", quote(directory).text);
    if (!status)
        status = check_complete(directory, &names);
    if (!status)
        status = open_shards(model, directory, (const char *const *)names.items, names.count);
    file_names_release(&names);
    return status;
}

/* A link that leads nowhere exists too: to pass it over would open another model than was meant. */
static bool exists(const char *path) {
    struct stat info;

    return !lstat(path, &info);
}

static enum ulp_status open_directory(struct ulp_model *model, const char *directory) {
    static const char *const single[] = {MODEL_FILE_NAME};
    char *index_path = NULL, *file_path = NULL;
    enum ulp_status status = model_path_join(directory, MODEL_INDEX_NAME, &index_path);

    if (!status)
        status = model_path_join(directory, MODEL_FILE_NAME, &file_path);
    if (status)
        goto out;
    if (exists(index_path))
        status = open_by_index(model, directory, index_path);
    else if (exists(file_path))
        status = open_shards(model, directory, single, 1);
    else
        status = open_all(model, directory);
out:
    mem_free(index_path);
    mem_free(file_path);
    return status;
}

static enum ulp_status open_file(struct ulp_model *model, const char *path) {
    enum ulp_status status = mem_zeroed(1, sizeof *model->shards, &model->shards);

    if (!status)
        status = shard_open(path, &model->shards[0]);
    if (!status)
        model->shard_count = 1;
    return status;
}

static enum ulp_status open_index_file(struct ulp_model *model, const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory = NULL;
    enum ulp_status status = mem_copy_text(slash ? path : ".", &directory);

    if (status)
        return status;
    if (slash)
        directory[slash > path ? slash - path : 1] = 0;
    status = open_by_index(model, directory, path);
    mem_free(directory);
    return status;
}

static const char *shard_holding(const struct ulp_model *model, const char *name, size_t skip) {
    for (size_t i = 0; i < model->shard_count; i++) {
        if (tensor_find(model->shards[i].tensors, model->shards[i].count, name) && skip-- == 0)
            return model->shards[i].path;
    }
    return "";
}

/* One sorted array over all shards; a tensor that two of them hold has no single value. */
static enum ulp_status merge(struct ulp_model *model, const char *what) {
    size_t total = 0, at = 0;
    enum ulp_status status;

    for (size_t i = 0; i < model->shard_count; i++)
        total += model->shards[i].count;
    if (total > LIMIT_TENSORS)
        return fail(ULP_E_LIMIT, "%s: more than %u tensors", quote(what).text, LIMIT_TENSORS);
    status = mem_zeroed(total, sizeof *model->tensors, &model->tensors);
    if (status)
        return status;
    model->count = total;
    for (size_t i = 0; i < model->shard_count; i++) {
        for (size_t k = 0; k < model->shards[i].count; k++)
            model->tensors[at++] = model->shards[i].tensors[k];
    }
    tensor_sort(what, model->tensors, total); /* the message below says more */
    for (size_t i = 0; i < total; i++) {
        const char *name = model->tensors[i].name;

        if (i && !strcmp(model->tensors[i - 1].name, name))
            return fail(ULP_E_DUPLICATE,
                        "tensor %s is both in %s and in %s; name one file instead of the directory",
                        quote(name).text, quote(shard_holding(model, name, 0)).text,
                        quote(shard_holding(model, name, 1)).text);
        model->bytes += model->tensors[i].bytes;
    }
    return ULP_OK;
}

/* ---- changes in place that were interrupted ---- */

static size_t directory_length(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* DIRECTORY/.ulpsync-journal, or DIRECTORY/.FILE.ulpsync-journal for a file on its own. */
static enum ulp_status journal_path(const char *path, bool of_file, char **ret_path) {
    const size_t length = directory_length(path);
    struct buffer text = BUFFER(PATH_MAX + 64);
    enum ulp_status status = buffer_append(&text, path, length);

    if (!status && of_file)
        status = buffer_append_text(&text, ".");
    if (!status && of_file)
        status = buffer_append_text(&text, path + length);
    if (!status)
        status = buffer_append_text(&text, MODEL_JOURNAL_NAME);
    if (!status)
        status = mem_copy_text(buffer_text(&text), ret_path);
    buffer_release(&text);
    return status;
}

enum ulp_status model_journal_path(const char *path, char **ret_path) {
    struct stat info;

    if (stat(path, &info))
        return fail_errno("open", path);
    if (S_ISDIR(info.st_mode))
        return model_path_join(path, MODEL_JOURNAL_NAME, ret_path);
    return journal_path(path, !ends_with(path, ".index.json"), ret_path);
}

/* What the journal of `file`, or of the directory that it is in, was begun with: only that finishes
 * it. */
static enum ulp_status owner_of_journal(const char *file, bool of_file, char **ret_owner) {
    size_t length = directory_length(file);
    enum ulp_status status = mem_copy_text(of_file || length ? file : ".", ret_owner);

    if (!status && !of_file && length)
        (*ret_owner)[length > 1 ? length - 1 : 1] = 0; /* "/" keeps its slash */
    return status;
}

static enum ulp_status refuse_journal(const char *path, const char *file, bool of_file) {
    char *journal = NULL, *owner = NULL;
    enum ulp_status status = journal_path(file, of_file, &journal);

    if (!status && exists(journal)) {
        status = owner_of_journal(file, of_file, &owner);
        if (!status)
            status = fail(ULP_E_INTERRUPTED,
                          "%s is being changed, or was when that was interrupted: %s is there. Run "
                          "`ulpsync recover` on %s",
                          quote(path).text, quote(journal).text, quote(owner).text);
    }
    mem_free(owner);
    mem_free(journal);
    return status;
}

/* A file may be changed by itself, or with the directory that it is in: the one that holds it,
 * wherever a link to it stands. */
enum ulp_status model_refuse_interrupted(const char *path, const struct ulp_model *model) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < model->shard_count; i++) {
        const char *file = model->shards[i].path;
        char real[PATH_MAX];

        if (realpath(file, real))
            file = real;
        status = refuse_journal(path, file, true);
        if (!status)
            status = refuse_journal(path, file, false);
    }
    return status;
}

enum ulp_status model_open_interrupted(const char *path, struct ulp_model **ret_model) {
    struct ulp_model *model = NULL;
    struct stat info;
    enum ulp_status status;

    if (stat(path, &info))
        return fail_errno("open", path);
    status = mem_zeroed(1, sizeof *model, &model);
    if (status)
        return status;
    if (S_ISDIR(info.st_mode))
        status = open_directory(model, path);
    else if (ends_with(path, ".index.json"))
        status = open_index_file(model, path);
    else
        status = open_file(model, path);
    if (!status)
        status = merge(model, path);
    if (status) {
        model_free(model);
        return status;
    }
    log_message(ULP_LOG_INFO, "opened %s: %zu tensors, %llu bytes in %zu files", quote(path).text,
                model->count, (unsigned long long)model->bytes, model->shard_count);
    *ret_model = model;
    return ULP_OK;
}

enum ulp_status model_open(const char *path, struct ulp_model **ret_model) {
    struct ulp_model *model = NULL;
    enum ulp_status status = model_open_interrupted(path, &model);

    for (size_t i = 0; !status && i < model->shard_count; i++)
        status = file_map_lock(&model->shards[i].map, FILE_LOCK_SHARED, model->shards[i].path);
    if (!status)
        status = model_refuse_interrupted(path, model);
    if (status) {
        model_free(model);
        return status;
    }
    *ret_model = model;
    return ULP_OK;
}

void model_free(struct ulp_model *model) {
    if (!model)
        return;
    for (size_t i = 0; i < model->shard_count; i++)
        shard_release(&model->shards[i]);
    mem_free(model->shards);
    mem_free(model->tensors);
    mem_free(model);
}

enum ulp_status model_directory_is_free(const char *directory) {
    struct file_names names = {0};
    char *index_path = NULL;
    enum ulp_status status = list_shards(directory, &names);

    if (!status)
        status = model_path_join(directory, MODEL_INDEX_NAME, &index_path);
    if (!status && (names.count || exists(index_path)))
        status = fail(ULP_E_EXISTS, "%s holds a model already; choose an empty directory",
                      quote(directory).text);
    mem_free(index_path);
    file_names_release(&names);
    return status;
}
