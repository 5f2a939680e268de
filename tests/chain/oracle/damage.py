#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden records with random damage, and a hash that fits: library and checker say the same of each,
and what they accept they write again as it was.

usage: damage.py CHAIN_HELPER [SEED [COUNT]]
"""

import pathlib
import random
import sys
import tempfile

import record as records
from record import Refused
from vectors import HERE, RUN

from library import Library  # tests/patch/oracle, which record.py put into the path

NUMBERS = (0, 1, 2, 127, 128, 255, 256, 4096, 4097, 2**32, 2**63, 2**64 - 1)


def flip(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def remove(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 2, 32, 64)) :]


def insert(rng, data):
    at = rng.randrange(len(data))
    what = rng.choice((rng.randbytes(1), bytes(32), records.varint(rng.choice(NUMBERS))))
    return data[:at] + what + data[at:]


def replace(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + records.varint(rng.choice(NUMBERS)) + data[at + 1 :]


def copy(rng, data):
    at, to, count = rng.randrange(len(data)), rng.randrange(len(data)), rng.choice((1, 33, 70))
    return data[:to] + data[at : at + count] + data[to + count * rng.randrange(2) :]


def checker_says(data):
    try:
        record = records.read(data)
    except Refused as refused:
        return refused.reason
    return "ULP_OK" if records.write(record) == data else "not canonical"


def main():
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    golden = [path.read_bytes() for path in sorted(HERE.glob(f"vectors/v*/accept/*/{RUN}/log/*"))]
    said, failed = {}, 0
    with tempfile.TemporaryDirectory() as scratch, Library(sys.argv[1]) as library:
        path = pathlib.Path(scratch) / "record"
        for _ in range(count):
            body = rng.choice(golden)[:-32]
            for _ in range(rng.choice((1, 1, 2))):
                body = rng.choice((flip, remove, insert, replace, copy))(rng, body)
            data = records.close(body)
            path.write_bytes(data)
            native, _ = library.ask("read", path)
            found = checker_says(data)
            said[found] = said.get(found, 0) + 1
            if native != found:
                print(f"the library says {native}, the checker {found}: {data.hex()}")
                failed += 1
    print(*(f"{name} {number}," for name, number in sorted(said.items())), f"{failed} differ")
    return failed > 0 or not said.get("ULP_OK") or not said.get("ULP_E_RECORD")


if __name__ == "__main__":
    sys.exit(main())
