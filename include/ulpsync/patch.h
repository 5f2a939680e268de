// SPDX-License-Identifier: Apache-2.0
/*
 * Patches: the changes from one state to the next, as few bytes, applied all or nothing.
 *
 *     struct ulp_weights *weights = NULL;         the trainer's last published state, in memory
 *     ulp_weights_new(tensors, count, pool, NULL, &weights);
 *     ulp_diff_file(weights, new_tensors, count, NULL, "step-2.ulp", ULP_COMMIT_NEW, NULL);
 *
 *     struct ulp_patch *patch = NULL;             a worker, with the same weights
 *     ulp_patch_open("step-2.ulp", &patch);
 *     ulp_apply(weights, patch, NULL, NULL);
 *
 * A patch names the root of the state that it starts from and of the one that it leads to. Nothing
 * is written unless every byte of the patch was verified and the result has the root that is named.
 *
 * Threads: an opened patch may be used by any number of them. On one handle of weights, calls that
 * only read may run at the same time: ulp_diff(), ulp_squash(), ulp_apply_prepare() and
 * ulp_apply_prepare_parts(), ulp_patch_inspect(), ulp_weights_root(), ulp_weights_remembers(),
 * ulp_weights_trim(), each with a pool of its own or none. While ulp_apply_commit(),
 * ulp_apply_undo(), ulp_apply(), ulp_weights_remember(), ulp_weights_forget() or ulp_weights_free()
 * runs, nothing else may use the handle, nor read the memory that a commit or undo writes. Several
 * patches may be prepared from one state; when one has been committed, the others are stale, and
 * committing them fails with ULP_E_WRONG_BASE.
 *
 * Statuses: with each function stand those that say something about its input. Beside them, any
 * call may fail with ULP_E_USAGE (an argument that must not be NULL is), ULP_E_NOMEM, and, if it
 * takes a progress, ULP_E_CANCELLED; one that opens or writes files with those of the file system;
 * one with a sink or source with what that returned. Unless it says otherwise, a call that fails
 * changes nothing, and leaves what it would have returned as it was.
 */
#ifndef ULPSYNC_PATCH_H
#define ULPSYNC_PATCH_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/model.h>
#include <ulpsync/pool.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights ----------------------------------------------------------------------------- */

/*
 * Weights in memory that know their root and, if told to, how each element moved last. The memory
 * belongs to the caller and must stay; only ulp_apply_commit() and ulp_apply_undo() write to it. If
 * somebody else does, the root is no longer true: make a new handle.
 */
struct ulp_weights;

/*
 * Digests the tensors, which need different names and must not share memory (tied tensors are named
 * once); their descriptions are copied. ULP_E_DUPLICATE for one name twice, ULP_E_OVERLAP for
 * shared memory, and ULP_E_NAME, ULP_E_UTF8, ULP_E_SIZE or ULP_E_LIMIT for a description that
 * cannot be.
 */
ULP_API enum ulp_status ulp_weights_new(const struct ulp_tensor *tensors, size_t count,
                                        struct ulp_pool *pool, const struct ulp_progress *progress,
                                        struct ulp_weights **ret_weights);
ULP_API void ulp_weights_free(struct ulp_weights *weights);
ULP_API void ulp_weights_root(const struct ulp_weights *weights, struct ulp_root *ret_root);

/*
 * A part of a tensor: rows and columns of it as a matrix, whose rows run along the last extent.
 * Columns count in words of 8, 4, 2 or 1 bytes, whichever the dtype's width allows. A region must
 * start and end on 8-byte words of its tensor.
 */
struct ulp_region {
    const char *tensor;
    uint64_t row, rows;
    uint64_t column, columns;
};

/*
 * A tile: weights of which only these regions are held, sorted by tensor, row, column. All tensors
 * of the state are described, with their full shapes, and `data` is where the whole tensor would
 * begin: of its memory only the bytes within the regions are ever read or written, and the rest
 * need not be there. Tensors without a region need no `data`. Regions are copied.
 * ulp_tiling_regions() makes them.
 *
 * A tile does not give the root of its state, so `state` says it, and ulp_weights_root() repeats
 * it. That the bytes are those of that state shows when a patch is prepared: unless the sums of the
 * regions, over all that is held, are then those that the patch's maker had, it is refused.
 *
 * ulp_diff() makes the partial patch of these regions, or of those of them that its options name;
 * no data is needed of tensors that have none. ulp_apply_prepare_parts() takes patches of
 * just these regions, with the child's root. A tile remembers no history, and is not squashed.
 *
 * ULP_E_REGIONS for regions that overlap, are out of order, tear words or lie outside, and for none
 * at all: an empty tile has no weights and no patches. ULP_E_OVERLAP when regions of two tensors,
 * from first byte to last, share memory. Otherwise as ulp_weights_new().
 */
