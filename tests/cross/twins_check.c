// SPDX-License-Identifier: Apache-2.0
/*
 * The best kernels of this CPU against the portable definitions, without a test framework, so that
 * it can be cross-compiled and run under an emulator, or built where no packages are. Prints what
 * it compared; any difference ends it with 1. Arrays end at a page that must not be touched.
 */
#include "base/cpu.h"
#include "scan/digest_sum.h"
#include "scan/digest_twins.h"
#include "scan/scan_twins.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LENGTH_MAX 400u

static uint64_t random_state = 1;

static uint64_t next_random(void) {
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

/* `bytes` bytes that end where memory ends. */
static uint8_t *guarded(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), usable = (bytes + page - 1) / page * page;
    uint8_t *whole = mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | 0x20, -1, 0);

    if (whole == MAP_FAILED || mprotect(whole + usable, page, PROT_NONE)) {
        perror("mmap");
        exit(1);
    }
    return whole + usable - bytes;
}

static void check(int good, const char *what, unsigned width, size_t n) {
    if (good)
        return;
    fprintf(stderr, "%s differs from the definition: width %u, length %zu\n", what, width, n);
    exit(1);
}

static void check_scan(enum scan_width index, uint8_t *end_a, uint8_t *end_b, size_t n,
                       unsigned rarity) {
    static uint32_t x[LENGTH_MAX], y[LENGTH_MAX];
    const unsigned width = 1u << index;
    const struct scan_kernels *best = scan_kernels(width);
    const struct scan_kernels *portable = &scan_portable.kernels[index];
    uint8_t *a = end_a - n * width, *b = end_b - n * width;
    size_t found;

    for (size_t i = 0; i < n * width; i++)
        a[i] = b[i] = (uint8_t)next_random();
    for (size_t i = 0; i < n; i++) {
        if (next_random() % rarity == 0)
            b[i * width + next_random() % width] ^= (uint8_t)(1u << next_random() % 8);
    }
    found = portable->collect(a, b, n, x);
    check(best->count(a, b, n) == found, "count", width, n);
    check(best->collect(a, b, n, y) == found, "collect", width, n);
    check(!memcmp(x, y, found * sizeof x[0]), "collect", width, n);
}

static void check_digest(uint8_t *end, size_t words) {
    struct ulp_sum x = {{1, 2}}, y = {{1, 2}};
    uint64_t first = next_random();
    uint8_t *data = end - 8 * words;

    for (size_t i = 0; i < 8 * words; i++)
        data[i] = (uint8_t)next_random();
    digest_words_portable(data, words, first, &x);
    digest_words_best()(data, words, first, &y);
    check(x.lane[0] == y.lane[0] && x.lane[1] == y.lane[1], "digest", 8, words);
}

int main(void) {
    uint8_t *end_a = guarded(LENGTH_MAX * 8) + LENGTH_MAX * 8;
    uint8_t *end_b = guarded(LENGTH_MAX * 8) + LENGTH_MAX * 8;
    unsigned checks = 0;

    for (size_t n = 0; n < LENGTH_MAX; n++) {
        for (int index = 0; index < SCAN_WIDTHS; index++) {
            for (unsigned rarity = 1; rarity <= 100; rarity *= 10, checks++)
                check_scan((enum scan_width)index, end_a, end_b, n, rarity);
        }
        check_digest(end_a, n);
        check_digest(end_a - n % 8, n / 2); /* any alignment */
        checks += 2;
    }
    printf("%s: %u comparisons with the portable definitions, all equal\n", scan_twin_name(),
           checks);
    return 0;
}
