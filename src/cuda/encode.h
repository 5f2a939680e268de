// SPDX-License-Identifier: Apache-2.0
/*
 * Segments from two states in device memory, byte for byte as the CPU's encoder makes them with
 * CODE_CONTEXT or CODE_HISTORY. What another coder might say in fewer bytes is for the caller: the
 * report tells how much changes.
 */
#ifndef CUDA_ENCODE_H
#define CUDA_ENCODE_H

#include "cuda/decode.h"
#include "cuda/journal.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_encoder;

struct cuda_encoder_options {
    /* Device memory for changes on their way, as a share of the state's bytes in thousandths; 0: 35.
     * Where more changes than that has room for, the work is done in more and smaller waves. */
    unsigned memory_share;
    unsigned waves;    /* so many, of equal size; 0: as many as the memory asks for */
    unsigned pipeline; /* waves on their way at the same time, at most four; 0: three */
};

/* Of one segment. */
struct cuda_segment_report {
    uint64_t changes;
    uint64_t offset, bytes; /* in the output; 0 bytes if nothing changes, or `elsewhere` */
    uint64_t checksum;      /* of the bytes */
    uint32_t elsewhere;     /* so much changes that the CPU has to code it */
    uint32_t largest_block; /* changes of the block that has most */
};

/* How the elements moved in the patch before: those of block b are `count[b]` from first[b] on,
 * ascending. All device memory; NULL: no history. */
struct cuda_moves {
    const decode_move *moves;
    const uint64_t *first;
    const uint32_t *count;
};

/* The plan (host memory) is copied; its block addresses are given with each run. */
enum ulp_status cuda_encoder_new(const struct cuda_plan *plan,
                                 const struct cuda_encoder_options *options,
                                 struct cuda_encoder **ret_encoder);
void cuda_encoder_free(struct cuda_encoder *encoder); /* NULL is fine */

/*
 * Encodes all segments. `blocks` are the plan's, with the addresses of now (host memory). With a
 * journal, which lies end to end, old and new addresses are the same, and what the elements were is
 * what the journal says, or what they are; NULL without. `sums` (device
 * memory, two lanes for each piece) become those of the new state. The output, in device memory, is the
 * encoder's until its next run. Returns when everything is done.
 */
enum ulp_status cuda_encoder_run(struct cuda_encoder *encoder, const struct cuda_block *blocks,
                                 const struct cuda_moves *moves, const struct cuda_journal *journal,
                                 uint64_t *sums, void *stream,
                                 struct cuda_segment_report *ret_reports,
                                 const uint8_t **ret_output);

/*
 * The same in two halves, for who has something to do meanwhile: start() enqueues and returns, finish()
 * waits. Everything that start() was given must stay until then, and the elements too: what did not
 * fit is done again. After a failure of either, wait for the stream; then start again.
 */
enum ulp_status cuda_encoder_start(struct cuda_encoder *encoder, const struct cuda_block *blocks,
                                   const struct cuda_moves *moves,
                                   const struct cuda_journal *journal, uint64_t *sums,
                                   void *stream);
enum ulp_status cuda_encoder_finish(struct cuda_encoder *encoder,
                                    struct cuda_segment_report *ret_reports,
                                    const uint8_t **ret_output);

/* Another plan from now on, in the same memory: for a state that comes piece by piece. Its arrays are
 * copied to the device on `stream`. */
enum ulp_status cuda_encoder_plan(struct cuda_encoder *encoder, const struct cuda_plan *plan,
                                  void *stream);

/* Device memory that the encoder holds. */
size_t cuda_encoder_bytes(const struct cuda_encoder *encoder);

#ifdef __cplusplus
}
#endif

#endif
