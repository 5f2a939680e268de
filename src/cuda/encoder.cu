// SPDX-License-Identifier: Apache-2.0
// The encoder's memory, and the waves in which the segments of a state go through the stages.
#include "cuda/encode.h"

#include "cuda/encode.cuh"
#include "cuda/memory.cuh"

#include <algorithm>
#include <new>
#include <vector>

#define DEFAULT_SHARE 40u       // thousandths
#define OUTPUT_SHARE 64u        // of the state's bytes, to begin with
#define OUTPUT_LEAST (1u << 20) // bytes
#define OUTPUT_SLACK 64u        // words are written and read a bit beyond
#define REPORT_THREADS 128u

struct WaveRange {
    uint32_t first, count; // segments
};

struct cuda_encoder {
    std::vector<cuda_segment> segments;
    std::vector<cuda_block> blocks;
    uint32_t pieces;
    uint64_t state_bytes;
    cuda_encoder_options options;

    DeviceArray<cuda_segment> device_segments;
    DeviceArray<cuda_block> device_blocks;
    DeviceArray<uint32_t> samples;
    DeviceArray<SegmentState> segment_states;
    DeviceArray<BlockState> block_states;
    DeviceArray<uint32_t> entries, pages;
    DeviceArray<uint8_t> values, tokens, output;
    DeviceArray<cuda_segment_report> reports;
    DeviceArray<unsigned long long> no_sums; // where a repeated wave adds to
    DeviceArray<uint32_t> counters;          // pages used, overflow
    DeviceArray<uint64_t> output_used;
};

size_t cuda_encoder_bytes(const cuda_encoder *encoder) {
    return encoder->device_segments.bytes() + encoder->device_blocks.bytes() + encoder->samples.bytes() +
           encoder->segment_states.bytes() + encoder->block_states.bytes() + encoder->entries.bytes() +
           encoder->pages.bytes() + encoder->values.bytes() + encoder->tokens.bytes() + encoder->output.bytes() +
           encoder->reports.bytes() + encoder->no_sums.bytes();
}

void cuda_encoder_free(cuda_encoder *encoder) {
    delete encoder;
}

enum ulp_status cuda_encoder_new(const cuda_plan *plan, const cuda_encoder_options *options, cuda_encoder **ret_encoder) {
    cuda_encoder *encoder = new (std::nothrow) cuda_encoder();

    if (!encoder)
        return ulp_fail(ULP_E_NOMEM, "no memory for an encoder");
    encoder->segments.assign(plan->segments, plan->segments + plan->segment_count);
    encoder->blocks.assign(plan->blocks, plan->blocks + plan->block_count);
    encoder->pieces = plan->piece_count;
    encoder->options = options ? *options : cuda_encoder_options{};
    encoder->state_bytes = 0;
    for (const cuda_segment &segment : encoder->segments)
        encoder->state_bytes += (uint64_t)segment.elements * segment.kind.width;
    *ret_encoder = encoder;
    return ULP_OK;
}

// ---- memory ----

static size_t entry_bytes(unsigned width) {
    return sizeof(uint32_t) + width;
}

static size_t token_bytes(unsigned width) {
    return width <= 2 ? sizeof(Token<2>) : width == 4 ? sizeof(Token<4>) : sizeof(Token<8>);
}

// Pools for the changes of a wave. A single segment of any density that is not left to the CPU must fit.
struct Pools {
    size_t entries, tokens; // how many
};

static Pools pools_for(const cuda_encoder *encoder, unsigned width) {
    unsigned share = encoder->options.memory_share ? encoder->options.memory_share : DEFAULT_SHARE;
    uint64_t budget = encoder->state_bytes / 1000 * share;
    uint64_t changes = budget / (entry_bytes(width) + 2 * token_bytes(width));
    uint64_t elements = 0, unused = 0; // at the ends of pages

    for (const cuda_segment &segment : encoder->segments) {
        elements = std::max<uint64_t>(elements, segment.elements);
        unused = std::max(unused, std::min((uint64_t)PAGE_ENTRIES * segment.blocks, (uint64_t)segment.elements));
    }
    changes = std::max<uint64_t>(changes, elements / MANY_OF + 1);
    return {(size_t)std::min<uint64_t>(changes + unused, UINT32_MAX), (size_t)(2 * changes + elements)};
}

static enum ulp_status reserve(cuda_encoder *encoder, unsigned width, const WaveRange &wave, uint32_t cells) {
    const Pools pools = pools_for(encoder, width);
    size_t blocks = 0;

    for (uint32_t s = wave.first; s < wave.first + wave.count; s++)
        blocks += encoder->segments[s].blocks;
    enum ulp_status status = encoder->entries.reserve(pools.entries);

