#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden vectors of the current format version, while that may still change.

usage: make_vectors.py PATCH_HELPER

What must be accepted is made by the library from states that are made here; what must be refused is
made from that.
"""

import pathlib
import random
import shutil
import struct
import sys

import refusals
import states
import table as tables
from decoder import Patch
from library import Library
from state import Form, Tensor, layout_of, root, write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE / "vectors/v1"

HEAD = """\
# What library and decoder must say of each patch, or of several together. "-" stands for none;
# names with @ are states that are made by a formula. ROOT is the child's, known from outside.
#
# STATUS BASE BEFORE ROOT CHILD PATCH...
"""


def tensor(name, dtype, shape, data):
    return Tensor(name.encode(), Form(dtype, tuple(shape), len(data)), data)


def random_tensor(rng, name, dtype, *shape):
    count = 1
    for extent in shape:
        count *= extent
    form = Form(dtype, shape, count * states.WIDTHS[dtype] // 8)
    return Tensor(name.encode(), form, states.weights(rng, form))


def state_of(*tensors):
    return sorted(tensors)


class Maker:
    def __init__(self, library):
        self.native, self.lines = library, []

    def store(self, name, **named):
        (VECTORS / "accept" / name).mkdir(parents=True, exist_ok=True)
        for part, state in named.items():
            write_safetensors(VECTORS / f"accept/{name}/{part}.safetensors", state)

    def diff(self, name, patch="patch", coder="best", before=False, **more):
        folder = VECTORS / "accept" / name
        self.native.diff(
            coder,
            folder / "base.safetensors",
            folder / "child.safetensors",
            folder / f"{patch}.ulp",
            before=folder / "before.safetensors" if before else None,
            **more,
        )
        if "regions" not in more:
            self.expect(name, [patch], before)

    def expect(self, name, patches, before=False, root_from_outside="-", child="child"):
        folder = f"accept/{name}/"
        self.lines.append(
            (
                "ULP_OK",
                folder + "base.safetensors",
                folder + "before.safetensors" if before else "-",
                root_from_outside,
                folder + child + ".safetensors",
                *(f"{folder}{p}.ulp" for p in patches),
            )
        )

    def simple(self, name, base, child, coder="best"):
        self.store(name, base=base, child=child)
        self.diff(name, coder=coder)


def worked_example(maker):
    """The one of docs/format/patch.md; vectors.py compares the bytes with the page."""
    elements = [0x3F80, 0x4000, 0x4040, 0xBF80, 0x8000, 0x7FC0]
    scale = tensor("layer.scale", b"BF16", [2], struct.pack("<2H", 0x3F80, 0x3F80))
    base = state_of(scale, tensor("layer.weight", b"BF16", [2, 3], struct.pack("<6H", *elements)))
    elements[1] = 0x4001
    child = state_of(scale, tensor("layer.weight", b"BF16", [2, 3], struct.pack("<6H", *elements)))
    maker.simple("worked_example", base, child, "context")


def dtypes(maker, rng):
    """All dtypes, known and not, through each coder."""
    base = state_of(
        *(random_tensor(rng, f"t.{dtype.decode()}", dtype, 4, 6) for dtype in states.WIDTHS)
    )
    before, child = states.changed(rng, base, 0.5), states.changed(rng, base, 0.3)
    maker.store("dtypes", base=base, child=child, before=before)
    for coder in ("context", "plain", "dense", "best"):
        maker.diff("dtypes", coder, coder)
    maker.diff("dtypes", "history", "context", before=True)


def weights(maker, rng):
    """More elements, so that there are classes; few, many and all of them change."""
    base = state_of(
        random_tensor(rng, "layers.0.down.weight", b"F32", 30, 20),
        random_tensor(rng, "layers.0.up.weight", b"BF16", 60, 50),
        random_tensor(rng, "layers.1.down.weight", b"F8_E4M3", 50, 20),
    )
    for name, density in (("few", 0.02), ("half", 0.5), ("most", 0.93), ("all", 1)):
        before, child = states.changed(rng, base, density / 2), states.changed(rng, base, density)
        maker.store(name, base=base, child=child, before=before)
        for coder in ("context", "plain", "dense"):
            maker.diff(name, coder, coder)
        maker.diff(name, "history", "context", before=True)


def carried_on(maker, rng):
    """Elements go on as they did before, so that the buckets of history are classes."""
    before = state_of(random_tensor(rng, "w", b"BF16", 2500))
    base = states.changed(rng, before, None, [(0.2, 2), (0.1, 0.5), (0.3, 1), (0.2, 20)])
    maker.store("carried_on", before=before, base=base, child=states.carried_on(rng, before, base))
    maker.diff("carried_on", before=True)


def flipped(maker, rng):
    """Several classes that change more often than not."""
    base = state_of(random_tensor(rng, "w", b"F8_E5M2", 9000))
    child = states.changed(rng, base, None, [(0.05, 1), (0.8, 1), (0.97, 30), (0.97, 1)])
    maker.simple("flipped", base, child, "context")


def odd_shapes(maker, rng):
    """No elements, also in the first of a kind; scalars; kinds that take turns; names."""
    forms = [
        ("a.empty", b"F32", (0, 3)),
        ("b.weight", b"BF16", (8,)),
        ("c.scalar", b"F32", ()),
        ("d.empty", b"BF16", (3, 0)),
        ("d.weight", b"BF16", (3, 1)),
        ("dé.weight", b"I64", (2,)),
        ("dé.語.weight", b"BF16", (3, 3, 3)),
        ("e", b"F32", (5,)),
        ("f", b"BOOL", (7,)),
        ("future", b"UNKNOWN", (0,)),
        ("g", b"C64", (1, 1, 1)),
        ("h", b"F6_E2M3", (5, 4)),
    ]
    base = []
    for name, dtype, shape in forms:
        if dtype in states.WIDTHS:
            base.append(random_tensor(rng, name, dtype, *shape))
        else:
            base.append(tensor(name, dtype, shape, b""))
    base = state_of(*base)
    child = states.changed(rng, base, 0.4)
    maker.simple("odd_shapes", base, child, "context")
    maker.simple("unchanged", base, base)
    maker.simple("no_tensors", [], [])


def parts(maker, rng):
    base = state_of(
        random_tensor(rng, "matrix", b"BF16", 8, 16),
        random_tensor(rng, "odd", b"F16", 6, 5),
        random_tensor(rng, "packed", b"F4", 4, 3),
        random_tensor(rng, "vector", b"F32", 33),
    )
    child = states.changed(rng, base, 0.4)
    maker.store("parts", base=base, child=child)
    maker.diff("parts", "whole")
    regions = {
        "1": [("matrix", 0, 4, 0, 8), ("matrix", 4, 4, 8, 8), ("odd", 0, 4, 0, 5)],
        "2": [("matrix", 0, 4, 8, 8), ("packed", 0, 1, 0, 6), ("vector", 0, 1, 0, 12)],
        "3": [("matrix", 4, 4, 0, 8), ("odd", 4, 2, 0, 5), ("vector", 0, 1, 12, 21)],
    }
    for name, boxes in regions.items():
        maker.diff("parts", name, "context", regions=boxes)
    maker.expect("parts", regions)
    maker.expect("parts", ["3", "1", "2"], root_from_outside=root(child).hex())
    matrix = [
        Tensor(*(child if name == b"matrix" else base)[i])
        for i, (name, _) in enumerate(layout_of(base))
    ]
    maker.store("part", base=base, child=matrix)
    maker.diff("part", "patch", "dense", regions=[("matrix", 0, 8, 0, 16)])
    maker.expect("part", ["patch"], root_from_outside=root(matrix).hex())


def formulas(maker):
    """Too large to be stored: several blocks, several pieces."""
    for name in ("blocks", "pieces"):
        paths = [VECTORS / f"{name}.{i}" for i in (0, 1)]
        for i, path in enumerate(paths):
            write_safetensors(path, states.by_formula(f"@{name}.{i}"))
        folder = VECTORS / "accept" / name
        folder.mkdir(parents=True, exist_ok=True)
        maker.native.diff("best", *paths, folder / "patch.ulp")
        for path in paths:
            path.unlink()
        maker.lines.append(
            ("ULP_OK", f"@{name}.0", "-", "-", f"@{name}.1", f"accept/{name}/patch.ulp")
        )


def refuse(maker):
    (VECTORS / "refuse").mkdir()
    for name, status, base, before, root_from_outside, patches in refusals.all_cases(VECTORS):
        for path, data in patches:
            if data is not None:
                (VECTORS / path).write_bytes(data)
        maker.lines.append(
            (status, base, before, root_from_outside, "-", *(path for path, _ in patches))
        )


def main():
    shutil.rmtree(VECTORS / "accept", ignore_errors=True)
    shutil.rmtree(VECTORS / "refuse", ignore_errors=True)
    rng = random.Random(1)
    with Library(sys.argv[1]) as library:
        maker = Maker(library)
        worked_example(maker)
        for make in (dtypes, weights, flipped, odd_shapes, parts, carried_on):
            make(maker, rng)
        formulas(maker)
    refuse(maker)
    text = "".join(" ".join(line) + "\n" for line in maker.lines)
    (VECTORS / "expected.txt").write_text(HEAD + text)


if __name__ == "__main__":
    main()
