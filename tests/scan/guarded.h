// SPDX-License-Identifier: Apache-2.0
/* Memory between two pages that must not be touched: a read or write of one byte too many ends the
 * test with a fault. */
#ifndef TESTS_SCAN_GUARDED_H
#define TESTS_SCAN_GUARDED_H

#include "tests/test.h"

#include <sys/mman.h>
#include <unistd.h>

struct guarded {
    uint8_t *whole, *begin, *end; /* usable: [begin, end), whole pages */
    size_t page;
};

static inline struct guarded guarded_make(size_t bytes) {
    struct guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    size_t usable = (bytes + g.page - 1) / g.page * g.page;

    /* 0x20 is MAP_ANONYMOUS, which POSIX does not name. */
    g.whole = mmap(NULL, usable + 2 * g.page, PROT_NONE, MAP_PRIVATE | 0x20, -1, 0);
    assert_ptr_not_equal(g.whole, MAP_FAILED);
    g.begin = g.whole + g.page;
    g.end = g.begin + usable;
    assert_int_equal(mprotect(g.begin, usable, PROT_READ | PROT_WRITE), 0);
    return g;
}

static inline void guarded_free(struct guarded *g) {
    munmap(g->whole, (size_t)(g->end - g->begin) + 2 * g->page);
}

#endif
