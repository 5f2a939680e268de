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
#define PIPELINE 4u             // waves on their way, at most ...
#define PIPELINE_USUAL 3u       // ... and as a rule: one is scanned, one finished, one begins
#define WAVE_LEAST (UINT64_C(1) << 28) // bytes; smaller ones do not fill a GPU
#define WAVE_OF_REST 2u         // a wave is that part of what is left: nothing hides the end of the last one
#define CHANGED_USUAL 50u       // one element in so many, as long as nothing is known
#define CHANGES_LEAST (1u << 16)
#define ROOM_FOR_MORE 9 / 8     // changes than the last time
#define OUTPUT_SHARE 128u       // of the state's bytes, to begin with
#define OUTPUT_LEAST (1u << 20) // bytes
#define OUTPUT_SLACK 64u        // words are written and read a bit beyond
#define POOL_SLACK 512u         // numbers are read so many bytes at a time
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

// Which kernels a wave runs depends on the width of its elements, which is not in it.
static bool same_widths(const std::vector<cuda_segment> &segments, const cuda_plan *plan) {
    return segments.size() == plan->segment_count &&
           std::equal(segments.begin(), segments.end(), plan->segments,
                      [](const cuda_segment &x, const cuda_segment &y) { return x.kind.width == y.kind.width; });
}

// What the segments before had is about what others of the same state have.
static void expect_as_before(cuda_encoder *encoder, const cuda_plan *plan) {
    uint64_t changes = 0, elements = 1;

    if (encoder->last_changes.empty())
        return;
    for (size_t i = 0; i < encoder->segments.size(); i++) {
        changes += encoder->last_changes[i];
        elements += encoder->segments[i].elements;
    }
    encoder->last_changes.resize(plan->segment_count);
    for (size_t i = 0; i < plan->segment_count; i++)
        encoder->last_changes[i] = (uint64_t)((double)plan->segments[i].elements * (double)changes / (double)elements);
}

static void take_plan(cuda_encoder *encoder, const cuda_plan *plan) {
    if (!same_widths(encoder->segments, plan))
        encoder->before.clear();
    expect_as_before(encoder, plan);
    encoder->segments.assign(plan->segments, plan->segments + plan->segment_count);
    encoder->blocks.assign(plan->blocks, plan->blocks + plan->block_count);
    encoder->pieces = plan->piece_count;
    encoder->state_bytes = 0;
    for (const cuda_segment &segment : encoder->segments)
        encoder->state_bytes += (uint64_t)segment.elements * segment.kind.width;
    encoder->plan_is_new = true;
}

enum ulp_status cuda_encoder_new(const cuda_plan *plan, const cuda_encoder_options *options, cuda_encoder **ret_encoder) {
    cuda_encoder *encoder = new (std::nothrow) cuda_encoder();
    int first = 0, last = 0;