    if (!status)
        status = encoder->values.reserve(pools.entries * width);
    if (!status)
        status = encoder->tokens.reserve(pools.tokens * token_bytes(width));
    if (!status)
        status = encoder->samples.reserve(SAMPLE_COUNTERS(cells) * wave.count);
    if (!status)
        status = encoder->segment_states.reserve(wave.count);
    if (!status)
        status = encoder->block_states.reserve(blocks);
    if (!status)
        status = encoder->pages.reserve(blocks * PAGES_OF_BLOCK);
    return status;
}

// ---- one wave ----

__global__ static void __launch_bounds__(REPORT_THREADS) report_segments(Wave wave, cuda_segment_report *reports) {
    uint32_t s = blockIdx.x * REPORT_THREADS + threadIdx.x;

    if (s >= wave.segment_count)
        return;
    const SegmentState &state = wave.segment[s];
    cuda_segment_report &to = reports[wave.first_segment + s];

    to.changes = state.changes;
    to.offset = state.offset;
    to.bytes = state.bytes;
    to.checksum = state.checksum;
    to.elsewhere = state.elsewhere;
    if (*wave.overflow)
        to.elsewhere = *wave.overflow;
}

template <unsigned W> static void run_stages(const Wave &wave, cudaStream_t stream) {
    encode_classes<W>(wave, stream);
    encode_scan<W>(wave, stream);
    encode_sort<W>(wave, stream);
    encode_models(wave, stream);
    encode_payload_code<W>(wave, stream);
    encode_layout(wave, stream);
    encode_payload_pack<W>(wave, stream);
    encode_checksums(wave, stream);
}

static Wave wave_of(cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves, uint64_t *sums) {
    const cuda_segment &first = encoder->segments[range.first], &last = encoder->segments[range.first + range.count - 1];
    const Pools pools = pools_for(encoder, first.kind.width);
    Wave wave = {};

    wave.segments = encoder->device_segments.data + range.first;
    wave.blocks = encoder->device_blocks.data + first.first_block;
    wave.segment_count = range.count;
    wave.block_count = last.first_block + last.blocks - first.first_block;
    wave.first_segment = range.first;
    wave.first_block = first.first_block;
    if (moves)
        wave.moves = {moves->moves, moves->first};
    wave.samples = encoder->samples.data;
    wave.cells = wave.moves.moves ? CELLS : EXPONENT_CELLS;
    wave.segment = encoder->segment_states.data;
    wave.block = encoder->block_states.data;
    wave.entries = encoder->entries.data;
    wave.values = encoder->values.data;
    wave.pages = encoder->pages.data;
    wave.entries_used = encoder->counters.data;
    wave.entry_limit = (uint32_t)pools.entries;
    wave.tokens = encoder->tokens.data;
    wave.token_limit = pools.tokens;
    wave.sums = (unsigned long long *)sums;
    wave.output = encoder->output.data;
    wave.output_limit = encoder->output.count - OUTPUT_SLACK;
    wave.output_used = encoder->output_used.data;
    wave.overflow = encoder->counters.data + 1;
    return wave;
}

static enum ulp_status run_wave(cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves, uint64_t *sums,
                                cudaStream_t stream) {
    const unsigned width = encoder->segments[range.first].kind.width;
    enum ulp_status status = reserve(encoder, width, range, moves && moves->moves ? CELLS : EXPONENT_CELLS);

    if (status)
        return status;
    Wave wave = wave_of(encoder, range, moves, sums);

    cudaMemsetAsync(encoder->segment_states.data, 0, sizeof(SegmentState) * wave.segment_count, stream);
    cudaMemsetAsync(encoder->block_states.data, 0, sizeof(BlockState) * wave.block_count, stream);
    cudaMemsetAsync(encoder->counters.data, 0, encoder->counters.bytes(), stream);
    if (width == 1)
        run_stages<1>(wave, stream);
    else if (width == 2)
        run_stages<2>(wave, stream);
    else if (width == 4)
        run_stages<4>(wave, stream);
    else
        run_stages<8>(wave, stream);
    launch(report_segments, (wave.segment_count + REPORT_THREADS - 1) / REPORT_THREADS, REPORT_THREADS, 0, stream, wave,
           encoder->reports.data);
    return cuda_status(cudaGetLastError(), "encoding");
}

// ---- all waves ----

// Segments of one width, as many as are expected to fit.
static std::vector<WaveRange> cut_waves(const cuda_encoder *encoder) {
    std::vector<WaveRange> waves;
    const uint64_t least = std::max(encoder->options.waves, 1u);
    const uint64_t most = std::max<uint64_t>(encoder->state_bytes / least, 1);
    uint64_t bytes = 0;

    for (uint32_t s = 0; s < encoder->segments.size(); s++) {
        const cuda_segment &segment = encoder->segments[s];
        uint64_t here = (uint64_t)segment.elements * segment.kind.width;

        if (waves.empty() || bytes + here > most + here / 2 ||
            encoder->segments[waves.back().first].kind.width != segment.kind.width) {
            waves.push_back({s, 0});
            bytes = 0;
        }
        waves.back().count++;
        bytes += here;
    }
    return waves;
}

