#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reader of runs, written from docs/format alone: it says nothing that the text does not say.

usage: checker.py STORE RUN [--trust HEX]... [--known RECORD] [--base MODEL] [--no-follow]

STORE is a directory. Reads every record of the run, checks what the newest one names, plans the
cheapest way to it and goes it with the decoder of patches. Prints JSON: `status` is ULP_OK or the
name of the status in docs/format/chain.md; `broken` lists what publishers promise and did not keep,
which a reader has no reason to refuse.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys
import tempfile

import plan as plans
import record as records
from record import Refused, require

from decoder import Patch, apply  # tests/patch/oracle, which record.py put into the path
from state import read_safetensors, root


class Run:
    """A run in a store that is a directory."""

    def __init__(self, store, name):
        self.folder = pathlib.Path(store) / name

    def record_path(self, sequence):
        return self.folder / "log" / f"{sequence:020}"

    def length(self):
        """The sequence of the newest record."""
        log = self.folder / "log"
        names = [path.name for path in log.iterdir()] if log.is_dir() else []
        numbers = {int(name) for name in names if re.fullmatch("[0-9]{20}", name)} - {0}
        require(numbers, "ULP_E_NO_RUN", "there is no record 1")
        require(len(numbers) == max(numbers), "ULP_E_CHAIN", "a record is missing")
        return max(numbers)

    def part(self, part):
        path = self.folder / "part" / f"{part.folder:020}" / part.hash.hex()
        require(path.is_file(), "ULP_E_PART_MISSING", f"{path.name} is missing")
        data = path.read_bytes()
        right = len(data) == part.bytes and hashlib.sha256(data).digest() == part.hash
        require(right, "ULP_E_PART", f"{path.name} is another one")
        return data


# ---- the log -------------------------------------------------------------------------------------


def read_log(run):
    """(records, their hashes), both by sequence; the first is None."""
    log, hashes = [None], [None]
    for sequence in range(1, run.length() + 1):
        data = run.record_path(sequence).read_bytes()
        record = records.read(data)
        require(record.sequence == sequence, "ULP_E_CHAIN", f"record {sequence} has another number")
        log.append(record)
        hashes.append(hashlib.sha256(data).digest())
    return log, hashes


def check_growth(earlier, later):
    same = earlier.run_id == later.run_id
    require(same, "ULP_E_OTHER_RUN", f"record {later.sequence} belongs to another run")
    distance = later.sequence - earlier.sequence
    for name in ("version", "epoch", "boundary"):
        grown = getattr(later, name) - getattr(earlier, name)
        require(grown >= 0, "ULP_E_CHAIN", f"record {later.sequence}: its {name} goes back")
        fast = name != "boundary" and grown > distance
        require(not fast, "ULP_E_JUMP", f"record {later.sequence}: its {name} jumps")


def check_links(log, hashes):
    for record in log[1:]:
        for ancestor, named in zip(records.ancestors_of(record.sequence), record.ancestors):
            right = named == hashes[ancestor]
            message = f"record {record.sequence} does not descend from record {ancestor}"
            check_growth(log[ancestor], record)
            require(right, "ULP_E_CHAIN", message)


def check_known(log, hashes, data):
    """`data`: the record that was seen before."""
    known = records.read(data)
    require(known.sequence < len(log), "ULP_E_ROLLBACK", "fewer records than were seen")
    if hashlib.sha256(data).digest() != hashes[known.sequence]:
        require(known.run_id == log[-1].run_id, "ULP_E_OTHER_RUN", "another run")
        require(False, "ULP_E_FORK", f"another record {known.sequence} than the one that was seen")
    return known


# ---- what publishers promise ---------------------------------------------------------------------


def broken_between(before, record):
    if record.version == before.version:
        if (record.root, record.step, record.epoch) != (before.root, before.step, before.epoch):
            yield "changes more than the map"
    elif record.epoch != before.epoch + (record.step < before.step):
        yield "has an epoch that does not follow from the steps"
    if record.boundary not in (before.boundary, record.sequence):
        yield "has a boundary that nobody announced"
    named = set(before.parts())
    for part in record.parts():
        if part.folder < before.boundary and part not in named:
            yield f"names part {part.hash.hex()}, which may be deleted"
    if record.handovers[: len(before.handovers)] != before.handovers:
        yield "forgets a handover"
    if before.signer is not None and record.signer is None:
        yield "is not signed, though the one before was"


def broken_promises(log):
    first = {}
    for record in log[1:]:
        first.setdefault(record.version, record)
        found = list(broken_between(log[record.sequence - 1], record)) if record.sequence > 1 else []
        for way in record.ways:
            if way.end not in first or first[way.end].sequence != way.sequence:
                found.append(f"says that record {way.sequence} published version {way.end}")
        for anchor in record.anchors:
            if anchor.version in first and anchor.root != first[anchor.version].root:
                found.append(f"has an anchor of version {anchor.version} with another root")
        if not reachable(record):
            found.append("cannot be reached from its anchors")
        yield from (f"record {record.sequence} {what}" for what in found)


