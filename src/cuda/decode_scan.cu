// SPDX-License-Identifier: Apache-2.0
// Twin: code/context_scan.c, scan_decode(), with digest_replace(). A block of threads takes a block
// of elements, tile after tile, and turns the ranks of its changes into positions and their steps
// into new elements, in the place of both.
//
// How many elements of each class are where? A lookup by exponent gives a 64-bit word with a 1 in
// the field of the class; sixteen fields of four bits count eight elements, a part. Parts add up to
// chunks of 32 elements, a byte for each class; chunks to groups; groups to the tile. Each event
// goes down the same way: to its group, chunk, part, and bit.
//
// Elements that moved in the patch before have another class than their exponent alone says; those
// few are corrected in all counts, and remembered for the last step.
#include "cuda/decode.h"

#include "cuda/mix.cuh"
#include "cuda/tile.cuh"

#define PART 8u
#define PARTS (TILE_CHUNK / PART)
#define GROUPS 16u // of chunks; one thread for each class and group
#define GROUP_CHUNKS (TILE_CHUNKS / GROUPS)
#define TILES_MAX (DECODE_BLOCK_MAX / TILE_ELEMENTS)
#define ROUNDS_MAX (TILE_ELEMENTS / TILE_THREADS)
#define SLOTS 256u // exponents that are told apart; wider ones are clipped to cells first
#define NEGATIVE 0x80u
#define CLAIM_WORDS(WIDTH) (TILE_ELEMENTS * (WIDTH) / 8 / 32) // a bit for each word of the digest

static_assert(GROUPS * DECODE_CLASSES == TILE_THREADS, "a thread for each class and group");
static_assert(GROUP_CHUNKS == 16, "the counts of a group are one vector");
static_assert(ROUNDS_MAX <= 32, "a bit for each round");

// Tiles are loaded one ahead, where there is room for two.
template <int WIDTH> struct buffers {
    static constexpr unsigned count = WIDTH <= 4 ? 2 : 1;
};

template <int WIDTH, bool HISTORY> struct scan_shared {
    tile<WIDTH> tiles[buffers<WIDTH>::count];
    uint2 parts[PARTS][TILE_CHUNKS];             // four bits for each class
    uint8_t counts[DECODE_CLASSES][TILE_CHUNKS]; // of each chunk
    uint2 ones[SLOTS];                           // by exponent: 1 in the field of its class
    uint16_t group_start[TILE_THREADS];          // of each class: elements in front of the group
    uint32_t class_start[DECODE_CLASSES];        // elements in front of the tile
    uint32_t events[DECODE_CLASSES];             // in the tile ...
    uint32_t list[DECODE_CLASSES];               // ... and where the first is in the block's list
    uint32_t claimed[CLAIM_WORDS(WIDTH)];        // words of the digest that change

    uint8_t class_of[HISTORY ? CELLS : 1];
    uint32_t move_start[HISTORY ? TILES_MAX + 1 : 1]; // of each tile
    uint32_t moved[HISTORY ? TILE_CHUNKS : 1];        // a bit for each element
    uint8_t moved_class[HISTORY ? TILE_ELEMENTS : 1]; // of those; NEGATIVE if it moved down
};

// What a thread knows of the block.
struct scan {
    struct cuda_block block;
    struct code_kind kind;
    const struct decode_segment *segment;
    const decode_move *moves;
    uint32_t *positions; // of the block's changes: ranks, until they are found
    uint8_t *values;
};

// ---- classes ----

// Where an element's class is looked up.
template <int WIDTH>
__device__ static __forceinline__ uint32_t slot_of(typename element<WIDTH>::type old,
                                                   struct code_kind kind) {
    const uint32_t exponent =
        (uint32_t)(old >> kind.exponent_shift) & ((1u << kind.exponent_bits) - 1);

    if (WIDTH < 8)
        return exponent;
    return exponent < kind.lowest ? 0 : min(exponent - kind.lowest, EXPONENT_CELLS - 1);
}

// code_cell() of what has this slot.
template <int WIDTH>
__device__ static __forceinline__ uint32_t cell_of_slot(uint32_t slot, struct code_kind kind) {
    if (WIDTH == 8)
        return min(slot, EXPONENT_CELLS - 1);
    return slot < kind.lowest ? 0 : min(slot - kind.lowest, EXPONENT_CELLS - 1);
}

