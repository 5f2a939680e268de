// SPDX-License-Identifier: Apache-2.0
/* For every 64-bit ARM. NEON has no move-mask: each byte of a comparison keeps the one bit that is
 * its place, and pairwise additions gather eight bytes' bits into one. */
#include "base/cpu.h"
#include "scan/scan_twins.h"

#include <arm_neon.h>

#define TARGET

/* 64 bytes that are 0xff where elements are equal, to a bit for each that is not. */
static inline uint64_t bits(uint8x16_t e0, uint8x16_t e1, uint8x16_t e2, uint8x16_t e3) {
    static const uint8_t places[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t place = vld1q_u8(places);
    uint8x16_t low = vpaddq_u8(vbicq_u8(place, e0), vbicq_u8(place, e1));
    uint8x16_t high = vpaddq_u8(vbicq_u8(place, e2), vbicq_u8(place, e3));
    uint8x16_t all = vpaddq_u8(low, high);

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

/* 16 elements of each width, as 16 bytes of equality. */
static inline uint8x16_t equal_1(const uint8_t *a, const uint8_t *b) {
    return vceqq_u8(vld1q_u8(a), vld1q_u8(b));
}

static inline uint16x8_t equal_8_of_2(const uint8_t *a, const uint8_t *b) {
    return vceqq_u16(vreinterpretq_u16_u8(vld1q_u8(a)), vreinterpretq_u16_u8(vld1q_u8(b)));
}

static inline uint8x16_t equal_2(const uint8_t *a, const uint8_t *b) {
    return vcombine_u8(vmovn_u16(equal_8_of_2(a, b)), vmovn_u16(equal_8_of_2(a + 16, b + 16)));
}

static inline uint16x4_t equal_4_of_4(const uint8_t *a, const uint8_t *b) {
    return vmovn_u32(
        vceqq_u32(vreinterpretq_u32_u8(vld1q_u8(a)), vreinterpretq_u32_u8(vld1q_u8(b))));
}

static inline uint8x16_t equal_4(const uint8_t *a, const uint8_t *b) {
    uint16x8_t low = vcombine_u16(equal_4_of_4(a, b), equal_4_of_4(a + 16, b + 16));
    uint16x8_t high = vcombine_u16(equal_4_of_4(a + 32, b + 32), equal_4_of_4(a + 48, b + 48));

    return vcombine_u8(vmovn_u16(low), vmovn_u16(high));
}

static inline uint32x2_t equal_2_of_8(const uint8_t *a, const uint8_t *b) {
    return vmovn_u64(
        vceqq_u64(vreinterpretq_u64_u8(vld1q_u8(a)), vreinterpretq_u64_u8(vld1q_u8(b))));
}

static inline uint16x4_t equal_4_of_8(const uint8_t *a, const uint8_t *b) {
    return vmovn_u32(vcombine_u32(equal_2_of_8(a, b), equal_2_of_8(a + 16, b + 16)));
}

static inline uint8x16_t equal_8(const uint8_t *a, const uint8_t *b) {
    uint16x8_t low = vcombine_u16(equal_4_of_8(a, b), equal_4_of_8(a + 32, b + 32));
    uint16x8_t high = vcombine_u16(equal_4_of_8(a + 64, b + 64), equal_4_of_8(a + 96, b + 96));

    return vcombine_u8(vmovn_u16(low), vmovn_u16(high));
}

#define DEFINE_MASK(WIDTH)                                                                         \
    static inline uint64_t mask_##WIDTH(const uint8_t *a, const uint8_t *b) {                      \
        return bits(equal_##WIDTH(a, b), equal_##WIDTH(a + 16 * WIDTH, b + 16 * WIDTH),            \
                    equal_##WIDTH(a + 32 * WIDTH, b + 32 * WIDTH),                                 \
                    equal_##WIDTH(a + 48 * WIDTH, b + 48 * WIDTH));                                \
    }

DEFINE_MASK(1)
DEFINE_MASK(2)
DEFINE_MASK(4)
DEFINE_MASK(8)

SCAN_DEFINE(TARGET, 1, SCAN_W1, mask_1)
SCAN_DEFINE(TARGET, 2, SCAN_W2, mask_2)
SCAN_DEFINE(TARGET, 4, SCAN_W4, mask_4)
SCAN_DEFINE(TARGET, 8, SCAN_W8, mask_8)

const struct scan_twin scan_neon = {
    "neon",
    CPU_NEON,
    SCAN_TWIN_TABLE,
};
