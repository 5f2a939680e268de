// SPDX-License-Identifier: Apache-2.0
/*
 * The journal of a change in place from any bytes, behind a right header, for a small fixed model.
 * Its records stay inside of the blocks that they name; values are only looked at as far as they
 * reach.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "fuzz/target.h"
#include "patch/journal.h"

#include <string.h>
#include <sys/mman.h>

#define HEADER_BYTES 80u

static const uint64_t shapes[][2] = {{600, 1000}, {7, 3}, {0, 5}, {33, 1}};
static const char *const dtypes[] = {"BF16", "F32", "F16", "U8"};
static const char *const names[] = {"a", "b", "c", "d"};

static void make_grid(struct ulp_tensor *tensors, struct grid *grid) {
    for (size_t i = 0; i < 4; i++) {
        tensors[i] = (struct ulp_tensor){
            .name = names[i], .dtype = dtypes[i], .shape = shapes[i], .rank = 2};
        MUST(!ulp_tensor_measure(&tensors[i]));
    }
    MUST(!grid_make(tensors, 4, NULL, 0, grid));
}

static enum ulp_status check_block(void *user, const struct staged_block *staged) {
    const size_t bytes = (size_t)staged->count * staged->block.chunk->kind.width;
    uint64_t *sum = user;

    for (uint32_t i = 0; i < staged->count; i++) {
        MUST(staged->positions[i] < staged->block.words);
        MUST(!i || staged->positions[i - 1] < staged->positions[i]);
    }
    for (size_t i = 0; i < bytes; i++)
        *sum += staged->values[i];
    return ULP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ulp_tensor tensors[4];
    struct grid grid = {0};
    struct journal journal = {0};
    struct file_map map = {0};
    const size_t total = size < 2 ? HEADER_BYTES : HEADER_BYTES + size - 1;
    void *place = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t sum = 0;
    enum ulp_status status;

    MUST(place != MAP_FAILED);
    memcpy(place, "ulpjrnl", 8);
    if (size) {
        memcpy((uint8_t *)place + HEADER_BYTES - 8, data, 1); /* how many records */
        memcpy((uint8_t *)place + HEADER_BYTES, data + 1, size - 1);
    }
    map.data = place;
    map.bytes = total;
    make_grid(tensors, &grid);
    MUST(!journal_parse("fuzz", &map, &journal));
    status = journal_each_block(&journal, &grid, check_block, &sum);
    MUST(!status || status == ULP_E_JOURNAL);
    journal_release(&journal);
    grid_release(&grid);
    return 0;
}
