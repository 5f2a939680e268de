// SPDX-License-Identifier: Apache-2.0
/*
 * Patches where the weights live: in the memory of a GPU. The same verbs as in <ulpsync/patch.h>, on
 * device pointers and a stream, with the same bytes: a patch made here is the one that the CPU makes
 * of the same states, and every patch that the CPU accepts is accepted here.
 *
 *     struct ulp_cuda_weights *weights = NULL;        the trainer's last published state, on the GPU
 *     ulp_cuda_weights_new(tensors, count, NULL, stream, &weights);
 *     ulp_cuda_diff(weights, new_tensors, count, NULL, &sink, NULL);
 *
 *     ulp_patch_open_memory(bytes, size, &patch);     a worker, with the same weights
 *     ulp_cuda_apply_prepare(weights, patch, NULL, &apply);   beside its work
 *     ulp_cuda_apply_commit(apply, NULL);                     the pause
 *
 * A trainer whose patch has been published applies it to its own `weights`, which are then the state to
 * compare with next, and verified it on the way; with `remember`, patches become smaller.
 *
 * The kernels are in libulpsync_cuda.so, which is loaded by the first call and needs the NVIDIA driver and
 * nothing else. Where it is not found, set ULPSYNC_CUDA_LIBRARY to its path. Without it, or without a
 * GPU, every call fails with ULP_E_DEVICE and says why; nothing else of ulpsync needs it.
 *
 * `stream` is a cudaStream_t, NULL the default stream; pointers are of the device that is current when
 * a handle is made, which must be current in every call on it. All work is enqueued on the stream. Calls
 * return when it is done.
 *
 * Threads: one at a time on a handle of weights and all that was made of it.
 *
 * Statuses are those of the function of the same name in <ulpsync/patch.h>, and ULP_E_DEVICE when the
 * GPU fails; ULP_E_NOMEM also for device memory.
 */
#ifndef ULPSYNC_CUDA_H
#define ULPSYNC_CUDA_H

#include <ulpsync/patch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ULP_OK if there is a GPU that can be used. */
ULP_API enum ulp_status ulp_cuda_available(void);

/* ---- weights ----------------------------------------------------------------------------- */

struct ulp_cuda_weights;

/*
 * Digests the tensors, whose data are in device memory, aligned to their elements. The memory belongs
 * to the caller and must stay; only ulp_cuda_apply_commit(), ulp_cuda_apply_undo(), ulp_cuda_cast() and
 * ulp_cuda_cast_undo() write to it.
 *
 * While they do, the word at `poisoned` is 1: memory that the device can write (pinned, or its own), and
 * that whoever shares the weights looks at. If the process or the device dies between, it stays 1, and
 * from then on everything fails with ULP_E_POISONED. NULL: a word of the handle's own.
 */
ULP_API enum ulp_status ulp_cuda_weights_new(const struct ulp_tensor *tensors, size_t count,
                                             uint32_t *poisoned, void *stream,
                                             struct ulp_cuda_weights **ret_weights);

/*
 * The same for a tile, as ulp_weights_new_tile(): of the tensors' device memory only the bytes within the
 * regions are ever read or written, and the rest need not be there. `data` is where the whole tensor would
 * begin, aligned to its elements. ulp_tiling_regions() makes the regions.
 */
ULP_API enum ulp_status ulp_cuda_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                                  const struct ulp_region *regions,
                                                  size_t region_count, const struct ulp_root *state,
                                                  uint32_t *poisoned, void *stream,
                                                  struct ulp_cuda_weights **ret_weights);
ULP_API void ulp_cuda_weights_free(struct ulp_cuda_weights *weights);

