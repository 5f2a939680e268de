#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of patches, written from docs/format alone: it says nothing that the text does not say.

usage: decoder.py PATCH... BASE [--before BEFORE] [--child ROOT] [-o OUT.safetensors]

Several patches are partial ones that are applied together; --child is the root that they must lead
to. As a library: Patch(bytes), then apply([patch], base, before). What is not right raises Refused,
whose `reason` is the name of the status in docs/format/patch.md.
"""

import argparse
import array
import itertools
import pathlib
import sys

import segment
import table as tables
from state import (
    Refused,
    Tensor,
    checksum,
    layout_of,
    read_safetensors,
    require,
    root,
    root_of_sums,
    words,
    write_safetensors,
)


class Patch:
    """A patch whose table has been checked; its chunks are still as they came."""

    def __init__(self, data):
        self.table, self.chunks = tables.read_file(data)
        self.partial = bool(self.table.flags & tables.PARTIAL)

    def changes(self):
        return sum(chunk.changes for chunk in self.table.chunks)


def moves_between(before, after):
    """How each element of a tensor moved: -127 ... 127."""
    kind = after.form.kind()
    modulus, half = 1 << 8 * kind.width, 1 << 8 * kind.width - 1
    moves = array.array("b", bytes(after.form.words()))
    for place, (old, new) in enumerate(zip(words(kind, before.data), words(kind, after.data))):
        if old != new:
            move = (new - old + half) % modulus - half
            moves[place] = max(-127, min(127, move))
    return moves


def block_places(form, piece):
    """For each block the places of its elements in the tensor: a range, or a list of cut rows."""
    found = [range(first, first + count) for first, count in tables.runs(form, piece)]
    places = found[0] if len(found) == 1 else list(itertools.chain(*found))
    for first in range(0, len(places), tables.BLOCK_ELEMENTS):
        yield places[first : first + tables.BLOCK_ELEMENTS]


def pick(elements, places):
    """The elements at these places; `elements` is an array."""
    if isinstance(places, range):
        return elements[places.start : places.stop]
    return array.array(elements.typecode, [elements[place] for place in places])


class Applying:
    """Patches on their way from one state to the next. The base stays as it is."""

    def __init__(self, patches, base, before):
        self.patches, self.base = patches, base
        self.elements = [words(tensor.form.kind(), tensor.data) for tensor in base]
        self.moves = None
        if before is not None:
            self.moves = [moves_between(*pair) for pair in zip(before, base)]
        self.child = [Tensor(name, form, bytearray(data)) for name, form, data in base]

    def blocks_of(self, pieces):
        """(number of the tensor, places) of each block of a chunk."""
        for piece in pieces:
            number = piece.region.tensor
            for places in block_places(self.base[number].form, piece):
                yield number, places

    def decode_chunk(self, patch, chunk, data, kind, blocks):
        require(checksum(data) == chunk.checksum, "ULP_E_CHECKSUM", "a chunk is damaged")
        opened = segment.open_segment(kind, data, [len(places) for _, places in blocks])
        history = patch.table.before is not None
        require(opened.coder != segment.HISTORY or history, "ULP_E_TABLE", "history unannounced")
        announced = opened.announced in (None, chunk.changes)
        require(announced, "ULP_E_TABLE", "other changes than the table says")
        old = [pick(self.elements[number], places) for number, places in blocks]
        moves = [pick(self.moves[number], places) for number, places in blocks] if history else None
        changes = opened.decode(old, moves)
        found = sum(map(len, changes))
        require(found == chunk.changes, "ULP_E_TABLE", "other changes than the table says")
        return changes

    def apply_chunk(self, patch, chunk, pieces, data):
        kind = self.base[pieces[0].region.tensor].form.kind()
        blocks = list(self.blocks_of(pieces))
        changes = self.decode_chunk(patch, chunk, data, kind, blocks)
        for (number, places), some in zip(blocks, changes):
            self.write(number, kind.width, ((places[place], new) for place, new in some))

    def write(self, number, width, changes):
        data = self.child[number].data
        for place, new in changes:
            data[width * place : width * (place + 1)] = new.to_bytes(width, "little")

    def apply(self, patch):
        sums = iter(patch.table.sums)
        for chunk, pieces, data in zip(patch.table.chunks, patch.table.grid(), patch.chunks):
            if chunk.bytes:
                self.apply_chunk(patch, chunk, pieces, data)
            for piece in pieces if not patch.partial else ():
                right = tables.piece_sum(self.child[piece.region.tensor], piece) == next(sums)
                require(right, "ULP_E_WRONG_RESULT", "the changes lead elsewhere")


def check_history(patches, before):
    """The state before, if any of the patches needs it."""
    needed = {patch.table.before for patch in patches} - {None}
    for name in needed:
        require(before is not None, "ULP_E_NEEDS_HISTORY", f"it needs the state {name.hex()}")
        right = layout_of(before) == patches[0].table.layout and root(before) == name
        require(right, "ULP_E_NEEDS_HISTORY", "another state before")
    return before if needed else None


def child_of_parts(patches, child):
    """The root that partial patches lead to; `child` if that is known from outside."""
    first = patches[0].table
    for one, two in itertools.combinations(patches, 2):
        same = one.table.layout == two.table.layout
        require(same, "ULP_E_LAYOUT", "parts of different models")
        require(
            one.table.parent == two.table.parent,
            "ULP_E_WRONG_BASE",
            "parts that start from different states",
        )
        apart = not any(
            tables.overlap(*pair)
            for pair in itertools.product(one.table.regions, two.table.regions)
        )
        require(apart, "ULP_E_REGIONS", "parts that overlap")
    if child is not None:
        return child
    covered = sum(region.elements() for patch in patches for region in patch.table.regions)
    complete = covered == sum(form.words() for _, form in first.layout)
    require(
        complete,
        "ULP_E_REGIONS",
        "parts that leave elements out, and no root that they must lead to",
    )
    return root_of_sums(first.layout, tables.tensor_sums([patch.table for patch in patches]))


def apply(patches, base, before=None, child=None):
    """(the child's state, its root). States are as state.read_safetensors() gives them."""
    partial = any(patch.partial for patch in patches)
    require(
        all(patch.partial for patch in patches) or len(patches) == 1,
        "ULP_E_REGIONS",
        "whole patches together",
    )
    child = child_of_parts(patches, child) if partial else patches[0].table.child
    require(
        layout_of(base) == patches[0].table.layout, "ULP_E_LAYOUT", "other names, dtypes or shapes"
    )
    base_root = root(base)
    if base_root == child:
        return base, child
    require(base_root == patches[0].table.parent, "ULP_E_WRONG_BASE", "another base")
    applying = Applying(patches, base, check_history(patches, before))
    for patch in patches:
        applying.apply(patch)
    require(root(applying.child) == child, "ULP_E_WRONG_RESULT", "the changes lead elsewhere")
    return applying.child, child


def main():
    parser = argparse.ArgumentParser(description="Applies patches to a model.")
    parser.add_argument("patches", nargs="+", metavar="PATCH")
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("--before", help="the state before the base, for patches with history")
    parser.add_argument(
        "--child", type=bytes.fromhex, help="the root that partial patches must lead to"
    )
    parser.add_argument("-o", dest="out", help="where the child goes")
    arguments = parser.parse_args()
    try:
        patches = [Patch(pathlib.Path(path).read_bytes()) for path in arguments.patches]
        before = read_safetensors(arguments.before) if arguments.before else None
        child, name = apply(patches, read_safetensors(arguments.base), before, arguments.child)
    except Refused as refused:
        sys.exit(str(refused))
    if arguments.out:
        write_safetensors(arguments.out, child)
    print("parent ", patches[0].table.parent.hex())
    print("child  ", name.hex())
    print("changes", sum(patch.changes() for patch in patches))


if __name__ == "__main__":
    main()
