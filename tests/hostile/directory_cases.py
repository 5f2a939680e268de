# SPDX-License-Identifier: Apache-2.0
"""Folders, indexes and things that are no plain files."""
from making import *

S, T = "s.safetensors", "t.safetensors"


def index_text():
    at_once = {
        "empty index": ("", JSON, "at byte 0 "),
        "index of spaces": ("    ", JSON, "at byte 4 "),
        "index with a byte order mark": ("\ufeff" + weight_map(("a", S)), JSON,
                                         "found the byte 0xef"),
        "index that is an array": ("[]", SCHEMA, "found an array"),
        "index that is a string": ('"a"', SCHEMA, "found a string"),
        "index that is null": ("null", SCHEMA, "found null"),
        "index that is no JSON": ("weight_map: a", JSON, "found 'w'"),
        "index cut": (weight_map(("a", S))[:-1], JSON,
                      "at byte %d " % (len(weight_map(("a", S))) - 1)),
        "index with text behind": (weight_map(("a", S)) + " x", JSON, "follows the end"),
        "two indexes in one": (weight_map(("a", S)) * 2, JSON, "follows the end"),
        "index without a map": ("{}", SCHEMA, "lacks 'weight_map'"),
        "index with an empty map": (weight_map(), SCHEMA, "names no tensor"),
        "map that is an array": ('{"weight_map":[]}', SCHEMA, "found an array"),
        "map that is a string": ('{"weight_map":"s"}', SCHEMA, "found a string"),
        "map that is null": ('{"weight_map":null}', SCHEMA, "found null"),
        "map twice": ('{"weight_map":{"a":"s.safetensors"},"weight_map":{}}', DUPLICATE,
                      "occurs twice"),
        "map twice, once escaped": ('{"weight_map":{"a":"s.safetensors"},"\\u0077eight_map":{}}',
                                    DUPLICATE,
                                    "occurs twice"),
        "file that is a number": ('{"weight_map":{"a":1}}', SCHEMA, "found a number"),
        "file that is null": ('{"weight_map":{"a":null}}', SCHEMA, "found null"),
        "files in an array": ('{"weight_map":{"a":["s.safetensors"]}}', SCHEMA, "found an array"),
        "no value for weight_map": ('{"weight_map":}', JSON, "at byte 14 "),
        "comma behind the last tensor": ('{"weight_map":{"a":"s.safetensors",}}', JSON,
                                         "at byte 35 "),
        "bad number in unknown text": ('{"x":[1.]}', JSON, "digits behind its point"),
        "bad exponent in unknown text": ('{"x":[1e]}', JSON, "digits in its exponent"),
        "bad exponent sign in unknown text": ('{"x":[1e+]}', JSON, "digits in its exponent"),
        "leading zero in unknown text": ('{"x":[-01]}', JSON, "leading zero"),
        "minus alone in unknown text": ('{"x":-}', JSON, "expected a value"),
        "word cut in unknown text": ('{"x":  tru}', JSON, "expected a value"),
        "comma behind in unknown text": ('{"x":[1,]}', JSON, "expected a value"),
        "brackets crossed in unknown text": ('{"x":[{]}}', JSON, "found ']'"),
        "not UTF-8 in unknown text": (b'{"x":"\xff"}', UTF8, "not UTF-8"),
        "not UTF-8 in a tensor name": (b'{"weight_map":{"\xc0\x80":"s"}}', UTF8, "not UTF-8"),
        "not UTF-8 in a file name": (b'{"weight_map":{"a":"\xed\xa0\x80"}}', UTF8, "not UTF-8"),
        "arrays 100000 deep": ('{"x":' + "[" * 100_000, LIMIT, "nested too deeply"),
        "objects 100000 deep": ('{"x":' * 100_000, LIMIT, "nested too deeply"),
        "arrays 17 deep": ('{"xyz":' + "[" * 16 + "]" * 16 + "}", LIMIT, "nested too deeply"),
    }
    for name, (text, code, fragment) in at_once.items():
        yield Case(f"{name} (index)", code, fragment, index(text))


def index_names():
    for name in ("sub/s.safetensors", "../s.safetensors", "/s.safetensors", "..", ".", "",
                 ".safetensors",
                 ".hidden.safetensors", "s.bin", "s.SAFETENSORS", "s.safetensors ",
                 "s.safetensors/",
                 "safetensors", "s.safetensors\\u000a", "~/s.safetensors.index.json"):
        yield Case(f"file '{name}'", NAME, "is not the name of a safetensors file",
                   index(weight_map(("a", name))))
    yield Case("file name of 256 bytes", LIMIT, "exceeds 255 bytes",
               index(weight_map(("a", "x" * 244 + ".safetensors"))))
    yield Case("file name with a NUL", UTF8, "NUL",
               index(weight_map(("a", "s\\u0000.safetensors"))))
    yield Case("tensor twice in the index", DUPLICATE, "names the tensor 'a' twice",
               index(weight_map(("a", S), ("a", S))))
    yield Case("tensor twice in the index, escaped, in two files", DUPLICATE,
               "names the tensor 'b' twice",
               index(weight_map(("b", S), ("\\u0062", T))))
    yield Case("empty tensor name in the index", NAME, "without a name", index(weight_map(("", S))))
    yield Case("__metadata__ in the index", NAME, "'__metadata__'",
               index(weight_map(("__metadata__", S))))
    yield Case("tensor name of 4097 bytes in the index", LIMIT, "exceeds 4096",
               index(weight_map(("a" * 4097, S))))
    yield Case("4097 files", LIMIT, "names 4097 files", index(
        weight_map(*((f"{i}", f"{i}.safetensors") for i in range(4097)))))
    yield Case("524289 tensors in the index", LIMIT, "more than 524288 tensors", index(
        weight_map(*((f"{i}", S) for i in range(524289)))), seconds=20)


