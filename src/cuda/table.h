// SPDX-License-Identifier: Apache-2.0
/*
 * All that libulpsync calls in libulpsync_cuda.so, as one table: that library exports nothing but the
 * function that returns it. CUDA_CALLS lists every function once, as X(type, name, parameters,
 * arguments, return); the loader makes functions of the same names that go through the table.
 */
#ifndef CUDA_TABLE_H
#define CUDA_TABLE_H

#include "cuda/cast.h"
#include "cuda/decode.h"
#include "cuda/decode_second.h"
#include "cuda/digest_blocks.h"
#include "cuda/encode.h"
#include "cuda/gather_blocks.h"
#include "cuda/journal.h"
#include "cuda/list_changes.h"
#include "cuda/memory.h"
#include "cuda/place.h"

/* Grows with every change of the list or of a structure in it: both sides must be of one build. */
#define CUDA_TABLE_VERSION 5u
#define CUDA_TABLE_FUNCTION "ulpsync_cuda_table"

/* clang-format off */
#define CUDA_CALLS(X)                                                                                                   \
    X(enum ulp_status, find_device, (void), (), return)                                                                 \
    X(const char *, error_text, (void), (), return)                                                                     \
    X(enum ulp_status, memory_new, (size_t bytes, void **ret_memory), (bytes, ret_memory), return)                      \
    X(void, memory_free, (void *memory), (memory), )                                                                    \
    X(enum ulp_status, pinned_new, (size_t bytes, void **ret_memory), (bytes, ret_memory), return)                      \
    X(void, pinned_free, (void *memory), (memory), )                                                                    \
    X(enum ulp_status, copy_in, (void *device, const void *host, size_t bytes, void *stream),                           \
      (device, host, bytes, stream), return)                                                                            \
    X(enum ulp_status, copy_out, (void *host, const void *device, size_t bytes, void *stream),                          \
      (host, device, bytes, stream), return)                                                                            \
    X(int, is_pinned, (const void *memory, size_t bytes), (memory, bytes), return)                                      \
    X(enum ulp_status, stream_new, (int first, void **ret_stream), (first, ret_stream), return)                         \
    X(void, stream_free, (void *stream), (stream), )                                                                    \
    X(enum ulp_status, clear, (void *device, size_t bytes, void *stream), (device, bytes, stream), return)              \
    X(enum ulp_status, wait, (void *stream), (stream), return)                                                          \
    X(enum ulp_status, digest_blocks, (const struct cuda_plan *plan, unsigned long long *sums, void *stream),           \
      (plan, sums, stream), return)                                                                                     \
    X(enum ulp_status, gather_blocks, (const struct cuda_block *blocks, const uint64_t *offsets, uint32_t count,        \
      uint32_t width, uint8_t *to, void *stream), (blocks, offsets, count, width, to, stream), return)                  \
    X(enum ulp_status, list_changes, (const struct cuda_block *blocks, uint32_t count, uint32_t width, uint32_t limit,    \
      struct cuda_change *changes, uint32_t *found, void *stream),                                                      \
      (blocks, count, width, limit, changes, found, stream), return)                                                    \
    X(enum ulp_status, decode_tables, (const struct cuda_decode *decode, void *stream), (decode, stream), return)       \
    X(enum ulp_status, decode_payload, (const struct cuda_decode *decode, void *stream), (decode, stream), return)      \
    X(enum ulp_status, decode_scan, (const struct cuda_decode *decode, void *stream), (decode, stream), return)         \
    X(enum ulp_status, decode_remember, (const struct cuda_decode *decode, decode_move *moves, void *stream),           \
      (decode, moves, stream), return)                                                                                  \
    X(enum ulp_status, decode_swap, (const struct cuda_decode *decode, uint32_t *poisoned, void *stream),               \
      (decode, poisoned, stream), return)                                                                               \
    X(enum ulp_status, second_catch_up, (const struct cuda_decode *list, const struct cuda_block *from,                 \
      const struct cuda_block *to, void *stream), (list, from, to, stream), return)                                     \
    X(enum ulp_status, second_write, (const struct cuda_decode *decode, const struct cuda_block *from,                  \
      const struct cuda_block *to, void *stream), (decode, from, to, stream), return)                                   \
    X(enum ulp_status, decode_sums, (const struct cuda_decode *decode, void *stream), (decode, stream), return)         \
    X(enum ulp_status, pack_blocks, (const struct cuda_plan *plan, const struct cuda_place *places, uint32_t next,      \
      void *stream), (plan, places, next, stream), return)                                                              \
    X(enum ulp_status, digest_places, (const struct cuda_plan *plan, const struct cuda_place *places, uint32_t next,    \
      unsigned long long *sums, void *stream), (plan, places, next, sums, stream), return)                              \
    X(enum ulp_status, encoder_new, (const struct cuda_plan *plan, const struct cuda_encoder_options *options,          \
      struct cuda_encoder **ret_encoder), (plan, options, ret_encoder), return)                                         \
    X(void, encoder_free, (struct cuda_encoder *encoder), (encoder), )                                                  \
    X(size_t, encoder_bytes, (const struct cuda_encoder *encoder), (encoder), return)                                   \
    X(enum ulp_status, encoder_run, (struct cuda_encoder *encoder, const struct cuda_block *blocks,                     \
      const struct cuda_moves *moves, const struct cuda_journal *journal, uint64_t *sums, void *stream,                 \
      struct cuda_segment_report *ret_reports, const uint8_t **ret_output),                                             \
      (encoder, blocks, moves, journal, sums, stream, ret_reports, ret_output), return)                                 \
    X(enum ulp_status, encoder_start, (struct cuda_encoder *encoder, const struct cuda_block *blocks,                   \
      const struct cuda_moves *moves, const struct cuda_journal *journal, uint64_t *sums, void *stream),                \
      (encoder, blocks, moves, journal, sums, stream), return)                                                          \
    X(enum ulp_status, encoder_finish, (struct cuda_encoder *encoder, struct cuda_segment_report *ret_reports,          \
      const uint8_t **ret_output), (encoder, ret_reports, ret_output), return)                                          \
    X(enum ulp_status, encoder_plan, (struct cuda_encoder *encoder, const struct cuda_plan *plan, void *stream),        \
      (encoder, plan, stream), return)                                                                                \
    X(enum ulp_status, set_word, (uint32_t *word, uint32_t value, void *stream), (word, value, stream), return)         \
    X(enum ulp_status, cast_run, (const struct cuda_cast *cast, void *stream), (cast, stream), return)                  \
    X(enum ulp_status, journal_count, (const struct cuda_plan *plan, const struct cuda_journal *older,                  \
      const struct cuda_journal *newer, uint32_t *counts, void *stream), (plan, older, newer, counts, stream), return)  \
    X(enum ulp_status, journal_merge, (const struct cuda_plan *plan, const struct cuda_journal *older,                  \
      const struct cuda_journal *newer, const struct cuda_journal_room *to, void *stream),                              \
      (plan, older, newer, to, stream), return)                                                                         \
    X(enum ulp_status, journal_copy, (const struct cuda_plan *plan, const struct cuda_journal *newer,                   \
      const struct cuda_journal_room *to, void *stream), (plan, newer, to, stream), return)                             \
    X(enum ulp_status, journal_restore, (const struct cuda_plan *plan, const struct cuda_journal *journal,              \
      void *stream), (plan, journal, stream), return)                                                                   \
    X(enum ulp_status, journal_moves, (const struct cuda_plan *plan, const struct cuda_journal *journal,                \
      decode_move *moves, void *stream), (plan, journal, moves, stream), return)                                        \
    X(enum ulp_status, journal_list, (const struct cuda_plan *plan, const struct cuda_journal *journal,                 \
      uint32_t first_block, uint32_t count, uint32_t limit, struct cuda_change *changes, uint32_t *found,               \
      void *stream), (plan, journal, first_block, count, limit, changes, found, stream), return)
/* clang-format on */

struct cuda_table {
    uint32_t version, bytes; /* of this structure */
#define CUDA_MEMBER(type, name, parameters, arguments, give) type(*name) parameters;
    CUDA_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

typedef const struct cuda_table *(*cuda_table_fn)(void);

#endif
