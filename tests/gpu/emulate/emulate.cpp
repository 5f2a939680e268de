// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime.h"

#include <climits>
#include <csetjmp>
#include <cstdio>
#include <map>
#include <mutex>
#include <ucontext.h>
#include <vector>

#define STACK_BYTES (128u << 10)
#define LANES 32u
#define THREADS_MAX 1024u

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
unsigned emulate_launches_left = UINT_MAX;
cudaError_t emulate_error;
int emulate_refusal = cudaErrorUnknown;
cudaGraph_t emulate_capture;
size_t emulate_memory_most;

namespace {

// What fibers wait for: a number that has to become another one.
struct Gate {
    uint64_t number = 0;
    unsigned arrived = 0, expected = 0;
};

struct Warp {
    Gate gate;
    uint64_t values[LANES], out[2][LANES];
};

// Jumps are much cheaper than changes of contexts, which ask the kernel about signals; the address
// sanitizer follows only the latter.
#if defined(__SANITIZE_ADDRESS__)
#define CHEAP_JUMPS 0
#else
#define CHEAP_JUMPS 1
#endif

struct Fiber {
    ucontext_t context;
    jmp_buf jump;
    bool begun = false;
    std::vector<char> stack;
    const Gate *waits = nullptr;
    uint64_t number = 0;
    bool done = false;
};

std::vector<Fiber> fibers;
std::vector<Warp> warps;
std::vector<char> shared;
Gate block_gate;
ucontext_t scheduler;
jmp_buf scheduler_jump;
unsigned current;
const std::function<void()> *running;

// Back to the scheduler, until it comes here again.
void yield() {
    Fiber &fiber = fibers[current];

    if (!CHEAP_JUMPS)
        swapcontext(&fiber.context, &scheduler);
    else if (!_setjmp(fiber.jump))
        _longjmp(scheduler_jump, 1);
}

void resume(Fiber &fiber) {
    if (!CHEAP_JUMPS) {
        swapcontext(&scheduler, &fiber.context);
    } else if (!_setjmp(scheduler_jump)) {
        if (fiber.begun)
            _longjmp(fiber.jump, 1);
        fiber.begun = true;
        setcontext(&fiber.context);
    }
}

void wait_at(Gate *gate) {
    Fiber &fiber = fibers[current];

    fiber.number = gate->number;
    if (++gate->arrived == gate->expected) {
        gate->arrived = 0;
        gate->number++;
        return;
    }
    fiber.waits = gate;
    yield();
}

// Who is gone is not waited for.
void leave(Gate *gate) {
    gate->expected--;
    if (gate->expected && gate->arrived == gate->expected) {
        gate->arrived = 0;
        gate->number++;
    }
}

// A fiber serves one block after the other.
void entry() {
    for (;;) {
        (*running)();
        fibers[current].done = true;
        leave(&block_gate);
        leave(&warps[current / LANES].gate);
        yield();
    }
}

void start(Fiber &fiber) {
    fiber.waits = nullptr;
    fiber.done = false;
    if (!fiber.stack.empty())
        return;
    fiber.stack.resize(STACK_BYTES);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
}

// False when nobody could go on.
bool run_once(unsigned threads) {
    bool moved = false;

    for (unsigned i = 0; i < threads; i++) {
        Fiber &fiber = fibers[i];

        if (fiber.done || (fiber.waits && fiber.waits->number == fiber.number))
            continue;
        fiber.waits = nullptr;
        moved = true;
        current = i;
        threadIdx = {i, 0, 0};
        resume(fiber);
    }
    return moved;
}

void run_block(unsigned threads) {
    block_gate = Gate{0, 0, threads};
    for (unsigned i = 0; i < (threads + LANES - 1) / LANES; i++)
        warps[i].gate = Gate{0, 0, std::min(LANES, threads - i * LANES)};
    for (unsigned i = 0; i < threads; i++)
        start(fibers[i]);
    while (run_once(threads)) {
    }
    for (unsigned i = 0; i < threads; i++) {
        if (!fibers[i].done) {
            fprintf(stderr, "emulate: thread %u of block %u waits for ever\n", i, blockIdx.x);
            abort();
        }
    }
}

std::map<uintptr_t, size_t> pinned; // bytes from an address on
std::mutex pinned_lock;

} // namespace

void emulate_pin(void *memory, size_t bytes) {
    std::lock_guard<std::mutex> guard(pinned_lock);

    pinned[(uintptr_t)memory] = bytes;
}

void emulate_unpin(void *memory) {
    std::lock_guard<std::mutex> guard(pinned_lock);

    pinned.erase((uintptr_t)memory);
}

bool emulate_is_pinned(const void *memory) {
    std::lock_guard<std::mutex> guard(pinned_lock);
    auto behind = pinned.upper_bound((uintptr_t)memory);

    if (behind == pinned.begin())
        return false;
    --behind;
    return (uintptr_t)memory - behind->first < behind->second;
}

void emulate_launch(dim3 grid, unsigned threads, size_t bytes, const std::function<void()> &body) {
    if (emulate_launches_left && emulate_later([=] { emulate_launch(grid, threads, bytes, body); }))
        return;
    if (!emulate_launches_left) { // which ends no capture
        emulate_error = (cudaError_t)emulate_refusal;
        if (emulate_refusal == cudaErrorMemoryAllocation)
            emulate_launches_left = UINT_MAX; // there is some again
        return;
    }
    if (emulate_launches_left != UINT_MAX)
        emulate_launches_left--;
    if (fibers.empty())
        fibers.resize(THREADS_MAX); // they must stay where they are
    if (warps.size() < threads / LANES + 1)
        warps.resize(threads / LANES + 1);
    shared.resize(bytes + 64);
    running = &body;
    gridDim = grid;
    blockDim = dim3(threads);
    for (unsigned y = 0; y < grid.y; y++) {
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = {x, y, 0};
            run_block(threads);
        }
    }
}

void *emulate_shared() {
    return (void *)(((uintptr_t)shared.data() + 63) & ~(uintptr_t)63);
}

void emulate_sync_block() {
    wait_at(&block_gate);
}

const uint64_t *emulate_exchange(uint64_t value) {
    Warp &warp = warps[current / LANES];
    uint64_t round = warp.gate.number;

    // The last to come completes the round; the others find it in the same of two places.
    warp.values[current % LANES] = value;
    if (warp.gate.arrived + 1 == warp.gate.expected)
        memcpy(warp.out[round % 2], warp.values, sizeof warp.values);
    wait_at(&warp.gate);
    return warp.out[round % 2];
}