# ---- following -----------------------------------------------------------------------------------


def reachable(record):
    """Whether some anchor leads to the record's version, those by reference included."""
    roots = [None] + [anchor.root for anchor in record.anchors if anchor.reference]
    for base in roots:
        try:
            plans.plan(record, record.version, base_root=base)
            return True
        except Refused:
            pass
    return False


def weights_hash(state):
    """As anchors by reference name it."""
    text = hashlib.sha256()
    for name, _, data in state:
        text.update(name + b"\0" + len(data).to_bytes(8, "little") + bytes(data))
    return text.digest()


def state_of_anchor(run, anchor):
    """The tensors of all its safetensors files, which are read from a copy under their names."""
    state = []
    with tempfile.TemporaryDirectory() as directory:
        for file in anchor.files:
            data = run.part(file.part)
            if file.name.endswith(b".safetensors"):
                path = pathlib.Path(directory) / "weights"
                path.write_bytes(data)
                state += read_safetensors(path)
    return sorted(state, key=lambda tensor: tensor.name)


def start(run, anchor, base):
    at_hand = base is not None and root(base) == anchor.root
    state = base if at_hand else state_of_anchor(run, anchor)
    require(root(state) == anchor.root, "ULP_E_WRONG_RESULT", "an anchor that has another root")
    if anchor.reference:
        right = weights_hash(state) == anchor.weights
        require(right, "ULP_E_WRONG_RESULT", "other weights than the anchor refers to")
    return state


def go(run, log, plan, base):
    """The state at the end of a plan."""
    before, state = None, start(run, plan.anchor, base)
    for way in plan.ways:
        patches = [Patch(b"".join(map(run.part, patch))) for patch in way.patches]
        goal = log[way.sequence].root
        child, found = apply(patches, state, before if way.history else None, goal)
        require(found == goal, "ULP_E_WRONG_RESULT", f"the way to {way.end} leads elsewhere")
        before, state = state, child
    return state


def follow(run, log, base):
    head = log[-1]
    plan = plans.plan(head, head.version, base_root=root(base) if base is not None else None)
    state = go(run, log, plan, base)
    require(root(state) == head.root, "ULP_E_WRONG_RESULT", "the way leads elsewhere")
    return plan, state


# ---- all of it -----------------------------------------------------------------------------------


def describe(record):
    names = ("sequence", "epoch", "version", "step", "time_ms", "boundary")
    found = {name: getattr(record, name) for name in names}
    found["run_id"] = record.run_id.hex()
    found["root"] = record.root.hex()
    found["signer"] = record.signer.hex() if record.signer else None
    found["handovers"] = len(record.handovers)
    found["anchors"] = [anchor.version for anchor in record.anchors]
    found["ways"] = [[way.start, way.end] for way in record.ways]
    return found


def describe_plan(plan):
    return {
        "anchor": plan.anchor.version,
        "ways": [[way.start, way.end] for way in plan.ways],
        "bytes": plan.bytes,
    }


def check_run(said, run, trusted, known, base, following):
    log, hashes = read_log(run)
    head = log[-1]
    said.update(records=len(log) - 1, head=describe(head))
    check_links(log, hashes)
    seen = check_known(log, hashes, known) if known is not None else None
    records.trust_check(head, trusted, seen)
    parts = head.parts()
    for part in parts:
        run.part(part)
    said.update(parts=len(parts), bytes=sum(part.bytes for part in parts))
    said["broken"] = list(broken_promises(log))
    require(reachable(head), "ULP_E_UNREACHABLE", "no anchor leads to the newest version")
    if following:
        plan, state = follow(run, log, base)
        said.update(plan=describe_plan(plan), root=root(state).hex())


def check(store, name, trusted=(), known=None, base=None, following=True):
    """What main() prints. `known`: bytes of a record; `base`: a state."""
    said = {"status": "ULP_OK"}
    try:
        check_run(said, Run(store, name), trusted, known, base, following)
    except Refused as refused:
        said.update(status=refused.reason, message=str(refused))
    return said


def main():
    parser = argparse.ArgumentParser(description="Checks a run.")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--trust", type=bytes.fromhex, action="append", default=[], metavar="HEX")
    parser.add_argument("--known", type=pathlib.Path, help="a record that was seen before")
    parser.add_argument("--base", help="a model that is at hand")
    parser.add_argument("--no-follow", action="store_true", help="look, but decode no patches")
    arguments = parser.parse_args()
    said = check(
        arguments.store,
        arguments.run,
        arguments.trust,
        arguments.known.read_bytes() if arguments.known else None,
        read_safetensors(arguments.base) if arguments.base else None,
        not arguments.no_follow,
    )
    json.dump(said, sys.stdout, indent=1)
    print()
    return said["status"] != "ULP_OK"


if __name__ == "__main__":
    sys.exit(main())
