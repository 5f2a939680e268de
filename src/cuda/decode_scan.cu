// SPDX-License-Identifier: Apache-2.0
// Twin: code/context_scan.c, scan_decode(), with digest_replace(). A block of threads takes a block
// of elements, tile after tile, and turns the ranks of its changes into positions and their steps
// into new elements, in the place of both. A tile is counted (scan_counts.cuh), the events that lie
// in it are told from the counts, and each is found (scan_find.cuh). In the end the list, which comes
// class by class, is put into the order of positions (order.cuh): who writes to them is then faster.
#include "cuda/mix.cuh"
#include "cuda/order.cuh"
#include "cuda/scan_find.cuh"
#include "cuda/status.cuh"

// ---- which events are in the tile ----

// What the 16 threads of a class keep from tile to tile.
struct feed {
    const uint32_t *ranks; // of the class
    uint32_t list;         // where they begin in the block's list
    uint32_t changes, taken;
    uint32_t elements; // of the class so far
    uint32_t ahead[2]; // this thread's of the next ranks, and of those behind, loaded early
};

__device__ static __forceinline__ uint32_t rank_or_none(const struct feed *feed, uint32_t i) {
    return i < feed->changes ? feed->ranks[i] : UINT32_MAX;
}

// The ranks of the next tile are mostly among these, and are there before it has been counted.
__device__ static __forceinline__ void look_ahead(struct feed *feed) {
    feed->ahead[0] = rank_or_none(feed, feed->taken + threadIdx.x % GROUPS);
    feed->ahead[1] = rank_or_none(feed, feed->taken + threadIdx.x % GROUPS + GROUPS);
}

__device__ static struct feed feed_open(const struct cuda_decode *decode,
                                        const struct decode_block *block, const struct scan *scan) {
    const uint32_t classes = scan->segment->classes, in_class = threadIdx.x / GROUPS;
    const uint32_t *changes = decode->counts + block->counts + classes;
    struct feed feed = {scan->positions, 0, 0, 0, 0, {0, 0}};

    for (uint32_t k = 0; k < classes && k < in_class; k++)
        feed.list += changes[k];
    feed.changes = in_class < classes ? changes[in_class] : 0;
    feed.ranks += feed.list;
    look_ahead(&feed);
    return feed;
}

// How many of the next ranks are below `end`: the threads of a class look at 16 at a time.
__device__ static __forceinline__ uint32_t count_below(struct feed *feed, uint32_t end) {
    const uint32_t group = threadIdx.x % GROUPS, first = lane_id() & ~(GROUPS - 1);
    uint32_t count = 0, rank = feed->ahead[0], next = feed->ahead[1];
    bool more = true;

    do {
        const bool below = more && rank < end;
        const uint32_t hits =
            (uint32_t)__popc(__ballot_sync(ALL_LANES, below) >> first & ((1u << GROUPS) - 1));

        count += hits;
        more = hits == GROUPS;
        rank = next;
        next = more ? rank_or_none(feed, feed->taken + count + GROUPS + group) : UINT32_MAX;
    } while (__any_sync(ALL_LANES, more));
    return count;
}

template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ void find_events(scan_shared<WIDTH, HISTORY> *shared,
                                                   struct feed *feed) {
    const uint32_t in_class = threadIdx.x / GROUPS, group = threadIdx.x % GROUPS;
    const uint4 counts = *(const uint4 *)&shared->counts[in_class][group * GROUP_CHUNKS];
    const uint32_t here =
        byte_sum(counts.x) + byte_sum(counts.y) + byte_sum(counts.z) + byte_sum(counts.w);
    const uint32_t until = sum_up(here, GROUPS);
    const uint32_t end = feed->elements + __shfl_sync(ALL_LANES, until, GROUPS - 1, GROUPS);
    const uint32_t events = count_below(feed, end);

    shared->group_start[threadIdx.x] = (uint16_t)(until - here);
    if (group == 0) {
        shared->class_start[in_class] = feed->elements;
        shared->events[in_class] = events;
        shared->list[in_class] = feed->list + feed->taken;
    }
    feed->elements = end;
    feed->taken += events;
    look_ahead(feed);
}