ULP_API enum ulp_status ulp_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                             const struct ulp_region *regions, size_t region_count,
                                             const struct ulp_root *state, struct ulp_pool *pool,
                                             const struct ulp_progress *progress,
                                             struct ulp_weights **ret_weights);

/* Working memory, a few tens of MiB for each thread, is kept from call to call; this lets go of
 * it. */
ULP_API void ulp_weights_trim(struct ulp_weights *weights);

/*
 * History: how each element moved from the state before this one. Patches that are coded with it
 * are smaller, and only who remembers the same can read them. Remembering takes 8 bytes for each
 * element that moved; beyond 64 MiB they are in a temporary file (in TMPDIR, or /tmp), so memory
 * does not grow with the model: ULP_E_NO_SPACE when they do not fit. `before` are all tensors of the
 * state before, in any order. ULP_E_LAYOUT if they are others than those of the weights,
 * ULP_E_REGIONS for weights of a tile.
 */
ULP_API enum ulp_status ulp_weights_remember(struct ulp_weights *weights,
                                             const struct ulp_tensor *before, size_t count,
                                             struct ulp_pool *pool,
                                             const struct ulp_progress *progress);
ULP_API void ulp_weights_forget(struct ulp_weights *weights);

/* 1 and the root of the state before, or 0 when nothing is remembered. */
ULP_API int ulp_weights_remembers(const struct ulp_weights *weights, struct ulp_root *ret_before);

/* ---- making patches ---------------------------------------------------------------------- */

/* How the changes of a chunk are coded. */
enum ulp_coder {
    ULP_CODER_BEST = 0,    /* whichever is smallest; the others are for tools and tests */
    ULP_CODER_CONTEXT = 1, /* relative to the old weights */
    ULP_CODER_PLAIN = 2,   /* places and new values, readable without the old weights */
    ULP_CODER_DENSE = 3    /* all new values */
};

/* All zero is fine, and so is NULL where these are asked for. */
struct ulp_diff_options {
    struct ulp_pool *pool;
    const struct ulp_progress *progress; /* in chunks */
    enum ulp_coder coder;
    int history; /* use what the weights remember, if anything */

    /* A partial patch, of these regions alone: sorted by tensor, row, column; never with history.
     * Several of them are applied together, to weights in memory. Both or none of these are set. */
    const struct ulp_region *regions;
    size_t region_count;
};

struct ulp_diff_report {
    struct ulp_root parent, child; /* `child` is all zero for a partial patch */
    uint64_t elements, changed;    /* of the tensors or regions */
    uint64_t dense_bytes, patch_bytes;
    int history;           /* the patch is coded with it */
    double encode_seconds; /* of all threads together, with the comparison */
    double digest_seconds; /* of all threads together: keeping the root */
    double write_seconds;
};

/* Where bytes go, in order. A failure stops the call; `write` may leave a message with
 * ulp_fail(). */
struct ulp_sink {
    enum ulp_status (*write)(void *user, const void *data, size_t bytes);
    void *user;
};

/*
 * Writes the patch that leads from the weights to `tensors`: the same names, dtypes and shapes, in
 * any order. The same input gives the same bytes, whatever the machine and the number of threads.
 * Takes memory for a chunk of 2^24 elements per thread, not for the patch. The weights stay as they
 * are. After a failure the sink may have got a part of a patch.
 *
 * ULP_E_LAYOUT for other tensors, or a region of one that is not there; ULP_E_REGIONS for regions
 * that overlap, are out of order, tear words or lie outside, or, of a tile, are not held;
 * ULP_E_LIMIT for too many of them; ULP_E_USAGE for a coder that there is not, or regions without
 * their number or the other way around.
 */
ULP_API enum ulp_status ulp_diff(const struct ulp_weights *weights,
                                 const struct ulp_tensor *tensors, size_t count,
                                 const struct ulp_diff_options *options,
                                 const struct ulp_sink *sink, struct ulp_diff_report *ret_report);