__device__ static __forceinline__ uint32_t field_of(uint2 fields, uint32_t in_class) {
    return (in_class < 8 ? fields.x : fields.y) >> 4 * (in_class % 8) & 15;
}

template <int WIDTH, bool HISTORY>
__device__ static void make_lookup(scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += TILE_THREADS) {
        const uint32_t cell = cell_of_slot<WIDTH>(slot, scan->kind);
        const uint32_t in_class = scan->segment->class_of[cell] % DECODE_CLASSES;
        const uint32_t one = 1u << 4 * (in_class % 8);

        shared->ones[slot] = in_class < 8 ? uint2{one, 0} : uint2{0, one};
    }
}

// ---- counting ----

__device__ static __forceinline__ uint2 add(uint2 a, uint2 b) {
    return {a.x + b.x, a.y + b.y};
}

// Two elements of two bytes: the exponent is shifted to where it is the offset of an 8-byte entry.
__device__ static __forceinline__ uint2 count_pair(const uint2 *ones, uint32_t pair, uint32_t shift,
                                                   uint32_t mask) {
    const uint8_t *base = (const uint8_t *)ones;

    return add(*(const uint2 *)(base + (pair >> shift & mask)),
               *(const uint2 *)(base + (pair >> 16 >> shift & mask)));
}

// The classes of eight elements, of which the last may be missing.
template <int WIDTH>
__device__ static __forceinline__ uint2 count_part(const tile<WIDTH> *from, const uint2 *ones,
                                                   uint32_t chunk, uint32_t part, uint32_t elements,
                                                   struct code_kind kind) {
    uint2 sum = {0, 0};

    if (WIDTH == 2 && elements == PART) {
        const uint4 eight = from->vector(chunk, part);
        const uint32_t shift = kind.exponent_bits ? kind.exponent_shift - 3u : 0;
        const uint32_t mask = ((1u << kind.exponent_bits) - 1) << 3;

        sum = add(count_pair(ones, eight.x, shift, mask), count_pair(ones, eight.y, shift, mask));
        return add(sum, add(count_pair(ones, eight.z, shift, mask),
                            count_pair(ones, eight.w, shift, mask)));
    }
#pragma unroll
    for (uint32_t i = 0; i < PART; i++) {
        if (i < elements)
            sum = add(sum, ones[slot_of<WIDTH>(from->get(chunk * TILE_CHUNK + part * PART + i), kind)]);
    }
    return sum;
}

// Each thread counts its chunk, of which `elements` are there.
template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ void count_chunk(scan_shared<WIDTH, HISTORY> *shared,
                                                   const tile<WIDTH> *from, uint32_t elements,
                                                   struct code_kind kind) {
    const uint32_t chunk = threadIdx.x, nibbles = 0x0f0f0f0f;
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}; // classes 0, 2, 4, 6 and 1, 3, 5, 7; 8 more of each

#pragma unroll
    for (uint32_t part = 0; part < PARTS; part++) {
        const uint32_t here = elements > part * PART ? min(elements - part * PART, PART) : 0;
        const uint2 sum = count_part<WIDTH>(from, shared->ones, chunk, part, here, kind);

        shared->parts[part][chunk] = sum;
        even[0] += sum.x & nibbles;
        odd[0] += sum.x >> 4 & nibbles;
        even[1] += sum.y & nibbles;
        odd[1] += sum.y >> 4 & nibbles;
    }
#pragma unroll
    for (uint32_t k = 0; k < DECODE_CLASSES; k += 2) {
        shared->counts[k][chunk] = (uint8_t)(even[k / 8] >> 4 * (k % 8));
        shared->counts[k + 1][chunk] = (uint8_t)(odd[k / 8] >> 4 * (k % 8));
    }
    if (HISTORY)
        shared->moved[chunk] = 0;
}

// ---- elements that moved before ----

