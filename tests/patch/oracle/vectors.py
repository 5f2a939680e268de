#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vectors/*/expected.txt says of each patch, the library and the decoder say, too.

usage: vectors.py library PATCH_HELPER
       vectors.py decoder
       vectors.py page           the example of docs/format/patch.md is the vector, byte for byte
"""

import pathlib
import re
import sys
import tempfile

import states
from decoder import Patch, apply
from library import Library
from state import Refused, read_safetensors, root, write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs/format/patch.md"


def expected():
    """(folder of the version, words of the line) of each vector."""
    for version in sorted(HERE.glob("vectors/v*")):
        for line in (version / "expected.txt").read_text().splitlines():
            if not line.startswith("#"):
                yield version, line.split()


def state_named(version, name):
    if name == "-":
        return None
    return states.by_formula(name) if name.startswith("@") else read_safetensors(version / name)


class DecoderSays:
    def __call__(self, version, base, before, name, child, patches):
        try:
            opened = [Patch((version / patch).read_bytes()) for patch in patches]
            found, found_root = apply(
                opened,
                state_named(version, base),
                state_named(version, before),
                None if name == "-" else bytes.fromhex(name),
            )
        except Refused as refused:
            return refused.reason
        right = found == state_named(version, child) and found_root == root(found)
        return "ULP_OK" if right else "another child"


class LibrarySays:
    def __init__(self, library, directory):
        self.native, self.directory = library, pathlib.Path(directory)

    def path(self, version, name):
        """Of a state; those that are made by a formula are written first."""
        if not name.startswith("@"):
            return name if name == "-" else version / name
        write_safetensors(self.directory / name, states.by_formula(name))
        return self.directory / name

    def __call__(self, version, base, before, name, child, patches):
        paths = [version / patch for patch in patches]
        status, said = self.native.apply(
            paths,
            self.path(version, base),
            self.path(version, before),
            name,
            self.directory / "out",
        )
        if status == "ULP_OK":
            wanted = state_named(version, child)
            if read_safetensors(self.directory / "out") != wanted or said != root(wanted).hex():
                return "another child"
            # What can be applied can be verified without the weights.
            return next(
                filter(lambda found: found != "ULP_OK", map(self.native.verify, paths)), "ULP_OK"
            )
        return status


def compare(says):
    counts = {True: 0, False: 0}
    for version, (status, base, before, name, child, *patches) in expected():
        found = says(version, base, before, name, child, patches)
        if found != status:
            print(f"{' '.join(patches)} of {version.name}: {found} instead of {status}")
        counts[found == status] += 1
    print(f"{counts[True]} as expected, {counts[False]} not")
    return counts[False] > 0 or counts[True] == 0


def compare_page():
    dump = re.findall(r"^    [0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", PAGE.read_text(), re.MULTILINE)
    shown = bytes.fromhex("".join(dump))
    stored = (HERE / "vectors/v1/accept/worked_example/patch.ulp").read_bytes()
    print(f"{len(shown)} bytes on the page, {len(stored)} in the vector")
    return shown != stored


def main():
    if sys.argv[1] == "page":
        return compare_page()
    if sys.argv[1] == "decoder":
        return compare(DecoderSays())
    with tempfile.TemporaryDirectory() as directory, Library(sys.argv[2]) as library:
        return compare(LibrarySays(library, directory))


if __name__ == "__main__":
    sys.exit(main())
