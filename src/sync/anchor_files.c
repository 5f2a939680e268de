// SPDX-License-Identifier: Apache-2.0
#include "sync/anchor_files.h"

#include "base/clock.h"
#include "base/endian.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "patch/model_files.h"
#include "sync/anchor_shard.h"
#include "sync/parts.h"
#include "tensor/model.h"
#include "tensor/tensor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum ulp_status anchor_path(const char *directory, const char *name, char *path) {
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX)
        return fail(ULP_E_NAME, "the path of %s is too long", quote(name).text);
    return ULP_OK;
}

static bool is_plain(const char *directory, const char *name) {
    char path[PATH_MAX];
    struct stat info;

    return name[0] != '.' && !anchor_path(directory, name, path) && !stat(path, &info) &&
           S_ISREG(info.st_mode);
}

enum ulp_status file_names_list(const char *path, struct arena *arena,
                                struct file_names *ret_names) {
    struct file_names names = {0};
    DIR *directory = opendir(path);
    struct dirent *entry;
    enum ulp_status status;

    if (!directory)
        return fail_errno("list", path);
    status = arena_zeroed(arena, LIMIT_ANCHOR_FILES, sizeof *names.names, &names.names);
    while (!status && (errno = 0, entry = readdir(directory))) {
        if (!is_plain(path, entry->d_name))
            continue;
        if (names.count == LIMIT_ANCHOR_FILES)
            status = fail(ULP_E_LIMIT, "%s holds more than %u files", quote(path).text,
                          LIMIT_ANCHOR_FILES);
        else
            status = arena_text(arena, entry->d_name, strlen(entry->d_name),
                                &names.names[names.count++]);
    }
    if (!status && errno)
        status = fail_errno("list", path);
    closedir(directory);
    if (status)
        return status;
    qsort(names.names, names.count, sizeof *names.names, by_bytes);
    *ret_names = names;
    return ULP_OK;
}

/* ---- storing ---- */

/* A file of the same name and bytes that the map has already. */
static const struct part *known(const struct record *record, const char *name,
                                const struct file_map *map) {
    struct hash hash;

    if (!record || hash_of(map->data ? map->data : (const uint8_t *)"", map->bytes, &hash))
        return NULL;
    for (size_t i = 0; i < record->anchor_count; i++) {
        for (size_t k = 0; k < record->anchors[i].file_count; k++) {
            const struct anchor_file *file = &record->anchors[i].files[k];

            if (!strcmp(file->name, name) && !memcmp(&file->part.hash, &hash, sizeof hash))
                return &file->part;
        }
    }
    return NULL;
}

/* Files of weights are never the same as those of another version: it is not looked for. */
#define KNOWN_BYTES_MAX ((size_t)64 << 20)

static enum ulp_status put_file(const struct work *work, const struct record *record,
                                uint64_t folder, const char *directory, struct anchor_file *file) {
    struct file_map map = {0};
    const struct part *part = NULL;
    char path[PATH_MAX];
    enum ulp_status status = anchor_path(directory, file->name, path);

    if (!status)
        status = file_map_open(path, FILE_FOLLOW_LINKS, &map);
    if (!status && map.bytes <= KNOWN_BYTES_MAX)
        part = known(record, file->name, &map);
    if (!status && part) {
        file->part = *part;
    } else if (!status) {
        const struct piece piece = {map.data ? map.data : (const uint8_t *)"", map.bytes};

        status = part_put(work->store, work->run, folder, &piece, 1, &file->part);
        work->report->stored_bytes += map.bytes;
        work->report->stored_objects++;
    }
    file_map_release(&map);
    return status;
}

static bool is_weights(const char *name) {
    static const char index[] = ".safetensors.index.json";
    const size_t length = strlen(name), tail = sizeof index - 1;

    return holds_tensors(name) || (length >= tail && !strcmp(name + length - tail, index));
}

enum ulp_status anchor_files_put(const struct work *work, const struct record *record,
                                 uint64_t folder, const char *directory, struct arena *arena,
                                 struct anchor *anchor) {
    struct file_names names = {0};
    struct anchor_file *files = NULL;
    size_t count = 0;
    enum ulp_status status = file_names_list(directory, arena, &names);

    if (!status)
        status = arena_zeroed(arena, names.count, sizeof *files, &files);
    for (size_t i = 0; !status && i < names.count; i++) {
        if (*anchor->reference && is_weights(names.names[i]))
            continue;
        files[count].name = names.names[i];
        status = put_file(work, record, folder, directory, &files[count++]);
    }
    anchor->files = files;
    anchor->file_count = count;
    return status;
}

