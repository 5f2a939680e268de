# SPDX-License-Identifier: Apache-2.0
"""Runs that were damaged or forged: what differs from a golden one, and what must be said of it."""

import copy
import hashlib
from typing import NamedTuple

import ed25519
import record as records
from vectors import RUN, VECTORS, seed

OK, CHAIN, SIGNATURE, UNSIGNED = "ULP_OK", "ULP_E_CHAIN", "ULP_E_SIGNATURE", "ULP_E_UNSIGNED"
RECORD, JUMP, CHECKSUM = "ULP_E_RECORD", "ULP_E_JUMP", "ULP_E_CHECKSUM"
UNREACHABLE, WRONG_RESULT = "ULP_E_UNREACHABLE", "ULP_E_WRONG_RESULT"


class Case(NamedTuple):
    name: str
    over: str
    check: str
    follow: str
    changes: dict  # key -> bytes, or None: deleted
    options: tuple = ()


def log_key(sequence):
    return f"{RUN}/log/{sequence:020}"


def part_key(part):
    return f"{RUN}/part/{part.folder:020}/{part.hash.hex()}"


def secret(number):
    return bytes.fromhex(seed(number))


def trust(number):
    return "trust=" + ed25519.public_key(secret(number)).hex()


class Golden:
    """A run that must be accepted, and changes to it."""

    def __init__(self, name):
        self.over = f"accept/{name}"
        folder = VECTORS / self.over / RUN / "log"
        self.data = [None] + [path.read_bytes() for path in sorted(folder.iterdir())]
        self.last = len(self.data) - 1

    def record(self, sequence=None):
        return records.read(self.data[sequence or self.last])

    def part_bytes(self, part):
        return (VECTORS / self.over / part_key(part)).read_bytes()

    def change(self, function, sequence=None, key=None, relink=True):
        """Files after a record was changed, and those behind it linked to it again; with `key`, all
        of these are signed anew by it."""
        sequence = sequence or self.last
        data, changes = list(self.data), {}
        for number in range(sequence, self.last + 1):
            record = records.read(data[number])
            if number == sequence:
                function(record)
            elif relink:
                found = [hashlib.sha256(data[i]).digest() for i in records.ancestors_of(number)]
                record.ancestors = found
            else:
                continue
            data[number] = records.write(record, key)
            changes[log_key(number)] = data[number]
        return changes


# ---- bytes ---------------------------------------------------------------------------------------


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def mended(body):
    """With a hash that fits."""
    return records.close(body)


def damaged(golden):
    last, key = golden.data[golden.last], log_key(golden.last)
    cases = {
        "bit_in_the_root": (CHECKSUM, flipped(last, 8 * 100)),
        "bit_in_the_hash": (CHECKSUM, flipped(last, 8 * len(last) - 1)),
        "bit_in_the_magic": (RECORD, flipped(last, 3)),
        "another_version": ("ULP_E_VERSION", flipped(last, 8 * 7)),
        "cut": (CHECKSUM, last[:-1]),
        "cut_in_the_magic": (RECORD, last[:6]),
        "cut_behind_the_magic": (RECORD, last[:20]),
        "empty": (RECORD, b""),
        "longer": (CHECKSUM, last + b"\0"),
        "byte_behind": (RECORD, mended(last[:-32] + b"\0")),
        "byte_less": (RECORD, mended(last[:-33])),
        "signed_2": (RECORD, mended(last[:-33] + b"\2")),
        "signed_by_nobody": (RECORD, mended(last[:-33] + b"\1")),
        "longer_number": (RECORD, mended(last[:-33] + b"\x80\0")),
    }
    for name, (status, data) in cases.items():
        yield Case(name, golden.over, status, status, {key: data})
    old = {log_key(3): flipped(golden.data[3], 999)}
    yield Case("bit_off_the_line", golden.over, CHECKSUM, OK, old)  # 5, 4, 2, 1 are read
    old = {log_key(2): flipped(golden.data[2], 999)}
    yield Case("bit_on_the_line", golden.over, CHECKSUM, CHECKSUM, old)


# ---- one field of the newest record --------------------------------------------------------------


def set_field(name, value):
    return lambda record: setattr(record, name, value)


def change_way(**fields):
    def change(record):
        for name, value in fields.items():
            setattr(record.ways[-1], name, value)

    return change


def change_anchor(**fields):
    def change(record):
        for name, value in fields.items():
            setattr(record.anchors[0], name, value)

    return change


