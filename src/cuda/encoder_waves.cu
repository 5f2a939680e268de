// SPDX-License-Identifier: Apache-2.0
// Waves: runs of segments that go through the stages together, and the memory that they do it in.
#include "cuda/encoder.cuh"

#include <algorithm>
#include <cstring>

#define DEFAULT_SHARE 35u       // thousandths
#define PIPELINE_USUAL 3u       // waves on their way: one is scanned, one finished, one begins
#define WAVE_LEAST (UINT64_C(1) << 28) // bytes; smaller ones do not fill a GPU
#define WAVE_OF_REST 2u         // a wave is that part of what is left: nothing hides the end of the last one
#define CHANGED_USUAL 50u       // one element in so many, as long as nothing is known
#define CHANGES_LEAST (1u << 16)
#define ROOM_FOR_MORE 9 / 8     // changes than the last time
#define POOL_SLACK 512u         // numbers are read so many bytes at a time
#define REPORT_THREADS 128u

// ---- memory ----

static uint32_t pipeline(const cuda_encoder *encoder) {
    return encoder->options.pipeline ? std::min(encoder->options.pipeline, PIPELINE) : PIPELINE_USUAL;
}

static uint32_t cells_of(const cuda_moves *moves) {
    return moves && moves->moves ? CELLS : EXPONENT_CELLS;
}

static size_t slot_bytes(unsigned width) {
    return width <= 2 ? sizeof(Slot<2>) : width == 4 ? sizeof(Slot<4>) : sizeof(Slot<8>);
}

// Slots for the changes of a wave. A segment by itself finds room for whatever is not left to the CPU.
static size_t slots_for(const cuda_encoder *encoder, const WaveRange &wave) {
    const unsigned share = encoder->options.memory_share ? encoder->options.memory_share : DEFAULT_SHARE;
    const size_t each = slot_bytes(encoder->segments[wave.first].kind.width);
    uint64_t slots = encoder->state_bytes / 1000 * share / pipeline(encoder) / each;
    uint64_t unused = 0; // at the ends of pages, at most

    if (wave.count > 1)
        return (size_t)std::min<uint64_t>(std::max<uint64_t>(slots, CHANGES_LEAST), UINT32_MAX / 2);
    const cuda_segment &only = encoder->segments[wave.first];

    unused = std::min((uint64_t)PAGE_SLOTS * only.blocks, (uint64_t)only.elements + only.blocks);
    return (size_t)std::max<uint64_t>(slots, only.elements / MANY_OF + 1 + unused);
}

static enum ulp_status reserve(const cuda_encoder *encoder, const WaveRange &wave, uint32_t cells, WaveMemory *memory) {
    const unsigned width = encoder->segments[wave.first].kind.width;
    size_t blocks = 0;

    for (uint32_t s = wave.first; s < wave.first + wave.count; s++)
        blocks += encoder->segments[s].blocks;
    enum ulp_status status = memory->slots.reserve(slots_for(encoder, wave) * slot_bytes(width) + POOL_SLACK);

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
    to.largest_block = state.largest_block;
    if (*wave.overflow)
        to.elsewhere = *wave.overflow;
}

// What is on stream `from` goes on on `to`.
static void go_on(cudaStream_t from, cudaStream_t to, cudaEvent_t step) {
    cudaEventRecord(step, from);
    cudaStreamWaitEvent(to, step, 0);
}

// Segments follow each other in the output, so a wave places its own when the one before has. Scans take the
// whole GPU, and whatever else has to be done goes in front of them.
template <unsigned W> static void run_stages(const Wave &wave, const WaveMemory &memory, cudaEvent_t placed) {
    const cudaStream_t stream = memory.stream;

    encode_classes<W>(wave, stream);
    go_on(stream, memory.scan, memory.step);
    encode_scan<W>(wave, memory.scan);
    go_on(memory.scan, stream, memory.step);
    encode_sort<W>(wave, stream);
    encode_models(wave, stream);
    go_on(stream, memory.beside, memory.step);
    encode_heads(wave, memory.beside);
    encode_payload_code<W>(wave, stream);
    go_on(memory.beside, stream, memory.step);
    encode_measure(wave, stream);
    cudaStreamWaitEvent(stream, placed, 0);
    encode_place(wave, stream);
    cudaEventRecord(placed, stream);
    go_on(stream, memory.beside, memory.step);
    encode_directories(wave, memory.beside);
    encode_payload_pack<W>(wave, stream);
    go_on(memory.beside, stream, memory.step);
    encode_checksums(wave, stream);
}

static Wave wave_of(const cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves, uint64_t *sums,
                    const WaveMemory &memory) {
    const cuda_segment &first = encoder->segments[range.first], &last = encoder->segments[range.first + range.count - 1];
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
    wave.slots = memory.slots.data;
    wave.pages = memory.pages.data;
    wave.slots_used = memory.counters.data;
    wave.slot_limit = (uint32_t)slots_for(encoder, range);
    wave.large = memory.large.data;
    wave.large_count = memory.counters.data + 2;
    const uint64_t largest = (uint64_t)encoder->largest_block * ROOM_FOR_MORE;

    wave.sort_room = largest <= SORT_SMALL ? SORT_SMALL : SORT_MEDIUM;
    wave.sort_large = largest > SORT_MEDIUM;
    wave.sums = (unsigned long long *)sums;
    wave.output = encoder->output.data;
    wave.output_limit = encoder->output.count - OUTPUT_SLACK;
    wave.output_used = encoder->output_used.data;
    wave.overflow = memory.counters.data + 1;
    return wave;
}

