# SPDX-License-Identifier: Apache-2.0
"""Patches that must be refused, one for each rule of docs/format: made from good ones, with
checksums that are right again where they are not the point. Each case is (name, status, base,
before, root known from outside, patches).
"""

import struct

import table as tables
from decoder import Patch
from segment import DENSE, HISTORY, PLAIN, tans_table
from segment_writer import absolute, context, gap_run, payload, value_run
from state import Form, checksum, root_of_sums
from table import Chunk, Region, varint, varints, write_file, write_table

SMALL = "accept/worked_example/base.safetensors"
MATRIX = "accept/parts/base.safetensors"
HISTORIC = "accept/dtypes/base.safetensors"


def entry(data, changes=1):
    return Chunk(len(data), changes, checksum(data))


class Cases:
    def __init__(self, vectors):
        self.vectors, self.found = vectors, []
        self.small = self.patch("accept/worked_example/patch.ulp")
        self.part = self.patch("accept/parts/1.ulp")

    def patch(self, path):
        return Patch((self.vectors / path).read_bytes())

    def add(self, name, status, data, base=SMALL, before="-", root="-"):
        self.found.append(
            (name, "ULP_E_" + status, base, before, root, [(f"refuse/{name}.ulp", data)])
        )

    def add_named(self, name, status, paths, base=SMALL, before="-", root="-"):
        """Good patches that do not fit the base or each other."""
        self.found.append(
            (name, "ULP_E_" + status, base, before, root, [(path, None) for path in paths])
        )


# ---- the file ------------------------------------------------------------------------------------


def file_cases(cases):
    good = write_file(cases.small.table, cases.small.chunks)
    cases.add("empty_file", "TRUNCATED", b"")
    cases.add("header_only", "TRUNCATED", good[:8])
    cases.add("magic", "NOT_A_PATCH", b"ulpatcg" + good[7:])
    cases.add("version_0", "VERSION", good[:7] + b"\0" + good[8:])
    cases.add("version_2", "VERSION", good[:7] + b"\2" + good[8:])
    cases.add("cut_at_end", "TRUNCATED", good[:-1])
    cases.add("cut_in_table", "TRUNCATED", good[:120])
    cases.add("byte_behind_end", "TRUNCATED", good + b"\0")
    cases.add("end_word", "TRUNCATED", good[:-4] + b"ulpf")
    cases.add(
        "table_beyond_file", "TRUNCATED", good[:-8] + struct.pack("<I", len(good) - 23) + b"ulpe"
    )
    cases.add("table_over_limit", "LIMIT", good[:-8] + struct.pack("<I", (1 << 30) + 1) + b"ulpe")
    cases.add("table_checksum", "CHECKSUM", good[:-16] + bytes([good[-16] ^ 1]) + good[-15:])
    cases.add("table_bit", "CHECKSUM", good[:50] + bytes([good[50] ^ 1]) + good[51:])
    cases.add("chunk_checksum", "CHECKSUM", good[:30] + bytes([good[30] ^ 1]) + good[31:])


# ---- the table -----------------------------------------------------------------------------------


def table_cases(cases):
    table, chunks = cases.small.table, cases.small.chunks

    def add(name, text, status="TABLE", chunks=chunks):
        cases.add(name, status, write_file(text, chunks))

    text = write_table(table)
    add("flags", bytes([4]) + text[1:])
    add("flags_history_and_partial", bytes([3]) + text[1:])
    add("no_table", b"")
    add("table_cut", text[:-1])
    add("table_in_roots", text[:40])
    add("table_trailing", text + b"\0")
    add("sums", text[:-1] + bytes([text[-1] ^ 1]))
    add("child", table._replace(child=bytes(32)))
    chunk = table.chunks[0]
    add("changes_0", table._replace(chunks=[chunk._replace(changes=0)]))
    add("changes_above_elements", table._replace(chunks=[chunk._replace(changes=9)]))
    add("changes_other", table._replace(chunks=[chunk._replace(changes=2)]))
    add("chunk_short", table._replace(chunks=[chunk._replace(bytes=chunk.bytes - 1)]))
    add("chunk_long", table._replace(chunks=[chunk._replace(bytes=chunk.bytes + 1)]))
    add("chunk_empty", table._replace(chunks=[Chunk(0)]))
    add("bytes_between", table, chunks=[*chunks, b"\0"])
    # Nothing changes, but another child is named: the table alone cannot tell.
    add("nothing_changes", table._replace(chunks=[Chunk(0)]), "WRONG_RESULT", [])
    at = text.index(varint(chunk.bytes) + varint(chunk.changes) + struct.pack("<Q", chunk.checksum))
    add("varint_padded", text[:at] + bytes([chunk.bytes | 128, 0]) + text[at + 1 :])
    add("varint_11_bytes", text[:at] + b"\x9d" + b"\x80" * 9 + b"\x01" + text[at + 1 :])
    add("varint_65_bits", text[:at] + b"\x9d" + b"\x80" * 8 + b"\x02" + text[at + 1 :])


