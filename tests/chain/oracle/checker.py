#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reader of runs, written from docs/format alone: it says nothing that the text does not say.

usage: checker.py STORE RUN [--trust HEX]... [--known RECORD] [--base MODEL] [--max-age MS]

STORE is a directory. Prints JSON with two verdicts, ULP_OK or the name of the status in
docs/format/chain.md: `check` is of who reads every record and all that the newest one names,
`follow` of who starts with nothing, or after having seen a record, and goes the cheapest way to the
newest version, with the decoder of patches. `broken` lists what publishers promise and did not
keep, which is no reason to refuse anything.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import time

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

    def has(self, sequence):
        return self.record_path(sequence).is_file()

    def listed(self):
        log = self.folder / "log"
        names = [path.name for path in log.iterdir()] if log.is_dir() else []
        return {int(name) for name in names if re.fullmatch("[0-9]{20}", name)} - {0}

    def record(self, sequence):
        """(the record, its hash)"""
        require(self.has(sequence), "ULP_E_CHAIN", f"record {sequence} is missing")
        data = self.record_path(sequence).read_bytes()
        record = records.read(data)
        require(record.sequence == sequence, "ULP_E_CHAIN", f"record {sequence} has another number")
        return record, hashlib.sha256(data).digest()

    def part(self, part):
        path = self.folder / "part" / f"{part.folder:020}" / part.hash.hex()
        require(path.is_file(), "ULP_E_PART_MISSING", f"{path.name} is missing")
        data = path.read_bytes()
        right = len(data) == part.bytes and hashlib.sha256(data).digest() == part.hash
        require(right, "ULP_E_PART", f"{path.name} is another one")
        return data


def check_growth(earlier, later):
    same = earlier.run_id == later.run_id
    require(same, "ULP_E_OTHER_RUN", f"record {later.sequence} belongs to another run")
    distance = later.sequence - earlier.sequence
    for name in ("version", "epoch", "boundary"):
        grown = getattr(later, name) - getattr(earlier, name)
        require(grown >= 0, "ULP_E_CHAIN", f"record {later.sequence}: its {name} goes back")
        fast = name != "boundary" and grown > distance
        require(not fast, "ULP_E_JUMP", f"record {later.sequence}: its {name} jumps")


# ---- the whole log -------------------------------------------------------------------------------


def read_log(run):
    """(records, their hashes), both by sequence; the first is None."""
    listed = run.listed()
    require(listed, "ULP_E_NO_RUN", "there is no record")
    entries = [run.record(sequence) for sequence in range(1, max(listed) + 1)]
    return [None] + [record for record, _ in entries], [None] + [found for _, found in entries]


def check_links(log, hashes):
    """Each as who knows the one before; and all ancestors."""
    for record in log[1:]:
        for ancestor, named in zip(records.ancestors_of(record.sequence), record.ancestors):
            check_growth(log[ancestor], record)
            message = f"record {record.sequence} does not descend from record {ancestor}"
            require(named == hashes[ancestor], "ULP_E_CHAIN", message)
        records.trust_check(record, known=log[record.sequence - 1])


# ---- the line of ancestors -----------------------------------------------------------------------


def furthest_back(record, goal):
    """(sequence, hash) of the ancestor that lies furthest back but not behind the goal."""
    pairs = zip(records.ancestors_of(record.sequence), record.ancestors)
    return min(pair for pair in pairs if pair[0] >= goal)


def walk_back(run, head, goal, known_hash=None):
    at = head
    while at.sequence > goal:
        sequence, named = furthest_back(at, goal)
        if sequence == goal and known_hash is not None:
            require(named == known_hash, "ULP_E_FORK", f"another record {goal} than was seen")
            return
        ancestor, found = run.record(sequence)
        message = f"record {at.sequence} does not descend from record {sequence}"
        require(named == found, "ULP_E_CHAIN", message)
        check_growth(ancestor, at)
        at = ancestor


def last_behind(run, sequence):
    while run.has(sequence + 1):
        sequence += 1
    return sequence


def enter(run, trusted):
    """The newest record, for who knows none."""
    require(run.has(1), "ULP_E_NO_RUN", "there is no record 1")
    last = last_behind(run, 1)
    require(max(run.listed()) == last, "ULP_E_CHAIN", f"record {last + 1} is missing")
    head, _ = run.record(last)
    records.trust_check(head, trusted)
    walk_back(run, head, 1)
    return head


