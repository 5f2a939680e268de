# SPDX-License-Identifier: Apache-2.0
"""Well-formed JSON that describes impossible tensors or metadata."""
from making import *

# Every dtype of the format with the bits of one element.
BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8,
        "F8_E4M3": 8,
        "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16,
        "BF16": 16,
        "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64}

VALUES = {"a number": "8", "a string": '"U8"', "an object": "{}", "an array": "[]", "true": "true",
          "false": "false", "null": "null"}


def wrong_kinds():
    """Each kind of value where another is needed: the message says which, and what stands there."""
    places = {
        "as a tensor": ('{"a":%s}', "an object"),
        "as a dtype": ('{"a":{"dtype":%s}}', "a string"),
        "as a shape": ('{"a":{"shape":%s}}', "an array"),
        "as an extent": ('{"a":{"shape":[%s]}}', "a number"),
        "as data_offsets": ('{"a":{"data_offsets":%s}}', "an array"),
        "as an offset": ('{"a":{"data_offsets":[0,%s]}}', "a number"),
        "as metadata": ('{"__metadata__":%s}', "an object"),
        "as a metadata value": ('{"__metadata__":{"k":%s}}', "a string"),
    }
    for place, (text, right) in places.items():
        for kind, value in VALUES.items():
            if kind != right:
                yield Case(f"{kind} {place}", SCHEMA, f"found {kind}", file(text % value, 8))


def numbers():
    for name, text in {"negative": "-1", "with a fraction": "  8.0", "with an exponent": "   8e0",
                       "with a capital exponent": "    8E0", "half": "      0.5"}.items():
        yield Case(f"extent {name}", SCHEMA, "expected a whole number", one(shape=f"[{text}]"))
        yield Case(f"offset {name}", SCHEMA, "expected a whole number", one(offsets=f"[0,{text}]"))
    yield Case("offset minus zero", SCHEMA, "expected a whole number", one(offsets="[-0,8]"))
    huge = {"2^64": str(2**64), "10^30": " 1" + 30 * "0",
            "of 100000 digits": "     " + "9" * 100000}
    for name, text in huge.items():
        yield Case(f"extent {name}", LIMIT, "a number above 2^64 - 1", one(shape=f"[   {text}]"))
        yield Case(f"offset {name}", LIMIT, "a number above 2^64 - 1", one(offsets=f"[0,{text}]"))


def fields():
    for missing in ("dtype", "shape", "data_offsets"):
        text = {"dtype": '"U8"', "shape": "[8]", "data_offsets": "[0,8]"}
        text.pop(missing)
        members = ",".join(f'"{key}":{value}' for key, value in text.items())
        yield Case(f"{missing} missing", SCHEMA, f"lacks '{missing}'",
                   file('{"a":{%s}}' % members, 8))
    yield Case("all fields missing", SCHEMA, "'nothing' lacks", file('{"nothing":{}}'))
    for key, value in (("dtype", '"U8"'), ("shape", "[8]"), ("data_offsets", "[0,8]")):
        text = entry()[:-1] + f',"{key}":{value}' + "}"
        yield Case(f"{key} twice", DUPLICATE, f"has '{key}' twice", file('{"a":%s}' % text, 8))
    yield Case("dtype twice, once escaped", DUPLICATE, "'b' has 'dtype' twice",
               file('{"b":{"dtype":"U8","d\\u0074ype":"U8"}}'))
    for field in ("strides", "Dtype", "", "dtype ", "__metadata__", "data_offset"):
        yield Case(f"unknown field '{field}'", SCHEMA, f"unknown field '{field}'",
                   file('{"a":{"%s":[8]}}' % field))
    yield Case("field with control characters", SCHEMA, "'\\x1b[2J'",
               file('{"a":{"\\u001b[2J":1}}'))
    yield Case("field of 17 MiB", LIMIT, "exceeds", file('{"a":{"%s":1}}' % ("x" * (17 << 20))))