/* The same into a file, which appears complete or not at all. With ULP_COMMIT_NEW one that is there
 * is refused with ULP_E_EXISTS before the work is done. */
ULP_API enum ulp_status ulp_diff_file(const struct ulp_weights *weights,
                                      const struct ulp_tensor *tensors, size_t count,
                                      const struct ulp_diff_options *options, const char *path,
                                      enum ulp_commit commit, struct ulp_diff_report *ret_report);

/* ---- reading patches --------------------------------------------------------------------- */

/*
 * An opened patch, its table verified. Any number of threads may use it. Opening takes memory in
 * proportion to the table, whatever that announces, and for the names of tensors, which take less
 * in the table: at most 100 MB.
 *
 * ULP_E_NOT_A_PATCH, ULP_E_VERSION, ULP_E_TRUNCATED; ULP_E_CHECKSUM for a damaged table,
 * ULP_E_TABLE, ULP_E_REGIONS and the statuses of tensor descriptions for a forged one, ULP_E_LIMIT
 * for one that is beyond what is supported.
 */
struct ulp_patch;

/* The file is mapped, not read: if it is truncated while it is open, touching the lost pages raises
 * SIGBUS, as with any mapping. Who cannot rule that out reads it and opens the memory. */
ULP_API enum ulp_status ulp_patch_open(const char *path, struct ulp_patch **ret_patch);

/* `data` must outlive the patch, and stay as it is. */
ULP_API enum ulp_status ulp_patch_open_memory(const void *data, size_t bytes,
                                              struct ulp_patch **ret_patch);

/* Fetches a range of a patch that is elsewhere; called from several threads at once. Exactly
 * `bytes` bytes, or a failure. */
struct ulp_source {
    enum ulp_status (*read)(void *user, uint64_t offset, void *data, size_t bytes);
    void *user;
    uint64_t bytes; /* of the whole patch */
};
ULP_API enum ulp_status ulp_patch_open_source(const struct ulp_source *source,
                                              struct ulp_patch **ret_patch);
ULP_API void ulp_patch_free(struct ulp_patch *patch);

struct ulp_patch_info {
    unsigned version;
    int history; /* it can only be read with the moves from `before` to `parent` */
    int partial; /* it covers regions only, and has no child: that is all zero */
    struct ulp_root parent, child, before;
    uint64_t bytes;
    uint64_t elements, changed; /* of what it covers */
    uint64_t dense_bytes;
    size_t tensors, chunks;
};
ULP_API void ulp_patch_info(const struct ulp_patch *patch, struct ulp_patch_info *ret_info);

/* The tensors that it is for, in name order, without data: as many as ulp_patch_info() says
 * (`tensors`). They live as long as the patch. */
ULP_API const struct ulp_tensor *ulp_patch_tensors(const struct ulp_patch *patch);

/*
 * Checks every chunk as far as that is possible without the weights: ULP_E_CHECKSUM, ULP_E_CODE,
 * ULP_E_TABLE. What it costs depends on the elements that a patch covers, not on its bytes alone:
 * 880 bytes can hold 2^24 equal steps, which take some 60 ms. For patches from strangers bound
 * `info.elements`, or let a progress stop the call.
 */
ULP_API enum ulp_status ulp_patch_verify(const struct ulp_patch *patch, struct ulp_pool *pool,
                                         const struct ulp_progress *progress);

/* Sizes of steps, in ulps: 1, 2, 3-4, 5-8, 9-16, ... doubling; the last bucket holds the rest. */
#define ULP_STEP_BUCKETS 17

struct ulp_tensor_report {
    uint64_t elements, changed;
    uint64_t bits;                    /* in the payloads of its blocks */
    uint64_t steps[ULP_STEP_BUCKETS]; /* by size */
    uint64_t chunks[4];               /* its chunks by coder: unchanged, context, plain, dense */
};

/*
 * What a patch holds, for each of its tensors: `ret_reports` has room for `info.tensors` of them,
 * in the order of ulp_patch_tensors(). The sizes of steps are known of context-coded chunks; of
 * others only with `base`, which is NULL or the patch's parent, remembering what it needs: else
 * ULP_E_LAYOUT, ULP_E_WRONG_BASE, ULP_E_NEEDS_HISTORY; ULP_E_REGIONS for a tile that does not hold
 * what the patch covers. The bytes fail as in ulp_patch_verify().
 */
