# SPDX-License-Identifier: Apache-2.0
"""Files whose frame, JSON syntax or text is broken, before any tensor makes sense."""
from making import *

CAP = 100_000_000
WHOLE = header('"__metadata__":{"k":"v"}', tensor(), tensor("b", offsets="[8,16]"))


def truncated():
    cut = file(WHOLE, 16)
    yield from (Case(f"only {n} bytes", TRUNCATED, f"has {n} bytes", cut[:n]) for n in range(8))
    for there in (0, 1, 2, len(WHOLE) // 2, len(WHOLE) - 1):
        yield Case(f"header cut to {there} bytes", TRUNCATED,
                   f"{len(WHOLE)} bytes announced, {there} there", cut[:8 + there])
    yield Case("no data at all", TRUNCATED, "'a' ends at byte 8 of the data", cut[:-16])
    yield Case("first tensor cut", TRUNCATED, "has only 7", cut[:-9])
    yield Case("second tensor missing", TRUNCATED, "'b' ends at byte 16", cut[:-8])
    yield Case("last byte missing", TRUNCATED, "has only 15", cut[:-1])


def length_field():
    for length in (CAP + 1, 2**32, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1):
        yield Case(f"length {length}", HEADER, f"header of {length} bytes",
                   framed(length, WHOLE, 16))
    yield Case("length 0", HEADER, "empty header", framed(0, WHOLE, 16))
    yield Case("length 1", JSON, "at byte 1 ", framed(1, WHOLE, 16))
    yield Case("length is the cap", TRUNCATED, f"{CAP} bytes announced", framed(CAP, WHOLE, 16))
    yield Case("length one too large", TRUNCATED, "4 bytes announced, 3 there", framed(4, "{} "))
    yield Case("length takes in a byte of data", JSON, "only spaces",
               framed(len(WHOLE) + 1, WHOLE, 17))
    yield Case("length leaves the last brace out", JSON, f"at byte {len(WHOLE) - 1} ",
               framed(len(WHOLE) - 1, WHOLE, 16))
    yield Case("length in the wrong byte order", HEADER, "header of",
               len(WHOLE).to_bytes(8, "big") + WHOLE.encode() + bytes(16))


def other_formats():
    starts = {"zip": b"PK\3\4\x14\0\0\0", "pickle": b"\x80\2\x8a\nl\xfc\x9cF",
              "GGUF": b"GGUF\3\0\0\0",
              "gzip": b"\x1f\x8b\x08\0\x10\x20\x30\x60", "HDF5": b"\x89HDF\r\n\x1a\n",
              "text": b"# A model card",
              "git-lfs pointer": b"version https://git-lfs.github.com/spec/v1\n",
              "HTML": b"<!DOCTYPE html><html>"}
    for name, start in starts.items():
        yield Case(name, HEADER, "is it safetensors?", start + bytes(64))
    for name, first in (("array", b"["), ("space", b" "), ("newline", b"\n"), ("NUL", b"\0"),
                        ("byte order mark", b"\xef\xbb\xbf"), ("quote", b'"'),
                        ("bare word", b"null")):
        yield Case(f"header begins with a {name}", HEADER, f"0x{first[0]:02x}", file(first + b"{}"))


TOKENS = ["{", '"__metadata__"', ":", "{", '"k"', ":", '"v"', "}", ",", '"a"', ":", "{", '"dtype"',
          ":",
          '"U8"', ",", '"shape"', ":", "[", "8", "]", ",", '"data_offsets"', ":", "[", "0", ",",
          "8",
          "]", "}", "}"]


def cut_json():
    """The JSON text ends behind each of its tokens; the fault is seen where the text ends."""
    for count in range(2, len(TOKENS)):
        text = "".join(TOKENS[:count])
        yield Case(f"JSON ends behind token {count}, {TOKENS[count - 1]}", JSON,
                   f"at byte {len(text)} ", file(text, 8))
    yield Case("JSON ends inside a name", JSON, "ends inside a string", file('{"abc', 8))
    yield Case("JSON ends inside a dtype", JSON, "ends inside a string",
               file('{"a":{"dtype":"U', 8))
    yield Case("JSON ends behind a backslash", JSON, "backslash", file('{"abcd\\', 8))
    yield Case("JSON ends inside \\u", JSON, "four hexadecimal", file('{"abcd\\u00', 8))


PUNCTUATION = {
    "no colon behind a name": '{"a" %s}' % entry(),
    "no colon behind a field": '{"a":{"dtype" "U8"}}',
    "equals sign for a colon": '{"abc"=%s}' % entry(),
    "two colons": '{"a"::%s}' % entry(),
    "two commas": "{%s,,%s}" % (tensor(), tensor("b", offsets="[8,16]")),
    "no comma between tensors": "{%s %s}" % (tensor(), tensor("b", offsets="[8,16]")),
    "no comma between fields": '{"a":{"dtype":"U8""shape":[8],"data_offsets":[0,8]}}',
    "no comma between extents": header(tensor(shape="[2 4]")),
    "semicolon for a comma": "{%s;}" % tensor(),
    "comma in front": "{,%s}" % tensor(),
    "comma behind the last tensor": "{%s,}" % tensor(),
    "comma behind the last field": '{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],}}',
    "comma behind the last extent": header(tensor(shape="[8,]")),
    "comma in front of the extents": header(tensor(shape="[,8]")),
    "comma behind one offset": header(tensor(offsets="[0,]")),
    "only a comma as metadata": '{"__metadata__":{,}}',
    "bracket closes an object": '{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]]}',
    "brace closes an array": '{"a":{"dtype":"U8","shape":[8},"data_offsets":[0,8]}}',
    "bracket closes the header": "{%s]" % tensor(),
    "parenthesis for a bracket": header(tensor(shape="(8)")),
    "single quotes": "{'a':%s}" % entry(),
    "name without quotes": "{ a:%s}" % entry(),
    "number as a name": "{  1:%s}" % entry(),
    "null as a name": "{   null:%s}" % entry(),
    "line comment": "{//c\n%s}" % tensor(),
    "block comment": "{%s/*c*/}" % tensor(),
    "hash comment": "{%s #c\n}" % tensor(),
    "NUL between tokens": "{    \0%s}" % tensor(),
    "form feed between tokens": "{     \f%s}" % tensor(),
    "vertical tab between tokens": "{      \v%s}" % tensor(),
    "no-break space between tokens": "{       \xa0%s}" % tensor(),
    "byte order mark between tokens": "{        \ufeff%s}" % tensor(),
}

WORDS = {
    "NaN": header(tensor(shape="[NaN]")),
    "Infinity": header(tensor(shape="[ Infinity]")),
    "plus sign": header(tensor(shape="[  +8]")),
    "number without a digit in front": header(tensor(shape="[   .5]")),
    "leading zero": header(tensor(shape="[08]")),
    "two zeros": header(tensor(offsets="[00,8]")),
    "hexadecimal": header(tensor(shape="[0x8]")),
    "digit separator": header(tensor(shape="[1_0]")),
    "digit group": header(tensor(shape="[1'0]")),
    "True": header(tensor(dtype="True")),
    "undefined": header(tensor(dtype=" undefined")),
    "value missing": '{"a":}',
    "field value missing": '{"a":{"dtype":}}',
    "tab inside a name": '{"a\tb":%s}' % entry(),
    "newline inside a name": '{"ab\ncd":%s}' % entry(),
    "NUL byte inside a name": '{"abc\0d":%s}' % entry(),
    "control character inside a dtype": header(tensor(dtype='"U8\x1f"')),
    "control character inside metadata": '{"__metadata__":{"k":"\x01"}}',
    "escape \\x": '{"\\x61":%s}' % entry(),
    "escape \\'": '{"a\\\'":%s}' % entry(),
    "escape \\U": '{"ab\\U00000061":%s}' % entry(),
    "escape \\0": '{"abc\\0":%s}' % entry(),
    "escaped newline": '{"abcd\\\n":%s}' % entry(),
    "three digits behind \\u": '{"\\u061":%s}' % entry(),
    "a G behind \\u": '{"abc\\u00G1":%s}' % entry(),
    "a sign behind \\u": '{"abcd\\u+061":%s}' % entry(),
    "braces behind \\u": '{"abcde\\u{61}":%s}' % entry(),
}


def behind_the_header():
    for count, (name, tail) in enumerate({
            "a letter": "x", "a tab": "\t", "a newline": "\n", "a carriage return": "\r",
            "a NUL": "\0",
            "a second object": "{}", "a comma": ",", "a third brace": "}", "a comment": "//",
            "a no-break space": "\xa0", "tabs as padding": "\t\t\t\t"}.items()):
        yield Case(f"{name} behind the header", JSON, f"at byte {2 + count} ",
                   file("{}" + " " * count + tail))


def syntax():
    for name, text in {**PUNCTUATION, **WORDS}.items():
        yield Case(name, JSON, "of the JSON text", file(text, 8))


MALFORMED = {
    "lone continuation byte": b"\x80", "continuation byte 0xbf": b"\xbf", "byte 0xff": b"\xff",
    "byte 0xfe": b"\xfe", "overlong NUL": b"\xc0\x80", "overlong slash": b"\xc0\xaf",
    "overlong DEL": b"\xc1\xbf", "overlong in three bytes": b"\xe0\x9f\xbf",
    "overlong in four bytes": b"\xf0\x8f\xbf\xbf", "high surrogate in UTF-8": b"\xed\xa0\x80",
    "low surrogate in UTF-8": b"\xed\xbf\xbf",
    "surrogate pair in UTF-8": b"\xed\xa0\x80\xed\xb0\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80", "lead byte 0xf5": b"\xf5\x80\x80\x80",
    "five-byte form": b"\xf8\x88\x80\x80\x80", "two bytes cut": b"\xc3",
    "three bytes cut": b"\xe2\x82",
    "four bytes cut": b"\xf0\x9f\x98", "Latin-1": b"caf\xe9",
    "UTF-16": "\u20ac".encode("utf-16-be") + b"\xd8",
}


def malformed_utf8():
    for count, (name, bad) in enumerate(MALFORMED.items()):
        text = b'{"' + b"x" * count + bad.replace(b" ", b"") + b'":' + entry().encode() + b"}"
        yield Case(f"{name} in a name", UTF8, "not UTF-8", file(text, 8))
    places = {"a field": '{"a":{"dtypeX":"U8"}}', "a dtype": '{ "a": {"dtype":     "U8X"}}',
              "a metadata key": '{"__metadata__":{"kX":"v"}}',
              "a metadata value": '{"__metadata__":{"k":"vX"}}'}
    for place, text in places.items():
        for count, (kind, bad) in enumerate((("0xff", b"\xff"), ("cut sequence", b"\xe2\x82"))):
            before, behind = text.encode().split(b"X")
            yield Case(f"{kind} in {place}", UTF8, "not UTF-8",
                       file(before + b"x" * count + bad + behind))
    yield Case("UTF-8 sequence cut by the end of the header", UTF8, "not UTF-8",
               file(b'{"long name\xe2\x82'))


ESCAPED = {
    "high surrogate alone": ("\\ud800", "without its low half"),
    "high surrogate and a letter": ("x\\ud800y", "without its low half"),
    "high surrogate and \\n": ("xy\\udbff\\n", "without its low half"),
    "high surrogate and \\u0041": ("xyz\\ud800\\u0041", "without its low half"),
    "two high surrogates": ("vwxyz\\ud800\\ud800", "without its low half"),
    "low surrogate alone": ("\\udc00", "without its high half"),
    "low surrogate first": ("x\\udc00\\ud800", "without its high half"),
    "high surrogate and half an escape": ("xy\\ud800\\udc", "four hexadecimal"),
    "escaped NUL": ("\\u0000", "NUL character"),
    "escaped NUL at the end": ("abc\\u0000", "NUL character"),
}


def bad_escapes():
    for name, (text, fragment) in ESCAPED.items():
        code = JSON if "four" in fragment else UTF8
        yield Case(f"{name} in a name", code, fragment, file('{"%s":%s}' % (text, entry()), 8))
    yield Case("lone surrogate in a dtype", UTF8, "low half", one(dtype='"\\ud83d"'))
    yield Case("escaped NUL in a dtype", UTF8, "NUL", one(dtype='"U8\\u0000"'))
    yield Case("escaped NUL in a field", UTF8, "NUL", file('{"a":{"dtype\\u0000":"U8"}}'))
    yield Case("lone surrogate in metadata", UTF8, "high half",
               file('{"__metadata__":{"k":"\\udead"}}'))
    yield Case("escaped NUL in a metadata key", UTF8, "NUL",
               file('{"__metadata__":{"k\\u0000":"v"}}'))
    yield Case("escaped NUL in a metadata value", UTF8, "NUL",
               file('{"__metadata__":{"k":"v\\u0000"}}'))


def cases():
    for group in (truncated, length_field, other_formats, cut_json, syntax, behind_the_header,
                  malformed_utf8, bad_escapes):
        yield from group()
