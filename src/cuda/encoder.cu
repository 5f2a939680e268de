// SPDX-License-Identifier: Apache-2.0
// The encoder's memory, and the waves in which the segments of a state go through the stages.
#include "cuda/encode.h"

#include "cuda/encode.cuh"
#include "cuda/device_array.cuh"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#define DEFAULT_SHARE 35u       // thousandths
#define PIPELINE 4u             // waves on their way, at most
#define WAVE_LEAST (UINT64_C(1) << 26) // bytes; smaller ones do not fill a GPU
#define WAVES_USUAL 10u
#define CHANGES_LEAST (1u << 16)
#define ROOM_FOR_MORE 5 / 4 // changes than the last time
#define OUTPUT_SHARE 128u       // of the state's bytes, to begin with
#define OUTPUT_LEAST (1u << 20) // bytes
#define OUTPUT_SLACK 64u        // words are written and read a bit beyond
#define REPORT_THREADS 128u
#define COUNTERS 3u

struct WaveRange {
    uint32_t first, count; // segments
};

// What a wave works in. There are several, so that the waits of one wave are filled with the work of others.
struct WaveMemory {
    DeviceArray<uint32_t> samples;
    DeviceArray<SegmentState> segments;
    DeviceArray<BlockState> blocks;
    DeviceArray<uint32_t> entries, pages, large;
    DeviceArray<uint8_t> values, tokens;
    DeviceArray<uint32_t> counters; // COUNTERS: entries used, overflow, large blocks
    cudaStream_t stream = nullptr;

    ~WaveMemory() {
        if (stream)
            cudaStreamDestroy(stream);
    }

    size_t bytes() const {
        return samples.bytes() + segments.bytes() + blocks.bytes() + entries.bytes() + pages.bytes() + large.bytes() +
               values.bytes() + tokens.bytes();
    }
};

struct cuda_encoder {
    std::vector<cuda_segment> segments;
    std::vector<cuda_block> blocks;
    uint32_t pieces;
    uint64_t state_bytes;
    uint64_t last_changes = 0; // of the run before: the next one will not be far
    cuda_encoder_options options;

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

    // All waves as one graph, which a GPU starts much faster than their kernels one by one; as long as the
    // waves stay as they were.
    cudaGraphExec_t graph = nullptr;
    std::vector<Wave> graphed;

    ~cuda_encoder() {
        if (graph)
            cudaGraphExecDestroy(graph);
        for (cudaEvent_t event : {begun, placed, done}) {
            if (event)
                cudaEventDestroy(event);
        }
    }
};

size_t cuda_encoder_bytes(const cuda_encoder *encoder) {
    size_t bytes = encoder->device_segments.bytes() + encoder->device_blocks.bytes() + encoder->output.bytes() +
                   encoder->reports.bytes() + encoder->no_sums.bytes();

    for (const WaveMemory &memory : encoder->memory)
        bytes += memory.bytes();
    return bytes;
}

void cuda_encoder_free(cuda_encoder *encoder) {
    delete encoder;
}

enum ulp_status cuda_encoder_new(const cuda_plan *plan, const cuda_encoder_options *options, cuda_encoder **ret_encoder) {
    cuda_encoder *encoder = new (std::nothrow) cuda_encoder();

    if (!encoder)
        return ULP_E_NOMEM;
    encoder->segments.assign(plan->segments, plan->segments + plan->segment_count);
    encoder->blocks.assign(plan->blocks, plan->blocks + plan->block_count);
    encoder->pieces = plan->piece_count;
    encoder->options = options ? *options : cuda_encoder_options{};
    encoder->state_bytes = 0;
    cudaEventCreateWithFlags(&encoder->begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&encoder->placed, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&encoder->done, cudaEventDisableTiming);
    for (WaveMemory &memory : encoder->memory)
        cudaStreamCreateWithFlags(&memory.stream, cudaStreamNonBlocking);
    for (const cuda_segment &segment : encoder->segments)
        encoder->state_bytes += (uint64_t)segment.elements * segment.kind.width;
    enum ulp_status status = cuda_status(cudaGetLastError());

    if (status) {
        delete encoder;
        return status;
    }
    *ret_encoder = encoder;
    return ULP_OK;
}

// ---- memory ----

static uint32_t pipeline(const cuda_encoder *encoder) {
    return encoder->options.pipeline && encoder->options.pipeline < PIPELINE ? encoder->options.pipeline : PIPELINE;
}

static uint32_t cells_of(const cuda_moves *moves) {
    return moves && moves->moves ? CELLS : EXPONENT_CELLS;
}

static size_t entry_bytes(unsigned width) {
    return sizeof(uint32_t) + width;
}

static size_t token_bytes(unsigned width) {
    return width <= 2 ? sizeof(Token<2>) : width == 4 ? sizeof(Token<4>) : sizeof(Token<8>);
}

