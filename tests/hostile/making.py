# SPDX-License-Identifier: Apache-2.0
"""Bricks for broken models: headers, entries, files, folders."""
import struct
from typing import NamedTuple, Union

# Status numbers, as include/ulpsync/status.h pins them.
LIMIT = 11
NOT_FOUND, FILE_KIND = 20, 25
TRUNCATED, TRAILING, HEADER, JSON, UTF8, SCHEMA = 30, 31, 32, 33, 34, 35
DUPLICATE, OVERLAP, HOLE, SIZE, NAME, SHARDS, NO_MODEL = 36, 37, 38, 39, 40, 41, 42

# What a name in a folder can be besides bytes.
FIFO = "fifo"
DIRECTORY = "directory"
MODEL = "model.safetensors"
INDEX = "model.safetensors.index.json"


class Link(NamedTuple):
    """A symlink to `target`."""

    target: str


class Case(NamedTuple):
    """One bad model. `content` is the file itself, or {name: bytes, Link, FIFO or DIRECTORY}."""

    name: str
    code: int
    fragment: str
    content: Union[bytes, dict]
    path: str = ""  # inside the folder, when it is not the folder itself that is opened
    seconds: int = 5


def encoded(text):
    return text.encode() if isinstance(text, str) else text


def framed(length, text, data=0):
    """A file whose length field says `length`, whatever the header has."""
    return struct.pack("<Q", length) + encoded(text) + bytes(data)


def file(text, data=0):
    """A file with this header text and `data` zero bytes behind it."""
    return framed(len(encoded(text)), text, data)


def entry(dtype='"U8"', shape="[8]", offsets="[0,8]"):
    return '{"dtype":%s,"shape":%s,"data_offsets":%s}' % (dtype, shape, offsets)


def tensor(name="a", dtype='"U8"', shape="[8]", offsets="[0,8]"):
    """One member of a header; everything but the name is JSON text."""
    return '"%s":%s' % (name, entry(dtype, shape, offsets))


def header(*members):
    return "{" + ",".join(members) + "}"


def one(data=8, **fields):
    """A file with one tensor, `a` unless named, some of whose fields are wrong."""
    return file(header(tensor(**fields)), data)


def good(*names):
    """A file in order: 8 bytes for each of these tensors."""
    members = [tensor(name, offsets=f"[{8 * i},{8 * i + 8}]") for i, name in enumerate(names)]
    return file(header(*members), 8 * len(names))


def index(text):
    """A folder with this index and, in one shard, the tensor `a`."""
    return {INDEX: encoded(text), "s.safetensors": good("a")}


def weight_map(*pairs):
    return '{"weight_map":{' + ",".join(f'"{tensor}":"{file}"' for tensor, file in pairs) + "}}"