def nesting():
    deep = 100_000
    yield Case("arrays 100000 deep as a tensor", SCHEMA, "found an array",
               file('{"a":  ' + "[" * deep))
    yield Case("objects 100000 deep", SCHEMA, "unknown field", file('{"deep":' * deep))
    yield Case("arrays 100000 deep as a shape", SCHEMA, "found an array", one(shape="[" * deep))
    yield Case("arrays 100000 deep as offsets", SCHEMA, "found an array", one(offsets="[" * deep))
    yield Case("metadata 100000 deep", SCHEMA, "found an object",
               file('{"__metadata__":{"deep":' + '{"k":' * deep))
    yield Case("unknown field 100000 deep", SCHEMA, "'bomb'", file('{"a":{"bomb":' + "[" * deep))


def offsets():
    yield Case("no offsets", SCHEMA, "needs two numbers", one(offsets="[]"))
    yield Case("one offset", SCHEMA, "needs two numbers", one(offsets="[0]"))
    yield Case("three offsets", SCHEMA, "more than two numbers", one(offsets="[0,8,8]"))
    yield Case("a million offsets", SCHEMA, "more than two",
               one(offsets="[ 0" + ",8" * 1_000_000 + "]"))
    yield Case("begin behind end", SIZE, "ends at 0, before it begins at 8", one(offsets="[8,0]"))
    yield Case("begin far behind end", SIZE, f"begins at {2**64 - 1}",
               one(offsets=f"[{2**64 - 1},8]"))
    yield Case("end one behind the data", TRUNCATED, "ends at byte 9",
               one(shape="[9]", offsets="[0,9]"))
    yield Case("end far behind the data", TRUNCATED, f"{2**63}", one(offsets=f"[0,{2**63}]"))
    yield Case("end would wrap around", TRUNCATED, f"{2**64 - 1}",
               one(offsets=f"[{2**64 - 9},{2**64 - 1}]"))
    yield Case("empty tensor behind the data", TRUNCATED, "byte 10",
               one(shape="[0]", offsets="[10,10]"))


def two(first, second, data, names=("a", "b")):
    """Two U8 tensors at these places."""
    return file(header(*(tensor(name, shape=f"[{end - begin}]", offsets=f"[{begin},{end}]")
                         for name, (begin, end) in zip(names, (first, second)))), data)


def tiling():
    yield Case("overlap by one byte", OVERLAP, "begins at byte 7, inside", two((0, 8), (7, 15), 15))
    yield Case("same place", OVERLAP, "begins at byte 0, inside", two((0, 8), (0, 8), 8))
    yield Case("one inside the other", OVERLAP, "begins at byte 2", two((0, 8), (2, 4), 8))
    yield Case("same begin", OVERLAP, "'long' begins at byte 0, inside tensor 'short'",
               two((0, 8), (0, 4), 8, ("long", "short")))
    yield Case("same end", OVERLAP, "begins at byte 4", two((0, 8), (4, 8), 8))
    yield Case("empty tensor inside another", OVERLAP, "begins at byte 3", two((0, 8), (3, 3), 8))
    yield Case("overlap in descending order", OVERLAP, "tensor 'a' begins at byte 6",
               two((6, 14), (0, 8), 14))
    yield Case("hole in front", HOLE, "bytes 0 to 1", one(offsets="[1,9]", data=9))
    yield Case("hole in the middle", HOLE, "bytes 8 to 12", two((0, 8), (12, 20), 20))
    yield Case("hole of one byte", HOLE, "bytes 8 to 9", two((0, 8), (9, 17), 17))
    yield Case("hole in front of an empty tensor", HOLE, "bytes 8 to 16", two((0, 8), (16, 16), 16))
    yield Case("only an empty tensor, not at the front", HOLE, "bytes 0 to 8",
               one(shape="[0]", offsets="[8,8]"))
    yield Case("one byte behind", TRAILING, ": 1 bytes follow", one(data=9))
    yield Case("a page behind", TRAILING, ": 4096 bytes follow", one(data=8 + 4096))
    yield Case("data of an empty tensor", TRAILING, ": 8 bytes follow",
               one(shape="[0]", offsets="[0,0]"))
    yield Case("data without tensors", TRAILING, "no tensors, but 8", file("{}", 8))
    yield Case("data with metadata only", TRAILING, "no tensors, but 1 ",
               file('{"__metadata__":{}}', 1))


