#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of patches, written from docs/format alone: it says nothing that the text does not say.

usage: decoder.py PATCH... BASE [--before BEFORE] [--child ROOT] [-o OUT.safetensors]

Several patches are partial ones that are applied together; --child is the root that they must lead to.
As a library: Patch(bytes), then apply([patch], base, before). What is not right raises Refused, whose `reason` is the
name of the status in docs/format/patch.md.
"""
import argparse
import itertools
import pathlib
import sys

import segment
import table as tables
from state import Refused, Tensor, checksum, layout_of, read_safetensors, require, root, root_of_sums, words, write_safetensors


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
    moves = [0] * after.form.words()
    for place, (old, new) in enumerate(zip(words(kind, before.data), words(kind, after.data))):
        if old != new:
            move = (new - old + half) % modulus - half
            moves[place] = max(-127, min(127, move))
    return moves


def block_places(form, pieces):
    """For each block of a piece, the places of its elements in the tensor: ranges, or lists where rows are cut."""
    for piece in pieces:
        found = [range(first, first + count) for first, count in tables.runs(form, piece)]
        places = found[0] if len(found) == 1 else list(itertools.chain(*found))
        for first in range(0, len(places), tables.BLOCK_ELEMENTS):
            yield places[first:first + tables.BLOCK_ELEMENTS]


def pick(elements, places):
    """The elements at these places."""
    if isinstance(places, range):
        return elements[places.start:places.stop]
    return type(elements)(elements.typecode, [elements[p] for p in places]) if hasattr(elements, "typecode") \
        else [elements[p] for p in places]


class Applying:
    """Patches on their way from one state to the next. The base stays as it is."""

    def __init__(self, patches, base, before):
        self.patches, self.base = patches, base
        self.elements = [words(tensor.form.kind(), tensor.data) for tensor in base]
        self.moves = [moves_between(*pair) for pair in zip(before, base)] if before else None
        self.child = [Tensor(name, form, bytearray(data)) for name, form, data in base]

    def apply_chunk(self, chunk, pieces, data):
        require(checksum(data) == chunk.checksum, "ULP_E_CHECKSUM", "a chunk is damaged")
        form_of = [self.base[piece.region.tensor].form for piece in pieces]
        kind = form_of[0].kind()
        blocks = [(piece.region.tensor, places)
                  for form, piece in zip(form_of, pieces) for places in block_places(form, [piece])]
        old = [pick(self.elements[number], places) for number, places in blocks]
        moves = [pick(self.moves[number], places) for number, places in blocks] if self.moves else None
        _, changes = segment.decode(kind, data, old, moves)
        count = sum(map(len, changes))
        require(count == chunk.changes, "ULP_E_CODE", f"{count} changes where the table says {chunk.changes}")
        for (number, places), some in zip(blocks, changes):
            self.write(number, kind.width, ((places[place], new) for place, new in some))

    def write(self, number, width, changes):
        data = self.child[number].data
        for place, new in changes:
            data[width * place:width * (place + 1)] = new.to_bytes(width, "little")

    def apply(self, patch):
        sums = iter(patch.table.sums)
        for chunk, pieces, data in zip(patch.table.chunks, patch.table.grid(), patch.chunks):
            if chunk.bytes:
                self.apply_chunk(chunk, pieces, data)
            for piece in pieces:
                tensor = self.child[piece.region.tensor]
                require(tables.piece_sum(tensor, piece) == next(sums), "ULP_E_WRONG_RESULT", "the changes lead elsewhere")


def check_history(patch, before):
    if patch.table.before is None:
        return None
    require(before is not None, "ULP_E_NEEDS_HISTORY", f"it needs the state {patch.table.before.hex()}")
    right = layout_of(before) == patch.table.layout and root(before) == patch.table.before
    require(right, "ULP_E_NEEDS_HISTORY", "another state before")
    return before


def child_of_parts(patches, child):
    """The root that partial patches lead to; `child` if that is known from outside."""
    first = patches[0].table
    for one, two in itertools.combinations(patches, 2):
        same = one.table.layout == two.table.layout
        require(same, "ULP_E_LAYOUT", "parts of different models")
        require(one.table.parent == two.table.parent, "ULP_E_WRONG_BASE", "parts that start from different states")
        apart = not any(tables.overlap(*pair) for pair in itertools.product(one.table.regions, two.table.regions))
        require(apart, "ULP_E_REGIONS", "parts that overlap")
    if child is not None:
        return child
    covered = sum(region.elements() for patch in patches for region in patch.table.regions)
    complete = covered == sum(form.words() for _, form in first.layout)
    require(complete, "ULP_E_REGIONS", "parts that leave elements out, and no root that they must lead to")
    return root_of_sums(first.layout, tables.tensor_sums([patch.table for patch in patches]))


def apply(patches, base, before=None, child=None):
    """(the child's state, its root). States are lists of tensors, as state.read_safetensors() gives them."""
    partial = any(patch.partial for patch in patches)
    require(all(patch.partial for patch in patches) or len(patches) == 1, "ULP_E_REGIONS", "whole patches together")
    child = child_of_parts(patches, child) if partial else patches[0].table.child
    require(layout_of(base) == patches[0].table.layout, "ULP_E_LAYOUT", "other names, dtypes or shapes")
    base_root = root(base)
    if base_root == child:
        return base, child
    require(base_root == patches[0].table.parent, "ULP_E_WRONG_BASE", "another base")
    applying = Applying(patches, base, check_history(patches[0], before))
    for patch in patches:
        applying.apply(patch)
    require(root(applying.child) == child, "ULP_E_WRONG_RESULT", "the changes lead elsewhere")
    return applying.child, child


def main():
    parser = argparse.ArgumentParser(description="Applies patches to a model.")
    parser.add_argument("patches", nargs="+", metavar="PATCH")
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("--before", help="the state before the base, for patches with history")
    parser.add_argument("--child", type=bytes.fromhex, help="the root that partial patches must lead to")
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
