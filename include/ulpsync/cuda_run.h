// SPDX-License-Identifier: Apache-2.0
/*
 * Runs where the weights live: publishers and followers of <ulpsync/run.h> whose tensors are in the
 * memory of a GPU. Patches are made, decoded and verified there; what crosses the link is the patch.
 *
 *     ulp_publisher_open_cuda(store, "run", NULL, 0, stream, NULL, &publisher);       a trainer
 *     ulp_publisher_publish(publisher, tensors, count, step, NULL);                   after each step
 *
 *     ulp_follower_open_cuda(store, "run", tensors, count, NULL, stream, NULL, &follower);   an engine
 *     ulp_follower_poll(follower, &report);                                           beside its work
 *     ulp_follower_apply(follower, NULL);                                             the pause
 *
 * The store cannot tell: records, patches and anchors are those of any other publisher, byte for byte,
 * and every follower follows, on a GPU, in memory or in a directory. All other calls on a publisher or
 * a follower are those of <ulpsync/run.h>, with the same options and reports.
 *
 * Kernels, streams, devices and alignment: as <ulpsync/cuda.h> says. The device that is current when
 * the object is opened must be current in every call on it. ULP_E_DEVICE where there is no GPU.
 *
 * Runs that are published in tiles are followed in the host's memory: ULP_E_REGIONS here.
 */
#ifndef ULPSYNC_CUDA_RUN_H
#define ULPSYNC_CUDA_RUN_H

#include <ulpsync/cuda.h>
#include <ulpsync/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A publisher that keeps the version that it published last on the device: in `published`, `count`
 * tensors of the caller with `data` in device memory, which are for the publisher alone; or, if that is
 * NULL, in memory of its own, which it takes when the first version comes. Where the run exists already,
 * the last version is got from the store, or found in `published` as ulp_follower_open_memory() finds
 * it.
 *
 * ulp_publisher_publish() takes tensors on the device, others than `published` (ULP_E_OVERLAP). They are
 * only read, and may change when it returns. The patch is decoded against the publisher's copy and
 * verified before the record is added; then the copy takes it, in one short write.
 * ulp_publisher_publish_model() is for other publishers: ULP_E_USAGE. ulp_publisher_anchor() brings the
 * state to the host piece by piece, twice, through 16 MiB of pinned memory.
 *
 * ULP_E_REGIONS for options.tiling.
 */
ULP_API enum ulp_status ulp_publisher_open_cuda(struct ulp_store *store, const char *run,
                                                const struct ulp_tensor *published, size_t count,
                                                void *stream, const struct ulp_run_options *options,
                                                struct ulp_publisher **ret_publisher);

/*
 * A follower into `tensors`, all of the model's, in device memory. If they hold a state that the run
 * knows and that one can start from, only patches are fetched (ulp_follower_open_memory() says which);
 * otherwise the first poll loads an anchor into them, file by file. From then on only
 * ulp_follower_apply() writes there, one patch at a time. An anchor that is nearer than any patch is
 * fetched and verified aside, in the host's memory and in files without a name, and written by
 * ulp_follower_apply(), whose pause is then as long as the link takes for the whole model.
 *
 * `poisoned` is as in ulp_cuda_weights_new(): 1 while ulp_follower_apply() writes, and for ever if that
 * is cut off; then everything fails with ULP_E_POISONED. Set it to 0 and open anew: the follower finds no
 * version that it knows, and loads an anchor. The first anchor is written without it: nobody may use
 * the weights before the first ulp_follower_apply().
 *
 * ULP_E_REGIONS for options.tiling and options.tile.
 */
ULP_API enum ulp_status ulp_follower_open_cuda(struct ulp_store *store, const char *run,
                                               const struct ulp_tensor *tensors, size_t count,
                                               uint32_t *poisoned, void *stream,
                                               const struct ulp_run_options *options,
                                               struct ulp_follower **ret_follower);

#ifdef __cplusplus
}
#endif

#endif
