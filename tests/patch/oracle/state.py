# SPDX-License-Identifier: Apache-2.0
"""States: safetensors files, dtypes, content sums and roots, as docs/format/root.md has them."""

import array
import hashlib
import json
import pathlib
import struct
from typing import NamedTuple

MASK = (1 << 64) - 1

LIMIT_HEADER_BYTES = 100000000
LIMIT_TENSORS = 524288
LIMIT_NAME_BYTES = 4096
LIMIT_DTYPE_BYTES = 32
LIMIT_RANK = 64
LIMIT_ELEMENT_BITS = 4096

BITS = {
    b"F4": 4,
    b"F6_E2M3": 6,
    b"F6_E3M2": 6,
    b"BOOL": 8,
    b"U8": 8,
    b"I8": 8,
    b"F8_E5M2": 8,
    b"F8_E4M3": 8,
    b"F8_E5M2FNUZ": 8,
    b"F8_E4M3FNUZ": 8,
    b"F8_E8M0": 8,
    b"I16": 16,
    b"U16": 16,
    b"F16": 16,
    b"BF16": 16,
    b"I32": 32,
    b"U32": 32,
    b"F32": 32,
    b"I64": 64,
    b"U64": 64,
    b"F64": 64,
    b"C64": 64,
}


class Refused(Exception):
    """`reason` is the name of the status of docs/format/patch.md, as ULP_E_TABLE."""

    def __init__(self, reason, message):
        super().__init__(f"{reason}: {message}")
        self.reason = reason


def require(condition, reason, message):
    if not condition:
        raise Refused(reason, message)


class Kind(NamedTuple):
    """Bytes of a word; lowest bit of the exponent, bits of it (0: none), exponent of cell 0."""

    width: int
    low: int = 0
    bits: int = 0
    zero: int = 0


FLOATS = {
    b"BF16": Kind(2, 7, 8, 64),
    b"F16": Kind(2, 10, 5, 0),
    b"F32": Kind(4, 23, 8, 64),
    b"F64": Kind(8, 52, 11, 192),
    b"F8_E4M3": Kind(1, 3, 4, 0),
    b"F8_E4M3FNUZ": Kind(1, 3, 4, 0),
    b"F8_E5M2": Kind(1, 2, 5, 0),
    b"F8_E5M2FNUZ": Kind(1, 2, 5, 0),
}


class Form(NamedTuple):
    """What tensors of the same dtype, shape and size have in common."""

    dtype: bytes
    shape: tuple
    bytes: int

    def count(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_bits(self):
        if self.dtype in BITS:
            return BITS[self.dtype]
        return self.bytes * 8 // self.count() if self.count() else 0

    def kind(self):
        if self.dtype in FLOATS:
            return FLOATS[self.dtype]
        return Kind(
            next((width for width in (8, 4, 2) if self.element_bits() % (8 * width) == 0), 1)
        )

    def words(self):
        return self.bytes // self.kind().width


class Tensor(NamedTuple):
    name: bytes
    form: Form
    data: bytes  # or a bytearray


def words(kind, data):
    """The elements as integers."""
    return array.array({1: "B", 2: "H", 4: "I", 8: "Q"}[kind.width], bytes(data))


# ---- safetensors ---------------------------------------------------------------------------------


def read_safetensors(path):
    """A state: tensors in the order of their names."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = []
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        form = Form(entry["dtype"].encode(), tuple(entry["shape"]), end - begin)
        tensors.append(Tensor(name.encode(), form, raw[begin:end]))
    return sorted(tensors, key=lambda tensor: tensor.name)


def write_safetensors(path, state):
    header, at = {}, 0
    for name, form, data in state:
        header[name.decode()] = {
            "dtype": form.dtype.decode(),
            "shape": list(form.shape),
            "data_offsets": [at, at + len(data)],
        }
        at += len(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(t.data for t in state)
    )


# ---- sums ----------------------------------------------------------------------------------------

START_A, STEP_A = 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B
START_B, STEP_B = 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1
FIRST, SECOND_A, SECOND_B = 0x428A2F98D728AE23, 0x7137449123EF65CD, 0xB5C0FBCFEC4D3B2F


def mix(position, word):
    key_a = START_A + position * STEP_A & MASK
    key_b = START_B + position * STEP_B & MASK
    x = word ^ key_a
    x ^= x >> 32
    x = x * FIRST & MASK
    x ^= x >> 29
    a = (x ^ key_a) * SECOND_A & MASK
    b = (x ^ key_b) * SECOND_B & MASK
    return a ^ a >> 32, b ^ b >> 32


# The same for many words at once: one big integer holds a word in the lower half of each 16 bytes,
# so that a product with a constant of 64 bits stays in its place. Ten times as fast as one by one.
BATCH = 2048
ONES = int.from_bytes((b"\1" + bytes(15)) * BATCH, "little")
LOWER = ONES * MASK
INDEX = int.from_bytes(b"".join(i.to_bytes(16, "little") for i in range(BATCH)), "little")
STEPS_A, STEPS_B = INDEX * STEP_A & LOWER, INDEX * STEP_B & LOWER


def spread(values):
    lanes = array.array("Q", bytes(16 * len(values)))
    lanes[::2] = values
    return int.from_bytes(lanes.tobytes(), "little")


def lanes_sum(lanes, count):
    values = array.array("Q", (lanes & LOWER).to_bytes(16 * BATCH, "little"))
    return sum(values[: 2 * count : 2])


def batch_sum(position, values):
    key_a = STEPS_A + ONES * (START_A + position * STEP_A & MASK) & LOWER
    key_b = STEPS_B + ONES * (START_B + position * STEP_B & MASK) & LOWER
    x = spread(values) ^ key_a
    x = (x ^ x >> 32) & LOWER
    x = x * FIRST & LOWER
    x = (x ^ x >> 29) & LOWER
    a = (x ^ key_a) * SECOND_A & LOWER
    b = (x ^ key_b) * SECOND_B & LOWER
    return lanes_sum(a ^ a >> 32, len(values)), lanes_sum(b ^ b >> 32, len(values))


def range_sum(data, begin=0, end=None):
    """The sum over the words that cover bytes begin to end, numbered as in all of `data`."""
    end = len(data) if end is None else end
    assert begin % 8 == 0 and (end % 8 == 0 or end == len(data))
    values = array.array("Q", bytes(data[begin:end]) + bytes(-end % 8))
    first = second = 0
    for at in range(0, len(values), BATCH):
        position, some = begin // 8 + at, values[at : at + BATCH]
        if len(some) < BATCH // 16:
            sums = [
                sum(lane) for lane in zip(*(mix(position + i, word) for i, word in enumerate(some)))
            ]
        else:
            sums = batch_sum(position, some)
        first, second = first + sums[0] & MASK, second + sums[1] & MASK
    return first, second


def checksum(data):
    return range_sum(data)[0]


def root_of_sums(layout, sums):
    """layout: (name, form) in order of the names; sums: the content sum of each."""
    text = b"ulpsync root 0\n" + struct.pack("<Q", len(layout))
    for (name, form), pair in zip(layout, sums):
        for string in (name, form.dtype):
            text += struct.pack("<Q", len(string)) + string
        shape = form.shape
        text += struct.pack(f"<Q{len(shape)}Q3Q", len(shape), *shape, form.bytes, *pair)
    return hashlib.sha256(text).digest()


def layout_of(state):
    return [(tensor.name, tensor.form) for tensor in state]


def root(state):
    return root_of_sums(layout_of(state), [range_sum(tensor.data) for tensor in state])