static void run_wave(const cuda_encoder *encoder, const Wave &wave, unsigned width, const WaveMemory &memory) {
    const cudaStream_t stream = memory.stream;

    cudaMemsetAsync(wave.segment, 0, sizeof(SegmentState) * wave.segment_count, stream);
    cudaMemsetAsync(wave.block, 0, sizeof(BlockState) * wave.block_count, stream);
    cudaMemsetAsync(wave.slots_used, 0, COUNTERS * sizeof *wave.slots_used, stream);
    if (width == 1)
        run_stages<1>(wave, memory, encoder->placed);
    else if (width == 2)
        run_stages<2>(wave, memory, encoder->placed);
    else if (width == 4)
        run_stages<4>(wave, memory, encoder->placed);
    else
        run_stages<8>(wave, memory, encoder->placed);
    launch(report_segments, (wave.segment_count + REPORT_THREADS - 1) / REPORT_THREADS, REPORT_THREADS, 0, stream, wave,
           encoder->reports.data);
}

// ---- all waves ----

// Slots that a segment will take, if its changes are about as many as the last time.
static uint64_t slots_expected(const cuda_encoder *encoder, uint32_t s) {
    const cuda_segment &segment = encoder->segments[s];
    uint64_t changes = encoder->last_changes.empty() ? segment.elements / CHANGED_USUAL : encoder->last_changes[s];

    return std::min<uint64_t>(changes * ROOM_FOR_MORE + (uint64_t)PAGE_SLOTS / 2 * segment.blocks, segment.elements);
}

// How much a wave takes of the `left` bytes.
static uint64_t wave_bytes(const cuda_encoder *encoder, uint64_t left) {
    if (encoder->options.waves)
        return encoder->state_bytes / encoder->options.waves + 1;
    return left < 2 * WAVE_LEAST ? left : std::max(left / WAVE_OF_REST, WAVE_LEAST);
}

std::vector<WaveRange> cut_waves(const cuda_encoder *encoder) {
    std::vector<WaveRange> waves;
    uint64_t left = encoder->state_bytes, bytes = 0, most = 0, slots = 0, room = 0;

    for (uint32_t s = 0; s < encoder->segments.size(); s++) {
        const cuda_segment &segment = encoder->segments[s];
        const uint64_t here = (uint64_t)segment.elements * segment.kind.width, expected = slots_expected(encoder, s);

        if (waves.empty() || bytes + here / 2 > most || (slots + expected > room && !encoder->options.waves) ||
            encoder->segments[waves.back().first].kind.width != segment.kind.width) {
            waves.push_back({s, 0});
            most = wave_bytes(encoder, left);
            room = slots_for(encoder, {s, 2});
            bytes = slots = 0;
        }
        waves.back().count++;
        bytes += here;
        slots += expected;
        left -= here;
    }
    return waves;
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
                 encoder->memory[i % pipeline(encoder)]);
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

static void drop_graph(cuda_encoder *encoder) {
    if (encoder->graph)
        cudaGraphExecDestroy(encoder->graph);
    encoder->graph = nullptr;
}

// False where there are no graphs.
static bool make_graph(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const std::vector<Wave> &waves) {
    cudaStream_t origin = encoder->memory[0].stream;
    cudaGraph_t graph = nullptr;

    if (cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    enqueue_waves(encoder, ranges, waves, origin);
    const bool whole = cudaGetLastError() == cudaSuccess; // a launch that was refused is missing, and ends no capture

    if (cudaStreamEndCapture(origin, &graph) != cudaSuccess)
        return false;
    bool made = whole && cudaGraphInstantiate(&encoder->graph, graph, 0) == cudaSuccess;

    cudaGraphDestroy(graph);
    return made;
}

enum ulp_status run_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const cuda_moves *moves,
                          uint64_t *sums, cudaStream_t stream) {
    std::vector<Wave> waves;
    enum ulp_status status = make_waves(encoder, ranges, moves, sums, &waves);

    if (status || waves.empty())
        return status;
    const bool again = same_waves(waves, encoder->before);

    if (!again) {
        drop_graph(encoder);
        encoder->before = waves;
    }
    if (again && (encoder->graph || make_graph(encoder, ranges, waves)))
        return cuda_status(cudaGraphLaunch(encoder->graph, stream));
    cudaGetLastError(); // that there is no graph is no failure
    enqueue_waves(encoder, ranges, waves, stream);
    return cuda_status(cudaGetLastError());
}

enum ulp_status run_again(cuda_encoder *encoder, const WaveRange &range, const cuda_moves *moves) {
    WaveMemory *memory = &encoder->memory[0];
    enum ulp_status status = reserve(encoder, range, cells_of(moves), memory);

    if (status)
        return status;
    cudaEventRecord(encoder->placed, memory->stream); // nobody is in front of it
    run_wave(encoder, wave_of(encoder, range, moves, (uint64_t *)encoder->no_sums.data, *memory),
             encoder->segments[range.first].kind.width, *memory);
    return cuda_status(cudaGetLastError());
}