def go_on(run, trusted, data):
    """The newest record, for who has seen one: `data` is its bytes."""
    known, known_hash = records.read(data), hashlib.sha256(data).digest()
    require(run.has(known.sequence), "ULP_E_ROLLBACK", "fewer records than were seen")
    again, found = run.record(known.sequence)
    require(again.run_id == known.run_id, "ULP_E_OTHER_RUN", "another run")
    require(found == known_hash, "ULP_E_FORK", f"another record {known.sequence} than was seen")
    head, _ = run.record(last_behind(run, known.sequence))
    check_growth(known, head)
    records.trust_check(head, trusted, known)
    walk_back(run, head, known.sequence, known_hash)
    return head


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


def enter_base(head, base):
    """The anchor whose state a model is that somebody has already."""
    found = [anchor for anchor in head.anchors if anchor.root == root(base)]
    require(found, "ULP_E_WRONG_BASE", "the base is no anchor of the run")
    right = not found[0].reference or weights_hash(base) == found[0].weights
    require(right, "ULP_E_WRONG_BASE", "other weights than the anchor refers to")
    return found[0]


def go(run, plan, base):
    """The state at the end of a plan."""
    if base is not None and plan.anchor.root == root(base):
        state = base
    else:
        state = state_of_anchor(run, plan.anchor)
        right = root(state) == plan.anchor.root
        require(right, "ULP_E_WRONG_RESULT", "an anchor that has another root")
    before = None
    for way in plan.ways:
        patches = [Patch(b"".join(map(run.part, patch))) for patch in way.patches]
        child, _ = apply(patches, state, before if way.history else None)
        before, state = state, child
    return state


def follow(said, run, trusted, known, base, max_age, now):
    head = go_on(run, trusted, known) if known is not None else enter(run, trusted)
    frozen = max_age and now - head.time_ms > max_age
    require(not frozen, "ULP_E_FROZEN", "the newest record is too old")
    base_root = enter_base(head, base).root if base is not None else None
    plan = plans.plan(head, head.version, base_root=base_root)
    said["plan"] = describe_plan(plan)
    state = go(run, plan, base)
    require(root(state) == head.root, "ULP_E_WRONG_RESULT", "the way leads elsewhere")
    said["root"] = head.root.hex()


# ---- all of it -----------------------------------------------------------------------------------


def describe(record):
    names = ("sequence", "epoch", "version", "step", "time_ms", "elements", "boundary")
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


def check_run(said, run):
    log, hashes = read_log(run)
    head = log[-1]
    said.update(records=len(log) - 1, head=describe(head))
    check_links(log, hashes)
    parts = head.parts()
    for part in parts:
        run.part(part)
    said.update(parts=len(parts), bytes=sum(part.bytes for part in parts))
    said["broken"] = list(broken_promises(log))
    require(reachable(head), "ULP_E_UNREACHABLE", "no anchor leads to the newest version")


def verdict(said, name, function, *arguments):
    try:
        function(said, *arguments)
        said[name] = "ULP_OK"
    except Refused as refused:
        said[name] = refused.reason
        said[name + "_message"] = str(refused)


def check(store, name, trusted=(), known=None, base=None, max_age=0, now=None):
    """What main() prints. `known`: bytes of a record; `base`: a state; times in milliseconds."""
    said, run = {}, Run(store, name)
    now = time.time_ns() // 1000000 if now is None else now
    verdict(said, "check", check_run, run)
    verdict(said, "follow", follow, run, trusted, known, base, max_age, now)
    return said


def main():
    parser = argparse.ArgumentParser(description="Checks a run.")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--trust", type=bytes.fromhex, action="append", default=[], metavar="HEX")
    parser.add_argument("--known", type=pathlib.Path, help="a record that was seen before")
    parser.add_argument("--base", help="a model that is at hand")
    parser.add_argument("--max-age", type=int, default=0, metavar="MS")
    arguments = parser.parse_args()
    said = check(
        arguments.store,
        arguments.run,
        arguments.trust,
        arguments.known.read_bytes() if arguments.known else None,
        read_safetensors(arguments.base) if arguments.base else None,
        arguments.max_age,
    )
    json.dump(said, sys.stdout, indent=1)
    print()
    return said["check"] != "ULP_OK" or said["follow"] != "ULP_OK"


if __name__ == "__main__":
    sys.exit(main())