// Pools for the changes of a wave. A segment by itself finds room for whatever is not left to the CPU.
struct Pools {
    size_t entries, tokens; // how many
};

static Pools pools_for(const cuda_encoder *encoder, const WaveRange &wave) {
    const unsigned share = encoder->options.memory_share ? encoder->options.memory_share : DEFAULT_SHARE;
    const unsigned width = encoder->segments[wave.first].kind.width;
    const uint64_t each = entry_bytes(width) + 2 * token_bytes(width);
    uint64_t changes = std::max<uint64_t>(encoder->state_bytes / 1000 * share / pipeline(encoder) / each, CHANGES_LEAST);
    uint64_t unused = 0; // at the ends of pages

    for (uint32_t s = wave.first; s < wave.first + wave.count; s++)
        unused += std::min((uint64_t)PAGE_ENTRIES / 2 * encoder->segments[s].blocks, (uint64_t)encoder->segments[s].elements);
    if (wave.count > 1)
        return {(size_t)std::min<uint64_t>(changes + unused, UINT32_MAX), (size_t)(2 * changes + changes / 4)};
    changes = std::max<uint64_t>(changes, encoder->segments[wave.first].elements / MANY_OF + 1);
    return {(size_t)(changes + 2 * unused), (size_t)(3 * changes)};
}

static enum ulp_status reserve(const cuda_encoder *encoder, const WaveRange &wave, uint32_t cells, WaveMemory *memory) {
    const unsigned width = encoder->segments[wave.first].kind.width;
    const Pools pools = pools_for(encoder, wave);
    size_t blocks = 0;

    for (uint32_t s = wave.first; s < wave.first + wave.count; s++)
        blocks += encoder->segments[s].blocks;
    enum ulp_status status = memory->entries.reserve(pools.entries);