// Where the moves of each tile begin; they ascend.
template <int WIDTH>
__device__ static void find_moves(scan_shared<WIDTH, true> *shared, const struct scan *scan,
                                  uint32_t move_count, uint32_t tiles) {
    for (uint32_t i = threadIdx.x; i <= tiles; i += TILE_THREADS) {
        uint32_t low = 0, high = move_count;

        while (low < high) {
            const uint32_t middle = (low + high) / 2;

            if (scan->moves[middle] >> 8 < i * TILE_ELEMENTS)
                low = middle + 1;
            else
                high = middle;
        }
        shared->move_start[i] = low;
    }
    for (uint32_t i = threadIdx.x; i < CELLS; i += TILE_THREADS)
        shared->class_of[i] = scan->segment->class_of[i] % DECODE_CLASSES;
}

__device__ static __forceinline__ uint32_t move_bucket(int move) {
    const int size = move < 0 ? -move : move;

    return size <= 2 ? (uint32_t)size : size <= 4 ? 3 : size <= 8 ? 4 : size <= 24 ? 5 : 6;
}

// One more or one fewer of a class. Others change the same words: fields never carry in the end,
// whatever they do between.
template <int WIDTH>
__device__ static void correct(scan_shared<WIDTH, true> *shared, uint32_t i, uint32_t in_class,
                               uint32_t by) {
    const uint32_t chunk = i / TILE_CHUNK;
    uint2 *part = &shared->parts[i % TILE_CHUNK / PART][chunk];

    atomicAdd(in_class < 8 ? &part->x : &part->y, by << 4 * (in_class % 8));
    atomicAdd((uint32_t *)&shared->counts[in_class][chunk & ~3u], by << 8 * (chunk % 4));
}

template <int WIDTH>
__device__ static void correct_moved(scan_shared<WIDTH, true> *shared, const tile<WIDTH> *from,
                                     const struct scan *scan, uint32_t index, uint32_t elements) {
    const uint32_t end = shared->move_start[index + 1];

    for (uint32_t m = shared->move_start[index] + threadIdx.x; m < end; m += TILE_THREADS) {
        const uint32_t i = (scan->moves[m] >> 8) - index * TILE_ELEMENTS;
        const int move = (int8_t)(scan->moves[m] & 255);

        if (i >= elements)
            continue;
        const uint32_t slot = slot_of<WIDTH>(from->get(i), scan->kind);
        const uint32_t cell = cell_of_slot<WIDTH>(slot, scan->kind);
        const uint32_t plain = shared->class_of[cell];
        const uint32_t moved = shared->class_of[cell + EXPONENT_CELLS * move_bucket(move)];

        shared->moved_class[i] = (uint8_t)(moved | (move < 0 ? NEGATIVE : 0));
        atomicOr(&shared->moved[i / TILE_CHUNK], 1u << i % TILE_CHUNK);
        if (moved != plain) {
            correct(shared, i, moved, 1u);
            correct(shared, i, plain, 0u - 1u);
        }
    }
}

// ---- which events are in the tile ----

// What the 16 threads of a class keep from tile to tile.
struct feed {
    const uint32_t *ranks; // of the class
    uint32_t list;         // where they begin in the block's list
    uint32_t changes, taken;
    uint32_t elements; // of the class so far
    uint32_t ahead;    // this thread's of the next ranks, loaded early
};

__device__ static __forceinline__ uint32_t rank_or_none(const struct feed *feed, uint32_t i) {
    return i < feed->changes ? feed->ranks[i] : UINT32_MAX;
}

__device__ static struct feed feed_open(const struct cuda_decode *decode,
                                        const struct decode_block *block, const struct scan *scan) {
    const uint32_t classes = scan->segment->classes, in_class = threadIdx.x / GROUPS;
    const uint32_t *changes = decode->counts + block->counts + classes;
    struct feed feed = {scan->positions, 0, 0, 0, 0, 0};

    for (uint32_t k = 0; k < classes && k < in_class; k++)
        feed.list += changes[k];
    feed.changes = in_class < classes ? changes[in_class] : 0;
    feed.ranks += feed.list;
    feed.ahead = rank_or_none(&feed, threadIdx.x % GROUPS);
    return feed;
}

__device__ static __forceinline__ uint32_t byte_sum(uint32_t bytes) {
    return __dp4a(bytes, 0x01010101u, 0u);
}