def with_layout(cases, layout_text):
    """The small patch with other bytes where its layout is."""
    table = cases.small.table
    text = write_table(table)
    old = tables.write_layout(table.layout)
    at = text.index(old)
    return write_file(text[:at] + layout_text + text[at + len(old) :], cases.small.chunks)


def layout(tensors, dtypes, forms, names, counts=None):
    """The bytes of a layout. dtypes: bytes; forms: numbers; names: (start, end, middle, form)."""
    text = varints(*(counts or (tensors, len(dtypes), len(forms))))
    text += b"".join(varint(len(dtype)) + dtype for dtype in dtypes)
    text += b"".join(varints(*form) for form in forms)
    return text + b"".join(
        varints(s, e, len(middle)) + middle + varint(form) for s, e, middle, form in names
    )


def layout_cases(cases):
    bf16, forms = [b"BF16"], [(0, 1, 2), (0, 2, 2, 3)]
    names = [(0, 0, b"layer.scale", 0), (6, 0, b"weight", 1)]

    def add(name, *parts, status="TABLE", **more):
        cases.add(name, status, with_layout(cases, layout(2, *parts, **more)))

    add("dtype_unused", [b"BF16", b"F16"], forms, names)
    add("dtype_twice", [b"BF16", b"BF16"], [(0, 1, 2), (1, 2, 2, 3)], names)
    add("dtype_order", [b"U16", b"I16"], [(1, 1, 2), (0, 2, 2, 3)], names)
    add("dtype_missing", bf16, [(0, 1, 2), (1, 2, 2, 3)], names)
    add("dtype_empty", [b""], forms, names)
    add("dtype_letters", [b"BF-16"], forms, names)
    add("dtype_long", [b"B" * 33], forms, names)
    add("form_unused", bf16, [(0, 1, 6), (0, 1, 7)], [names[0], (6, 0, b"weight", 0)])
    add("more_forms_than_tensors", bf16, [*forms, (0, 1, 7)], names)
    add("form_twice", bf16, [(0, 1, 2), (0, 1, 2)], names)
    add("form_order", bf16, forms[::-1], [(0, 0, b"layer.scale", 1), (6, 0, b"weight", 0)])
    add("form_missing", bf16, forms, [names[0], (6, 0, b"weight", 2)])
    add("rank", bf16, [(0, 1, 2), (0, 65, *[1] * 65)], names)
    add("more_dtypes_than_tensors", bf16, forms, names, counts=(2, 3, 2))
    add("tensors_over_limit", bf16, forms, names, counts=(524289, 1, 2), status="LIMIT")
    add("shape_2_64", bf16, [(0, 1, 2), (0, 2, 1 << 63, 2)], names, status="SIZE")
    add(
        "pieces_over_limit",
        bf16,
        [(0, 1, 2), (0, 2, 1 << 24, (1 << 22) + 1)],
        names,
    )
    add("packed", [b"F4"], [(0, 1, 2), (0, 1, 3)], names, status="SIZE")
    add("unknown_width", [b"X"], [(0, 1, 2, 4), (0, 1, 3, 1)], names, status="SIZE")
    add("unknown_no_bytes", [b"X"], [(0, 1, 2, 4), (0, 1, 3, 0)], names, status="SIZE")
    add("unknown_no_elements", [b"X"], [(0, 1, 2, 4), (0, 1, 0, 3)], names, status="SIZE")
    add("unknown_wide", [b"X"], [(0, 1, 2, 4), (0, 1, 1, 513)], names, status="LIMIT")
    name_cases(add, bf16, forms, names)