def sizes():
    """For every dtype one byte too many and one too few; packed ones that end inside a byte."""
    for dtype, bits in BITS.items():
        for stored in (bits + 1, bits - 1):
            yield Case(f"{stored} bytes for 8 of {dtype}", SIZE,
                       f"dtype {dtype} and its shape need {bits} bytes, but {stored} are there",
                       one(dtype=f'"{dtype}"', offsets=f"[0,{stored}]", data=stored))
    for dtype, elements in (("F4", 1), ("F4", 7), ("F6_E2M3", 1), ("F6_E2M3", 2), ("F6_E3M2", 3),
                            ("F6_E3M2", 5)):
        stored = (elements * BITS[dtype] + 7) // 8
        yield Case(f"{elements} elements of {dtype}", SIZE, f"{elements} elements of {dtype} in",
                   one(dtype=f'"{dtype}"', shape=f"[{elements}]", offsets=f"[0,{stored}]",
                       data=stored))
    yield Case("scalar of 8 bytes as U8", SIZE, "need 1 bytes, but 8", one(shape="[]"))
    yield Case("scalar of F4", SIZE, "1 elements of F4",
               one(1, name="scalar", dtype='"F4"', shape="[]", offsets="[0,1]"))
    yield Case("no bytes for an element", SIZE, "need 1 bytes, but 0",
               one(shape="[1]", offsets="[0,0]", data=0))


def shapes():
    huge = {"square": [2**32, 2**32], "double": [2**63, 2], "largest": [2**64 - 1, 2**64 - 1],
            "twos": [2] * 64, "long": [3, 2**63, 1], "wraps_to_8": [2**61 + 1, 8]}
    for name, shape in huge.items():
        yield Case(f"shape {name} overflows", SIZE, f"the shape of tensor '{name}' multiplies",
                   file(header(tensor(name, shape=str(shape))), 8))
    for name, dtype, extent in (("u8", "U8", 2**61), ("f64", "F64", 2**58), ("f4", "F4", 2**62),
                                ("wraps_to_8_bytes", "U8", 2**61 + 8)):
        yield Case(f"{name} has 2^64 bits or more", SIZE,
                   f"'{name}' would have more than 2^64 bits",
                   file(header(tensor(name, f'"{dtype}"', f"[{extent}]")), 8))
    yield Case("2^60 bytes in 8", SIZE, f"need {2**60} bytes", one(shape=f"[{2**60}]"))
    yield Case("no elements but data", SIZE, "need 0 bytes, but 8", one(shape="[0]"))
    yield Case("zero among huge extents but data", SIZE, "need 0 bytes, but 1 ",
               one(shape=f"[{2**64 - 1},0,{2**64 - 1}]", offsets="[0,1]", data=1))
    for name, rank in (("rank65", 65), ("rank1000000", 1_000_000)):
        shape = "[1" + ",1" * (rank - 1) + "]"
        yield Case(f"{rank} dimensions", LIMIT, f"tensor '{name}' has more than 64 dimensions",
                   file(header(tensor(name, shape=shape)), 1))


def unknown_dtypes():
    def future(name, shape, stored):
        return file(header(tensor(name, '"F3_X"', shape, f"[0,{stored}]")), stored)

    yield Case("3 future elements in 8 bytes", SIZE, "8 bytes do not divide over its 3",
               future("a", "[3]", 8))
    yield Case("future elements without bytes", SIZE, "0 bytes do not divide over its 4",
               future("a", "[4]", 0))
    yield Case("future bytes without elements", SIZE, "8 bytes do not divide over its 0",
               future("a", "[0]", 8))
    yield Case("future elements of less than a bit", SIZE, f"over its {2**60}",
               future("a", f"[{2**60}]", 8))
    yield Case("future scalar of 4104 bits", LIMIT, "4104 bits per element", future("a", "[]", 513))
    yield Case("future elements of 8192 bits", LIMIT, "8192 bits per element",
               future("a", "[2]", 2048))
    yield Case("future shape overflows", SIZE, "'future' multiplies",
               future("future", f"[{2**63},2]", 8))