// How many of the next ranks are below `end`: the threads of a class look at 16 at a time.
__device__ static __forceinline__ uint32_t count_below(struct feed *feed, uint32_t end) {
    const uint32_t group = threadIdx.x % GROUPS, first = lane_id() & ~(GROUPS - 1);
    uint32_t count = 0, rank = feed->ahead;
    bool more = true;

    do {
        const bool below = more && rank < end;
        const uint32_t hits =
            (uint32_t)__popc(__ballot_sync(ALL_LANES, below) >> first & ((1u << GROUPS) - 1));

        count += hits;
        more = hits == GROUPS;
        rank = more ? rank_or_none(feed, feed->taken + count + group) : UINT32_MAX;
    } while (__any_sync(ALL_LANES, more));
    return count;
}

template <int WIDTH, bool HISTORY>
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
    feed->ahead = rank_or_none(feed, feed->taken + group);
}

// ---- from rank to element ----

// The rank-th element of a class in a part of eight.
template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ uint32_t find_in_part(const scan_shared<WIDTH, HISTORY> *shared,
                                                        const tile<WIDTH> *from, uint32_t first,
                                                        uint32_t in_class, uint32_t rank,
                                                        struct code_kind kind) {
    uint32_t mask = 0;

#pragma unroll
    for (uint32_t i = 0; i < PART; i++)
        mask |= field_of(shared->ones[slot_of<WIDTH>(from->get(first + i), kind)], in_class) << i;
    if (HISTORY) {
        uint32_t moved = shared->moved[first / TILE_CHUNK] >> first % TILE_CHUNK & 255;

        for (; moved; moved &= moved - 1) {
            const uint32_t i = (uint32_t)__ffs(moved) - 1;
            const uint32_t is = (shared->moved_class[first + i] & ~NEGATIVE) == in_class;

            mask = (mask & ~(1u << i)) | is << i;
        }
    }
    for (; rank; rank--)
        mask &= mask - 1;
    return first + (((uint32_t)__ffs(mask) - 1) & (PART - 1));
}

// The rank-th element of a class in the tile. Whatever the rank, the result is in the tile.
template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ uint32_t find_element(const scan_shared<WIDTH, HISTORY> *shared,
                                                        const tile<WIDTH> *from, uint32_t in_class,
                                                        uint32_t rank, struct code_kind kind) {
    const uint16_t *starts = &shared->group_start[in_class * GROUPS];
    uint32_t group = 0, chunk, fours, part = 0;

#pragma unroll
    for (uint32_t by = GROUPS / 2; by; by /= 2)
        group += starts[group + by] <= rank ? by : 0;
    rank -= starts[group];
    chunk = group * GROUP_CHUNKS;
    fours = *(const uint32_t *)&shared->counts[in_class][chunk];
#pragma unroll
    for (uint32_t i = 1; i < GROUP_CHUNKS / 4 && rank >= byte_sum(fours); i++) {
        rank -= byte_sum(fours);
        chunk += 4;
        fours = *(const uint32_t *)&shared->counts[in_class][chunk];
    }
#pragma unroll
    for (uint32_t i = 1; i < 4 && rank >= (fours & 255); i++) {
        rank -= fours & 255;
        chunk++;
        fours >>= 8;
    }
#pragma unroll
    for (uint32_t i = 1; i < PARTS; i++) {
        const uint32_t here = field_of(shared->parts[part][chunk], in_class);

        if (rank < here)
            break;
        rank -= here;
        part++;
    }
    return find_in_part(shared, from, chunk * TILE_CHUNK + part * PART, in_class, min(rank, PART),
                        kind);
}

// ---- the events of a tile ----