    if (!status)
        status = memory->values.reserve(pools.entries * width);
    if (!status)
        status = memory->tokens.reserve(pools.tokens * token_bytes(width));
    if (!status)
        status = memory->samples.reserve(SAMPLE_COUNTERS(cells) * wave.count);
    if (!status)
        status = memory->segments.reserve(wave.count);
    if (!status)
        status = memory->blocks.reserve(blocks);
    if (!status)
        status = memory->large.reserve(blocks);
    if (!status)
        status = memory->pages.reserve(blocks * PAGES_OF_BLOCK);
    return status ? status : memory->counters.reserve(COUNTERS);
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

// Segments follow each other in the output, so a wave places its own when the one before has.
template <unsigned W> static void run_stages(const Wave &wave, cudaStream_t stream, cudaEvent_t placed) {
    encode_classes<W>(wave, stream);
    encode_scan<W>(wave, stream);
    encode_sort<W>(wave, stream);
    encode_models(wave, stream);
    encode_payload_code<W>(wave, stream);
    encode_measure(wave, stream);
    cudaStreamWaitEvent(stream, placed, 0);
    encode_place(wave, stream);
    cudaEventRecord(placed, stream);
    encode_directories(wave, stream);
    encode_payload_pack<W>(wave, stream);
    encode_checksums(wave, stream);
}

static Wave wave_of(const cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves, uint64_t *sums,
                    const WaveMemory &memory) {
    const cuda_segment &first = encoder->segments[range.first], &last = encoder->segments[range.first + range.count - 1];
    const Pools pools = pools_for(encoder, range);
    Wave wave;

    memset(&wave, 0, sizeof wave); // whole waves are compared, padding and all

    wave.segments = encoder->device_segments.data + range.first;
    wave.blocks = encoder->device_blocks.data + first.first_block;
    wave.segment_count = range.count;
    wave.block_count = last.first_block + last.blocks - first.first_block;
    wave.first_segment = range.first;
    wave.first_block = first.first_block;
    if (moves)
        wave.moves = {moves->moves, moves->first, moves->count};
    wave.journal = encoder->has_journal ? encoder->journal.data : nullptr;
    wave.samples = memory.samples.data;
    wave.cells = wave.moves.moves ? CELLS : EXPONENT_CELLS;
    wave.segment = memory.segments.data;
    wave.block = memory.blocks.data;
    wave.entries = memory.entries.data;
    wave.values = memory.values.data;
    wave.pages = memory.pages.data;
    wave.entries_used = memory.counters.data;
    wave.entry_limit = (uint32_t)pools.entries;
    wave.large = memory.large.data;
    wave.large_count = memory.counters.data + 2;
    wave.tokens = memory.tokens.data;
    wave.token_limit = pools.tokens;
    wave.sums = (unsigned long long *)sums;
    wave.output = encoder->output.data;
    wave.output_limit = encoder->output.count - OUTPUT_SLACK;
    wave.output_used = encoder->output_used.data;
    wave.overflow = memory.counters.data + 1;
    return wave;
}

static void run_wave(const cuda_encoder *encoder, const Wave &wave, unsigned width, cudaStream_t stream) {
    cudaMemsetAsync(wave.segment, 0, sizeof(SegmentState) * wave.segment_count, stream);
    cudaMemsetAsync(wave.block, 0, sizeof(BlockState) * wave.block_count, stream);
    cudaMemsetAsync(wave.entries_used, 0, COUNTERS * sizeof *wave.entries_used, stream);
    if (width == 1)
        run_stages<1>(wave, stream, encoder->placed);
    else if (width == 2)
        run_stages<2>(wave, stream, encoder->placed);
    else if (width == 4)
        run_stages<4>(wave, stream, encoder->placed);
    else
        run_stages<8>(wave, stream, encoder->placed);
    launch(report_segments, (wave.segment_count + REPORT_THREADS - 1) / REPORT_THREADS, REPORT_THREADS, 0, stream, wave,
           encoder->reports.data);
}

// ---- all waves ----

// As many waves as the changes, which will be about as many as the last time, ask for.
static uint64_t wave_bytes(const cuda_encoder *encoder) {
    if (encoder->segments.size() < 2)
        return encoder->state_bytes + 1;

    uint64_t waves = encoder->options.waves, fits = encoder->state_bytes / WAVE_LEAST;

    if (!waves) {
        uint64_t room = pools_for(encoder, {0, 2}).entries;

        waves = encoder->last_changes ? encoder->last_changes * ROOM_FOR_MORE / room + 1 : WAVES_USUAL;
        waves = std::max<uint64_t>(waves, std::min<uint64_t>(fits, WAVES_USUAL));
    }
    return encoder->state_bytes / std::max<uint64_t>(waves, 1) + 1;
}

// Segments of one width, one after the other.
static std::vector<WaveRange> cut_waves(const cuda_encoder *encoder) {
    const uint64_t most = wave_bytes(encoder);
    std::vector<WaveRange> waves;
    uint64_t bytes = 0;

    for (uint32_t s = 0; s < encoder->segments.size(); s++) {
        const cuda_segment &segment = encoder->segments[s];
        uint64_t here = (uint64_t)segment.elements * segment.kind.width;

        if (waves.empty() || bytes + here / 2 > most ||
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
    return cuda_status(error);
}

static enum ulp_status upload(cuda_encoder *encoder, const cuda_block *blocks, cudaStream_t stream) {
    const bool fresh = !encoder->device_segments.data;
    enum ulp_status status = encoder->device_segments.reserve(encoder->segments.size());

    if (!status)
        status = encoder->device_blocks.reserve(encoder->blocks.size());
    if (!status)
        status = encoder->reports.reserve(encoder->segments.size());
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
    return cuda_status(cudaGetLastError());
}

static enum ulp_status upload_journal(cuda_encoder *encoder, const cuda_journal *journal, cudaStream_t stream) {
    enum ulp_status status = journal ? encoder->journal.reserve(1) : ULP_OK;

    encoder->has_journal = journal;
    if (status || !journal)
        return status;
    return cuda_status(cudaMemcpyAsync(encoder->journal.data, journal, sizeof *journal, cudaMemcpyHostToDevice, stream));
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
    status = cuda_status(cudaStreamSynchronize(stream));
    std::swap(larger.data, encoder->output.data);
    std::swap(larger.count, encoder->output.count);
    return status;
}

// A single segment finds room for whatever is not left to the CPU.
static void leave(cuda_segment_report *report) {
    report->elsewhere = 1;
    report->bytes = 0;
}

// What to do about a wave that did not fit: its halves are to be run or, of a single segment, it again.
static void cut_again(const WaveRange &wave, cuda_segment_report *reports, std::vector<WaveRange> *waiting) {
    const uint32_t full = reports[wave.first].elsewhere, half = (wave.count + 1) / 2;

    if (full <= 1)
        return;
    if (wave.count == 1 && full & FULL_POOL) {
        leave(&reports[wave.first]);
        return;
    }
    if (wave.count > half)
        waiting->push_back({wave.first + half, wave.count - half});
    waiting->push_back({wave.first, half});
}

static enum ulp_status run_again(cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves) {
    WaveMemory *memory = &encoder->memory[0];
    enum ulp_status status = reserve(encoder, range, cells_of(moves), memory);

    if (status)
        return status;
    cudaEventRecord(encoder->placed, memory->stream); // nobody is in front of it
    run_wave(encoder, wave_of(encoder, range, moves, (uint64_t *)encoder->no_sums.data, *memory),
             encoder->segments[range.first].kind.width, memory->stream);
    return cuda_status(cudaGetLastError());
}

static enum ulp_status repeat(cuda_encoder *encoder, const std::vector<WaveRange> &waves, const cuda_moves *moves,
                              cudaStream_t stream, cuda_segment_report *reports) {
    std::vector<WaveRange> waiting;

    for (const WaveRange &wave : waves)
        cut_again(wave, reports, &waiting);
    while (!waiting.empty()) {
        const WaveRange wave = waiting.back();
        enum ulp_status status = ULP_OK;

        waiting.pop_back();
        if (reports[wave.first].elsewhere & FULL_OUTPUT)
            status = grow_output(encoder, stream);
        if (!status)
            status = run_again(encoder, wave, moves);
        if (!status)
            status = read_some(encoder, wave, encoder->memory[0].stream, reports);
        if (status)
            return status;
        cut_again(wave, reports, &waiting);
    }
    return ULP_OK;
}

// Memory for all waves, and the waves in it.
static enum ulp_status make_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const cuda_moves *moves,
                                  uint64_t *sums, std::vector<Wave> *waves) {
    for (size_t i = 0; i < ranges.size(); i++) {
        enum ulp_status status =
            reserve(encoder, ranges[i], cells_of(moves), &encoder->memory[i % pipeline(encoder)]);

        if (status)
            return status;
    }
    for (size_t i = 0; i < ranges.size(); i++)
        waves->push_back(wave_of(encoder, ranges[i], moves, sums, encoder->memory[i % pipeline(encoder)]));
    return ULP_OK;
}

// The waves' streams begin when `stream` has come here, and it goes on when they are done.
static void enqueue_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const std::vector<Wave> &waves,
                          cudaStream_t stream) {
    cudaEventRecord(encoder->begun, stream);
    cudaEventRecord(encoder->placed, stream);
    for (WaveMemory &memory : encoder->memory) {
        if (memory.stream != stream)
            cudaStreamWaitEvent(memory.stream, encoder->begun, 0);
    }
    for (size_t i = 0; i < waves.size(); i++)
        run_wave(encoder, waves[i], encoder->segments[ranges[i].first].kind.width,
                 encoder->memory[i % pipeline(encoder)].stream);
    for (WaveMemory &memory : encoder->memory) {
        if (memory.stream != stream) {
            cudaEventRecord(encoder->done, memory.stream);
            cudaStreamWaitEvent(stream, encoder->done, 0);
        }
    }
}

static bool same_waves(const std::vector<Wave> &x, const std::vector<Wave> &y) {
    return x.size() == y.size() && memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0;
}

// False where there are no graphs.
static bool make_graph(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const std::vector<Wave> &waves) {
    cudaStream_t origin = encoder->memory[0].stream;
    cudaGraph_t graph = nullptr;

    if (encoder->graph)
        cudaGraphExecDestroy(encoder->graph);
    encoder->graph = nullptr;
    encoder->graphed.clear();
    if (cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    enqueue_waves(encoder, ranges, waves, origin);
    if (cudaStreamEndCapture(origin, &graph) != cudaSuccess)
        return false;
    bool made = cudaGraphInstantiate(&encoder->graph, graph, 0) == cudaSuccess;

    cudaGraphDestroy(graph);
    if (made)
        encoder->graphed = waves;
    return made;
}

static enum ulp_status run_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const cuda_moves *moves,
                                 uint64_t *sums, cudaStream_t stream) {
    std::vector<Wave> waves;
    enum ulp_status status = make_waves(encoder, ranges, moves, sums, &waves);

    if (status || waves.empty())
        return status;
    if ((encoder->graph && same_waves(waves, encoder->graphed)) || make_graph(encoder, ranges, waves))
        return cuda_status(cudaGraphLaunch(encoder->graph, stream));
    cudaGetLastError(); // that there is no graph is no failure
    enqueue_waves(encoder, ranges, waves, stream);
    return cuda_status(cudaGetLastError());
}

enum ulp_status cuda_encoder_run(cuda_encoder *encoder, const cuda_block *blocks, const cuda_moves *moves,
                                 const cuda_journal *journal, uint64_t *sums, void *stream,
                                 cuda_segment_report *ret_reports, const uint8_t **ret_output) {
    cudaStream_t on = (cudaStream_t)stream;
    enum ulp_status status = upload(encoder, blocks, on);
    const std::vector<WaveRange> waves = cut_waves(encoder);

    if (!status)
        status = upload_journal(encoder, journal, on);
    if (!status)
        status = run_waves(encoder, waves, moves, sums, on);
    if (!status)
        status = read_some(encoder, {0, (uint32_t)encoder->segments.size()}, on, ret_reports);
    if (!status)
        status = repeat(encoder, waves, moves, on, ret_reports);
    *ret_output = encoder->output.data;
    encoder->last_changes = 0;
    for (size_t i = 0; i < encoder->segments.size() && !status; i++)
        encoder->last_changes += ret_reports[i].changes;
    return status;
}