/* ---- fetching ---- */

static void count_file(const struct work *work, const struct anchor_file *file) {
    work->report->fetched_bytes += file->part.bytes;
    work->report->anchor_bytes += file->part.bytes;
    work->report->fetched_objects++;
}

static enum ulp_status get_file(const struct work *work, const struct anchor_file *file,
                                const char *directory) {
    char path[PATH_MAX];
    enum ulp_status status = anchor_path(directory, file->name, path);

    if (!status)
        status = part_get_file(work->store, work->run, &file->part, path);
    if (!status)
        count_file(work, file);
    return status;
}

static enum ulp_status get_files(const struct work *work, const struct anchor *anchor,
                                 bool with_shards, const char *directory) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        if (with_shards || !holds_tensors(anchor->files[i].name))
            status = get_file(work, &anchor->files[i], directory);
    }
    work_spent(&work->report->phases.fetch_ns, started);
    return status;
}

enum ulp_status anchor_files_get(const struct work *work, const struct anchor *anchor,
                                 const char *directory) {
    return get_files(work, anchor, true, directory);
}

enum ulp_status anchor_files_get_beside(const struct work *work, const struct anchor *anchor,
                                        const char *directory) {
    return get_files(work, anchor, false, directory);
}

/* ---- copying ---- */

enum ulp_status plain_file_copy(const char *from, const char *to) {
    struct file_map map = {0};
    enum ulp_status status = file_map_open(from, FILE_FOLLOW_LINKS, &map);

    if (!status)
        status =
            file_write(to, map.data ? map.data : (const uint8_t *)"", map.bytes, ULP_COMMIT_NEW);
    file_map_release(&map);
    return status;
}

static enum ulp_status copy_directory(const char *path, const char *directory) {
    struct arena arena = {0};
    struct file_names names = {0};
    char from[PATH_MAX], to[PATH_MAX];
    enum ulp_status status = file_names_list(path, &arena, &names);

    for (size_t i = 0; !status && i < names.count; i++) {
        status = anchor_path(path, names.names[i], from);
        if (!status)
            status = anchor_path(directory, names.names[i], to);
        if (!status)
            status = plain_file_copy(from, to);
    }
    arena_release(&arena);
    return status;
}

/* A file on its own gets the name that loaders look for. */
enum ulp_status model_files_copy(const char *path, const char *directory) {
    char *from = NULL, to[PATH_MAX];
    enum ulp_status status = model_directory(path, &from);

    if (!status && from) {
        status = copy_directory(from, directory);
    } else if (!status) {
        status = anchor_path(directory, MODEL_FILE_NAME, to);
        if (!status)
            status = plain_file_copy(path, to);
    }
    mem_free(from);
    return status;
}

/* ---- references ---- */

static enum ulp_status hash_bytes(void *user, const void *data, size_t bytes) {
    return sha256_add(user, data, bytes);
}

/* Name with its NUL, then bytes in 8, then the bytes. */
static enum ulp_status hash_tensor(struct sha256 *hash, const struct ulp_tensor *tensor,
                                   const struct piece_reader *reader) {
    const struct piece piece = {tensor->data, (size_t)tensor->bytes};
    const struct ulp_sink sink = {hash_bytes, hash};
    uint8_t bytes[8];
    enum ulp_status status = sha256_add(hash, tensor->name, strlen(tensor->name) + 1);

    store_le64(bytes, tensor->bytes);
    if (!status)
        status = sha256_add(hash, bytes, sizeof bytes);
    return status ? status : piece_read(reader, &piece, &sink);
}

/* Whoever gives tensors from memory gives them in any order; here it is that of their names. */
enum ulp_status content_hash(const struct ulp_tensor *tensors, size_t count,
                             const struct piece_reader *reader, struct hash *ret_hash) {
    struct sha256 *hash = NULL;
    struct ulp_tensor *sorted = NULL;
    enum ulp_status status = mem_zeroed(count, sizeof *sorted, &sorted);

    if (!status && count) {
        memcpy(sorted, tensors, count * sizeof *sorted);
        status = tensor_sort("the state", sorted, count);
    }
    if (!status)
        status = sha256_begin(&hash);
    for (size_t i = 0; !status && i < count; i++)
        status = hash_tensor(hash, &sorted[i], reader);
    if (!status)
        status = sha256_end(hash, ret_hash->bytes);
    sha256_free(hash);
    mem_free(sorted);
    return status;
}