    if (!encoder)
        return ULP_E_NOMEM;
    take_plan(encoder, plan);
    encoder->options = options ? *options : cuda_encoder_options{};
    cudaEventCreateWithFlags(&encoder->begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&encoder->placed, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&encoder->done, cudaEventDisableTiming);
    cudaDeviceGetStreamPriorityRange(&last, &first);
    for (WaveMemory &memory : encoder->memory) {
        cudaStreamCreateWithPriority(&memory.stream, cudaStreamNonBlocking, first);
        cudaStreamCreateWithPriority(&memory.beside, cudaStreamNonBlocking, first);
        cudaStreamCreateWithPriority(&memory.scan, cudaStreamNonBlocking, last);
        cudaEventCreateWithFlags(&memory.step, cudaEventDisableTiming);
    }
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

// Segments of one width, one after the other, as many as there is room for.
static std::vector<WaveRange> cut_waves(const cuda_encoder *encoder) {
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

static enum ulp_status read_some(cuda_encoder *encoder, const WaveRange &range, cudaStream_t stream,
                                 cuda_segment_report *reports) {
    cudaError_t error = cudaMemcpyAsync(reports + range.first, encoder->reports.data + range.first,
                                        range.count * sizeof *reports, cudaMemcpyDeviceToHost, stream);

    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return cuda_status(error);
}

static enum ulp_status upload(cuda_encoder *encoder, const cuda_block *blocks, cudaStream_t stream) {
    const size_t segment_bytes = encoder->segments.size() * sizeof(cuda_segment);
    const size_t block_bytes = encoder->blocks.size() * sizeof(cuda_block);
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
    if (status) {
        encoder->before.clear(); // its graph writes reports to where they were
        return status;
    }
    if (encoder->plan_is_new)
        cudaMemcpyAsync(encoder->device_segments.data, encoder->segments.data(), segment_bytes, cudaMemcpyHostToDevice,
                        stream);
    if (encoder->plan_is_new || (block_bytes && memcmp(blocks, encoder->blocks.data(), block_bytes) != 0)) {
        encoder->blocks.assign(blocks, blocks + encoder->blocks.size());
        cudaMemcpyAsync(encoder->device_blocks.data, encoder->blocks.data(), block_bytes, cudaMemcpyHostToDevice, stream);
    }
    status = cuda_status(cudaGetLastError());
    encoder->plan_is_new = status != ULP_OK;
    return status;
}

enum ulp_status cuda_encoder_plan(cuda_encoder *encoder, const cuda_plan *plan, void *stream) {
    take_plan(encoder, plan);
    return upload(encoder, plan->blocks, (cudaStream_t)stream);
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

// Of the first segment of a wave, for all of it.
static bool output_was_full(const cuda_segment_report &report) {
    return report.elsewhere & FULL_OUTPUT;
}

// What to do about a wave that did not fit: its halves are to be run or, of a single segment, it again.
static void cut_again(const WaveRange &wave, cuda_segment_report *reports, std::vector<WaveRange> *waiting) {
    const uint32_t full = reports[wave.first].elsewhere, half = (wave.count + 1) / 2;

    if (full <= 1)
        return;
    if (full == FULL_SORT) {
        waiting->push_back(wave);
        return;
    }
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
             encoder->segments[range.first].kind.width, *memory);
    return cuda_status(cudaGetLastError());
}

static enum ulp_status repeat(cuda_encoder *encoder, const std::vector<WaveRange> &waves, const cuda_moves *moves,
                              cudaStream_t stream, cuda_segment_report *reports) {
    std::vector<WaveRange> waiting;
    bool full = false; // the output was, for those that ran since it last grew

    for (const WaveRange &wave : waves) {
        full |= output_was_full(reports[wave.first]);
        cut_again(wave, reports, &waiting);
    }
    while (!waiting.empty()) {
        const WaveRange wave = waiting.back();
        enum ulp_status status = full ? grow_output(encoder, stream) : ULP_OK;

        waiting.pop_back();
        encoder->largest_block = UINT32_MAX;
        if (!status)
            status = run_again(encoder, wave, moves);
        if (!status)
            status = read_some(encoder, wave, encoder->memory[0].stream, reports);
        if (status)
            return status;
        full = output_was_full(reports[wave.first]);
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
    if (cudaStreamEndCapture(origin, &graph) != cudaSuccess)
        return false;
    bool made = cudaGraphInstantiate(&encoder->graph, graph, 0) == cudaSuccess;

    cudaGraphDestroy(graph);
    return made;
}

static enum ulp_status run_waves(cuda_encoder *encoder, const std::vector<WaveRange> &ranges, const cuda_moves *moves,
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

enum ulp_status cuda_encoder_start(cuda_encoder *encoder, const cuda_block *blocks, const cuda_moves *moves,
                                   const cuda_journal *journal, uint64_t *sums, void *stream) {
    enum ulp_status status = upload(encoder, blocks, (cudaStream_t)stream);

    if (!status)
        status = upload_journal(encoder, journal, (cudaStream_t)stream);
    if (status)
        return status;
    encoder->started = cut_waves(encoder);
    encoder->moves = moves ? *moves : cuda_moves{};
    encoder->stream = (cudaStream_t)stream;
    cudaMemsetAsync(encoder->output.data, 0, encoder->output.bytes(), encoder->stream);
    cudaMemsetAsync(encoder->output_used.data, 0, sizeof(uint64_t), encoder->stream);
    return run_waves(encoder, encoder->started, &encoder->moves, sums, encoder->stream);
}

// What the next run can expect.
static void remember(cuda_encoder *encoder, const cuda_segment_report *reports) {
    encoder->last_changes.resize(encoder->segments.size());
    encoder->largest_block = 0;
    for (size_t i = 0; i < encoder->segments.size(); i++) {
        encoder->last_changes[i] = reports[i].changes;
        encoder->largest_block = std::max(encoder->largest_block, reports[i].largest_block);
    }
}

enum ulp_status cuda_encoder_finish(cuda_encoder *encoder, cuda_segment_report *ret_reports, const uint8_t **ret_output) {
    enum ulp_status status = read_some(encoder, {0, (uint32_t)encoder->segments.size()}, encoder->stream, ret_reports);

    if (!status)
        status = repeat(encoder, encoder->started, &encoder->moves, encoder->stream, ret_reports);
    *ret_output = encoder->output.data;
    if (!status)
        remember(encoder, ret_reports);
    return status;
}

enum ulp_status cuda_encoder_run(cuda_encoder *encoder, const cuda_block *blocks, const cuda_moves *moves,
                                 const cuda_journal *journal, uint64_t *sums, void *stream,
                                 cuda_segment_report *ret_reports, const uint8_t **ret_output) {
    enum ulp_status status = cuda_encoder_start(encoder, blocks, moves, journal, sums, stream);

    return status ? status : cuda_encoder_finish(encoder, ret_reports, ret_output);
}
