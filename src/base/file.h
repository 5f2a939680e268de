// SPDX-License-Identifier: Apache-2.0
/*
 * Files: mapped or read whole, and written so that a name only ever shows complete contents.
 * Only plain files are opened; a FIFO or device is refused without blocking on it.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ulpsync/model.h>

/* Whether the last part of a path may be a symlink. Users' models are often links into a cache;
 * what a store holds never is. */
enum file_links { FILE_FOLLOW_LINKS, FILE_REFUSE_LINKS };

/* A read-only mapping. Zeroed means none. An empty file has no data. */
struct file_map {
    const uint8_t *data;
    size_t bytes;
    int file; /* descriptor + 1, so that zero means closed; open only where it was asked for */
};

enum ulp_status file_map_open(const char *path, enum file_links links, struct file_map *ret_map);

/* The same, with the file kept open, so that it can be locked and told from another of its name. */
enum ulp_status file_map_open_kept(const char *path, enum file_links links,
                                   struct file_map *ret_map);

/* Whoever reads shares the lock; who changes a file in place has it alone. ULP_E_BUSY at once if
 * that cannot be. Where the file system knows no locks, there are none. The lock goes with the
 * map. */
enum file_lock { FILE_LOCK_SHARED, FILE_LOCK_ALONE };
enum ulp_status file_map_lock(const struct file_map *map, enum file_lock lock, const char *path);
void file_map_release(struct file_map *map);

/* Whether `path` is still the name of this open file, and not of another or of a link to it. */
bool file_still_named(int file, const char *path);

/* Appends the whole file to `into`, whose maximum is the limit. */
enum ulp_status file_read(const char *path, enum file_links links, struct buffer *into);

/*
 * A file under construction. It has no name, or a hidden one in the target's directory, until the
 * commit, which syncs the file, gives it its name and syncs the directory. Zeroed means none.
 */
struct file_writer {
    int directory, file; /* descriptors + 1, so that zero means closed */
    char *path;          /* for messages */
    char *name;          /* in the directory */
    char temporary[48];  /* "" while it has no name */
};

/* For tests, before any other thread runs: as on a file system that has no files without a name. */
void file_writer_always_named(bool named);

/* The file starts with `bytes` zero bytes. */
enum ulp_status file_writer_open(const char *path, uint64_t bytes, struct file_writer *ret_writer);

/* The same for `name` in an open directory, which stays the caller's. `path` is for messages. */
enum ulp_status file_writer_open_in(int directory, const char *name, const char *path,
                                    struct file_writer *ret_writer);

/* Writes all of it to an open file. `path` is for messages. */
enum ulp_status file_put(int file, const char *path, uint64_t offset, const void *data,
                         uint64_t bytes);

/* Safe from several threads at once. */
enum ulp_status file_writer_put(const struct file_writer *writer, uint64_t offset, const void *data,
                                uint64_t bytes);

/* Lets it begin with the blocks of an open file, `bytes` bytes, and share them until one of the two
 * is written to. False where the file systems cannot (it is for XFS, btrfs and such): to be copied
 * then. */
bool file_writer_clone(const struct file_writer *writer, int from, uint64_t bytes);

/* Gives it the permissions of an open file. */
enum ulp_status file_writer_permissions(const struct file_writer *writer, int like);
enum ulp_status file_writer_commit(struct file_writer *writer, enum ulp_commit commit);

/* Without a commit before, nothing of the file is left. */
void file_writer_release(struct file_writer *writer);

/* ULP_E_EXISTS if something, be it a link to nowhere, has this name: said before work is done for
 * it. */
enum ulp_status file_name_is_free(const char *path);

/* Makes the last directory of `path`, to last; one that exists already is fine. */
enum ulp_status file_make_directory(const char *path);

/* fsync() of an open directory; 0, or -1 and errno. */
int file_sync_directory(int directory);

/* Makes what happened to the name `path` last. */
enum ulp_status file_sync_parent(const char *path);

/* Removes a file, to last. */
enum ulp_status file_remove(const char *path);

/* Removes a file of a directory if it is there. Takes no memory, so that cleaning up after a failed
 * allocation works. */
void file_remove_in(const char *directory, const char *name);

/* A file that never has a name, to be read and written: it vanishes with the process, however that
 * ends. `directory` NULL or "": TMPDIR, or /tmp. */
enum ulp_status file_nameless(const char *directory, int *ret_file);

/* The directory that this means. */
const char *file_nameless_directory(const char *asked);

/* Opens, puts and commits in one go. */
enum ulp_status file_write(const char *path, const void *data, size_t bytes,
                           enum ulp_commit commit);

/* The same for a secret: a new file, which from the beginning nobody but its owner can open. */
enum ulp_status file_write_private(const char *path, const void *data, size_t bytes);

/* Reads such a file whole into the caller's memory and nowhere else; all `room` bytes are zeroed on
 * failure. A link is refused, and so is what group or others have any right to (ULP_E_PERMISSION),
 * since then it is no secret. */
enum ulp_status file_read_private(const char *path, void *data, size_t room, size_t *ret_bytes);

#endif
