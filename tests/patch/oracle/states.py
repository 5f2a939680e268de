# SPDX-License-Identifier: Apache-2.0
"""Random states for tests: all dtypes, steps as training makes them, and regions."""

import array
import struct

import table as tables
from state import BITS, Form, Tensor, layout_of, words

UNKNOWN = {b"F24_FUTURE": 24, b"X128": 128, b"X48": 48, b"X96": 96}
WIDTHS = {**BITS, **UNKNOWN}


def random_form(rng, dtype, elements):
    """A form of about so many elements."""
    rank = rng.randrange(4)
    shape = [max(1, round(elements ** (1 / rank) * rng.uniform(0.5, 1.5))) for _ in range(rank)]
    if shape and WIDTHS[dtype] < 8:
        shape[rng.randrange(rank)] *= 4  # packed ones have to end on a byte
    if shape and rng.random() < 0.04:
        shape[rng.randrange(rank)] = 0
    if not shape and WIDTHS[dtype] < 8:
        shape = [4]
    count = 1
    for extent in shape:
        count *= extent
    return Form(dtype, tuple(shape), count * WIDTHS[dtype] // 8)


def weights(rng, form):
    """Bytes that look like weights where that means something."""
    count = form.words()
    if form.dtype == b"BF16":
        floats = struct.pack(f"<{count}f", *(rng.gauss(0, 0.02) for _ in range(count)))
        return b"".join(floats[i + 2 : i + 4] for i in range(0, len(floats), 4))
    if form.dtype in (b"F16", b"F32", b"F64"):
        code = {b"F16": "e", b"F32": "f", b"F64": "d"}[form.dtype]
        return struct.pack(f"<{count}{code}", *(rng.gauss(0, 0.02) for _ in range(count)))
    return rng.randbytes(form.bytes)


def random_state(rng, dtypes, elements):
    names, state = set(), []
    while len(names) < len(dtypes):
        layer = rng.randrange(3)
        names.add(
            rng.choice([f"layers.{layer}.", "", "é語."])
            + rng.choice(["weight", "bias", "up.weight", "w", "x"])
        )
    for name, dtype in zip(sorted(names, key=str.encode), dtypes):
        form = random_form(rng, dtype, elements)
        state.append(Tensor(name.encode(), form, weights(rng, form)))
    return state


def random_step(rng, width, old, size):
    sort = rng.random()
    if sort < 0.97:
        step = (int(rng.expovariate(1 / size)) + 1) * rng.choice((-1, 1))
    elif sort < 0.99:
        step = rng.choice((1 << 8 * width - 1, rng.randrange(1 << 8 * width)))
    else:
        step = -2 * old  # a large one that depends on the element
    return old + step & (1 << 8 * width) - 1


def habits(rng, density):
    """For each of four sorts of exponents: how often an element changes, and how far."""
    if density in (0, 1):
        return [(density, rng.choice((1, 5)))] * 4
    return [
        (min(0.98, density * rng.choice((0.3, 1, 1.5))), rng.choice((0.3, 1, 20))) for _ in range(4)
    ]


def changed(rng, state, density, sorts=None):
    """The state after a step that changes about this share of the elements, or as in `sorts`."""
    result = []
    for name, form, data in state:
        kind, own = form.kind(), sorts or habits(rng, density)
        elements = words(kind, data)
        for i, old in enumerate(elements):
            chance, size = own[old >> kind.low & 3 if kind.bits else 0]
            if rng.random() < chance:
                elements[i] = random_step(rng, kind.width, old, size)
        result.append(Tensor(name, form, elements.tobytes()))
    return result


def carried_on(rng, before, base):
    """A step in which mostly those change that changed before, and in the same direction."""
    result = []
    for (name, form, data), (_, _, older) in zip(base, before):
        kind = form.kind()
        elements, past = words(kind, data), words(kind, older)
        for i, old in enumerate(elements):
            if rng.random() < (0.03 if old == past[i] else 0.7):
                up = old >= past[i] if rng.random() < 0.9 else rng.random() < 0.5
                elements[i] = old + (1 if up else -1) & (1 << 8 * kind.width) - 1
        result.append(Tensor(name, form, elements.tobytes()))
    return result


def by_formula(name):
    """@blocks.I and @pieces.I: step I of states of several blocks and several pieces."""
    sort, step = name.split(".")
    if sort == "@blocks":
        form = Form(b"BF16", ((1 << 18) * 2 + 1000,), (1 << 19) * 2 + 2000)
        elements = array.array(
            "H", (0x3C00 + (i * 40503 >> 5) % 0x300 for i in range(form.words()))
        )
        places = range(5, form.words(), 997)
    else:
        form = Form(b"U8", ((1 << 24) + 3000,), (1 << 24) + 3000)
        elements = array.array("B", bytes(range(251)) * (form.bytes // 251 + 1))[: form.bytes]
        places = range((1 << 24) + 1, form.words(), 7)
    for place in places if step == "1" else ():
        elements[place] += 1
    return [Tensor(b"w", form, elements.tobytes())]


def random_cut(rng, length, step):
    """Cuts `length` at up to three multiples of `step`."""
    cuts = sorted({0, length, *(rng.randrange(0, length, step) for _ in range(rng.randrange(3)))})
    return list(zip(cuts, cuts[1:]))


def tiles(rng, form):
    """Regions of one tensor, (row, rows, column, columns), that cover it."""
    (rows, columns), width = tables.matrix(form), form.kind().width
    word = 8 // width
    if columns % word == 0:
        return [
            (row, below - row, column, right - column)
            for row, below in random_cut(rng, rows, 1)
            for column, right in random_cut(rng, columns, word)
        ]
    if rows == 1:
        return [(0, 1, column, right - column) for column, right in random_cut(rng, columns, word)]
    return [(row, below - row, 0, columns) for row, below in random_cut(rng, rows, word)]


def random_parts(rng, state, count):
    """Regions that cover the state, dealt to so many parts; each sorted as a table has them."""
    parts = [[] for _ in range(count)]
    for number, (name, form) in enumerate(layout_of(state)):
        if form.bytes:
            for tile in tiles(rng, form):
                rng.choice(parts).append((number, name.decode(), tile))
    found = []
    for part in parts:
        part.sort(key=lambda entry: (entry[0], entry[2][0], entry[2][2]))
        found.append([(name, *tile) for _, name, tile in part])
    return [part for part in found if part]