// One event, found.
template <int WIDTH> struct found {
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
template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ struct found<WIDTH>
find_change(const scan_shared<WIDTH, HISTORY> *shared, const tile<WIDTH> *from,
            const struct scan *scan, uint32_t in_class, uint32_t index, uint32_t first) {
    typedef typename element<WIDTH>::type type;
    const uint32_t at = shared->list[in_class] + index;
    type *value = (type *)scan->values + at;
    type step = *value;
    struct found<WIDTH> found;

    found.at = find_element(shared, from, in_class,
                                 scan->positions[at] - shared->class_start[in_class],
                                 scan->kind);
    if (HISTORY && shared->moved[found.at / TILE_CHUNK] >> found.at % TILE_CHUNK & 1 &&
        shared->moved_class[found.at] & NEGATIVE)
        step = (type)(0 - step);
    found.value = (type)(from->get(found.at) + step);
    scan->positions[at] = first + found.at;
    *value = found.value;
    return found;
}

// The first event of a word takes its old mix out of the sum, and adds the new one when all events
// have written to the tile.
template <int WIDTH, bool HISTORY>
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

template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ struct turn events_of_tile(
    const scan_shared<WIDTH, HISTORY> *shared, uint32_t index) {
    const uint32_t events = lane_id() < DECODE_CLASSES ? shared->events[lane_id()] : 0;
    const uint32_t until = sum_up(events);

    // warps take turns to be the first, since the last ones often find nothing left
    return {lane_id() < DECODE_CLASSES ? until - events : UINT32_MAX,
            __shfl_sync(ALL_LANES, until, WARP - 1),
            (threadIdx.x + index * WARP) % TILE_THREADS};
}

// What this thread found in an earlier round is in the list.
template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ struct found<WIDTH>
reload(const scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan, const struct turn *turn,
       uint32_t i, uint32_t first) {
    uint32_t index, in_class = class_of_event(turn->starts, i, &index);
    const uint32_t at = i < turn->total ? shared->list[in_class] + index : 0;

    return {scan->positions[at] - first, ((const typename element<WIDTH>::type *)scan->values)[at]};
}

template <int WIDTH, bool HISTORY>
__device__ static __forceinline__ void take_events(scan_shared<WIDTH, HISTORY> *shared,
                                                   tile<WIDTH> *in, const struct scan *scan,
                                                   uint32_t index, struct ulp_sum *sum) {
    const struct turn turn = events_of_tile<WIDTH, HISTORY>(shared, index);
    const bool rounds = turn.total > TILE_THREADS; // mostly one is enough
    const uint32_t first = index * TILE_ELEMENTS;
    const uint64_t first_word = scan->block.first_word + (uint64_t)first * WIDTH / 8;
    struct found<WIDTH> found = {0, 0};
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

template <int WIDTH, bool HISTORY>
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

template <int WIDTH, bool HISTORY>
__global__ static void __launch_bounds__(TILE_THREADS)
    scan_blocks(struct cuda_decode decode, struct decode_range range) {
    typedef scan_shared<WIDTH, HISTORY> shared_type;
    DYNAMIC_SHARED(shared_type, shared);
    const uint32_t number = range.first + blockIdx.x;
    const struct decode_block block = decode.blocks[number];
    const struct decode_segment *segment = &decode.segments[block.segment];
    const struct scan scan = {decode.plan[block.block], segment->kind, segment,
                              HISTORY ? decode.moves + block.moves : nullptr,
                              decode.positions + block.first, decode.values + block.values};
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
    scan_tiles<WIDTH, HISTORY>(shared, &scan, &feed, tiles, &sum);
    deliver_sum(sum, &decode.sums[2 * (size_t)scan.block.piece]);
    if (!feed_fits(&decode, &block, &scan, &feed) && !atomicExch(&decode.faults[number], DECODE_MISFIT))
        atomicAdd(decode.failed, 1u);
}

template <int WIDTH, bool HISTORY>
static void scan_width(const struct cuda_decode *decode, struct decode_range range,
                       cudaStream_t stream) {
    launch(scan_blocks<WIDTH, HISTORY>, range.coded, TILE_THREADS,
           sizeof(scan_shared<WIDTH, HISTORY>), stream, *decode, range);
}

extern "C" enum ulp_status cuda_decode_scan(const struct cuda_decode *decode, void *stream) {
    static void (*const plain[])(const struct cuda_decode *, struct decode_range, cudaStream_t) = {
        scan_width<1, false>, scan_width<2, false>, scan_width<4, false>, scan_width<8, false>};
    static void (*const history[])(const struct cuda_decode *, struct decode_range, cudaStream_t) = {
        scan_width<1, true>, scan_width<2, true>, scan_width<4, true>, scan_width<8, true>};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        (decode->moves ? history : plain)[w](decode, decode->ranges[w], (cudaStream_t)stream);
    return cudaGetLastError() == cudaSuccess ? ULP_OK : ULP_E_UNSUPPORTED;
}
