#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a room includes what layers.txt does not allow, or when something stands outside its fence.

usage: layers.py ROOT

The tables are ROOT/tests/house/layers.txt and ROOT/tests/house/fences.txt.
"""

import sys
from fnmatch import fnmatchcase
from pathlib import Path

from fences import fence_violations
from source import Violation, c_files, includes, read_table, read_text, report, resolve

LAYERS = "tests/house/layers.txt"

# Here one header has one spelling, so that a search for it finds every user. Elsewhere a neighbour may be named alone.
ROOMS_WITH_FULL_PATHS = ("src/", "include/", "cli/", "study/", "synth/")


def read_layers(root):
    """{room: [what it may include]}"""
    layers = {}
    for line, (room, allowed) in read_table(Path(root) / LAYERS, LAYERS, columns=2):
        if room in layers:
            raise SystemExit(f"{LAYERS}:{line}: {room} has a row already: keep one")
        layers[room] = allowed.split()
    return layers


def room_of(path, layers):
    return max((room for room in layers if path.startswith(room + "/")), key=len, default=None)


def allows(allowed, path):
    return path == allowed or path.startswith(allowed + "/") or fnmatchcase(path, allowed)


def spelling(path):
    """How an #include of a project file is written."""
    if path.startswith("include/"):
        return f"<{path.removeprefix('include/')}>"
    return f'"{path.removeprefix("src/")}"'


def include_problem(path, include, target, room, layers):
    """What is wrong with one include of the file `path` that means the project file `target`, or None."""
    if not include.target:
        return "this #include names its file by a macro, which hides it from this check: name the file"
    if target is None:
        if include.quoted:
            return f"{include} is no file in the tree: correct the path; headers from outside are written <...>"
        return None
    if not any(allows(allowed, target) for allowed in [room, *layers[room]]):
        return f"{room} may not include {target}: let the caller pass what is needed, or argue for a change of {LAYERS}"
    if path.startswith(ROOMS_WITH_FULL_PATHS) and str(include) != spelling(target):
        return f"{target} is included as {include}: write {spelling(target)}"
    return None


def file_violations(root, path, layers):
    room = room_of(path, layers)
    if room is None:
        yield Violation(path, 1, f"this file is in no room: move it, or add its room to {LAYERS}")
        return
    for include in includes(read_text(Path(root) / path)):
        problem = include_problem(path, include, resolve(root, path, include), room, layers)
        if problem:
            yield Violation(path, include.line, problem)


def layer_violations(root):
    layers = read_layers(root)
    return [violation for path in c_files(root) for violation in file_violations(root, path, layers)]


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: layers.py ROOT")
    root = arguments[0]
    return report(layer_violations(root) + fence_violations(root))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