def name_cases(add, bf16, forms, names):
    def name(title, second, status="TABLE", first=b"layer.scale"):
        add("name_" + title, bf16, forms, [(0, 0, first, 0), (*second, 1)], status=status)

    name("order", (0, 0, b"a"))
    name("twice", (11, 0, b""))
    name("empty", (0, 0, b"x"), first=b"")
    name("nul", (6, 0, b"wei\0ht"))
    name("utf8", (6, 0, b"wei\xffht"), "UTF8")
    name("metadata", (0, 0, b"b"), "NAME", first=b"__metadata__")
    name("too_long", (6, 0, b"w" * 4091))
    name("start_too_short", (5, 0, b".weight"))
    name("start_beyond", (12, 0, b"weight"))
    name("end_too_short", (6, 0, b"x.scale"))
    name("end_beyond", (6, 6, b"w"))


# ---- regions -------------------------------------------------------------------------------------


def region_cases(cases):
    table, chunks = cases.part.table, cases.part.chunks
    numbers = {name: i for i, (name, _) in enumerate(table.layout)}
    m, odd = numbers[b"matrix"], numbers[b"odd"]

    def add(name, *regions, status="REGIONS"):
        changed = table._replace(regions=[Region(*region) for region in regions])
        cases.add("regions_" + name, status, write_file(changed, chunks), base=MATRIX)

    add("none", status="TABLE")
    add("no_tensor", (len(numbers), 0, 1, 0, 8), status="TABLE")
    add("empty", (m, 0, 0, 0, 8))
    add("empty_columns", (m, 0, 1, 0, 0))
    add("rows", (m, 0, 9, 0, 8))
    add("columns", (m, 0, 1, 8, 12))
    add("huge", (m, (1 << 64) - 1, 2, 0, 8))
    add("order", (m, 4, 1, 0, 16), (m, 0, 1, 0, 16))
    add("order_of_tensors", (odd, 0, 6, 0, 5), (m, 0, 1, 0, 16))
    add("twice", (m, 0, 1, 0, 16), (m, 0, 1, 0, 16))
    add("overlap", (m, 0, 2, 0, 8), (m, 1, 2, 4, 8))
    add("column_unaligned", (m, 0, 2, 2, 4))
    add("columns_unaligned", (m, 0, 2, 0, 6))
    add("first_unaligned", (odd, 1, 4, 0, 5))
    add("end_unaligned", (odd, 0, 3, 0, 5))
    add("row_unaligned", (odd, 0, 2, 0, 4))
    count, text = varint(len(table.regions)), write_table(table)
    at = text.index(count + varints(*table.regions[0]))
    text = text[:at] + varint((1 << 22) + 1) + text[at + len(count) :]
    cases.add("regions_over_limit", "TABLE", write_file(text, chunks), base=MATRIX)
    cases.add_named(
        "parts_overlap", "REGIONS", ["accept/parts/1.ulp", "accept/parts/1.ulp"], MATRIX
    )
    cases.add_named("parts_gap", "REGIONS", ["accept/parts/1.ulp", "accept/parts/2.ulp"], MATRIX)
    cases.add_named(
        "parts_whole",
        "REGIONS",
        ["accept/parts/1.ulp", "accept/parts/whole.ulp"],
        MATRIX,
        root="00" * 32,
    )
    cases.add_named(
        "parts_root",
        "WRONG_RESULT",
        [f"accept/parts/{i}.ulp" for i in (1, 2, 3)],
        MATRIX,
        root="00" * 32,
    )


# ---- base and history ----------------------------------------------------------------------------


def base_cases(cases):
    historic = "accept/dtypes/history.ulp"
    cases.add_named("layout", "LAYOUT", ["accept/worked_example/patch.ulp"], MATRIX)
    cases.add_named(
        "wrong_base", "WRONG_BASE", [historic], "accept/dtypes/before.safetensors", HISTORIC
    )
    cases.add_named("no_history", "NEEDS_HISTORY", [historic], HISTORIC)
    cases.add_named(
        "other_history", "NEEDS_HISTORY", [historic], HISTORIC, "accept/dtypes/child.safetensors"
    )
    table, chunks = cases.small.table, cases.small.chunks
    for name, changed in (
        ("name", (b"layer.width", None)),
        ("shape", (None, (3, 2))),
        ("dtype", (None, b"F16")),
    ):
        cases.add("other_" + name, "LAYOUT", write_file(relabelled(table, *changed), chunks))
    patch = cases.patch(historic)
    unannounced = patch.table._replace(flags=0, before=None)
    cases.add("history_unannounced", "TABLE", write_file(unannounced, patch.chunks), HISTORIC)
    wrong_result(cases)