// ---- the events of a tile ----

// One event, found.
template <unsigned WIDTH> struct found {
    uint32_t at; // of the tile
    typename element<WIDTH>::type value;
};

// The class of the i-th event of the tile, and which of the class's it is. All lanes come here.
__device__ static __forceinline__ uint32_t class_of_event(uint32_t starts, uint32_t i,
                                                          uint32_t *ret_index) {
    uint32_t in_class = 0;

#pragma unroll
    for (uint32_t by = DECODE_CLASSES / 2; by; by /= 2)
        in_class += __shfl_sync(ALL_LANES, starts, (int)(in_class + by)) <= i ? by : 0;
    *ret_index = i - __shfl_sync(ALL_LANES, starts, (int)in_class);
    return in_class;
}

// Finds an event's element, writes position and new value to the list in place of rank and step.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ struct found<WIDTH>
find_change(const scan_shared<WIDTH, HISTORY> *shared, const tile<WIDTH> *from,
            const struct scan *scan, uint32_t in_class, uint32_t index, uint32_t first) {
    typedef typename element<WIDTH>::type type;
    const uint32_t at = shared->list[in_class] + index;
    type *value = (type *)scan->values + at;
    type step = *value;
    struct found<WIDTH> found;

    found.at = find_element(shared, from, in_class,
                            scan->positions[at] - shared->class_start[in_class], scan->kind);
    if (HISTORY && shared->down[found.at / TILE_CHUNK] >> found.at % TILE_CHUNK & 1)
        step = (type)(0 - step);
    found.value = (type)(from->get(found.at) + step);
    scan->positions[at] = first + found.at;
    *value = found.value;
    return found;
}

// The first event of a word takes its old mix out of the sum, and adds the new one when all events
// have written to the tile.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ bool claim_word(scan_shared<WIDTH, HISTORY> *shared,
                                                  uint32_t at) {
    const uint32_t word = at * WIDTH / 8, bit = 1u << word % 32;

    return !(atomicOr(&shared->claimed[word / 32], bit) & bit);
}

// The tile's events as a thread meets them: number `i`, then TILE_THREADS further, and so on.
struct turn {
    uint32_t starts; // lane k: events of the classes in front of class k
    uint32_t total;
    uint32_t mine; // the first
};

template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ struct turn
events_of_tile(const scan_shared<WIDTH, HISTORY> *shared, uint32_t index) {
    const uint32_t events = lane_id() < DECODE_CLASSES ? shared->events[lane_id()] : 0;
    const uint32_t until = sum_up(events, DECODE_CLASSES);

    // warps take turns to be the first, since the last ones often find nothing left
    return {lane_id() < DECODE_CLASSES ? until - events : UINT32_MAX,
            __shfl_sync(ALL_LANES, until, DECODE_CLASSES - 1),
            (threadIdx.x + index * WARP) % TILE_THREADS};
}

// What this thread found in an earlier round is in the list.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ struct found<WIDTH>
reload(const scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan, const struct turn *turn,
       uint32_t i, uint32_t first) {
    uint32_t index, in_class = class_of_event(turn->starts, i, &index);
    const uint32_t at = i < turn->total ? shared->list[in_class] + index : 0;

    return {scan->positions[at] - first, ((const typename element<WIDTH>::type *)scan->values)[at]};
}