def shards():
    both = weight_map(("a", S), ("b", T)).encode()
    yield Case("file of the index missing", NOT_FOUND, "t.safetensors", {INDEX: both, S: good("a")})
    yield Case("tensor not in its file", SHARDS, "says that tensor 'b' is in 't.safetensors'",
               {INDEX: both, S: good("a"), T: good("c")})
    yield Case("files swapped", SHARDS, "tensor 'a' is in 's.safetensors', but it is not",
               {INDEX: both, S: good("b"), T: good("a")})
    yield Case("a tensor the index does not name", SHARDS, "names 2 tensors, but its files hold 3",
               {INDEX: both, S: good("a"), T: good("b", "c")})
    yield Case("a tensor in two shards", SHARDS, "names 3 tensors, but its files hold 4",
               {INDEX: weight_map(("a", S), ("b", T), ("c", T)).encode(), S: good("a"),
                T: good("a", "b", "c")})
    yield Case("a tensor in two loose files", DUPLICATE, "is both in", {S: good("a"), T: good("a")})
    yield Case("second shard cut", TRUNCATED, "t.safetensors",
               {INDEX: both, S: good("a"), T: good("b")[:-1]})
    yield Case("second shard empty", TRUNCATED, "has 0 bytes", {INDEX: both, S: good("a"), T: b""})
    yield Case("second shard no safetensors", HEADER, "t.safetensors",
               {INDEX: both, S: good("a"), T: bytes(9)})
    yield Case("shard is a directory", FILE_KIND, "a directory",
               {INDEX: both, S: good("a"), T: DIRECTORY})
    yield Case("shard is a FIFO", FILE_KIND, "a FIFO", {INDEX: both, S: good("a"), T: FIFO})
    yield Case("shard is a dangling link", NOT_FOUND, "s.safetensors",
               {INDEX: both, S: Link("gone"), T: good("b")})
    yield Case("shard is a link to itself", FILE_KIND, "symbolic links",
               {INDEX: both, S: good("a"), T: Link(T)})
    yield Case("loose file bad", HOLE, "s.safetensors",
               {S: file(header(tensor(offsets="[8,16]")), 16), T: good("b")})
    yield Case("loose files of 524289 tensors", LIMIT, "'model': more than 524288 tensors", {
        S: file(header(*(tensor(f"{i}", shape="[0]", offsets="[0,0]") for i in range(524288)))),
        T: good("a")}, seconds=20)


def kinds():
    yield Case("folder without a model", NO_MODEL, "holds no safetensors file",
               {"config.json": b"{}"})
    yield Case("folder with hidden files only", NO_MODEL, "'model/snapshot' holds no safetensors",
               {"snapshot": DIRECTORY, "snapshot/.s.safetensors": good("a")}, "snapshot")
    yield Case("index is a directory", FILE_KIND, "a directory", {INDEX: DIRECTORY, S: good("a")})
    yield Case("index is a FIFO", FILE_KIND, "a FIFO", {INDEX: FIFO, S: good("a")})
    yield Case("index is a dangling link", NOT_FOUND, "index.json",
               {INDEX: Link("gone"), S: good("a")})
    yield Case("index is a link to itself", FILE_KIND, "symbolic links",
               {INDEX: Link(INDEX), S: good("a")})
    yield Case("index is a device", FILE_KIND, "a device", {INDEX: Link("/dev/zero"), S: good("a")})
    yield Case("model file is a directory", FILE_KIND, "a directory",
               {MODEL: DIRECTORY, S: good("a")})
    yield Case("loose file is a directory", FILE_KIND, "'model/d.safetensors' is a directory",
               {"d.safetensors": DIRECTORY})
    yield Case("model is a FIFO", FILE_KIND, "a FIFO", {MODEL: FIFO}, MODEL)
    yield Case("model is a device", FILE_KIND, "a device", {MODEL: Link("/dev/null")}, MODEL)
    yield Case("model is a link to itself", FILE_KIND, "symbolic links", {MODEL: Link(MODEL)},
               MODEL)
    yield Case("model is a dangling link", NOT_FOUND, "No such file", {MODEL: Link("gone")}, MODEL)
    yield Case("path does not exist", NOT_FOUND, "No such file", {}, "gone")
    yield Case("path goes through a file", NOT_FOUND, "Not a directory", {MODEL: good("a")},
               MODEL + "/a")
    yield Case("path too long", NAME, "File name too long", {}, "x" * 256)
    yield Case("index path does not exist", NOT_FOUND, "No such file", {S: good("a")},
               "b.index.json")
    yield Case("index path is a FIFO", FILE_KIND, "a FIFO", {"b.index.json": FIFO}, "b.index.json")
    yield Case("index path, index empty", JSON, "b.index.json", {"b.index.json": b""},
               "b.index.json")
    yield Case("index path, file missing", NOT_FOUND, "x.safetensors", {
        "b.index.json": weight_map(("a", "x.safetensors")).encode()}, "b.index.json")
    yield Case("index opened as a model", HEADER, "is it safetensors?", {
        "index.json": weight_map(("a", S)).encode(), S: good("a")}, "index.json")


def cases():
    for group in (index_text, index_names, shards, kinds):
        yield from group()
