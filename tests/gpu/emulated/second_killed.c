// SPDX-License-Identifier: Apache-2.0
/*
 * A process with two states in memory that it shares is killed while it writes a patch: what the word
 * names is whole, and whoever comes next goes on from it. A page of the other state that must not be
 * written is where it dies.
 */
#include "tests/gpu/emulated/device.h"

#include "gpu/device_second.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTS 32768u
#define BYTES (ELEMENTS * sizeof(uint16_t))
#define STEPS 3u

static const struct form forms[] = {{"a", "BF16", {ELEMENTS}, 1, 0}};

/* Three patches in a row, and memory for two states that processes share. */
struct stage {
    struct state states[STEPS + 1];
    struct bytes bytes[STEPS];
    struct ulp_patch *patches[STEPS];
    uint8_t *sets[2];
    uint32_t *front;
    size_t page, mapped;
};

static struct stage stage_make(void) {
    struct stage stage = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    uint8_t *memory;

    stage.mapped = stage.page + 2 * BYTES;
    /* 0x20 is MAP_ANONYMOUS, which POSIX does not name. */
    memory = mmap(NULL, stage.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | 0x20, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    stage.front = (uint32_t *)(void *)memory;
    stage.sets[0] = memory + stage.page;
    stage.sets[1] = stage.sets[0] + BYTES;
    stage.states[0] = state_make(forms, 1, 0);
    for (unsigned i = 0; i < STEPS; i++) {
        stage.states[i + 1] = state_copy(&stage.states[i]);
        state_step(&stage.states[i + 1], 100);
        stage.bytes[i] = patch_between(&stage.states[i], &stage.states[i + 1], NULL);
        stage.patches[i] = open_bytes(&stage.bytes[i]);
    }
    return stage;
}

static void stage_free(struct stage *stage) {
    for (unsigned i = 0; i <= STEPS; i++) {
        if (i < STEPS) {
            ulp_patch_free(stage->patches[i]);
            bytes_free(&stage->bytes[i]);
        }
        state_free(&stage->states[i]);
    }
    munmap(stage->front, stage->mapped);
}

/* Weights of what the word names, with the other as the second. */
static enum ulp_status open_both(const struct stage *stage, struct device_weights **ret_weights) {
    struct ulp_tensor used = stage->states[0].tensors[0], beside = used;
    enum ulp_status status;

    used.data = stage->sets[*stage->front];
    beside.data = stage->sets[1 - *stage->front];
    status = device_weights_new(&used, 1, NULL, NULL, ret_weights);
    return status ? status : device_second_attach(*ret_weights, &beside, 1, stage->front);
}

static enum ulp_status take(struct device_weights *weights, const struct ulp_patch *patch) {
    struct device_apply *apply = NULL;
    enum ulp_status status = device_apply_prepare(weights, patch, NULL, &apply);

    if (!status)
        status = device_apply_commit(apply, NULL);
    device_apply_free(apply);
    return status;
}

static void die(int signal_number) {
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

/* Takes patches up to `last`, in which it meets the page. */
static void child(const struct stage *stage, unsigned last, size_t page) {
    struct device_weights *weights = NULL;
    enum ulp_status status = open_both(stage, &weights);

    for (unsigned i = 0; i < last && !status; i++)
        status = take(weights, stage->patches[i]);
    if (!status) {
        signal(SIGSEGV, die);
        mprotect(stage->sets[1 - *stage->front] + page * stage->page, stage->page, PROT_READ);
        status = take(weights, stage->patches[last]);
    }
    _exit(status ? 2 : 1);
}

static bool holds(const struct stage *stage, uint32_t set, unsigned state) {
    return memcmp(stage->sets[set], stage->states[state].tensors[0].data, BYTES) == 0;
}

static void go_on(const struct stage *stage, unsigned from) {
    struct device_weights *weights = NULL;

    assert_ok(open_both(stage, &weights));
    assert_int_equal(weights->second->front, *stage->front);
    for (unsigned i = from; i < STEPS; i++) {
        assert_ok(take(weights, stage->patches[i]));
        assert_true(holds(stage, *stage->front, i + 1));
    }
    assert_ok(device_weights_audit(weights));
    device_weights_free(weights);
}

static void kill_at(const struct stage *stage, unsigned last, size_t page, unsigned *torn) {
    pid_t pid;
    int how = 0;

    *stage->front = 0;
    memcpy(stage->sets[0], stage->states[0].tensors[0].data, BYTES);
    memset(stage->sets[1], 0xa5, BYTES);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        child(stage, last, page);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(*stage->front, last % 2);
    assert_true(holds(stage, *stage->front, last));
    assert_false(holds(stage, 1 - *stage->front, last + 1));
    *torn += !holds(stage, 1 - *stage->front, last) &&
             !holds(stage, 1 - *stage->front, last ? last - 1 : 0);
    go_on(stage, last);
}

static void test_killed(void **unused) {
    struct stage stage = stage_make();
    const size_t pages = BYTES / stage.page, stride = pages / 3 + 1;
    unsigned torn = 0;

    (void)unused;
    for (unsigned last = 0; last < STEPS; last++) {
        for (size_t page = 0; page < pages; page += stride)
            kill_at(&stage, last, page, &torn);
    }
    assert_true(torn >= 5); /* it did die in the middle */
    stage_free(&stage);
}

TEST_MAIN(test_killed)