/*
 * A second state, for who has room for two: an engine serves from one, the front, while a patch is
 * written to the other, the back; then they change roles. There is no pause: the switch is that your
 * code uses the other pointers from its next launch on, and what is in flight ends with the state that
 * it began with.
 *
 * `second` are the same tensors (by name, as in ulp_diff(); same dtypes and shapes) in other device
 * memory, which belongs to the caller and must stay as long as the weights; the front is copied to it.
 * ULP_E_OVERLAP when memory is shared, ULP_E_LAYOUT for other tensors. It stays attached.
 *
 * From then on
 *     ulp_cuda_apply_commit()   writes the back alone, and makes it the front: also when nothing
 *                               changes, not when the weights are the patch's child already
 *     ulp_cuda_apply_undo()     makes the state before the commit the front again. Usually it is
 *                               the back, and nothing is written; else it is written there first
 *     ulp_cuda_weights_front()  which one is in use, 0 or 1. Ask after each of those
 *     all others                are about the front; ulp_cuda_weights_audit() looks at both
 *
 * After a commit the old front is what it was, until the next commit or undo begins: whatever of yours
 * reads it must be done by then, or be in front of it on the stream.
 *
 * `front`, unless NULL, is a word that the device can write (pinned, or its own) and others may look
 * at: the number of the front. It is 0 or 1 at the call, the number of the state that the weights were
 * made of, and changes when the new state is complete. Weights are never poisoned: if process or device
 * die while the back is written, the word names a whole state. Who starts anew makes weights of
 * that one, and attaches the other as the second.
 */
ULP_API enum ulp_status ulp_cuda_weights_double(struct ulp_cuda_weights *weights,
                                                const struct ulp_tensor *second, size_t count,
                                                uint32_t *front);
ULP_API unsigned ulp_cuda_weights_front(const struct ulp_cuda_weights *weights);

/*
 * For a trainer whose GPU has no room for a second state: a handle for comparing with `snapshot`, the
 * last published state in the host's memory, which ulp_cuda_diff() streams through a few windows on
 * the device. They take a few hundred MB, however large the state is. Memory that is pinned (by
 * cudaMallocHost() or cudaHostRegister(), each tensor as a whole) is copied from directly; else
 * threads of the options' pool first copy it to memory that is.
 *
 * The snapshot must outlive the handle, which never writes to it and takes its root, sums and history
 * as they are at each call. A call on the handle reads the snapshot, so nothing may be committed to it
 * meanwhile. Once a patch has been published, apply it to the snapshot with ulp_apply(), which
 * verifies it; with `remember`, the next may be made with history.
 *
 * ulp_cuda_diff(), _root(), _trim() and _free() work as on other handles; ulp_cuda_weights_audit() and
 * ulp_cuda_apply_prepare() refuse it with ULP_E_USAGE. ULP_E_REGIONS for a tile.
 */
ULP_API enum ulp_status ulp_cuda_weights_on_host(const struct ulp_weights *snapshot, void *stream,
                                                 struct ulp_cuda_weights **ret_weights);

ULP_API void ulp_cuda_weights_root(const struct ulp_cuda_weights *weights,
                                   struct ulp_root *ret_root);

/* Digests everything anew: ULP_E_WRONG_BASE, naming a tensor, when a bit is not what it was. Of two
 * states both are looked at. If the message names the one that is not in use, go on: the next commit
 * copies all of it anew. */
ULP_API enum ulp_status ulp_cuda_weights_audit(struct ulp_cuda_weights *weights);

/* Lets go of the device memory that is kept for the next patch. */
ULP_API void ulp_cuda_weights_trim(struct ulp_cuda_weights *weights);

/* ---- patches ----------------------------------------------------------------------------- */

/* As ulp_diff(); of the options regions, `coder`, `history`, which needs an apply with `remember`
 * before, and for a snapshot in the host's memory `pool`. The patch passes through pinned memory of
 * its size. */
ULP_API enum ulp_status ulp_cuda_diff(struct ulp_cuda_weights *weights,
                                      const struct ulp_tensor *tensors, size_t count,
                                      const struct ulp_diff_options *options,
                                      const struct ulp_sink *sink,
                                      struct ulp_diff_report *ret_report);

/* As ulp_apply_prepare(): the patch is decoded and verified, the weights are not touched. Of the
 * options pool, progress (in chunks) and `remember`. */
struct ulp_cuda_apply;

ULP_API enum ulp_status ulp_cuda_apply_prepare(struct ulp_cuda_weights *weights,
                                               const struct ulp_patch *patch,
                                               const struct ulp_apply_options *options,
                                               struct ulp_cuda_apply **ret_apply);

