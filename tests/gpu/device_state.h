// SPDX-License-Identifier: Apache-2.0
/*
 * States on a device beside the same on the host, and patches between them, for checks that run
 * where nothing but the compilers is there: no test framework. A failure ends the program.
 */
#ifndef TESTS_GPU_DEVICE_STATE_H
#define TESTS_GPU_DEVICE_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/patch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the program with a message unless the status is ULP_OK. */
void must_be_ok(enum ulp_status status, const char *what);

/* ---- for the check ---- */

/* Every width, odd lengths and alignments, thousands of tiny tensors; with and without history;
 * densities from one change to all; damaged payloads. Prints what was compared. Small: the same with
 * a few tiles of each width, for tools under which kernels run a thousand times slower. */
void check_decoding(int small);

/* ---- for the benchmark ---- */

/* Two followers of one tensor of `elements` elements, BF16: on the CPU at `host`, on the device at
 * `device`. Both hold the same state. */
struct followers;
struct followers *followers_new(void *host, void *device, uint64_t elements);
void followers_free(struct followers *followers);

/* The device's gets a second state, at `second`: patches go there from now on, and back. */
void followers_double(struct followers *followers, void *second);

/* What a patch took, in milliseconds and bytes. */
struct step_report {
    double encode_ms, prepare_ms, commit_ms;
    uint64_t changed, patch_bytes, device_bytes;
    int history;
};

/*
 * Makes the patch to `next` (host memory) on all CPUs, prepares it on the device and lets `time`,
 * which may be NULL, see the kernels' arguments; then commits on both sides. Afterwards the device
 * has the sums that the CPU has, and what is in its memory digests to them.
 */
struct cuda_decode;
struct cuda_plan;
void followers_step(struct followers *followers, const void *next,
                    void (*time)(void *user, const struct cuda_decode *decode,
                                 const struct cuda_plan *plan, uint32_t *poisoned),
                    void *user, struct step_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
