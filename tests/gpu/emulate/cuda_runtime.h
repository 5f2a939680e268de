// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header of the same name, so that kernels run on a machine without a GPU, under
// sanitizers and a debugger: a block's threads are fibers of one thread, blocks run one after the
// other, device memory is memory. It knows just what the project's kernels use, and every warp
// intrinsic takes all 32 lanes. What it cannot show: races between warps, and speed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define ULP_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {
    }
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// ---- the host's side ----

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorUnknown = 999 };
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum { cudaDevAttrMultiProcessorCount = 16, cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum { cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1 };

static inline const char *cudaGetErrorString(cudaError_t) {
    return "emulated";
}
// After so many launches each is refused, as a GPU may; tests set it. UINT_MAX: never.
extern "C" unsigned emulate_launches_left;
extern "C" int emulate_refusal; // how: an error; for lack of memory only one is
extern cudaError_t emulate_error; // the last one, until somebody asks: a launch, or memory, that was refused

static inline cudaError_t cudaGetLastError() {
    cudaError_t error = emulate_error;
    return emulate_error = cudaSuccess, error;
}
static inline cudaError_t cudaPeekAtLastError() {
    return emulate_error;
}
static inline cudaError_t cudaGetDeviceCount(int *count) {
    return *count = 1, cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device) {
    return *device = 0, cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, int, int) {
    return *value = 2, cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize() {
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    return *stream = nullptr, cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) {
    return *stream = nullptr, cudaSuccess;
}
static inline cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return *least = *greatest = 0, cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return *event = nullptr, cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    return *event = nullptr, cudaSuccess;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t) {
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) {
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
    return *ms = 0, cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    return *free = *total = (size_t)1 << 30, cudaSuccess;
}

// A graph is what was asked for between begin and end of a capture, in that order: streams are one here.
struct CUgraph_st {
    std::vector<std::function<void()>> work;
};
typedef CUgraph_st *cudaGraph_t;
typedef CUgraph_st *cudaGraphExec_t;
enum { cudaStreamCaptureModeThreadLocal = 1 };
extern cudaGraph_t emulate_capture; // NULL: everything is done at once

static inline bool emulate_later(const std::function<void()> &work) {
    if (emulate_capture)
        emulate_capture->work.push_back(work);
    return emulate_capture != nullptr;
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t, int) {
    return emulate_capture = new CUgraph_st, cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
    *graph = emulate_capture;
    return emulate_capture = nullptr, cudaSuccess;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               unsigned long long) {
    return *exec = new CUgraph_st(*graph), cudaSuccess;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
    for (const std::function<void()> &work : exec->work)
        work();
    return emulate_error;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

// More bytes than this are not to be had at once; 0: as many as there are.
extern "C" size_t emulate_memory_most;

template <typename T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes) {
    if (emulate_memory_most && bytes > emulate_memory_most)
        return emulate_error = cudaErrorMemoryAllocation;
    *memory = (T *)aligned_alloc(256, (std::max<size_t>(bytes, 1) + 255) / 256 * 256);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

// Pinned memory is memory that is known to be.
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost };
struct cudaPointerAttributes {
    cudaMemoryType type;
};
void emulate_pin(void *memory, size_t bytes);
void emulate_unpin(void *memory);
bool emulate_is_pinned(const void *memory);

template <typename T> static inline cudaError_t cudaMallocHost(T **memory, size_t bytes) {
    cudaError_t error = cudaMalloc(memory, bytes);
    if (error == cudaSuccess)
        emulate_pin(*memory, bytes);
    return error;
}
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
                                                   const void *memory) {
    attributes->type = emulate_is_pinned(memory) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void *memory) {
    return free(memory), cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void *memory) {
    emulate_unpin(memory);
    return free(memory), cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                                          cudaStream_t = nullptr) {
    if (bytes && !emulate_later([=] { memcpy(to, from, bytes); }))
        memcpy(to, from, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                                     cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind);
}
static inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes,
                                          cudaStream_t = nullptr) {
    if (bytes && !emulate_later([=] { memset(to, byte, bytes); }))
        memset(to, byte, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
    return cudaMemsetAsync(to, byte, bytes);
}
template <typename F> static inline cudaError_t cudaFuncSetAttribute(F, int, int) {
    return cudaSuccess;
}

// ---- fibers ----

void emulate_launch(dim3 grid, unsigned threads, size_t shared, const std::function<void()> &body);
void *emulate_shared(); // dynamic shared memory of the running block
void emulate_sync_block();

// Everybody's values, when all lanes of the warp have come.
const uint64_t *emulate_exchange(uint64_t value);

static inline unsigned emulate_lane() {
    return threadIdx.x % 32;
}

// ---- the device's side ----

static inline void __syncthreads() {
    emulate_sync_block();
}
static inline void __syncwarp(unsigned = ~0u) {
    emulate_exchange(0);
}
static inline void __threadfence() {
}
static inline void __threadfence_block() {
}

template <typename T> static inline T emulate_from(const uint64_t *values, unsigned lane) {
    T value;
    memcpy(&value, &values[lane], sizeof value);
    return value;
}
template <typename T> static inline uint64_t emulate_bits(T value) {
    uint64_t bits = 0;
    static_assert(sizeof value <= 8, "a shuffle takes up to eight bytes");
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T> static inline T __shfl_sync(unsigned, T value, int from, int width = 32) {
    unsigned lane = emulate_lane(), base = lane & ~(unsigned)(width - 1);
    return emulate_from<T>(emulate_exchange(emulate_bits(value)),
                           base + ((unsigned)from & (unsigned)(width - 1)));
}
template <typename T>
static inline T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned lane = emulate_lane(), in = lane & (unsigned)(width - 1);
    return emulate_from<T>(emulate_exchange(emulate_bits(value)), in < by ? lane : lane - by);
}
template <typename T>
static inline T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned lane = emulate_lane(), in = lane & (unsigned)(width - 1);
    return emulate_from<T>(emulate_exchange(emulate_bits(value)),
                           in + by >= (unsigned)width ? lane : lane + by);
}
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int with, int width = 32) {
    (void)width;
    return emulate_from<T>(emulate_exchange(emulate_bits(value)), emulate_lane() ^ (unsigned)with);
}
static inline unsigned __ballot_sync(unsigned, int predicate) {
    const uint64_t *values = emulate_exchange(predicate != 0);
    unsigned mask = 0;
    for (unsigned i = 0; i < 32; i++)
        mask |= (unsigned)values[i] << i;
    return mask;
}
static inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) == ~0u;
}
template <typename T> static inline unsigned __match_any_sync(unsigned, T value) {
    const uint64_t *values = emulate_exchange(emulate_bits(value));
    unsigned mask = 0;
    for (unsigned i = 0; i < 32; i++)
        mask |= (unsigned)(values[i] == emulate_bits(value)) << i;
    return mask;
}
static inline unsigned __reduce_max_sync(unsigned, unsigned value) {
    const uint64_t *values = emulate_exchange(value);
    return (unsigned)*std::max_element(values, values + 32);
}
static inline unsigned __reduce_add_sync(unsigned, unsigned value) {
    const uint64_t *values = emulate_exchange(value);
    unsigned sum = 0;
    for (unsigned i = 0; i < 32; i++)
        sum += (unsigned)values[i];
    return sum;
}

