#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patches made by the library, read by the decoder that was written from the specification.

usage: oracle.py PATCH_HELPER [SEED [ROUNDS]]

Random small states of all dtypes, densities and coders; with and without history; whole and in
parts. The library and the decoder must lead to the same bits and roots. Each round has a seed of
its own, which is printed when something differs.
"""

import collections
import pathlib
import random
import sys
import tempfile

import segment
import states
from decoder import Patch, apply
from library import Library
from state import read_safetensors, root, write_safetensors

ROUNDS = 80
DENSITIES = (0, 0.001, 0.01, 0.1, 0.3, 0.6, 0.95, 1)
WANTED = (
    "whole",
    "partial",
    "with history",
    "unchanged",
    "context",
    "history",
    "plain",
    "dense",
    "with several classes",
    "with several flipped",
)
CODERS = ("best", "context", "plain", "dense")


class Oracle:
    def __init__(self, library, directory):
        self.native, self.directory = library, pathlib.Path(directory)
        self.seen = collections.Counter()

    def path(self, name):
        return self.directory / name

    def store(self, **named):
        for name, state in named.items():
            write_safetensors(self.path(name), state)

    def compare(self, patches, base, child, before=None):
        """The decoder's result, the library's and the state that was asked for are one."""
        opened = [Patch(self.path(patch).read_bytes()) for patch in patches]
        found, name = apply(opened, base, before)
        assert found == child, "the decoder's result"
        assert name == root(child), "the root"
        paths = [self.path(patch) for patch in patches]
        answer = self.native.apply(
            paths, self.path("base"), self.path("before") if before else None, out=self.path("out")
        )
        assert answer == ("ULP_OK", name.hex()), answer
        assert read_safetensors(self.path("out")) == child, "the library's result"
        for patch in opened:
            self.count(patch, before)
        return name.hex()

    def count(self, patch, before):
        self.seen["with history" if before else "partial" if patch.partial else "whole"] += 1
        for chunk in patch.chunks:
            self.seen[
                ("context", "history", "plain", "dense")[chunk[0] & 3] if chunk else "unchanged"
            ] += 1
            if chunk and chunk[0] & 3 < 2:
                self.count_classes(chunk)

    def count_classes(self, chunk):
        """Where several classes are flipped, the order of the directory's columns matters."""
        bits = segment.Bits(chunk)
        bits.take(2)
        classes = bits.take(4) + 1
        flipped = classes - bits.take(5)
        self.seen["with several classes"] += classes > 1
        self.seen["with several flipped"] += flipped > 1

    def whole(self, rng, base, child):
        said = self.native.diff(
            rng.choice(CODERS), self.path("base"), self.path("child"), self.path("patch")
        )
        assert said == [root(base).hex(), root(child).hex()], said
        self.compare(["patch"], base, child)

    def history(self, rng, base, child):
        before = states.changed(rng, base, rng.choice(DENSITIES))
        if rng.random() < 0.5:
            child = states.carried_on(rng, before, base)
        self.store(before=before, child=child)
        self.native.diff(
            rng.choice(CODERS[:2]),
            self.path("base"),
            self.path("child"),
            self.path("patch"),
            before=self.path("before"),
        )
        self.compare(["patch"], base, child, before)

    def partial(self, rng, base, child):
        parts = states.random_parts(rng, base, rng.randrange(1, 4))
        if not parts:
            return
        coder, names = rng.choice(CODERS), [f"part{i}" for i in range(len(parts))]
        for name, part in zip(names, parts):
            self.native.diff(
                coder, self.path("base"), self.path("child"), self.path(name), regions=part
            )
        self.compare(names, base, child)

    def round(self, rng):
        elements = rng.choice((30, 300, 300, 3000, 3000, 20000))
        dtypes = [
            rng.choice(list(states.WIDTHS))
            for _ in range(rng.randrange(1, 8 if elements < 20000 else 3))
        ]
        base = states.random_state(rng, dtypes, elements)
        child = states.changed(rng, base, rng.choice(DENSITIES))
        self.store(base=base, child=child)
        for check in (self.whole, self.partial, self.history):  # the last makes a child of its own
            check(rng, base, child)


def main():
    first, rounds = (*map(int, sys.argv[2:]), *(1, ROUNDS)[len(sys.argv) - 2 :])
    with tempfile.TemporaryDirectory() as directory, Library(sys.argv[1]) as library:
        oracle = Oracle(library, directory)
        for seed in range(first, first + rounds):
            try:
                oracle.round(random.Random(seed))
            except BaseException:
                print(f"repeat it with: oracle.py PATCH_HELPER {seed} 1", file=sys.stderr)
                raise
    print(f"{rounds} rounds:", ", ".join(f"{count} {what}" for what, count in oracle.seen.items()))
    missing = [what for what in WANTED if not oracle.seen[what]]
    assert rounds < ROUNDS or not missing, f"nothing was tried of {missing}"


if __name__ == "__main__":
    main()
