#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden runs of the current format version, while that may still change.

usage: make_vectors.py CHAIN_HELPER PATCH_HELPER

Runs that must be accepted are published by the library, with states that are made here; what must
be refused is made from those, with the checker's own writers. Made again by the same library they
are the same, to the byte.
"""

import pathlib
import random
import shutil
import sys
import tempfile

import record as records
import refusals
from vectors import RUN, SUMS, VECTORS, seed, sums_of

import states  # tests/patch/oracle, which record.py put into the path
from library import Library
from state import Form, Tensor, write_safetensors

HEAD = """\
# What library and checker must say of each run: of all that is in the store, and when following it.
# Options: `over` and `without`: STORE has only what differs from another store, and lacks these;
# `known`: that store was followed before, up to record @N; `trust`: public keys; `base`: a model that is at hand;
# `age`, `now`: the most that the newest record may be old, and the time, in milliseconds; `memory`:
# the library follows in memory, where at first that model is.
#
# CHECK FOLLOW STORE [OPTION=VALUE]...
"""


def first_state(rng):
    forms = [
        (b"down.weight", Form(b"BF16", (16, 24), 768)),
        (b"norm", Form(b"F32", (9,), 36)),
        (b"up.weight", Form(b"BF16", (24, 16), 768)),
    ]
    return [Tensor(name, form, states.weights(rng, form)) for name, form in forms]


class Trainer:
    """Publishes a run to a store of its own, one state after the other."""

    def __init__(self, maker, name, key=None, reference=None, anchor_every=0):
        self.maker, self.name, self.key = maker, name, key
        self.reference, self.anchor_every = reference, anchor_every
        self.rng = random.Random(name)
        self.folder = maker.scratch / name
        self.folder.mkdir()
        self.store = maker.scratch / "stores" / name
        self.store.mkdir(parents=True)
        self.states = []

    def ask(self, *request):
        status, rest = self.maker.chain.ask(*request)
        assert status == "ULP_OK", (status, rest, request)

    def path(self, version):
        return self.folder / f"{version}.safetensors"

    def publish(self, step):
        old = self.states[-1] if self.states else None
        state = states.changed(self.rng, old, 0.03) if old else first_state(self.rng)
        version = len(self.states)
        self.states.append(state)
        write_safetensors(self.path(version), state)
        # Files beside the weights are part of an anchor.
        model = self.folder / "model"
        model.mkdir(exist_ok=True)
        shutil.copy(self.path(version), model / "model.safetensors")
        (model / "config.json").write_text("{}\n")
        self.ask(
            *("publish", self.store, RUN, self.folder / "state", model, step, self.key),
            *(self.reference, self.anchor_every),
        )

    def way(self, start, end, regions=()):
        """Of one patch, or of one for each list of regions."""
        paths = []
        for number, boxes in enumerate(regions or [()]):
            paths.append(self.folder / f"{start}-{end}-{number}.ulp")
            child, base = self.path(end), self.path(start)
            self.maker.patch.diff("best", base, child, paths[-1], regions=boxes)
        self.ask("way", self.store, RUN, self.key, start, end, *paths)

    def hand_over(self, key):
        self.ask("handover", self.store, RUN, self.key, key)
        self.key = key

    def announce(self):
        self.ask("announce", self.store, RUN, self.key)


class Maker:
    def __init__(self, chain, patch, scratch):
        self.chain, self.patch, self.scratch = chain, patch, scratch
        self.lines = []

    def keep(self, trainer, *options, check="ULP_OK", follow="ULP_OK"):
        shutil.copytree(trainer.store / RUN, VECTORS / "accept" / trainer.name / RUN)
        self.expect(check, follow, f"accept/{trainer.name}", *options)

    def expect(self, check, follow, store, *options):
        self.lines.append((check, follow, store, *options))


def trust(*keys):
    return "trust=" + ",".join(records.ed25519.public_key(bytes.fromhex(k)).hex() for k in keys)


def unsigned(maker):
    run = Trainer(maker, "unsigned")
    for step in range(5):
        run.publish(10 * step)
    maker.keep(run)
    maker.expect("ULP_OK", "ULP_E_UNSIGNED", "accept/unsigned", trust(seed(1)))
    maker.expect("ULP_OK", "ULP_OK", "accept/unsigned", "known=accept/unsigned")


def one(maker):
    """One record, and nothing else."""
    run = Trainer(maker, "one")
    run.publish(0)
    maker.keep(run)


def signed(maker):
    run = Trainer(maker, "signed", key=seed(1))
    for step in range(4):
        run.publish(step)
    maker.keep(run)
    for keys in ((1,), (4, 1)):
        maker.expect("ULP_OK", "ULP_OK", "accept/signed", trust(*map(seed, keys)))
    maker.expect("ULP_OK", "ULP_E_SIGNATURE", "accept/signed", trust(seed(4)))


def handover(maker):
    """From key 1 to 2 and to 3."""
    run = Trainer(maker, "handover", key=seed(1))
    run.publish(0)
    run.publish(1)
    run.hand_over(seed(2))
    run.publish(2)
    run.hand_over(seed(3))
    run.publish(3)
    maker.keep(run)
    for key in (1, 2, 3):
        maker.expect("ULP_OK", "ULP_OK", "accept/handover", trust(seed(key)))
    maker.expect("ULP_OK", "ULP_E_SIGNATURE", "accept/handover", trust(seed(4)))


def reference(maker):
    run = Trainer(maker, "reference", reference="hub/model@main")
    for step in range(4):
        run.publish(step)
    maker.keep(run, follow="ULP_E_UNREACHABLE")
    for version in (0, 1):
        shutil.copy(run.path(version), VECTORS / f"accept/reference/{version}.safetensors")
    maker.expect(
        "ULP_OK", "ULP_OK", "accept/reference", "base=accept/reference/0.safetensors"
    )
    maker.expect(
        "ULP_OK", "ULP_E_WRONG_BASE", "accept/reference", "base=accept/reference/1.safetensors"
    )


def epochs(maker):
    run = Trainer(maker, "epochs")
    for step in (10, 20, 15, 16, 16, 3, 2, 40):
        run.publish(step)
    maker.keep(run)


def many(maker):
    """Forty versions with anchors, long ways between them, and an announcement."""
    run = Trainer(maker, "many", anchor_every=16)
    for step in range(40):
        run.publish(step)
        if step % 8 == 0 and step:
            run.way(step - 8, step)
    run.announce()
    maker.keep(run)
    maker.expect("ULP_OK", "ULP_OK", "accept/many", "age=3600000", "now=1790003600000")
    maker.expect("ULP_OK", "ULP_E_FROZEN", "accept/many", "age=3600000", "now=1800000000000")


def tiles(maker):
    """A way of several patches, which is cheaper than the ones beside it."""
    run = Trainer(maker, "tiles")
    for step in range(9):
        run.publish(step)
    common = [("norm", 0, 1, 0, 9)]
    left = [("down.weight", 0, 8, 0, 24), ("up.weight", 0, 24, 0, 8)]
    right = [("down.weight", 8, 8, 0, 24), ("up.weight", 0, 24, 8, 8)]
    run.way(0, 8, [common, left, right])
    shutil.copytree(run.store / RUN, VECTORS / "accept/tiles" / RUN)
    for version in (0, 3):  # one from which the run starts, and one that it has to replace
        shutil.copy(run.path(version), VECTORS / f"accept/tiles/{version}.safetensors")
        path = f"memory=accept/tiles/{version}.safetensors"
        maker.expect("ULP_OK", "ULP_OK", "accept/tiles", path)


def refuse(maker):
    for case in refusals.all_cases():
        folder = VECTORS / "refuse" / case.name
        folder.mkdir(parents=True)
        gone = [key for key, data in case.changes.items() if data is None]
        for key, data in case.changes.items():
            if data is not None:
                (folder / key).parent.mkdir(parents=True, exist_ok=True)
                (folder / key).write_bytes(data)
        if not any(folder.iterdir()):
            (folder / "README").write_text("Nothing differs but what is missing.\n")
        options = [f"over={case.over}"]
        options += ["without=" + ",".join(gone)] if gone else []
        maker.expect(case.check, case.follow, f"refuse/{case.name}", *options, *case.options)


def main():
    shutil.rmtree(VECTORS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        for make in (unsigned, one, signed, handover, reference, epochs, many, tiles):
            # A process for each, so that each begins with the same clock.
            with Library(sys.argv[1]) as chain, Library(sys.argv[2]) as patch:
                maker = Maker(chain, patch, pathlib.Path(scratch))
                make(maker)
                lines = [] if make is unsigned else lines
                lines += maker.lines
    maker.lines = lines
    refuse(maker)
    text = "".join(" ".join(line) + "\n" for line in maker.lines)
    (VECTORS / "expected.txt").write_text(HEAD + text)
    (VECTORS / SUMS).write_text(sums_of(VECTORS))


if __name__ == "__main__":
    main()
