#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The root digest written again from docs/format/root.md alone, and compared with the command:
root_oracle.py ULPSYNC        compares on the worked example and on random models
root_oracle.py --root FILE    prints the root of one safetensors file
"""
import hashlib
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

MASK = (1 << 64) - 1


def mix(position, word):
    key_a = (0x6A09E667F3BCC909 + position * 0xBB67AE8584CAA73B) & MASK
    key_b = (0x3C6EF372FE94F82B + position * 0xA54FF53A5F1D36F1) & MASK
    x = word ^ key_a
    x ^= x >> 32
    x = x * 0x428A2F98D728AE23 & MASK
    x ^= x >> 29
    a = (x ^ key_a) * 0x7137449123EF65CD & MASK
    b = (x ^ key_b) * 0xB5C0FBCFEC4D3B2F & MASK
    return a ^ a >> 32, b ^ b >> 32


def content_sum(data):
    data += bytes(-len(data) % 8)
    lanes = [0, 0]
    for position, (word,) in enumerate(struct.iter_unpack("<Q", data)):
        for lane, value in enumerate(mix(position, word)):
            lanes[lane] = (lanes[lane] + value) & MASK
    return lanes


def root(tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    text = b"ulpsync root 0\n" + struct.pack("<Q", len(tensors))
    for name, (dtype, shape, data) in sorted(tensors.items(), key=lambda item: item[0].encode()):
        for string in (name.encode(), dtype.encode()):
            text += struct.pack("<Q", len(string)) + string
        text += struct.pack(f"<Q{len(shape)}Q3Q", len(shape), *shape, len(data), *content_sum(data))
    return hashlib.sha256(text).hexdigest()


def read(path):
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    at = 8 + length
    return {name: (t["dtype"], t["shape"], raw[at + t["data_offsets"][0]:at + t["data_offsets"][1]])
            for name, t in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, ensure_ascii=False).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def random_model(rng):
    widths = {"BF16": 2, "F8_E4M3": 1, "F32": 4, "I64": 8, "U8": 1, "C64": 8, "F99_FUTURE": 3}
    tensors = {}
    for _ in range(rng.randrange(6)):
        name = "".join(rng.choice("abz.01_é語") for _ in range(1 + rng.randrange(12)))
        dtype = rng.choice(list(widths))
        shape = [rng.randrange(0 if dtype == "U8" else 1, 9) for _ in range(rng.randrange(4))]
        count = 1
        for extent in shape:
            count *= extent
        tensors[name] = (dtype, shape, rng.randbytes(count * widths[dtype]))
    return tensors


def the_command_says(command, path):
    done = subprocess.run([command, "digest", path, "--json", "--tensors"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"root": done.stdout}


def check(command, tensors, path):
    write(path, tensors)
    said = the_command_says(command, path)
    assert said["root"] == root(tensors), (said, tensors)
    sums = {name: "%016x%016x" % tuple(content_sum(data)) for name, (_, _, data) in tensors.items()}
    assert said["sums"] == sums, (said, sums)


def worked_example():
    """The six weights of docs/format/root.md, with the root printed there."""
    weights = struct.pack("<6H", 0x3F80, 0x4000, 0x4040, 0xBF80, 0x8000, 0x7FC0)
    tensors = {"layer.weight": ("BF16", [2, 3], weights)}
    page = pathlib.Path(__file__).parents[2] / "docs/format/root.md"
    assert f"`{root(tensors)}`" in page.read_text(), "docs/format/root.md shows another root"
    return tensors


def main():
    if sys.argv[1] == "--root":
        print(root(read(sys.argv[2])))
        return
    rng, count = random.Random(5), 60
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "model.safetensors"
        check(sys.argv[1], worked_example(), path)
        for _ in range(count):
            check(sys.argv[1], random_model(rng), path)
    print(f"{count + 1} passed, 0 failed")


if __name__ == "__main__":
    main()