def relabelled(table, name, change):
    """The table of a state whose second tensor has another name, shape or dtype."""
    first, (old, form) = table.layout
    if isinstance(change, tuple):
        form = form._replace(shape=change)
    elif change:
        form = form._replace(dtype=change)
    forms = [first, (name or old, form)]
    if isinstance(change, bytes):  # of one kind, so that there is still one chunk
        forms[0] = (first[0], first[1]._replace(dtype=change))
    return table._replace(layout=forms, child=root_of_sums(forms, tables.tensor_sums([table])))


def wrong_result(cases):
    """Sums and root fit each other, but not what the changes lead to."""
    table, chunks = cases.small.table, cases.small.chunks
    changed = table._replace(sums=[(1, 2), (3, 4)])
    changed = changed._replace(child=root_of_sums(table.layout, tables.tensor_sums([changed])))
    cases.add("wrong_result", "WRONG_RESULT", write_file(changed, chunks))


# ---- segments ------------------------------------------------------------------------------------

GAPS, SHARES = (6144, 1), [0, 1024]  # as in the worked example
GOOD = (gap_run(GAPS, [1]), value_run(SHARES, [1]))


def segment_adder(cases):
    def add(name, data, status="CODE", changes=1):
        table = cases.small.table._replace(chunks=[entry(data, changes)])
        cases.add("code_" + name, status, write_file(table, [data]))

    return add


def columns(*numbers, parameter=2):
    return [(parameter, list(column)) for column in numbers]


def context_cases(cases):
    add, one = segment_adder(cases), [(GAPS, SHARES)]
    good, counts = payload(*GOOD), columns((0, 1), (0, 11))

    def context_of(classes=None, columns=counts, payloads=(good,), **more):
        return context(classes or one, columns, payloads, **more)

    add("header_cut", context_of()[:3])
    add("class_missing", context_of(runs=[(1, 64)]))
    add("run_too_long", context_of(runs=[(0, 65)]))
    add("flipped", context_of(flipped=2))
    add("gap_symbol", context_of([((6144, 76), SHARES)]))
    add("value_symbol", context_of([(GAPS, [1023] + [0] * 39 + [1])]))
    add("value_top_unused", context_of([(GAPS, [0, 1024, 0])]))
    add("shares_few", context_of([(GAPS, [0, 1023])]))
    add("shares_many", context_of([(GAPS, [1, 1024])]))
    add("share_length", context_of([(GAPS, [2048])]))
    add("long_form", context_of(columns=counts, long=True))
    add("negative_count", context_of(columns=columns((-1, 2), (0, 11))))
    add("count_above_block", context_of(columns=columns((0, 7), (0, 11))))
    add(
        "changes_unannounced",
        context_of(
            [(GAPS, None)], payloads=[payload(gap_run(GAPS, [1]))], columns=columns((0, 1), (0, 11))
        ),
    )
    add("padding", context_of(columns=columns((0, 1), (0, 11), parameter=4), padding=1))
    add("payload_short", context_of(columns=columns((0, 1), (0, 10))))
    add("payload_long", context_of(columns=columns((0, 1), (0, 12))))
    add("payload_for_nothing", context_of(columns=columns((0, 1), (2, 9))))
    add("payload_missing", context_of(columns=columns((1, 1), (0, 11))), changes=2)
    add("history_without", context([(GAPS, SHARES)], counts, [good], coder=HISTORY), "TABLE")
    payload_cases(add, context_of)
    flipped_cases(add)


def payload_cases(add, context_of):
    def payload_of(name, data, **more):
        add(
            name,
            context_of(
                payloads=[data], columns=columns((0, more.pop("events", 1)), (0, len(data))), **more
            ),
        )

    good = payload(*GOOD)
    payload_of("no_mark", good[:-1] + b"\0")
    payload_of("states", payload(*GOOD, states=(0, 0, 0, 5, 0, 0, 0, 0)))
    payload_of("state_used", payload(*GOOD, states=(9, 0, 0, 0, 0, 0, 0, 0)))
    payload_of("bits_left", payload(*GOOD, spare=3))
    payload_of(
        "bits_missing",
        (int.from_bytes(good, "little") >> 1).to_bytes(len(good), "little").rstrip(b"\0"),
    )
    far = ((14336, 70), SHARES)
    payload_of(
        "rank_beyond_block", payload(gap_run(far[0], [6]), value_run(SHARES, [1])), classes=[far]
    )
    payload_of(
        "rank_2_18", payload(gap_run(far[0], [1 << 18]), value_run(SHARES, [1])), classes=[far]
    )


