# SPDX-License-Identifier: Apache-2.0
"""Writes segments as it is told to, also such as no encoder writes: for what must be refused."""

from segment import CONTEXT, HISTORY, PLAIN, gap_range, gap_table, tans_table, value_range


class Writer:
    def __init__(self):
        self.bits, self.count = 0, 0

    def put(self, value, bits):
        assert value >> bits == 0, (value, bits)
        self.bits |= value << self.count
        self.count += bits

    def rice(self, number, parameter, long=False):
        if number >> parameter >= 24 or long:
            self.put((1 << 24) - 1, 24)
            self.put(number, 32)
        else:
            self.put((1 << (number >> parameter)) - 1, (number >> parameter) + 1)
            self.put(number & (1 << parameter) - 1, parameter)

    def column(self, parameter, values, long=False):
        self.put(parameter, 4)
        before = 0
        for value in values:
            difference = value - before
            zigzag = 2 * difference if difference >= 0 else -2 * difference - 1
            self.rice(zigzag, parameter, long)
            before = value

    def shares(self, shares):
        for share in shares:
            self.put(share.bit_length(), 4)
            if share:
                self.put(share - (1 << share.bit_length() - 1), share.bit_length() - 1)

    def gaps(self, rate_and_top):
        self.put(rate_and_top is not None, 1)
        if rate_and_top is not None:
            self.put(rate_and_top[0], 16)
            self.put(rate_and_top[1], 7)

    def whole_bytes(self, padding=0):
        self.put(padding, -self.count % 8)
        return self.bits.to_bytes(self.count // 8, "little")


def payload(*runs, states=(0,) * 8, spare=0):
    """Runs of (table, what a symbol means, numbers), in the order in which they are read. The
    states at the end should be zero, and no bits to spare."""
    states, acc, count = list(states), 0, spare

    def push(value, bits):
        nonlocal acc, count
        acc |= value << count
        count += bits

    for table, number_range, numbers in reversed(runs):
        for i in reversed(range(len(numbers))):
            symbol = max(s for s, _, _ in table if number_range(s)[0] <= numbers[i])
            first, extra = number_range(symbol)
            push(numbers[i] - first, extra)
            state, bits, following = next(
                (state, bits, following)
                for state, (s, bits, following) in enumerate(table)
                if s == symbol and 0 <= states[i & 7] - following < 1 << bits
            )
            push(states[i & 7] - following, bits)
            states[i & 7] = state
    for state in reversed(states):
        push(state, 10)
    push(1, 1)
    return acc.to_bytes((count + 7) // 8, "little")


def context(
    classes,
    columns,
    payloads,
    coder=CONTEXT,
    flipped=None,
    runs=None,
    count=None,
    long=False,
    padding=0,
):
    """classes: (gaps, shares of the values), each or None; gaps: (rate, top). columns: (parameter,
    numbers)."""
    writer = Writer()
    writer.put(coder, 2)
    writer.put((count or len(classes)) - 1, 4)
    writer.put(len(classes) if flipped is None else flipped, 5)
    for name, run in runs or [(0, 64)] * (7 if coder == HISTORY else 1):
        writer.put(name, 4)
        writer.rice(run - 1, 1)
    for gaps, shares in classes:
        writer.gaps(gaps)
        writer.put(shares is not None, 1)
        if shares is not None:
            writer.put(len(shares) - 1, 8)
            writer.shares(shares)
    for parameter, numbers in columns:
        writer.column(parameter, numbers, long)
    return writer.whole_bytes(padding) + b"".join(payloads)


def absolute(coder, planes, columns, payloads, flipped=0, gaps=None, padding=0):
    """planes: (first, shares) or None for raw ones."""
    writer = Writer()
    writer.put(coder, 2)
    if coder == PLAIN:
        writer.put(flipped, 1)
        writer.gaps(gaps)
    for plane in planes:
        writer.put(plane is not None, 1)
        if plane is not None:
            writer.put(plane[0], 8)
            writer.put(plane[0] + len(plane[1]) - 1, 8)
            writer.shares(plane[1])
    for parameter, numbers in columns:
        writer.column(parameter, numbers)
    return writer.whole_bytes(padding) + b"".join(payloads)


def gap_run(gaps, numbers):
    return gap_table(*gaps), gap_range, numbers


def value_run(shares, numbers):
    return tans_table(shares), value_range, numbers