ULP_API enum ulp_status ulp_patch_inspect(const struct ulp_patch *patch,
                                          const struct ulp_weights *base, struct ulp_pool *pool,
                                          const struct ulp_progress *progress,
                                          struct ulp_tensor_report *ret_reports);

/* The root that partial patches lead to together. ULP_E_REGIONS unless their regions tile all
 * tensors, ULP_E_LAYOUT if they are for different ones, ULP_E_WRONG_BASE if they start from
 * different states, ULP_E_LIMIT for too many regions. Only their tables are looked at: of patches
 * from ulp_patch_open_source() nothing more is fetched. */
ULP_API enum ulp_status ulp_parts_root(const struct ulp_patch *const *parts, size_t count,
                                       struct ulp_root *ret_child);

/* ---- applying ---------------------------------------------------------------------------- */

struct ulp_apply_options {
    struct ulp_pool *pool;
    const struct ulp_progress *progress; /* of preparing, in chunks */

    /* Changes are held decoded, 4 bytes and the element each. What exceeds this many bytes goes to
     * a temporary file in `spill_directory` ("" or NULL: TMPDIR, or /tmp); 0 means 64 MiB. What is
     * remembered, 8 bytes for each change, may take as much again. Where /tmp is in memory, only a
     * directory on a disk bounds it. */
    uint64_t staging_bytes;
    const char *spill_directory;

    int remember; /* afterwards the weights remember how they moved; not for partial patches */
};

struct ulp_apply_report {
    struct ulp_root parent, child;
    uint64_t changed;
    int already; /* the weights were the child already, so there was nothing to do */
    double decode_seconds, digest_seconds; /* of all threads together */
    double write_seconds;
    uint64_t staged_bytes, spilled_bytes;
};

/*
 * A patch that was decoded and verified against weights: it fits, and its result has the root that
 * it names. Nothing has been written. Keep weights, patch and pool until it is freed.
 *
 * ULP_E_LAYOUT, ULP_E_WRONG_BASE and ULP_E_NEEDS_HISTORY when the weights are others than it needs;
 * ULP_E_CHECKSUM, ULP_E_CODE and ULP_E_TABLE when its bytes are wrong; ULP_E_WRONG_RESULT when they
 * lead elsewhere; ULP_E_REGIONS for a partial patch that does not tile all tensors by itself, or
 * weights of a tile; ULP_E_NO_SPACE when the changes do not fit the spill directory.
 */
struct ulp_apply;

ULP_API enum ulp_status ulp_apply_prepare(struct ulp_weights *weights,
                                          const struct ulp_patch *patch,
                                          const struct ulp_apply_options *options,
                                          struct ulp_apply **ret_apply);

/*
 * The same for partial patches, all or none of them. `child` is the root that they must lead to; it
 * may be NULL when their regions tile all tensors. ULP_E_REGIONS for parts that overlap, or a whole
 * patch among them.
 *
 * To weights of a tile, patches are applied whose regions are just those of the tile. Verified are
 * the parent's root and, for each piece of a region, that its sum over all that is held is
 * afterwards the one that the patch names: ULP_E_WRONG_RESULT for held weights that are not those
 * of the parent, too. `child` then becomes the root as known; that the patches lead to it is for
 * the caller to know, from whoever joined all of them with ulp_parts_root(). ULP_E_REGIONS for a
 * patch of other regions, or a whole one.
 */
ULP_API enum ulp_status ulp_apply_prepare_parts(struct ulp_weights *weights,
                                                const struct ulp_patch *const *parts, size_t count,
                                                const struct ulp_root *child,
                                                const struct ulp_apply_options *options,
                                                struct ulp_apply **ret_apply);

/*
 * Writes the new values, in one go: the only moment at which the weights are neither old nor new.
 * `progress` (in blocks) hears of each block that was written, which is then done by one thread;
 * when it answers non-zero the blocks are put back, the weights are the old ones again, and the
 * call fails with ULP_E_CANCELLED. ULP_E_WRONG_BASE when the weights went elsewhere since it was
 * prepared, also when they were the child then; ULP_E_USAGE when it is committed already.
 */
ULP_API enum ulp_status ulp_apply_commit(struct ulp_apply *apply,
                                         const struct ulp_progress *progress,
                                         struct ulp_apply_report *ret_report);