def flipped_cases(add):
    """All elements are of one flipped class. Changes of a block: all but its events."""

    def flipped(name, events, changes, gaps, values):
        blocks = [payload(gap_run(GAPS, g), value_run(SHARES, v)) for g, v in zip(gaps, values)]
        data = context(
            [(GAPS, SHARES)], columns(events, changes, list(map(len, blocks))), blocks, flipped=0
        )
        add(name, data, changes=sum(changes))

    flipped("flipped_changes_missing", (0, 1), (1, 5), ([], [1]), ([1], [1] * 5))
    flipped("flipped_changes_left", (1, 1), (2, 5), ([1], [1]), ([1] * 2, [1] * 5))
    two = [payload(value_run(SHARES, [1] * 2)), b""]
    data = context([(GAPS, SHARES)], columns((0, 0), (2, 0), (len(two[0]), 0)), two, flipped=0)
    add("flipped_block_missing", data, changes=2)


def plain_cases(cases):
    add, far = segment_adder(cases), (14336, 70)
    at_1 = payload(gap_run(GAPS, [1]))
    raw = bytes([0x02, 0x80])  # 4001, rotated left by one

    def plain(
        name,
        coded=at_1,
        raw=raw,
        events=(0, 1),
        gaps=GAPS,
        planes=(None, None),
        flipped=0,
        changes=1,
        **more,
    ):
        said = [(0, len(coded))] if gaps or any(planes) else []
        data = absolute(
            PLAIN,
            planes,
            columns(*([events] if gaps else []), *said),
            [raw, coded],
            flipped,
            gaps,
            **more,
        )
        add("plain_" + name, data, changes=changes, status="TABLE" if name == "changes" else "CODE")

    plain("changes", changes=2)
    plain("no_change", raw=bytes([0x00, 0x80]))
    plain("gaps_unused", b"", b"", events=(0, 0))
    plain("events_above_block", events=(3, 1))
    plain("wrong_half", payload(gap_run(GAPS, [0] * 4)), raw * 4, (0, 4), flipped=1, changes=4)
    plain(
        "half_unflipped",
        payload(gap_run((2048, 1), [0] * 6)),
        raw * 6,
        (0, 6),
        (2048, 1),
        changes=6,
    )
    plain("gap_beyond_block", payload(gap_run(far, [6])), gaps=far)
    plain(
        "plane_ends",
        payload(gap_run(GAPS, [1]), plane_run(0x80, [1024], [0x80])),
        raw[:1],
        planes=(None, (0x7F, [0, 1024])),
    )
    plain(
        "plane_shares",
        payload(gap_run(GAPS, [1]), plane_run(0x80, [1024], [0x80])),
        raw[:1],
        planes=(None, (0x80, [1023])),
    )
    plain("raw_missing", raw=raw[:1])
    plain("padding", padding=1)
    plain("states", payload(gap_run(GAPS, [1]), states=(0, 0, 3, 0, 0, 0, 0, 0)))


def plane_run(first, shares, numbers):
    return tans_table([0] * first + shares), lambda symbol: (symbol, 0), numbers


def dense_cases(cases):
    add = segment_adder(cases)
    new = struct.pack("<8H", 0x3F80, 0x3F80, 0x3F80, 0x4001, 0x4040, 0xBF80, 0x8000, 0x7FC0)
    low, high = rotated_planes(new)
    blocks = [low[:2] + high[:2], low[2:] + high[2:]]
    add("dense_cut", absolute(DENSE, (None, None), [], blocks)[:-1])
    add("dense_long", absolute(DENSE, (None, None), [], [*blocks, b"\0"]))
    add("dense_changes", absolute(DENSE, (None, None), [], blocks), "TABLE", changes=2)
    coded = [
        payload(plane_run(0, [128] * 8, [0] * count), states=(0,) * 7 + (1,)) for count in (2, 6)
    ]
    data = absolute(
        DENSE,
        ((0, [128] * 8), None),
        columns(list(map(len, coded))),
        [high[:2], coded[0], high[2:], coded[1]],
    )
    add("dense_states", data)


def rotated_planes(elements):
    words = [(word << 1 | word >> 15) & 0xFFFF for (word,) in struct.iter_unpack("<H", elements)]
    return bytes(word & 255 for word in words), bytes(word >> 8 for word in words)


def all_cases(vectors):
    cases = Cases(vectors)
    for make in (
        file_cases,
        table_cases,
        layout_cases,
        region_cases,
        base_cases,
        context_cases,
        plain_cases,
        dense_cases,
    ):
        make(cases)
    return cases.found