/* As ulp_apply_prepare_parts(). Two states take whole patches alone: ULP_E_REGIONS. */
ULP_API enum ulp_status ulp_cuda_apply_prepare_parts(struct ulp_cuda_weights *weights,
                                                     const struct ulp_patch *const *parts,
                                                     size_t count, const struct ulp_root *child,
                                                     const struct ulp_apply_options *options,
                                                     struct ulp_cuda_apply **ret_apply);

/* The only moment in which the weights are neither old nor new; with two states there is none. */
ULP_API enum ulp_status ulp_cuda_apply_commit(struct ulp_cuda_apply *apply,
                                              struct ulp_apply_report *ret_report);
ULP_API enum ulp_status ulp_cuda_apply_undo(struct ulp_cuda_apply *apply);
ULP_API void ulp_cuda_apply_free(struct ulp_cuda_apply *apply);

/* Prepare, commit and free. */
ULP_API enum ulp_status ulp_cuda_apply(struct ulp_cuda_weights *weights,
                                       const struct ulp_patch *patch,
                                       const struct ulp_apply_options *options,
                                       struct ulp_apply_report *ret_report);

/* ---- at the cast -------------------------------------------------------------------------- */

/*
 * For trainers that keep FP32 masters and cast them into the weights after each step: the cast notes
 * what every element was that it changes, and that is all that a patch needs. So there is no second
 * state: device memory for 6 bytes for each changed element of two bytes, 8 for one of four.
 *
 *     ulp_cuda_cast(weights, masters, count);              after each step of the optimiser
 *     ulp_cuda_cast_diff(weights, &options, &sink, NULL);  when the workers are to have it
 *     ulp_cuda_cast_commit(weights);                       when it is published
 *
 * Patches start from the committed state, whose root ulp_cuda_weights_root() tells. A patch that could
 * not be published is not committed, and the next one is from where that started: nothing is lost.
 * While casts are not committed, ulp_cuda_diff() and applying patches fail with ULP_E_USAGE, and so does
 * an audit, unless the last call was ulp_cuda_cast_diff().
 */

/*
 * Casts masters into the weights, in place. Masters are F32 in device memory, each with the name and
 * shape of a tensor of the weights that is BF16, F16 or F32 (which is copied); they do not share memory
 * with the weights. Tensors without a master stay.
 *
 * Rounding is to nearest, ties to even; a NaN becomes 0x7fff. That is what CUDA's conversions do on a
 * GPU, and so what a cast of a framework there gives.
 *
 * ULP_E_LAYOUT for masters that do not fit; ULP_E_REGIONS for a tile; ULP_E_USAGE for a snapshot in the
 * host's memory and where there are two states. ULP_E_NOMEM when there is no room for what elements were:
 * then nothing is lost, but the weights may be cast in part, and are marked as poisoned until a cast
 * of the same tensors (and perhaps of others) succeeds or ulp_cuda_cast_undo() does; ULP_E_POISONED for
 * one that leaves some of them out.
 */
ULP_API enum ulp_status ulp_cuda_cast(struct ulp_cuda_weights *weights,
                                      const struct ulp_tensor *masters, size_t count);

/*
 * The patch from the committed state to the weights as they are: all casts since, as one. The bytes are
 * those that ulp_diff() makes of both states. Of the options `history`: uses how the elements moved in
 * the patch before, if that is known, and has the commit remember how they move in this one. When it
 * fails everything is as it was.
 */
ULP_API enum ulp_status ulp_cuda_cast_diff(struct ulp_cuda_weights *weights,
                                           const struct ulp_diff_options *options,
                                           const struct ulp_sink *sink,
                                           struct ulp_diff_report *ret_report);

/* The last patch is published: the state that it leads to is the committed one. Casts since then are
 * kept for the next. */
ULP_API enum ulp_status ulp_cuda_cast_commit(struct ulp_cuda_weights *weights);

/* Writes the committed state back; patches that were made and not committed are forgotten. */
ULP_API enum ulp_status ulp_cuda_cast_undo(struct ulp_cuda_weights *weights);

#ifdef __cplusplus
}
#endif

#endif
