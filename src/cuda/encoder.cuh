// SPDX-License-Identifier: Apache-2.0
// The encoder, as its two files see it: encoder.cu, which holds the state and repeats what did not fit, and
// encoder_waves.cu, which cuts it into waves and runs them.
#pragma once

#include "cuda/encode.h"

#include "cuda/device_array.cuh"
#include "cuda/encode.cuh"

#include <vector>

#define PIPELINE 4u             // waves on their way, at most
#define OUTPUT_SLACK 64u        // words are written and read a bit beyond
#define COUNTERS 3u

struct WaveRange {
    uint32_t first, count; // segments
};

// What a wave works in. There are several, so that the waits of one wave are filled with the work of others.
struct WaveMemory {
    DeviceArray<uint32_t> samples;
    DeviceArray<SegmentState> segments;
    DeviceArray<BlockState> blocks;
    DeviceArray<uint8_t> slots;
    DeviceArray<uint32_t> pages, large;
    DeviceArray<uint32_t> counters; // COUNTERS: slots used, overflow, large blocks
    cudaStream_t stream = nullptr; // of all stages but the scan: short kernels, which go first
    cudaStream_t beside = nullptr; // of such as others do not wait for
    cudaStream_t scan = nullptr;
    cudaEvent_t step = nullptr; // from one to the other

    ~WaveMemory() {
        for (cudaStream_t one : {stream, beside, scan}) {
            if (one)
                cudaStreamDestroy(one);
        }
        if (step)
            cudaEventDestroy(step);
    }

    size_t bytes() const {
        return samples.bytes() + segments.bytes() + blocks.bytes() + slots.bytes() + pages.bytes() + large.bytes();
    }
};

struct cuda_encoder {
    std::vector<cuda_segment> segments;
    std::vector<cuda_block> blocks;
    uint32_t pieces;
    uint64_t state_bytes;
    std::vector<uint64_t> last_changes; // of the run before, by segment: the next one will not be far
    uint32_t largest_block = UINT32_MAX; // likewise: changes of the block that had most; or nothing is known
    cuda_encoder_options options;
    bool plan_is_new = true; // not on the device yet

    // The run that was started and is not finished.
    std::vector<WaveRange> started;
    cuda_moves moves = {};
    cudaStream_t stream = nullptr;

    DeviceArray<cuda_segment> device_segments;
    DeviceArray<cuda_block> device_blocks;
    WaveMemory memory[PIPELINE];
    DeviceArray<uint8_t> output;
    DeviceArray<cuda_segment_report> reports;
    DeviceArray<unsigned long long> no_sums; // where a repeated wave adds to
    DeviceArray<uint64_t> output_used;
    DeviceArray<cuda_journal> journal; // where it is may change from run to run, and where that is told does not
    bool has_journal = false;
    cudaEvent_t begun = nullptr, placed = nullptr, done = nullptr;

    // The waves of the run before and, if they were the same as those before them, all of them as one graph, which
    // a GPU starts much faster than their kernels one by one.
    cudaGraphExec_t graph = nullptr;
    std::vector<Wave> before;

    ~cuda_encoder() {
        if (graph)
            cudaGraphExecDestroy(graph);
        for (cudaEvent_t event : {begun, placed, done}) {
            if (event)
                cudaEventDestroy(event);
        }
    }
};

// Segments of one width, one after the other, as many as there is room for.
std::vector<WaveRange> cut_waves(const cuda_encoder *encoder);

// Enqueues all waves behind what is on the stream, which goes on when they are done.
enum ulp_status run_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const cuda_moves *moves,
                          uint64_t *sums, cudaStream_t stream);

// Enqueues one wave once more, on the stream of the first memory; the sums have had it.
enum ulp_status run_again(cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves);
