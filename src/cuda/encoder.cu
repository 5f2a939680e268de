// SPDX-License-Identifier: Apache-2.0
// The encoder's life: its plan, runs, and what is done about what did not fit.
#include "cuda/encoder.cuh"

#include <algorithm>
#include <cstring>
#include <new>

#define OUTPUT_SHARE 128u       // of the state's bytes, to begin with
#define OUTPUT_LEAST (1u << 20) // bytes

// ---- making, and the plan ----

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

// ---- what did not fit ----

static enum ulp_status read_some(cuda_encoder *encoder, const WaveRange &range, cudaStream_t stream,
                                 cuda_segment_report *reports) {
    cudaError_t error = cudaMemcpyAsync(reports + range.first, encoder->reports.data + range.first,
                                        range.count * sizeof *reports, cudaMemcpyDeviceToHost, stream);

    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return cuda_status(error);
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

// ---- runs ----

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
    else
        cudaStreamSynchronize(encoder->memory[0].stream); // of what is done again the caller's knows nothing
    return status;
}

enum ulp_status cuda_encoder_run(cuda_encoder *encoder, const cuda_block *blocks, const cuda_moves *moves,
                                 const cuda_journal *journal, uint64_t *sums, void *stream,
                                 cuda_segment_report *ret_reports, const uint8_t **ret_output) {
    enum ulp_status status = cuda_encoder_start(encoder, blocks, moves, journal, sums, stream);

    return status ? status : cuda_encoder_finish(encoder, ret_reports, ret_output);
}
