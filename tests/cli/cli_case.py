# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, and models written by an encoder of their own."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ULPSYNC = ""

# dtype: bits of one element
DTYPES = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
          "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
          "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64}


def run(*words, **more):
    return subprocess.run([ULPSYNC, *map(str, words)], capture_output=True, text=True, timeout=120, **more)


def write_model(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes), written by this test's own encoder."""
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def weights(count, seed=1):
    """`count` BF16 weights as a model has them: normal, around 0."""
    numbers = random.Random(seed)
    return b"".join(struct.pack("<f", numbers.gauss(0, 0.02))[2:] for _ in range(count))


def moved(data, share=0.02, seed=1, width=2):
    """The same bytes with a share of the elements one step further."""
    numbers, new = random.Random(seed), bytearray(data)
    for i in range(len(data) // width):
        if numbers.random() < share:
            value = int.from_bytes(new[i * width:(i + 1) * width], "little")
            value = (value + numbers.choice((1, -1))) % (1 << 8 * width)
            new[i * width:(i + 1) * width] = value.to_bytes(width, "little")
    return bytes(new)


class CliCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def json(self, *words, **more):
        done = run(*words, "--json", **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def fails(self, code, fragment, *words, **more):
        done = run(*words, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(fragment, done.stderr)
        self.assertEqual(done.stdout, "")

    def root(self, model):
        return self.json("digest", model)["root"]


def main():
    global ULPSYNC
    ULPSYNC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
