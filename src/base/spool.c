// SPDX-License-Identifier: Apache-2.0
#include "base/spool.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"

#include <sys/mman.h>
#include <unistd.h>

enum ulp_status spool_open(struct spool *ret_spool, size_t memory_bytes, const char *directory) {
    const size_t most = SIZE_MAX / 4; /* a buffer doubles */
    struct spool spool = {.memory = BUFFER(memory_bytes < most ? memory_bytes : most)};
    enum ulp_status status = mem_copy_text(file_nameless_directory(directory), &spool.directory);

    if (!status)
        *ret_spool = spool;
    return status;
}

void spool_release(struct spool *spool) {
    if (spool->mapped)
        munmap(spool->mapped, (size_t)spool->written);
    if (spool->file)
        close(spool->file - 1);
    buffer_release(&spool->memory);
    mem_free(spool->directory);
    *spool = (struct spool){0};
}

static enum ulp_status write_on(struct spool *spool, const void *data, size_t bytes) {
    enum ulp_status status =
        file_put(spool->file - 1, spool->directory, spool->written, data, bytes);

    if (!status)
        spool->written += bytes;
    return status;
}

/* What is in memory becomes the beginning of the file. */
static enum ulp_status move_to_file(struct spool *spool) {
    int file = -1;
    enum ulp_status status = file_nameless(spool->directory, &file);

    if (status)
        return status;
    spool->file = file + 1;
    status = write_on(spool, spool->memory.data, spool->memory.used);
    if (status) {
        close(file);
        spool->file = 0;
        return status;
    }
    log_message(ULP_LOG_INFO, "what exceeds %zu bytes of memory goes to %s", spool->memory.max,
                quote(spool->directory).text);
    buffer_release(&spool->memory);
    return ULP_OK;
}

enum ulp_status spool_append(struct spool *spool, const void *data, size_t bytes) {
    enum ulp_status status = ULP_OK;

    if (spool->mapped)
        return fail(ULP_E_INTERNAL, "a spool that is read is added to");
    if (!spool->file && bytes <= spool->memory.max - spool->memory.used)
        return buffer_append(&spool->memory, data, bytes);
    if (!spool->file)
        status = move_to_file(spool);
    return status ? status : write_on(spool, data, bytes);
}

enum ulp_status spool_view(struct spool *spool, const uint8_t **ret_data, size_t *ret_bytes) {
    void *place;

    if (!spool->file) {
        *ret_data = (const uint8_t *)buffer_text(&spool->memory);
        *ret_bytes = spool->memory.used;
        return ULP_OK;
    }
    if (spool->written > SIZE_MAX / 2)
        return fail(ULP_E_LIMIT, "%llu bytes are more than this machine can map",
                    (unsigned long long)spool->written);
    if (!spool->mapped) {
        place = mmap(NULL, (size_t)spool->written, PROT_READ, MAP_SHARED, spool->file - 1, 0);
        if (place == MAP_FAILED)
            return fail_errno("map a temporary file in", spool->directory);
        spool->mapped = place;
    }
    *ret_data = spool->mapped;
    *ret_bytes = (size_t)spool->written;
    return ULP_OK;
}