template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ void take_events(scan_shared<WIDTH, HISTORY> *shared,
                                                   tile<WIDTH> *in, const struct scan *scan,
                                                   uint32_t index, struct ulp_sum *sum) {
    const struct turn turn = events_of_tile<WIDTH, HISTORY>(shared, index);
    const bool rounds = turn.total > TILE_THREADS; // mostly one is enough
    const uint32_t first = index * TILE_ELEMENTS;
    const uint64_t first_word = scan->block.first_word + (uint64_t)first * WIDTH / 8;
    struct found<WIDTH> found = {};
    uint32_t claims = 0;

    if (!turn.total)
        return;
    for (uint32_t i = turn.mine, round = 0; i - lane_id() < turn.total;
         i += TILE_THREADS, round++) {
        uint32_t of_class, in_class = class_of_event(turn.starts, i, &of_class);

        if (i >= turn.total)
            continue;
        found = find_change<WIDTH, HISTORY>(shared, in, scan, in_class, of_class, first);
        if (claim_word<WIDTH, HISTORY>(shared, found.at)) {
            const uint32_t word = found.at * WIDTH / 8;

            claims |= 1u << round;
            sum_subtract(sum, digest_mix(first_word + word, in->word(word)));
        }
    }
    __syncthreads();
    for (uint32_t i = turn.mine; i - lane_id() < turn.total; i += TILE_THREADS) {
        if (rounds)
            found = reload<WIDTH, HISTORY>(shared, scan, &turn, i, first);
        if (i < turn.total)
            in->set(found.at, found.value);
    }
    __syncthreads();
    for (uint32_t i = turn.mine; i - lane_id() < turn.total; i += TILE_THREADS, claims >>= 1) {
        if (rounds)
            found = reload<WIDTH, HISTORY>(shared, scan, &turn, i, first);
        if (claims & 1) {
            const uint32_t word = found.at * WIDTH / 8;

            sum_add(sum, digest_mix(first_word + word, in->word(word)));
        }
    }
    for (uint32_t i = threadIdx.x; i < CLAIM_WORDS(WIDTH); i += TILE_THREADS)
        shared->claimed[i] = 0;
}

// ---- a block ----

// Every change was found and, in a flipped class, every element that is none is an event.
__device__ static bool feed_fits(const struct cuda_decode *decode, const struct decode_block *block,
                                 const struct scan *scan, const struct feed *feed) {
    const uint32_t in_class = threadIdx.x / GROUPS;
    const uint32_t *events = decode->counts + block->counts;

    if (feed->taken != feed->changes)
        return false;
    return in_class < scan->segment->flipped || in_class >= scan->segment->classes ||
           feed->elements == events[in_class] + feed->changes;
}

template <unsigned WIDTH, bool HISTORY>
__device__ static void scan_tiles(scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan,
                                  struct feed *feed, uint32_t tiles, struct ulp_sum *sum) {
    constexpr bool two = buffers<WIDTH>::count == 2;
    const uint32_t elements = scan->block.elements;

    tile_fill<WIDTH>(&shared->tiles[0], scan->block.old, min(elements, TILE_ELEMENTS));
    for (uint32_t i = 0; i < tiles; i++) {
        const uint32_t next = (i + 1) * TILE_ELEMENTS;
        const uint32_t here = min(elements - i * TILE_ELEMENTS, TILE_ELEMENTS);
        const uint32_t mine =
            here > threadIdx.x * TILE_CHUNK ? min(here - threadIdx.x * TILE_CHUNK, TILE_CHUNK) : 0;
        tile<WIDTH> *now = &shared->tiles[two ? i % 2 : 0];

        copies_done();
        __syncthreads();
        if constexpr (two) {
            if (next < elements)
                tile_fill<WIDTH>(&shared->tiles[(i + 1) % 2],
                                 scan->block.old + (size_t)next * WIDTH,
                                 min(elements - next, TILE_ELEMENTS));
        }
        count_chunk<WIDTH, HISTORY>(shared, now, mine, scan->kind);
        __syncthreads();
        if constexpr (HISTORY) {
            correct_moved<WIDTH>(shared, now, scan, i, here);
            __syncthreads();
        }
        find_events<WIDTH, HISTORY>(shared, feed);
        __syncthreads();
        take_events<WIDTH, HISTORY>(shared, now, scan, i, sum);
        if (!two && next < elements) {
            __syncthreads();
            tile_fill<WIDTH>(&shared->tiles[0], scan->block.old + (size_t)next * WIDTH,
                             min(elements - next, TILE_ELEMENTS));
        }
    }
}