def rename_file(name):
    return lambda record: setattr(record.anchors[0].files[0], "name", name)


def reverse(name):
    return lambda record: getattr(record, name).reverse()


def double(name):
    return lambda record: getattr(record, name).append(copy.deepcopy(getattr(record, name)[-1]))


def malformed(golden):
    cases = {
        "sequence_0": lambda r: (setattr(r, "sequence", 0), setattr(r, "ancestors", [])),
        "boundary_beyond": set_field("boundary", golden.last + 1),
        "anchor_beyond": change_anchor(version=golden.last),
        "anchor_twice": double("anchors"),
        "way_beyond": change_way(end=golden.last),
        "way_back": change_way(start=4, end=3),
        "way_to_itself": change_way(start=4, end=4),
        "way_twice": double("ways"),
        "ways_in_disorder": reverse("ways"),
        "way_of_a_later_record": change_way(sequence=golden.last + 1),
        "way_without_patches": change_way(patches=[]),
        "way_with_history_2": change_way(history=2),
        "patch_without_parts": change_way(patches=[[]]),
        "files_in_disorder": lambda r: r.anchors[0].files.reverse(),
        "file_twice": lambda r: r.anchors[0].files.append(r.anchors[0].files[-1]),
        "file_hidden": rename_file(b".config.json"),
        "file_above": rename_file(b"../config.json"),
        "file_without_name": rename_file(b""),
        "file_with_nul": rename_file(b"a\0b"),
        "file_name_too_long": rename_file(b"a" * 256),
        "reference_with_nul": change_anchor(reference=b"a\0b", weights=bytes(32)),
        "reference_too_long": change_anchor(reference=b"a" * 1025, weights=bytes(32)),
    }
    for name, change in cases.items():
        yield Case(name, golden.over, RECORD, RECORD, golden.change(change))
    for name in ("version", "epoch"):
        changes = golden.change(set_field(name, golden.last))
        yield Case(f"{name}_not_below_the_sequence", golden.over, JUMP, JUMP, changes)


# ---- the chain -----------------------------------------------------------------------------------


def chain(golden):
    over, last = golden.over, golden.last
    yield Case("another_number", over, CHAIN, CHAIN, {log_key(last): golden.data[last - 1]})
    yield Case("missing_in_between", over, CHAIN, CHAIN, {log_key(2): None})
    yield Case("missing_before_the_last", over, CHAIN, CHAIN, {log_key(last - 1): None})
    yield Case("missing_first", over, CHAIN, "ULP_E_NO_RUN", {log_key(1): None})
    gone = {log_key(i): None for i in range(1, last + 1)}
    yield Case("no_records", over, "ULP_E_NO_RUN", "ULP_E_NO_RUN", gone)
    for name, sequence in (("the_last", last), ("one_before", 4)):
        for k in range(len(records.ancestors_of(sequence))):

            def change(record, k=k):
                record.ancestors[k] = flipped(record.ancestors[k], 7)

            # Of record 4 the nearer ancestor is not on the line of a follower, the other one is.
            follow = OK if (sequence, k) == (4, 0) else CHAIN
            changes = golden.change(change, sequence)
            yield Case(f"ancestor_{k}_of_{name}", over, CHAIN, follow, changes)
    other = golden.change(set_field("step", 12345), 2, relink=False)
    yield Case("replaced_on_the_line", over, CHAIN, CHAIN, other)
    other = golden.change(set_field("step", 12345), 3, relink=False)
    yield Case("replaced_off_the_line", over, CHAIN, OK, other)
    changes = golden.change(set_field("run_id", bytes(16)))
    yield Case("of_another_run", over, "ULP_E_OTHER_RUN", "ULP_E_OTHER_RUN", changes)


def trim_ways(record):
    record.ways = [way for way in record.ways if way.end <= record.version]


def growth(golden):
    over = golden.over

    def back(record):
        record.version = 2
        trim_ways(record)

    yield Case("version_goes_back", over, CHAIN, CHAIN, golden.change(back))

    def behind(record):
        record.version = 0
        trim_ways(record)

    yield Case("version_jumps", over, JUMP, JUMP, golden.change(behind, 2))
    yield Case("epoch_jumps", over, JUMP, JUMP, golden.change(set_field("epoch", 2)))
    epochs = Golden("epochs")
    for name, epoch, follow in (("a_little", 2, OK), ("far", 0, CHAIN)):
        # Who follows compares record 8, of epoch 3, with record 4, of epoch 1.
        changes = epochs.change(set_field("epoch", epoch))
        yield Case(f"epoch_goes_back_{name}", epochs.over, CHAIN, follow, changes)
    # Record 4 announces; 5, which follows it, knows nothing of that.
    changes = golden.change(set_field("boundary", 4), 4)
    yield Case("boundary_goes_back", over, CHAIN, CHAIN, changes)


