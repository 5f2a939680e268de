// SPDX-License-Identifier: Apache-2.0
/* A rank that publishes a tile together with others; see struct ulp_tile_writer in
 * <ulpsync/run.h>. */
#ifndef SYNC_TILE_WRITER_H
#define SYNC_TILE_WRITER_H

#include "sync/follower.h"
#include "sync/making.h"

struct ulp_tile_writer {
    struct ulp_follower *follower; /* of its own tile: what was published last */
    struct making making;          /* what was contributed, until it is known what became of it */
    bool contributed;
    uint64_t version; /* that it starts from */
    struct buffer contribution;
};

enum ulp_status tile_writer_new(struct ulp_store *store, const char *run,
                                const struct ulp_tensor *tensors, size_t count,
                                const struct ulp_run_options *options,
                                struct ulp_tile_writer **ret_writer);
void tile_writer_free(struct ulp_tile_writer *writer);

/* The contribution is then in the writer. */
enum ulp_status tile_writer_contribute(struct ulp_tile_writer *writer, const struct given *given,
                                       uint64_t step, struct ulp_run_report *report);
enum ulp_status tile_writer_commit(struct ulp_tile_writer *writer, const void *const *contributions,
                                   const size_t *sizes, size_t count, uint64_t step,
                                   struct ulp_run_report *report);
enum ulp_status tile_writer_settle(struct ulp_tile_writer *writer, struct ulp_run_report *report);

#endif
