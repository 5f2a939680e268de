// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of the device, and of the host where the device reaches it directly; copies between them.
 * Whatever takes a stream (a cudaStream_t, as everywhere in this room) is enqueued and returns at
 * once. ULP_E_NOMEM when there is no room, ULP_E_DEVICE when the device refuses.
 */
#ifndef CUDA_MEMORY_H
#define CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ULP_E_DEVICE where there is no GPU. */
enum ulp_status cuda_find_device(void);

/* What CUDA said of the last failure on this thread. */
const char *cuda_error_text(void);

enum ulp_status cuda_memory_new(size_t bytes, void **ret_memory);
void cuda_memory_free(void *memory); /* NULL is fine */

/* Pinned: copies from and to it run at the speed of the link. */
enum ulp_status cuda_pinned_new(size_t bytes, void **ret_memory);
void cuda_pinned_free(void *memory);

/* Whether memory of the host is pinned, by us or by others: both ends of it are looked at. */
int cuda_is_pinned(const void *memory, size_t bytes);

/* A stream that runs beside all others; with `first` its kernels go in front of theirs. */
enum ulp_status cuda_stream_new(int first, void **ret_stream);
void cuda_stream_free(void *stream); /* NULL is fine */

enum ulp_status cuda_copy_in(void *device, const void *host, size_t bytes, void *stream);
enum ulp_status cuda_copy_out(void *host, const void *device, size_t bytes, void *stream);
enum ulp_status cuda_clear(void *device, size_t bytes, void *stream);

/* Stored by the device, in one go, when all that was enqueued before is done: whoever shares the word
 * sees it before what is enqueued behind it begins. It stays when something before it fails. */
enum ulp_status cuda_set_word(uint32_t *word, uint32_t value, void *stream);

/* Waits until everything on the stream is done, and tells of the faults of all of it. */
enum ulp_status cuda_wait(void *stream);

#ifdef __cplusplus
}
#endif

#endif