/* Puts the old values back after a commit. ULP_E_USAGE without one, ULP_E_WRONG_BASE when the
 * weights went elsewhere since. */
ULP_API enum ulp_status ulp_apply_undo(struct ulp_apply *apply);
ULP_API void ulp_apply_free(struct ulp_apply *apply);

/* Prepare, commit and free. */
ULP_API enum ulp_status ulp_apply(struct ulp_weights *weights, const struct ulp_patch *patch,
                                  const struct ulp_apply_options *options,
                                  struct ulp_apply_report *ret_report);

/* ---- models on disk ---------------------------------------------------------------------- */

/*
 * Applies a whole patch to the files of a model where they are. A journal is written first, so
 * whenever the process ends, the files hold the old state or can be brought to the new one with
 * ulp_model_recover(), which the next call of this function does by itself; until then
 * ulp_model_open() refuses them with ULP_E_INTERRUPTED. `history` is NULL or the model before.
 *
 * The progress of the options hears of digesting and decoding, each in chunks. Once writing has
 * begun there is no stop, and nothing is reported.
 *
 * ULP_E_BUSY while the files are open as a model, here or in another process, or being changed;
 * ULP_E_FILE_KIND for symbolic links; ULP_E_FILE_CHANGED when another file has taken the name of
 * one since it was opened; ULP_E_REGIONS for a partial patch, whatever it covers; ULP_E_INTERRUPTED
 * and ULP_E_JOURNAL when an earlier change cannot be finished from here; otherwise those of
 * ulp_model_open() and ulp_apply_prepare(). After a failure of writing the journal is kept: the message says so.
 */
ULP_API enum ulp_status ulp_model_patch_in_place(const char *path, const struct ulp_patch *patch,
                                                 const struct ulp_model *history,
                                                 const struct ulp_apply_options *options,
                                                 struct ulp_apply_report *ret_report);

/*
 * The same into a copy: a file, or, for a model that is a directory, a directory with all its plain
 * files that are not hidden. It appears complete or not at all, and must not exist yet:
 * ULP_E_EXISTS. Permissions of files are kept. Where the file system can (XFS, btrfs), blocks
 * without changes are shared with the model. The progress also hears of copying, in bytes, and
 * may stop it. ULP_E_BUSY while the model is being changed, or another process writes the same
 * copy.
 */
ULP_API enum ulp_status ulp_model_patch(const char *path, const struct ulp_patch *patch,
                                        const struct ulp_model *history, const char *out,
                                        const struct ulp_apply_options *options,
                                        struct ulp_apply_report *ret_report);

/*
 * Finishes an interrupted ulp_model_patch_in_place(). *ret_recovered is 0 when there was none. It
 * may itself be interrupted and called again. ULP_E_JOURNAL for a journal that is damaged or of
 * another model, with nothing written; ULP_E_INTERRUPTED when the change was begun on the directory
 * and this is a file of it, or the other way around: the message names what to give; ULP_E_BUSY,
 * ULP_E_FILE_KIND and ULP_E_FILE_CHANGED as above.
 */
ULP_API enum ulp_status ulp_model_recover(const char *path, int *ret_recovered);

/* ---- squashing --------------------------------------------------------------------------- */

/*
 * One patch that does what several do one after the other, made from their bytes and the weights
 * that the first starts from. Elements that return to their old value drop out. It is whole and
 * coded without history: ULP_E_USAGE for options that ask for regions or history. The weights must
 * remember what the first patch needs: ULP_E_NEEDS_HISTORY. ULP_E_WRONG_BASE for a patch that does
 * not start where the one before it ends, ULP_E_REGIONS for a partial one or weights of a tile;
 * otherwise as ulp_apply_prepare().
 */
ULP_API enum ulp_status ulp_squash(const struct ulp_weights *weights,
                                   const struct ulp_patch *const *patches, size_t count,
                                   const struct ulp_diff_options *options,
                                   const struct ulp_sink *sink, struct ulp_diff_report *ret_report);

/* The same into a file, as with ulp_diff_file(). */
ULP_API enum ulp_status ulp_squash_file(const struct ulp_weights *weights,
                                        const struct ulp_patch *const *patches, size_t count,
                                        const struct ulp_diff_options *options, const char *path,
                                        enum ulp_commit commit, struct ulp_diff_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
