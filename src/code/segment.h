// SPDX-License-Identifier: Apache-2.0
/*
 * A segment as it was read, for decoders other than code_decode(): its models and its directory,
 * which the reader has checked, and its payloads, which nobody has looked at yet.
 */
#ifndef CODE_SEGMENT_H
#define CODE_SEGMENT_H

#include "code/code.h"
#include "code/stream.h"

/* As code_open(), without tables of its own: code_decode() and code_each_size() are not for it. */
enum ulp_status code_parse(struct code_kind kind, const uint32_t *elements, size_t count,
                           const uint8_t *bytes, size_t byte_count,
                           struct code_segment **ret_segment);

const struct stream_header *code_header(const struct code_segment *segment);
const struct block_entry *code_entry(const struct code_segment *segment, size_t block);
const uint8_t *code_payload(const struct code_segment *segment, size_t block);

#endif