template <unsigned WIDTH, bool HISTORY>
__global__ static void __launch_bounds__(TILE_THREADS, HISTORY ? buffers<WIDTH>::with_history : buffers<WIDTH>::blocks)
    scan_blocks(struct cuda_decode decode, struct decode_range range) {
    typedef scan_shared<WIDTH, HISTORY> shared_type;
    DYNAMIC_SHARED(shared_type, shared);
    const uint32_t number = range.first + blockIdx.x;
    const struct decode_block block = decode.blocks[number];
    const struct decode_segment *segment = &decode.segments[block.segment];
    const struct scan scan = {decode.plan[block.block],
                              segment->kind,
                              segment,
                              HISTORY ? decode.moves + block.moves : nullptr,
                              decode.positions + block.first,
                              decode.values + block.values};
    const uint32_t tiles = (scan.block.elements + TILE_ELEMENTS - 1) / TILE_ELEMENTS;
    struct ulp_sum sum = {{0, 0}};

    if (decode.faults[number]) // its lists are not to be trusted
        return;
    struct feed feed = feed_open(&decode, &block, &scan);

    make_lookup<WIDTH, HISTORY>(shared, &scan);
    if constexpr (HISTORY)
        find_moves<WIDTH>(shared, &scan, block.move_count, tiles);
    for (uint32_t i = threadIdx.x; i < CLAIM_WORDS(WIDTH); i += TILE_THREADS)
        shared->claimed[i] = 0;
    if (threadIdx.x == 0)
        shared->misfit = 0;
    scan_tiles<WIDTH, HISTORY>(shared, &scan, &feed, tiles, &sum);
    deliver_sum(sum, &decode.sums[2 * (size_t)scan.block.piece]);
    if (!feed_fits(&decode, &block, &scan, &feed)) {
        shared->misfit = 1;
        if (!atomicExch(&decode.faults[number], DECODE_MISFIT))
            atomicAdd(decode.failed, 1u);
    }
    __syncthreads();
    const bool fits = !shared->misfit; // else there are ranks in the list that were not found

    __syncthreads();
    if (fits)
        sort_changes<WIDTH>((struct sorter<WIDTH> *)shared, scan.positions,
                            (typename element<WIDTH>::type *)scan.values, block.changes,
                            scan.block.elements);
}

template <unsigned WIDTH, bool HISTORY>
static void scan_width(const struct cuda_decode *decode, struct decode_range range,
                       cudaStream_t stream) {
    constexpr size_t scanning = sizeof(scan_shared<WIDTH, HISTORY>), sorting = sizeof(sorter<WIDTH>);

    static_assert(ORDER_THREADS == TILE_THREADS, "the same threads sort what they found");
    launch(scan_blocks<WIDTH, HISTORY>, range.coded, TILE_THREADS,
           scanning > sorting ? scanning : sorting, stream, *decode, range);
}

extern "C" enum ulp_status cuda_decode_scan(const struct cuda_decode *decode, void *stream) {
    static void (*const plain[])(const struct cuda_decode *, struct decode_range, cudaStream_t) = {
        scan_width<1, false>, scan_width<2, false>, scan_width<4, false>, scan_width<8, false>};
    static void (*const history[])(const struct cuda_decode *, struct decode_range,
                                   cudaStream_t) = {scan_width<1, true>, scan_width<2, true>,
                                                    scan_width<4, true>, scan_width<8, true>};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        (decode->moves ? history : plain)[w](decode, decode->ranges[w], (cudaStream_t)stream);
    return cuda_status(cudaGetLastError());
}
