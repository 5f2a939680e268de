#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged patches, whose checksums are right again: library and decoder must say the same of each.

usage: damage.py PATCH_HELPER [SEED [ROUNDS]]
"""

import collections
import pathlib
import random
import sys
import tempfile

import states
import table as tables
from decoder import Patch, apply
from library import Library
from state import Refused, checksum, root, write_safetensors

ROUNDS = 20
DAMAGES = 60  # of each patch


def flip(rng, data):
    """A bit, a byte, a piece that goes, one that comes."""
    at, kind = rng.randrange(len(data)), rng.randrange(8)
    if kind < 5:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == 5:
        return data[:at] + rng.randbytes(1) + data[at + 1 :]
    if kind == 6:
        return data[:at] + data[at + 1 :]
    return data[:at] + rng.randbytes(1) + data[at:]


def flip_early(rng, data):
    """As flip, but mostly near the start, where headers are."""
    if rng.random() < 0.5 or len(data) < 40:
        return flip(rng, data)
    return flip(rng, data[:40]) + data[40:]


def damage_chunk(rng, patch):
    number = rng.choice([i for i, chunk in enumerate(patch.chunks) if chunk])
    chunks, entries = list(patch.chunks), list(patch.table.chunks)
    chunks[number] = flip_early(rng, chunks[number])
    entries[number] = entries[number]._replace(
        bytes=len(chunks[number]), checksum=checksum(chunks[number])
    )
    return tables.write_file(patch.table._replace(chunks=entries), chunks)


def damage_table(rng, patch):
    return tables.write_file(flip(rng, tables.write_table(patch.table)), patch.chunks)


def damage_numbers(rng, patch):
    entries = list(patch.table.chunks)
    number = rng.randrange(len(entries))
    changes = rng.choice((0, entries[number].changes + 1, entries[number].changes - 1))
    entries[number] = entries[number]._replace(changes=changes)
    return tables.write_file(patch.table._replace(chunks=entries), patch.chunks)


def damage(rng, patch):
    kind = rng.random()
    if kind < 0.6 and any(patch.chunks):
        return damage_chunk(rng, patch)
    if kind < 0.65 and any(patch.chunks):
        return damage_numbers(rng, patch)
    return damage_table(rng, patch)


# What is said first of a table with several faults is nobody's promise.
UNREADABLE = {
    "ULP_E_TABLE",
    "ULP_E_REGIONS",
    "ULP_E_LIMIT",
    "ULP_E_SIZE",
    "ULP_E_UTF8",
    "ULP_E_NAME",
}


def verdict(data, base, before, child):
    try:
        apply([Patch(data)], base, before, child)
        return "ULP_OK"
    except Refused as refused:
        return refused.reason


class Damage:
    def __init__(self, library, directory):
        self.native, self.directory = library, pathlib.Path(directory)
        self.seen = collections.Counter()

    def path(self, name):
        return self.directory / name

    def make(self, rng, base, child, before):
        """A patch of a random sort, and the state before if it needs that."""
        coder, sort = rng.choice(("best", "context", "plain", "dense")), rng.randrange(3)
        regions = states.random_parts(rng, base, 1) if sort == 1 else []
        history = self.path("before") if sort == 2 else None
        self.native.diff(
            coder,
            self.path("base"),
            self.path("child"),
            self.path("patch"),
            history,
            regions[0] if regions else (),
        )
        return Patch(self.path("patch").read_bytes()), before if sort == 2 else None

    def round(self, rng):
        dtypes = [rng.choice(list(states.WIDTHS)) for _ in range(rng.randrange(1, 4))]
        base = states.random_state(rng, dtypes, rng.choice((10, 100, 1000)))
        child, before = (
            states.changed(rng, base, rng.choice((0.05, 0.3, 0.8, 1))) for _ in range(2)
        )
        for name, state in (("base", base), ("child", child), ("before", before)):
            write_safetensors(self.path(name), state)
        patch, before = self.make(rng, base, child, before)
        name = root(child) if patch.partial else None
        for _ in range(DAMAGES):
            self.compare(damage(rng, patch), base, before, name)

    def compare(self, data, base, before, child):
        self.path("damaged").write_bytes(data)
        ours = verdict(data, base, before, child)
        theirs, message = self.native.apply(
            [self.path("damaged")],
            self.path("base"),
            self.path("before") if before else None,
            child.hex() if child else None,
        )
        same = ours in (None, theirs) or {ours, theirs} <= UNREADABLE
        assert same, f"the decoder says {ours}, the library {theirs}: {message}"
        self.seen[ours] += 1


def main():
    first, rounds = (*map(int, sys.argv[2:]), *(1, ROUNDS)[len(sys.argv) - 2 :])
    with tempfile.TemporaryDirectory() as directory, Library(sys.argv[1]) as library:
        test = Damage(library, directory)
        for seed in range(first, first + rounds):
            try:
                test.round(random.Random(seed))
            except BaseException:
                print(f"repeat it with: damage.py PATCH_HELPER {seed} 1", file=sys.stderr)
                raise
    print(f"{rounds} rounds:", ", ".join(f"{count} {what}" for what, count in test.seen.items()))


if __name__ == "__main__":
    main()
