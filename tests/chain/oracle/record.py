# SPDX-License-Identifier: Apache-2.0
"""Records of a run's log, read and written as docs/format/chain.md has them: read(write(r)) == r, and
whatever read() accepts write() gives back byte for byte."""

import dataclasses
import hashlib
import pathlib
import sys

import ed25519

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "patch/oracle"))

from state import Refused, require  # noqa: E402

__all__ = ["Refused", "require"]

MAGIC = b"ulpslog"
HANDOVER_MAGIC = b"ulphand\0"
RECORD_BYTES = 4 << 20
HANDOVERS = ANCHORS = 64
WAYS = PARTS = 4096
PATCHES = 1025
FILES = 8192
REFERENCE_BYTES = 1024
FILE_NAME_BYTES = 255


@dataclasses.dataclass(frozen=True)
class Part:
    folder: int
    bytes: int
    hash: bytes


@dataclasses.dataclass
class File:
    name: bytes
    part: Part


@dataclasses.dataclass
class Anchor:
    version: int
    root: bytes
    reference: bytes = b""
    weights: bytes = b""  # SHA-256, by reference only
    files: list = dataclasses.field(default_factory=list)

    def bytes(self):
        return sum(file.part.bytes for file in self.files)


@dataclasses.dataclass
class Way:
    start: int
    end: int
    history: bool
    changed: int
    sequence: int
    patches: list  # lists of parts

    def parts(self):
        return [part for patch in self.patches for part in patch]

    def bytes(self):
        return sum(part.bytes for part in self.parts())


@dataclasses.dataclass
class Handover:
    sequence: int
    old: bytes
    new: bytes
    signature: bytes

    def signed_text(self, run_id):
        return HANDOVER_MAGIC + run_id + self.sequence.to_bytes(8, "little") + self.old + self.new


@dataclasses.dataclass
class Record:
    run_id: bytes
    sequence: int
    ancestors: list
    epoch: int
    version: int
    step: int
    time_ms: int
    root: bytes
    elements: int = 0
    boundary: int = 0
    handovers: list = dataclasses.field(default_factory=list)
    anchors: list = dataclasses.field(default_factory=list)
    ways: list = dataclasses.field(default_factory=list)
    signer: bytes = None
    signature: bytes = None

    def parts(self):
        """Everything that the map names, each part once."""
        found = [file.part for anchor in self.anchors for file in anchor.files]
        found += [part for way in self.ways for part in way.parts()]
        return list(dict.fromkeys(found))


def ancestors_of(sequence):
    """The sequences of the records that this one names."""
    found, k = [], 0
    while (ancestor := (sequence - 1) >> k << k) > 0:
        if ancestor not in found:
            found.append(ancestor)
        k += 1
    return found


# ---- reading -------------------------------------------------------------------------------------