# ---- parts ---------------------------------------------------------------------------------------


def parts(golden):
    over, record = golden.over, golden.record()
    files = {file.name: file.part for file in record.anchors[0].files}
    cases = {
        "patch": record.ways[1].patches[0][0],
        "weights": files[b"model.safetensors"],
        "config": files[b"config.json"],
    }
    for name, part in cases.items():
        data, key = golden.part_bytes(part), part_key(part)
        missing = "ULP_E_PART_MISSING"
        yield Case(f"{name}_missing", over, missing, missing, {key: None})
        for damage, changed in (
            ("flipped", flipped(data, 4 * len(data) // 2)),
            ("cut", data[:-1]),
            ("longer", data + b"\0"),
            ("empty", b""),
        ):
            yield Case(f"{name}_{damage}", over, "ULP_E_PART", "ULP_E_PART", {key: changed})
    many = Golden("many")
    record = many.record()
    unused = next(way for way in record.ways if way.start == record.anchors[0].version)
    key = part_key(unused.patches[0][0])
    yield Case("part_off_the_way", many.over, "ULP_E_PART_MISSING", OK, {key: None})


# ---- the map -------------------------------------------------------------------------------------


def lead_elsewhere(golden):
    """Maps that are well-formed and lead to no good."""
    over = golden.over

    def without_way(record):
        del record.ways[1]

    def history_first(record):
        record.ways[0].history = True

    yield Case("no_way", over, UNREACHABLE, UNREACHABLE, golden.change(without_way))
    yield Case("no_anchor", over, UNREACHABLE, UNREACHABLE, golden.change(set_field("anchors", [])))
    yield Case(
        "history_from_an_anchor", over, UNREACHABLE, UNREACHABLE, golden.change(history_first)
    )

    yield Case(
        "another_root", over, OK, WRONG_RESULT, golden.change(set_field("root", bytes(32)))
    )
    yield Case(
        "another_root_of_an_anchor", over, OK, WRONG_RESULT, golden.change(change_anchor(root=bytes(32)))
    )

    def other_patch(record):
        record.ways[-1].patches = record.ways[-2].patches

    # It leads to where one is already, which is nothing to do; but that is not the newest version.
    yield Case("another_patch", over, OK, WRONG_RESULT, golden.change(other_patch))

    def other_record(record):
        record.ways[1].sequence = 1

    yield Case("way_of_another_record", over, OK, OK, golden.change(other_record))
    reference = Golden("reference")
    yield Case(
        *("another_hash_of_weights", reference.over, OK, "ULP_E_WRONG_BASE"),
        reference.change(change_anchor(weights=bytes(32))),
        ("base=accept/reference/0.safetensors",),
    )


# ---- signatures ----------------------------------------------------------------------------------


def strip(record):
    record.signer = record.signature = None


def signatures(golden):
    over, last = golden.over, golden.data[golden.last]
    forged = {log_key(golden.last): mended(flipped(last[:-32], 8 * (len(last) - 40)))}
    yield Case("signature_flipped", over, SIGNATURE, SIGNATURE, forged)
    yield Case("signature_flipped_trusted", over, SIGNATURE, SIGNATURE, forged, (trust(1),))
    forged = golden.change(set_field("step", 777))
    yield Case("signed_something_else", over, SIGNATURE, SIGNATURE, forged)
    stripped = golden.change(strip)
    yield Case("stripped", over, UNSIGNED, OK, stripped)
    yield Case("stripped_trusted", over, UNSIGNED, UNSIGNED, stripped, (trust(1),))
    foreign = golden.change(set_field("step", 777), key=secret(4))
    yield Case("foreign_key", over, SIGNATURE, OK, foreign)
    yield Case("foreign_key_trusted", over, SIGNATURE, SIGNATURE, foreign, (trust(1),))

    def weak(record):
        # R = B and S = 1 are a signature of everything, for the key of order one.
        record.signer = b"\1" + bytes(31)
        record.signature = b"\x58" + b"\x66" * 31 + b"\1" + bytes(31)

    yield Case("weak_key", over, SIGNATURE, SIGNATURE, golden.change(weak))
    yield Case(
        *("weak_key_trusted", over, SIGNATURE, SIGNATURE, golden.change(weak)),
        ("trust=" + (b"\1" + bytes(31)).hex(),),
    )


def handovers(golden):
    """The newest record of the golden one is signed by key 3, which has it from 2 and that from 1."""
    over = golden.over

    def forge(**fields):
        def change(record):
            for name, value in fields.items():
                setattr(record.handovers[0], name, value)

        return golden.change(change, key=secret(3))

    def for_another_run(record):
        handover = record.handovers[0]
        handover.signature = ed25519.sign(secret(1), handover.signed_text(bytes(16)))

    cases = {
        "forged": forge(signature=bytes(64)),
        "for_another_sequence": forge(sequence=2),
        "for_another_run": golden.change(for_another_run, key=secret(3)),
    }
    for name, changes in cases.items():
        # Whoever has seen a later key does not look so far back.
        for key, status in ((1, SIGNATURE), (2, OK), (3, OK)):
            yield Case(f"handover_{name}_{key}", over, SIGNATURE, status, changes, (trust(key),))
    first = golden.change(lambda r: setattr(r.handovers[0], "signature", bytes(64)), 3, relink=False)
    # Record 3, the first that key 2 signs, with a handover that key 1 has not signed.
    data = records.read(first[log_key(3)])
    first[log_key(3)] = records.write(data, secret(2))
    yield Case("handover_forged_where_it_begins", over, SIGNATURE, OK, first)
    for name, key in (("an_old_key", 1), ("a_foreign_key", 4)):
        changes = golden.change(set_field("step", 9), key=secret(key))
        yield Case(f"signed_by_{name}_after_a_handover", over, SIGNATURE, SIGNATURE, changes)
    changes = golden.change(strip)
    yield Case("not_signed_after_a_handover", over, SIGNATURE, SIGNATURE, changes)

    def forget(record):
        record.handovers = []

    changes = golden.change(forget, key=secret(1))
    yield Case("old_key_goes_on", over, SIGNATURE, OK, changes)
    yield Case("old_key_goes_on_trusted", over, SIGNATURE, OK, changes, (trust(1),))
    yield Case("old_key_goes_on_new_trusted", over, SIGNATURE, SIGNATURE, changes, (trust(3),))
    cases = {
        "handovers_in_disorder": lambda r: r.handovers.reverse(),
        "handover_beyond": lambda r: setattr(r.handovers[1], "sequence", golden.last + 1),
        "handovers_that_do_not_follow": lambda r: setattr(r.handovers[0], "new", bytes(32)),
    }
    for name, change in cases.items():
        yield Case(name, over, RECORD, RECORD, golden.change(change, key=secret(3)))


# ---- what was seen before ------------------------------------------------------------------------


def seen(golden):
    over, known = golden.over, (f"known={golden.over}",)
    yield Case("rolled_back", over, OK, "ULP_E_ROLLBACK", {log_key(golden.last): None}, known)
    forked = golden.change(set_field("time_ms", 5))
    yield Case("forked", over, OK, "ULP_E_FORK", forked, known)
    forked = golden.change(set_field("time_ms", 5), 2)
    yield Case("forked_long_ago", over, OK, "ULP_E_FORK", forked, known)
    other = Golden(over.split("/")[1])
    for sequence in range(1, golden.last + 1):
        for key, data in other.change(set_field("run_id", bytes(16)), sequence).items():
            other.data[int(key.rsplit("/")[-1])] = data
    changes = {log_key(i): other.data[i] for i in range(1, golden.last + 1)}
    yield Case("another_run", over, OK, "ULP_E_OTHER_RUN", changes, known)


def seen_signed(golden):
    """The run was seen without its newest record."""
    over, known = golden.over, (f"known={golden.over}@{golden.last - 1}",)
    yield Case("stripped_known", over, UNSIGNED, UNSIGNED, golden.change(strip), known)
    foreign = golden.change(set_field("step", 777), key=secret(4))
    yield Case("foreign_key_known", over, SIGNATURE, SIGNATURE, foreign, known)
    jump = golden.change(set_field("epoch", 2), key=secret(1))
    yield Case("epoch_jumps_known", over, JUMP, JUMP, jump, known)


def all_cases():
    unsigned = Golden("unsigned")
    for make in (damaged, malformed, chain, growth, parts, lead_elsewhere, seen):
        yield from make(unsigned)
    yield from signatures(Golden("signed"))
    yield from seen_signed(Golden("signed"))
    yield from handovers(Golden("handover"))
