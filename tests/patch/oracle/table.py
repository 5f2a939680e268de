# SPDX-License-Identifier: Apache-2.0
"""The patch file around its segments, as docs/format/patch.md has it."""

import itertools
import re
import struct
from typing import NamedTuple

from state import (
    BITS,
    LIMIT_DTYPE_BYTES,
    LIMIT_ELEMENT_BITS,
    LIMIT_HEADER_BYTES,
    LIMIT_NAME_BYTES,
    LIMIT_RANK,
    LIMIT_TENSORS,
    MASK,
    Form,
    checksum,
    range_sum,
    require,
    root_of_sums,
)

MAGIC, VERSION, END = b"ulpatch", 1, b"ulpe"
HEADER_BYTES, TRAILER_BYTES = 8, 16
HISTORY, PARTIAL = 1, 2

PIECE_ELEMENTS = 1 << 24
CHUNK_ELEMENTS, CHUNK_BLOCKS = 1 << 24, 65536
BLOCK_ELEMENTS = 1 << 18

LIMIT_PIECES = 4194304
LIMIT_REGIONS = 4194304
LIMIT_TABLE_BYTES = 1 << 30


def check(condition, message, reason="ULP_E_TABLE"):
    require(condition, reason, message)


# ---- grid ----------------------------------------------------------------------------------------


class Region(NamedTuple):
    tensor: int
    row: int
    rows: int
    column: int
    columns: int

    def elements(self):
        return self.rows * self.columns