static enum ulp_status read_some(cuda_encoder *encoder, const WaveRange &range, cudaStream_t stream,
                                 cuda_segment_report *reports) {
    cudaError_t error = cudaMemcpyAsync(reports + range.first, encoder->reports.data + range.first,
                                        range.count * sizeof *reports, cudaMemcpyDeviceToHost, stream);

    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return cuda_status(error, "encoding");
}

static enum ulp_status upload(cuda_encoder *encoder, const cuda_block *blocks, cudaStream_t stream) {
    const bool fresh = !encoder->device_segments.data;
    enum ulp_status status = encoder->device_segments.reserve(encoder->segments.size());

    if (!status)
        status = encoder->device_blocks.reserve(encoder->blocks.size());
    if (!status)
        status = encoder->reports.reserve(encoder->segments.size());
    if (!status)
        status = encoder->counters.reserve(2);
    if (!status)
        status = encoder->output_used.reserve(1);
    if (!status)
        status = encoder->no_sums.reserve(2 * (size_t)encoder->pieces);
    if (!status && !encoder->output.count)
        status = encoder->output.reserve(std::max<uint64_t>(encoder->state_bytes / OUTPUT_SHARE, OUTPUT_LEAST) + OUTPUT_SLACK);
    if (status)
        return status;
    if (fresh)
        cudaMemcpyAsync(encoder->device_segments.data, encoder->segments.data(), encoder->device_segments.bytes(),
                        cudaMemcpyHostToDevice, stream);
    if (fresh || memcmp(blocks, encoder->blocks.data(), encoder->device_blocks.bytes()) != 0) {
        encoder->blocks.assign(blocks, blocks + encoder->blocks.size());
        cudaMemcpyAsync(encoder->device_blocks.data, encoder->blocks.data(), encoder->device_blocks.bytes(),
                        cudaMemcpyHostToDevice, stream);
    }
    cudaMemsetAsync(encoder->output.data, 0, encoder->output.bytes(), stream);
    cudaMemsetAsync(encoder->output_used.data, 0, sizeof(uint64_t), stream);
    return cuda_status(cudaGetLastError(), "uploading the plan");
}

// Twice the output, with what is in it.
static enum ulp_status grow_output(cuda_encoder *encoder, cudaStream_t stream) {
    DeviceArray<uint8_t> larger;
    const size_t before = encoder->output.count;
    enum ulp_status status = larger.reserve(2 * before);

    if (status)
        return status;
    cudaMemcpyAsync(larger.data, encoder->output.data, before, cudaMemcpyDeviceToDevice, stream);
    cudaMemsetAsync(larger.data + before, 0, before, stream);
    status = cuda_status(cudaStreamSynchronize(stream), "growing the output");
    std::swap(larger.data, encoder->output.data);
    std::swap(larger.count, encoder->output.count);
    return status;
}

// A single segment finds room for whatever is not left to the CPU.
static void leave(cuda_segment_report *report) {
    report->elsewhere = 1;
    report->bytes = 0;
}

// A wave that did not fit is repeated in halves.
static enum ulp_status repeat(cuda_encoder *encoder, std::vector<WaveRange> waves, const cuda_moves *moves,
                              cudaStream_t stream, cuda_segment_report *reports) {
    while (!waves.empty()) {
        const WaveRange wave = waves.back(), half = {wave.first, (wave.count + 1) / 2};
        const uint32_t full = reports[wave.first].elsewhere;
        enum ulp_status status = ULP_OK;

        waves.pop_back();
        if (full <= 1)
            continue;
        if (wave.count == 1 && full & FULL_POOL) {
            leave(&reports[wave.first]);
            continue;
        }
        if (wave.count > half.count)
            waves.push_back({wave.first + half.count, wave.count - half.count});
        waves.push_back(half);
        if (full & FULL_OUTPUT)
            status = grow_output(encoder, stream);
        if (!status)
            status = run_wave(encoder, half, moves, (uint64_t *)encoder->no_sums.data, stream);
        if (!status)
            status = read_some(encoder, half, stream, reports);
        if (status)
            return status;
    }
    return ULP_OK;
}

enum ulp_status cuda_encoder_run(cuda_encoder *encoder, const cuda_block *blocks, const cuda_moves *moves,
                                 uint64_t *sums, void *stream, cuda_segment_report *ret_reports,
                                 const uint8_t **ret_output) {
    cudaStream_t on = (cudaStream_t)stream;
    enum ulp_status status = upload(encoder, blocks, on);
    std::vector<WaveRange> waves = cut_waves(encoder);

    for (const WaveRange &wave : waves) {
        if (!status)
            status = run_wave(encoder, wave, moves, sums, on);
    }
    if (!status && !encoder->segments.empty())
        status = read_some(encoder, {0, (uint32_t)encoder->segments.size()}, on, ret_reports);
    if (!status)
        status = repeat(encoder, waves, moves, on, ret_reports);
    *ret_output = encoder->output.data;
    return status;
}
