# SPDX-License-Identifier: Apache-2.0
"""Segments: the coded changes of a chunk, as docs/format/code.md has them.

open_segment(kind, data, sizes) reads what can be read without the weights: header and directory. Of
the result, `coder` is one of those below and `announced` the number of changes, or None where only
the weights tell. Its decode(blocks, moves) gives for each block a list of (element, new value),
ascending. `blocks` are the old elements, an array for each block; `moves` how they moved before, or
None.
"""

import array
import functools
import itertools
import math

from state import Refused, words

CONTEXT, HISTORY, PLAIN, DENSE = range(4)
STATES = 1024
BLOCK_ELEMENTS = 1 << 18
TOP_GAP_SYMBOL = 75


def check(condition, message):
    if not condition:
        raise Refused("ULP_E_CODE", message)


# ---- bits ----------------------------------------------------------------------------------------


class Bits:
    """Header and directory: bits from the lowest of each byte."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        begin, self.at = self.at, self.at + count
        check(self.at <= 8 * len(self.data), "the segment ends within its header")
        some = int.from_bytes(self.data[begin >> 3 : (self.at + 7) >> 3], "little")
        return some >> (begin & 7) & (1 << count) - 1

    def rice(self, parameter):
        ones = 0
        while ones < 24 and self.take(1):
            ones += 1
        if ones < 24:
            return ones << parameter | self.take(parameter)
        number = self.take(32)
        check(number >> parameter >= 24, "a number in a longer form than needed")
        return number

    def column(self, count):
        parameter, value, values = self.take(4), 0, []
        for _ in range(count):
            value += unzigzag(self.rice(parameter))
            check(value >= 0, "a negative count")
            values.append(value)
        return values

    def rest(self):
        check(self.take(-self.at % 8) == 0, "bits behind the directory")
        return self.data[self.at // 8 :]


def unzigzag(number):
    return -(number + 1 >> 1) if number & 1 else number >> 1


# ---- tables of the entropy coder -----------------------------------------------------------------


def tans_table(shares):
    """(symbol, bits, next) of each state; shares: of the symbols from 0 on."""
    symbols, at = [0] * STATES, 0
    for symbol, share in enumerate(shares):
        for _ in range(share):
            symbols[at] = symbol
            at = (at + 643) % STATES
    following, table = list(shares), []
    for symbol in symbols:
        x = following[symbol]
        following[symbol] += 1
        bits = 10 - (x.bit_length() - 1)
        table.append((symbol, bits, (x << bits) - STATES))
    return table


def read_shares(bits, count):
    shares = []
    for _ in range(count):
        length = bits.take(4)
        shares.append(1 << length - 1 | bits.take(length - 1) if length else 0)
    check(sum(shares) == STATES, "shares that do not add up")
    return shares


def times(x, y):
    return x * y >> 32


@functools.cache
def root_of_half(bit):
    """2^32 * 2^(-2^bit / 2048), rounded down. Rounding before a root changes nothing after it."""
    roots = 11 - bit
    value = 1 << (32 << roots) - 1
    for _ in range(roots):
        value = math.isqrt(value)
    return value


def chance(rate):
    p = (1 << 32) >> (rate >> 11)
    for bit in range(11):
        if rate >> bit & 1:
            p = times(p, root_of_half(bit))
    return p


def power(q, exponent):
    result = 1 << 32
    while exponent:
        if exponent & 1:
            result = times(result, q)
        q = times(q, q)
        exponent >>= 1
    return result


def gap_range(symbol):
    """The first gap of a symbol, and its extra bits."""
    if symbol < 8:
        return symbol, 0
    extra = symbol // 4 - 1
    return 4 + symbol % 4 << extra, extra


def value_range(symbol):
    if symbol < 16:
        return symbol, 0
    extra = (symbol - 16) // 2 + 3
    return 2 + symbol % 2 << extra, extra


def value_symbol(value):
    return next(s for s in itertools.count() if value_range(s + 1)[0] > value)


def normalised(counts):
    total = sum(counts)
    shares = [max((STATES * c + total // 2) // total, 1 if c else 0) for c in counts]
    left, largest = STATES - sum(shares), shares.index(max(shares))
    if 24 * abs(left) <= shares[largest]:
        shares[largest] += left
        return shares
    for _ in range(left):
        best = None
        for symbol, (count, share) in enumerate(zip(counts, shares)):
            if best is None or count * (2 * shares[best] + 1) > counts[best] * (2 * share + 1):
                best = symbol
        shares[best] += 1
    for _ in range(-left):
        worst = None
        for symbol, (count, share) in enumerate(zip(counts, shares)):
            if share >= 2 and (
                worst is None or count * (2 * shares[worst] - 1) < counts[worst] * (2 * share - 1)
            ):
                worst = symbol
        shares[worst] -= 1
    return shares


def gap_table(rate, top):
    q, counts = (1 << 32) - chance(rate), []
    for symbol in range(top + 1):
        first, extra = gap_range(symbol)
        counts.append(max(max(power(q, first) - power(q, first + (1 << extra)), 0) >> 6, 1))
    return tans_table(normalised(counts))


def read_gap_table(bits):
    """None if the bit before says that there are no events."""
    if not bits.take(1):
        return None
    rate, top = bits.take(16), bits.take(7)
    check(top <= TOP_GAP_SYMBOL, "a gap symbol beyond the last")
    return gap_table(rate, top)


# ---- payloads ------------------------------------------------------------------------------------


class Payload:
    """A payload, read from its end."""

    def __init__(self, data):
        check(len(data) > 0 and data[-1] != 0, "a payload without its mark")
        self.data = data
        self.at = 8 * len(data) - 9 + data[-1].bit_length()  # the bits below the mark
        self.states = [self.take(10) for _ in range(8)]

    def take(self, count):
        end, self.at = self.at, self.at - count
        check(self.at >= 0, "a payload that ends too soon")
        some = int.from_bytes(self.data[self.at >> 3 : (end + 7) >> 3], "little")
        return some >> (self.at & 7) & (1 << count) - 1

    def numbers(self, table, count, number_range):
        """A run of numbers: gaps, values, or the bytes of a plane."""
        states, take, numbers = self.states, self.take, []
        for i in range(count):
            symbol, bits, following = table[states[i & 7]]
            states[i & 7] = following + take(bits)
            first, extra = number_range(symbol)
            numbers.append(first + take(extra) if extra else first)
        return numbers

    def places(self, table, count):
        """Ranks of events, from their gaps."""
        ranks = [
            rank - 1
            for rank in itertools.accumulate(
                gap + 1 for gap in self.numbers(table, count, gap_range)
            )
        ]
        check(not ranks or ranks[-1] < BLOCK_ELEMENTS, "a rank that is too large")
        return ranks

    def finish(self):
        check(not any(self.states) and self.at == 0, "a payload that does not end where it should")


def cut(data, lengths):
    check(sum(lengths) == len(data), "payloads that do not add up to the bytes that are there")
    ends = list(itertools.accumulate(lengths))
    return [data[end - length : end] for end, length in zip(ends, lengths)]


# ---- context and history -------------------------------------------------------------------------


class Classes:
    """Map and models of a segment that is coded as context or history."""

    def __init__(self, bits, kind, buckets):
        self.kind = kind
        self.count = bits.take(4) + 1
        self.flipped = bits.take(5)
        check(self.flipped <= self.count, "more flipped classes than classes")
        self.maps = [self.read_map(bits) for _ in range(buckets)]
        self.gaps, self.values = [], []
        for _ in range(self.count):
            self.gaps.append(read_gap_table(bits))
            self.values.append(self.read_value_table(bits))

    def read_value_table(self, bits):
        if not bits.take(1):
            return None
        top = bits.take(8)
        check(
            top <= value_symbol((1 << 8 * self.kind.width) - 2),
            "values that are wider than the elements",
        )
        shares = read_shares(bits, top + 1)
        check(shares[top], "a top value symbol that does not occur")
        return tans_table(shares)

    def read_map(self, bits):
        cells = []
        while len(cells) < 64:
            name, run = bits.take(4), bits.rice(1) + 1
            check(name < self.count, "a class that is not there")
            check(len(cells) + run <= 64, "a run beyond the cells")
            cells += [name] * run
        return cells

    def read_counts(self, bits, sizes):
        """For each block (events, changes) of each class. Only flipped classes need two columns."""
        events, changes = [], []
        for c in range(self.count):
            events.append(bits.column(len(sizes)) if self.gaps[c] else [0] * len(sizes))
            if c < self.flipped:
                check(
                    self.values[c] or not any(events[c]), "changes of a class that announced none"
                )
                changes.append(events[c])
            else:
                changes.append(bits.column(len(sizes)) if self.values[c] else [0] * len(sizes))
        for block, size in enumerate(sizes):
            for counts in (events, changes):
                check(
                    sum(count[block] for count in counts) <= size,
                    "more events or changes than elements",
                )
        return [
            [(events[c][block], changes[c][block]) for c in range(self.count)]
            for block in range(len(sizes))
        ]

    def members(self, old, moves):
        """For each class the places of its elements in the block."""
        tables = class_tables(self.kind, self.maps)
        upper = uppermost(old)
        members = [[] for _ in range(self.count)]
        if moves is None:
            names = map(tables[0].__getitem__, upper)
        else:
            names = (tables[BUCKETS[abs(move)]][high] for move, high in zip(moves, upper))
        for place, name in enumerate(names):
            members[name].append(place)
        return members


def bucket(move):
    """The moves 0, 1, 2, 3-4, 5-8, 9-24 and larger ones."""
    return next((i for i, last in enumerate((0, 1, 2, 4, 8, 24)) if move <= last), 6)


BUCKETS = [bucket(move) for move in range(128)]


def uppermost(old):
    """The upper 16 bits of each element, where sign and exponent are; of bytes all 8."""
    if old.itemsize == 1:
        return old
    halves = old.itemsize // 2
    return array.array("H", old.tobytes())[halves - 1 :: halves]


@functools.cache
def exponent_cells(kind):
    """The cell, without its bucket, of an element by its uppermost bits."""
    bits = min(8 * kind.width, 16)
    low = kind.low - (8 * kind.width - bits)
    exponents = (
        (upper >> low & (1 << kind.bits) - 1) - kind.zero if kind.bits else 0
        for upper in range(1 << bits)
    )
    return bytes(min(max(exponent, 0), 63) for exponent in exponents)


def class_tables(kind, maps):
    """For each bucket: the class of an element by its uppermost bits."""
    return [exponent_cells(kind).translate(bytes(cells) + bytes(192)) for cells in maps]


def decode_runs(classes, counts, payload):
    """(ranks of the events, values of the changes) of each class."""
    runs = []
    for c, (events, changes) in enumerate(counts):
        ranks = payload.places(classes.gaps[c], events) if events else []
        runs.append(
            (ranks, payload.numbers(classes.values[c], changes, value_range) if changes else [])
        )
    payload.finish()
    return runs


def changed_places(members, ranks, flipped):
    check(not ranks or ranks[-1] < len(members), "an event beyond the elements of its class")
    if not flipped:
        return [members[rank] for rank in ranks]
    stay = set(ranks)
    return [place for rank, place in enumerate(members) if rank not in stay]


def stepped(kind, old, value, move):
    """The new element. The step was written as if the element had moved upwards before."""
    check(value + 1 < 1 << 8 * kind.width, "a step beyond the element's width")
    step = unzigzag(value + 1)
    return old + (-step if move < 0 else step) & (1 << 8 * kind.width) - 1


class ContextSegment:
    def __init__(self, bits, coder, kind, sizes):
        self.coder = coder
        self.classes = Classes(bits, kind, 7 if coder == HISTORY else 1)
        self.counts = self.classes.read_counts(bits, sizes)
        lengths = bits.column(len(sizes))
        self.payloads = cut(bits.rest(), lengths)
        self.announced = sum(changes for block in self.counts for _, changes in block)
        for counts, payload in zip(self.counts, self.payloads):
            check(
                any(map(any, counts)) == (len(payload) > 0),
                "a payload for nothing, or none where one is needed",
            )

    def decode(self, blocks, moves):
        if self.coder == CONTEXT or moves is None:
            moves = [None] * len(blocks)
        return [
            self.decode_block(*block) for block in zip(self.counts, self.payloads, blocks, moves)
        ]

    def decode_block(self, counts, payload, old, moves):
        classes = self.classes
        if not payload and classes.flipped == classes.count:
            return []
        runs = (
            decode_runs(classes, counts, Payload(payload))
            if payload
            else [([], [])] * classes.count
        )
        changes = []
        for c, members in enumerate(classes.members(old, moves)):
            ranks, values = runs[c]
            places = changed_places(members, ranks, c >= classes.flipped)
            check(len(places) == len(values), "changes that are left over, or missing")
            changes += [
                (place, stepped(classes.kind, old[place], value, moves[place] if moves else 0))
                for place, value in zip(places, values)
            ]
        return sorted(changes)


# ---- plain and dense -----------------------------------------------------------------------------


def itself(symbol):
    return symbol, 0


def read_planes(bits, kind):
    """For each plane its table, or None if it is raw."""
    planes = []
    for _ in range(kind.width):
        if not bits.take(1):
            planes.append(None)
            continue
        first, top = bits.take(8), bits.take(8)
        check(first <= top, "a plane whose first byte is behind its last")
        shares = read_shares(bits, top - first + 1)
        check(shares[0] and shares[-1], "a plane with bytes that do not occur at its ends")
        planes.append(tans_table([0] * first + shares))
    return planes


def read_elements(planes, raw, count, payload, kind):
    """The new elements that a block has to say."""
    data = bytearray(count * kind.width)
    for p, table in enumerate(planes):
        if table is None:
            data[p :: kind.width], raw = raw[:count], raw[count:]
        elif count:
            data[p :: kind.width] = bytes(payload.numbers(table, count, itself))
    elements = words(kind, data)
    if kind.bits:
        top = 8 * kind.width - 1
        return [element >> 1 | (element & 1) << top for element in elements]
    return list(elements)


class Places:
    """Which elements change: in plain as events say, in dense all of them."""

    def __init__(self, bits, plain):
        self.flipped = bits.take(1) if plain else 1
        self.gaps = read_gap_table(bits) if plain else None

    def read_events(self, bits, sizes):
        events = bits.column(len(sizes)) if self.gaps else [0] * len(sizes)
        check(not self.gaps or any(events), "a model that nothing uses")
        for count, size in zip(events, sizes):
            check(count <= size, "more events than elements")
        return events

    def changed(self, payload, events, size):
        ranks = payload.places(self.gaps, events) if events else []
        return changed_places(range(size), ranks, self.flipped)


class AbsoluteSegment:
    """Plain or dense."""

    def __init__(self, bits, coder, kind, sizes):
        self.coder, self.kind, self.sizes = coder, kind, sizes
        plain = coder == PLAIN
        self.places = Places(bits, plain)
        self.planes = read_planes(bits, kind) if self.places.flipped or self.places.gaps else []
        self.events = self.places.read_events(bits, sizes)
        self.said = [
            size - events if self.places.flipped else events
            for events, size in zip(self.events, sizes)
        ]
        check(
            not plain or self.places.flipped == (2 * sum(self.said) > sum(sizes)),
            "the wrong half is named",
        )
        self.announced = sum(self.said) if plain else None
        coded = (
            bits.column(len(sizes)) if self.places.gaps or any(self.planes) else [0] * len(sizes)
        )
        raw = [self.planes.count(None) * said for said in self.said]
        self.payloads = [
            (payload[:r], payload[r:])
            for payload, r in zip(cut(bits.rest(), [r + c for r, c in zip(raw, coded)]), raw)
        ]
        for events, said, (_, part) in zip(self.events, self.said, self.payloads):
            needed = events > 0 or (said > 0 and any(self.planes))
            check(
                needed == (len(part) > 0), "a coded part for nothing, or none where one is needed"
            )

    def decode(self, blocks, _):
        return [self.decode_block(b, old) for b, old in enumerate(blocks)]

    def decode_block(self, b, old):
        raw, coded = self.payloads[b]
        payload = Payload(coded) if coded else None
        places = self.places.changed(payload, self.events[b], self.sizes[b])
        elements = read_elements(self.planes, raw, self.said[b], payload, self.kind)
        if payload:
            payload.finish()
        return differing(old, places, elements, self.coder == PLAIN)


def differing(old, places, elements, plain):
    changes = [(place, new) for place, new in zip(places, elements) if old[place] != new]
    check(not plain or len(changes) == len(places), "a change that changes nothing")
    return changes


def open_segment(kind, data, sizes):
    bits = Bits(data)
    coder = bits.take(2)
    return (ContextSegment if coder in (CONTEXT, HISTORY) else AbsoluteSegment)(
        bits, coder, kind, sizes
    )