static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
static inline int __clz(unsigned x) {
    return x ? __builtin_clz(x) : 32;
}
static inline int __clzll(unsigned long long x) {
    return x ? __builtin_clzll(x) : 64;
}
static inline int __ffs(unsigned x) {
    return __builtin_ffs((int)x);
}
static inline int __ffsll(unsigned long long x) {
    return __builtin_ffsll((long long)x);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) << (by & 31) >> 32);
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (unsigned i = 0; i < 32; i += 8)
        c += (a >> i & 255) * (b >> i & 255);
    return c;
}
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned select) {
    uint64_t both = (uint64_t)high << 32 | low;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; i++)
        out |= (unsigned)(both >> 8 * (select >> 4 * i & 7) & 255) << 8 * i;
    return out;
}
static inline unsigned __vminu2(unsigned x, unsigned y) {
    return std::min(x & 0xffff, y & 0xffff) | std::min(x >> 16, y >> 16) << 16;
}
static inline unsigned __brev(unsigned x) {
    unsigned out = 0;
    for (unsigned i = 0; i < 32; i++)
        out |= (x >> i & 1) << (31 - i);
    return out;
}

// Only one fiber runs at a time.
template <typename T, typename V> static inline T atomicAdd(T *to, V value) {
    T before = *to;
    *to = (T)(before + (T)value);
    return before;
}
template <typename T, typename V> static inline T atomicMax(T *to, V value) {
    T before = *to;
    *to = std::max<T>(before, (T)value);
    return before;
}
template <typename T, typename V> static inline T atomicMin(T *to, V value) {
    T before = *to;
    *to = std::min<T>(before, (T)value);
    return before;
}
template <typename T, typename V> static inline T atomicOr(T *to, V value) {
    T before = *to;
    *to = before | (T)value;
    return before;
}
template <typename T, typename V> static inline T atomicExch(T *to, V value) {
    T before = *to;
    *to = (T)value;
    return before;
}
template <typename T, typename C, typename V>
static inline T atomicCAS(T *to, C expected, V value) {
    T before = *to;
    if (before == (T)expected)
        *to = (T)value;
    return before;
}
template <typename T> static inline T __ldg(const T *from) {
    return *from;
}
template <typename T> static inline T __ldcs(const T *from) {
    return *from;
}
template <typename T> static inline T __ldcg(const T *from) {
    return *from;
}
template <typename T> static inline void __stcs(T *to, T value) {
    *to = value;
}
template <typename T> static inline T min(T a, T b) {
    return std::min(a, b);
}
template <typename T> static inline T max(T a, T b) {
    return std::max(a, b);
}