class Piece(NamedTuple):
    region: Region
    first: int  # element of the region
    count: int

    def blocks(self):
        return -(-self.count // BLOCK_ELEMENTS)


def matrix(form):
    """(rows, columns) of a tensor, in words."""
    rows, total = 1, form.words()
    for extent in form.shape[:-1]:
        rows *= extent
    return (rows, total // rows) if rows and total % rows == 0 else (1, total)


def whole_regions(layout):
    return [
        Region(i, 0, rows, 0, columns)
        for i, (rows, columns) in enumerate(matrix(form) for _, form in layout)
    ]


def by_kind(layout, regions):
    """The regions, those of the kind of the first one first, and so on."""
    groups = {}
    for region in regions:
        groups.setdefault(layout[region.tensor][1].kind(), []).append(region)
    return groups


def pieces_of(region):
    return [
        Piece(region, first, min(PIECE_ELEMENTS, region.elements() - first))
        for first in range(0, region.elements(), PIECE_ELEMENTS)
    ]


def chunks_of(pieces):
    chunks, elements, blocks = [], 0, 0
    for piece in pieces:
        elements, blocks = elements + piece.count, blocks + piece.blocks()
        if not chunks or elements > CHUNK_ELEMENTS or blocks > CHUNK_BLOCKS:
            chunks.append([])
            elements, blocks = piece.count, piece.blocks()
        chunks[-1].append(piece)
    return chunks


def grid(layout, regions):
    """The chunks, each a list of pieces."""
    count = sum(-(-region.elements() // PIECE_ELEMENTS) for region in regions)
    check(count <= LIMIT_PIECES, "too many pieces", "ULP_E_LIMIT")
    groups = by_kind(layout, regions).values()
    return [
        chunk
        for group in groups
        for chunk in chunks_of(piece for region in group for piece in pieces_of(region))
    ]


def runs(form, piece):
    """(first, count) of the runs of elements, of the tensor, that a piece consists of."""
    region, (_, width) = piece.region, matrix(form)
    if region.rows == 1 or region.columns == width:
        return [(region.row * width + region.column + piece.first, piece.count)]
    found, at, end = [], piece.first, piece.first + piece.count
    while at < end:
        row, column = divmod(at, region.columns)
        count = min(region.columns - column, end - at)
        found.append(((region.row + row) * width + region.column + column, count))
        at += count
    return found


def piece_sum(tensor, piece):
    width = tensor.form.kind().width
    sums = [
        range_sum(tensor.data, width * first, width * (first + count))
        for first, count in runs(tensor.form, piece)
    ]
    return add_sums(sums)


def add_sums(sums):
    return sum(pair[0] for pair in sums) & MASK, sum(pair[1] for pair in sums) & MASK


# ---- regions -------------------------------------------------------------------------------------


def check_regions(layout, regions):
    def allowed(condition, message):
        check(condition, message, "ULP_E_REGIONS")

    allowed(
        all(one[:2] + one[3:4] < two[:2] + two[3:4] for one, two in itertools.pairwise(regions)),
        "regions in disorder",
    )
    for region in regions:
        form = layout[region.tensor][1]
        rows, columns = matrix(form)
        allowed(region.elements() > 0, "an empty region")
        allowed(
            region.row + region.rows <= rows and region.column + region.columns <= columns,
            "a region beyond its tensor",
        )
        allowed(aligned(form, region), "a region that is not aligned")
    for _, same in itertools.groupby(regions, key=lambda region: region.tensor):
        same = list(same)
        allowed(
            not any(overlap(one, two) for one, two in itertools.combinations(same, 2)),
            "regions that overlap",
        )


def aligned(form, region):
    width, (_, columns) = form.kind().width, matrix(form)
    if region.rows == 1 or region.columns == columns:
        first = width * (region.row * columns + region.column)
        end = first + width * region.elements()
        return first % 8 == 0 and (end % 8 == 0 or end == form.bytes)
    return all(width * number % 8 == 0 for number in (columns, region.column, region.columns))


def overlap(one, two):
    return (
        one.tensor == two.tensor
        and one.row < two.row + two.rows
        and two.row < one.row + one.rows
        and one.column < two.column + two.columns
        and two.column < one.column + one.columns
    )


# ---- table ---------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    bytes: int
    changes: int = 0
    checksum: int = 0


class Table(NamedTuple):
    flags: int
    parent: bytes
    child: bytes  # None in a partial patch
    before: bytes  # None without history
    layout: list  # (name, form)
    regions: list  # all tensors in a whole patch
    chunks: list
    sums: list

    def grid(self):
        return grid(self.layout, self.regions)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        check(self.at <= len(self.data), "the table ends too soon")
        return self.data[self.at - count : self.at]

    def left(self):
        return len(self.data) - self.at

    def u64(self):
        return int.from_bytes(self.take(8), "little")

    def varint(self):
        number = 0
        for i in range(10):
            byte = self.take(1)[0]
            number |= (byte & 127) << 7 * i
            if byte < 128:
                check(byte or not i, "a number that could be shorter")
                check(number <= MASK, "a number beyond 64 bits")
                return number
        check(False, "a number of more than ten bytes")

    def limited(self, limit, what, reason="ULP_E_TABLE"):
        number = self.varint()
        check(number <= limit, f"too many {what}", reason)
        return number


def varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes(text) + bytes([number])


def varints(*numbers):
    return b"".join(map(varint, numbers))


def read_form(reader, dtypes):
    number = reader.varint()
    check(number < len(dtypes), "a dtype that is not there")
    dtype = dtypes[number]
    shape = tuple(reader.varint() for _ in range(reader.limited(LIMIT_RANK, "extents")))
    if dtype not in BITS:
        form = Form(dtype, shape, reader.varint())
        divides = (
            form.bytes * 8 % form.count() == 0 and form.bytes > 0
            if form.count()
            else form.bytes == 0
        )
        check(
            form.count() <= MASK and form.bytes * 8 <= MASK and divides,
            "elements that have no width",
            "ULP_E_SIZE",
        )
        check(
            form.element_bits() <= LIMIT_ELEMENT_BITS, "elements that are too wide", "ULP_E_LIMIT"
        )
        return form
    bits = Form(dtype, shape, 0).count() * BITS[dtype]
    check(
        bits % 8 == 0 and bits <= MASK,
        "a tensor that does not end on a byte, or is too large",
        "ULP_E_SIZE",
    )
    return Form(dtype, shape, bits // 8)


def read_name(reader, before):
    start, end, length = reader.varint(), reader.varint(), reader.varint()
    check(start + end <= len(before), "more in common with the name before than it has")
    check(start + end + length <= LIMIT_NAME_BYTES, "a name that is too long")
    name = before[:start] + reader.take(length) + before[len(before) - end :]
    check(name > before, "names in disorder")
    check(b"\0" not in name, "a name with NUL")
    try:
        name.decode()
    except UnicodeDecodeError:
        check(False, "a name that is not UTF-8", "ULP_E_UTF8")
    check(name != b"__metadata__", "a name that no tensor may have", "ULP_E_NAME")
    return name


def read_dtype(reader):
    dtype = reader.take(reader.limited(LIMIT_DTYPE_BYTES, "bytes of a dtype"))
    check(re.fullmatch(b"[A-Za-z0-9_]+", dtype), "a dtype that cannot be")
    return dtype


def read_layout(reader):
    tensors = reader.limited(LIMIT_TENSORS, "tensors", "ULP_E_LIMIT")
    dtype_count, form_count = reader.varint(), reader.varint()
    check(dtype_count <= form_count <= tensors, "more dtypes or forms than tensors")
    dtypes = [read_dtype(reader) for _ in range(dtype_count)]
    forms = [read_form(reader, dtypes) for _ in range(form_count)]
    layout, name, names = [], b"", 0
    for _ in range(tensors):
        name, number = read_name(reader, name), reader.varint()
        check(number < len(forms), "a form that is not there")
        layout.append((name, forms[number]))
        names += len(name)
        check(names <= LIMIT_HEADER_BYTES, "names that are too long together", "ULP_E_LIMIT")
    return layout


def read_regions(reader, layout):
    count = reader.limited(LIMIT_REGIONS, "regions")
    regions = [Region(*(reader.varint() for _ in range(5))) for _ in range(count)]
    check(regions, "no regions")
    check(
        all(region.tensor < len(layout) for region in regions),
        "a region of a tensor that is not there",
    )
    check_regions(layout, regions)
    return regions


def read_chunk(reader, pieces, width):
    length = reader.varint()
    if not length:
        return Chunk(0)
    chunk = Chunk(length, reader.varint(), reader.u64())
    elements = sum(piece.count for piece in pieces)
    blocks = sum(piece.blocks() for piece in pieces)
    check(length <= 8 * elements * width + 256 * blocks + 65536, "a chunk longer than any coder makes")
    check(
        0 < chunk.changes <= elements,
        "a number of changes that cannot be",
    )
    return chunk


def read_table(data):
    reader = Reader(data)
    flags = reader.take(1)[0]
    check(flags in (0, HISTORY, PARTIAL), "flags that are unknown, or do not go together")
    parent = reader.take(32)
    child = None if flags & PARTIAL else reader.take(32)
    before = reader.take(32) if flags & HISTORY else None
    layout = read_layout(reader)
    regions = read_regions(reader, layout) if flags & PARTIAL else whole_regions(layout)
    announced = sum(region.elements() // PIECE_ELEMENTS for region in regions)
    check(announced <= reader.left() // 16, "more pieces than sums")  # before memory is taken
    pieces = grid(layout, regions)
    chunks = [
        read_chunk(reader, chunk, layout[chunk[0].region.tensor][1].kind().width) for chunk in pieces
    ]
    sums = [(reader.u64(), reader.u64()) for chunk in pieces for _ in chunk]
    table = Table(flags, parent, child, before, layout, regions, chunks, sums)
    check(write_table(table) == data, "a table that is not canonical")
    if child is not None:
        check(
            root_of_sums(layout, tensor_sums([table])) == child, "sums that do not give the child"
        )
    return table


def tensor_sums(tables):
    """The sums of all tensors, from tables whose regions cover each element once."""
    sums = [[] for _ in tables[0].layout]
    for table in tables:
        for piece, pair in zip(itertools.chain(*table.grid()), table.sums):
            sums[piece.region.tensor].append(pair)
    return [add_sums(pairs) for pairs in sums]


def in_common(one, two):
    return next((i for i, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))


def write_layout(layout):
    forms = list(dict.fromkeys(form for _, form in layout))
    dtypes = list(dict.fromkeys(form.dtype for form in forms))
    text = varints(len(layout), len(dtypes), len(forms))
    for dtype in dtypes:
        text += varint(len(dtype)) + dtype
    for form in forms:
        text += varints(dtypes.index(form.dtype), len(form.shape), *form.shape)
        if form.dtype not in BITS:
            text += varint(form.bytes)
    numbers, parts, before = {form: i for i, form in enumerate(forms)}, [text], b""
    for name, form in layout:
        start = in_common(before, name)
        end = in_common(before[start:][::-1], name[start:][::-1])
        middle = name[start : len(name) - end]
        parts.append(varints(start, end, len(middle)) + middle + varint(numbers[form]))
        before = name
    return b"".join(parts)


def write_table(table):
    parts = [
        bytes([table.flags]),
        table.parent,
        table.child or b"",
        table.before or b"",
        write_layout(table.layout),
    ]
    if table.flags & PARTIAL:
        parts.append(
            varint(len(table.regions)) + b"".join(varints(*region) for region in table.regions)
        )
    for chunk in table.chunks:
        parts.append(
            varints(chunk.bytes, chunk.changes) + struct.pack("<Q", chunk.checksum)
            if chunk.bytes
            else b"\0"
        )
    parts += [struct.pack("<QQ", *pair) for pair in table.sums]
    return b"".join(parts)


# ---- file ----------------------------------------------------------------------------------------


def read_file(data):
    """(table, the bytes of each chunk)"""
    require(
        len(data) >= HEADER_BYTES + TRAILER_BYTES,
        "ULP_E_TRUNCATED",
        "shorter than header and trailer",
    )
    require(data[:7] == MAGIC, "ULP_E_NOT_A_PATCH", "it does not begin with ulpatch")
    require(data[7] == VERSION, "ULP_E_VERSION", "another version")
    require(data[-4:] == END, "ULP_E_TRUNCATED", "no trailer at its end")
    said, length = struct.unpack("<QI", data[-TRAILER_BYTES:-4])
    require(length <= LIMIT_TABLE_BYTES, "ULP_E_LIMIT", "a table that is too long")
    start, end = len(data) - TRAILER_BYTES - length, len(data) - TRAILER_BYTES
    require(start >= HEADER_BYTES, "ULP_E_TRUNCATED", "shorter than its table")
    require(checksum(data[start:end]) == said, "ULP_E_CHECKSUM", "the table is damaged")
    table = read_table(data[start:end])
    ends = list(itertools.accumulate((chunk.bytes for chunk in table.chunks), initial=HEADER_BYTES))
    check(ends[-1] == start, "chunks that do not fill the file")
    return table, [data[begin:end] for begin, end in itertools.pairwise(ends)]


def write_file(table, chunks):
    """`table` is a Table, or bytes."""
    text = table if isinstance(table, bytes) else write_table(table)
    trailer = struct.pack("<QI", checksum(text), len(text)) + END
    return MAGIC + bytes([VERSION]) + b"".join(chunks) + text + trailer