def dtype_names():
    bad = {"empty": "", "with a space": "BF 16", "with a dash": "BF-16", "with a dot": "F8.E4",
           "a path": "../F32",
           "a format": "%s%n", "with a newline": "F32\\n", "with a quote": "F32\\\"",
           "in Greek": "\\u03b1",
           "an emoji": "\U0001f600", "with a space behind": "F32 "}
    for name, dtype in bad.items():
        yield Case(f"dtype {name}", NAME, "has the impossible dtype", one(dtype=f'"{dtype}"'))
    yield Case("dtype of 33 letters", LIMIT, "exceeds 32 bytes", one(dtype='"%s"' % ("F" * 33)))
    yield Case("dtype of a million letters", LIMIT, "exceeds 32 bytes",
               one(dtype=' "%s"' % ("F" * 1_000_000)))


def names():
    yield Case("empty name", NAME, "without a name", one(name=""))
    yield Case("name of 4097 bytes", LIMIT, "exceeds 4096 bytes", one(name="x" * 4097))
    yield Case("name of 4098 bytes in 2049 letters", LIMIT, "exceeds 4096 bytes", file(
        "{ " + tensor("\u00e9" * 2049) + "}", 8))
    yield Case("name of 4097 escaped letters", LIMIT, "exceeds 4096 bytes", file(
        "{  " + tensor("\\u0061" * 4097) + "}", 8))
    yield Case("name of 16 MiB", LIMIT, "exceeds 4096 bytes", file(
        "{   " + tensor("x" * (16 << 20)) + "}", 8))
    yield Case("one name twice", DUPLICATE, "'a' occurs twice", two((0, 8), (8, 16), 16, "aa"))
    yield Case("one name twice, same bytes", DUPLICATE, "'b' occurs twice",
               two((0, 8), (0, 8), 8, "bb"))
    yield Case("one name twice, once escaped", DUPLICATE, "'c' occurs twice",
               two((0, 8), (8, 16), 16, ("c", "\\u0063")))
    yield Case("one name twice, far apart", DUPLICATE, "'t0' occurs twice", file(header(*(
        tensor(f"t{i % 1000}", offsets=f"[{8 * i},{8 * i + 8}]") for i in range(1001))), 8 * 1001))
    yield Case("one empty tensor twice", DUPLICATE, "'e' occurs twice",
               two((0, 0), (0, 0), 0, "ee"))
    yield Case("pair of surrogates and its UTF-8", DUPLICATE, "occurs twice",
               two((0, 8), (8, 16), 16, ("\\ud83d\\ude00", "\U0001f600")))


def metadata():
    yield Case("metadata twice", DUPLICATE, "'__metadata__' occurs twice",
               file('{"__metadata__":{},"__metadata__":{}}'))
    yield Case("metadata twice, once escaped", DUPLICATE, "'__metadata__' occurs twice",
               file('{"__metadata__":{},"\\u005f_metadata__":{}}'))
    yield Case("metadata that is a tensor", SCHEMA, "found an array", one(name="__metadata__"))
    yield Case("metadata key twice", DUPLICATE, "metadata key 'k' occurs twice",
               file('{"__metadata__":{"k":"1","k":"2"}}'))
    yield Case("metadata key twice, once escaped", DUPLICATE, "metadata key 'm' occurs twice",
               file('{"__metadata__":{"m":"1","\\u006d":"2"}}'))
    yield Case("empty metadata key twice", DUPLICATE, "metadata key '' occurs twice",
               file('{"__metadata__":{"":"","":""}}'))
    yield Case("metadata key of 4097 bytes", LIMIT, "exceeds 4096 bytes",
               file('{"__metadata__":{"%s":""}}' % ("k" * 4097)))
    yield Case("metadata value of 16 MiB and one", LIMIT, "exceeds 16777216 bytes",
               file('{"__metadata__":{"k":"%s"}}' % ("v" * ((16 << 20) + 1))))
    yield Case("65537 metadata entries", LIMIT, "more than 65536 metadata entries",
               file('{"__metadata__":{%s}}' % ",".join(f'"{i}":""' for i in range(65537))))


def too_many():
    members = (tensor(f"{i}", shape="[0]", offsets="[0,0]") for i in range(524289))
    yield Case("524289 tensors", LIMIT, "more than 524288 tensors", file(header(*members)),
               seconds=20)


def cases():
    for group in (wrong_kinds, numbers, fields, nesting, offsets, tiling, sizes, shapes,
                  unknown_dtypes,
                  dtype_names, names, metadata, too_many):
        yield from group()