def check(condition, message, reason="ULP_E_RECORD"):
    require(condition, reason, message)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(count <= len(self.data) - self.at, "it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        number = 0
        for i in range(10):
            byte = self.take(1)[0]
            number |= (byte & 127) << 7 * i
            if byte < 128:
                check(byte or not i, "a number that could be shorter")
                check(number < 1 << 64, "a number beyond 64 bits")
                return number
        return check(False, "a number of more than ten bytes")

    def limited(self, limit, what, least=0):
        number = self.varint()
        check(least <= number <= limit, f"{what}: {number}")
        return number

    def text(self, limit, what):
        return self.take(self.limited(limit, what))

    def part(self):
        return Part(self.varint(), self.varint(), self.take(32))


def ascending(keys, what):
    check(all(one < two for one, two in zip(keys, keys[1:])), f"{what} in disorder")


def read_handovers(reader, sequence):
    handovers = []
    for _ in range(reader.limited(HANDOVERS, "handovers")):
        number = reader.limited(sequence, "the sequence of a handover")
        handovers.append(Handover(number, reader.take(32), reader.take(32), reader.take(64)))
    ascending([handover.sequence for handover in handovers], "handovers")
    for one, two in zip(handovers, handovers[1:]):
        check(one.new == two.old, "handovers that do not follow from each other")
    return handovers


def is_plain(name):
    return 0 < len(name) and b"/" not in name and b"\0" not in name and name[0] != ord(".")


def read_file(reader):
    name = reader.text(FILE_NAME_BYTES, "the length of a file's name")
    check(is_plain(name), "a file name that is not plain")
    return File(name, reader.part())


def read_anchor(reader, version):
    anchor = Anchor(reader.limited(version, "the version of an anchor"), reader.take(32))
    anchor.reference = reader.text(REFERENCE_BYTES, "the length of a reference")
    check(b"\0" not in anchor.reference, "a reference with NUL")
    if anchor.reference:
        anchor.weights = reader.take(32)
    anchor.files = [read_file(reader) for _ in range(reader.limited(FILES, "files"))]
    ascending([file.name for file in anchor.files], "files")
    return anchor


def read_way(reader, record):
    start, end = reader.varint(), reader.limited(record.version, "where a way leads")
    check(start < end, "a way that does not lead forward")
    history = bool(reader.limited(1, "history"))
    changed = reader.varint()
    sequence = reader.limited(record.sequence, "the record of a way")
    patches, left = [], PARTS
    for _ in range(reader.limited(PATCHES, "patches of a way", least=1)):
        count = reader.limited(left, "parts", least=1)
        patches.append([reader.part() for _ in range(count)])
        left -= count
    return Way(start, end, history, changed, sequence, patches)


def read_signature(reader, record):
    if reader.limited(1, "the mark of a signature"):
        record.signer = reader.take(32)
        record.signature = reader.take(64)
    check(reader.at == len(reader.data), "something stands behind it")
    last = record.handovers[-1].new if record.handovers else record.signer
    check(record.signer == last, "signed by who did not get the run", "ULP_E_SIGNATURE")


def read(data):
    """Refuses what is not exactly a record. Signatures are looked at by trust_check()."""
    check(len(data) <= RECORD_BYTES, "it is too long")
    check(data[:7] == MAGIC, "it does not begin as a record does")
    check(len(data) > 40, "it is too short")
    check(data[7] == 0, "another version", "ULP_E_VERSION")
    whole = hashlib.sha256(data[:-32]).digest() == data[-32:]
    check(whole, "it was damaged", "ULP_E_CHECKSUM")
    reader = Reader(data[8:-32])
    run_id, sequence = reader.take(16), reader.varint()
    check(sequence > 0, "sequence 0")
    ancestors = [reader.take(32) for _ in ancestors_of(sequence)]
    numbers = [reader.varint() for _ in range(4)]
    record = Record(run_id, sequence, ancestors, *numbers, reader.take(32), reader.varint())
    record.boundary = reader.limited(sequence, "the boundary")
    grown = record.epoch < sequence and record.version < sequence
    check(grown, "more versions or epochs than records", "ULP_E_JUMP")
    record.handovers = read_handovers(reader, sequence)
    anchors = reader.limited(ANCHORS, "anchors")
    record.anchors = [read_anchor(reader, record.version) for _ in range(anchors)]
    ascending([anchor.version for anchor in record.anchors], "anchors")
    record.ways = [read_way(reader, record) for _ in range(reader.limited(WAYS, "ways"))]
    ascending([(way.end, way.start) for way in record.ways], "ways")
    read_signature(reader, record)
    return record


# ---- writing -------------------------------------------------------------------------------------


def varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes(text) + bytes([number])


def varints(*numbers):
    return b"".join(map(varint, numbers))


def write_text(text):
    return varint(len(text)) + text


def write_list(write_one, things):
    return varint(len(things)) + b"".join(map(write_one, things))


def write_part(part):
    return varints(part.folder, part.bytes) + part.hash


def write_handover(handover):
    return varint(handover.sequence) + handover.old + handover.new + handover.signature


def write_file(file):
    return write_text(file.name) + write_part(file.part)


def write_anchor(anchor):
    head = varint(anchor.version) + anchor.root + write_text(anchor.reference) + anchor.weights
    return head + write_list(write_file, anchor.files)


def write_way(way):
    head = varints(way.start, way.end, int(way.history), way.changed, way.sequence)
    return head + write_list(lambda patch: write_list(write_part, patch), way.patches)


def write_unsigned(record):
    """All that comes before a signature, the key included."""
    return b"".join(
        (
            MAGIC + b"\0" + record.run_id + varint(record.sequence),
            *record.ancestors,
            varints(record.epoch, record.version, record.step, record.time_ms),
            record.root + varint(record.elements) + varint(record.boundary),
            write_list(write_handover, record.handovers),
            write_list(write_anchor, record.anchors),
            write_list(write_way, record.ways),
            b"\0" if record.signer is None else b"\1" + record.signer,
        )
    )


def close(text):
    return text + hashlib.sha256(text).digest()


def write(record, seed=None):
    """With a seed, signed anew by that key; else with the signature that it has."""
    if seed is not None:
        record.signer = ed25519.public_key(seed)
        record.signature = ed25519.sign(seed, write_unsigned(record))
    return close(write_unsigned(record) + (record.signature or b""))


# ---- trust ---------------------------------------------------------------------------------------


def signature_check(record):
    if record.signer is not None:
        right = ed25519.verify(record.signer, write_unsigned(record), record.signature)
        check(right, "its signature is wrong", "ULP_E_SIGNATURE")


def trust_check(record, trusted=(), known=None):
    """`known` is the record that was seen before."""
    if not trusted and known is not None and known.signer is not None:
        trusted = [known.signer]
    check(record.signer is not None or not trusted, "it is not signed", "ULP_E_UNSIGNED")
    if record.signer is not None and known is not None:
        kept = record.handovers[: len(known.handovers)] == known.handovers
        check(kept, "it forgets that another key was handed over to", "ULP_E_SIGNATURE")
    signature_check(record)
    if not trusted or record.signer in trusted:
        return
    for handover in reversed(record.handovers):
        right = ed25519.verify(
            handover.old, handover.signed_text(record.run_id), handover.signature
        )
        check(right, "a handover that is not signed by who hands over", "ULP_E_SIGNATURE")
        if handover.old in trusted:
            return
    check(False, "signed by a key that is not trusted", "ULP_E_SIGNATURE")
