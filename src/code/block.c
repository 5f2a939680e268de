// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "code/code.h"

enum ulp_status code_block_check(const struct code_block *block, bool history) {
    if (block->elements > CODE_BLOCK_MAX)
        return fail(ULP_E_LIMIT, "a block of %u elements; the limit is %u", block->elements,
                    CODE_BLOCK_MAX);
    if (block->move_count && !history)
        return fail(ULP_E_USAGE, "a block has moves, but its segment is coded without history");
    for (uint32_t i = 0; i < block->move_count; i++) {
        if (block->moves[i].position >= block->elements ||
            (i && block->moves[i].position <= block->moves[i - 1].position))
            return fail(ULP_E_USAGE, "move %u of a block is out of place", i);
    }
    return ULP_OK;
}
