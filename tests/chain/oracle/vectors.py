#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vectors/*/expected.txt says of each run, the library and the checker say, too.

usage: vectors.py checker
       vectors.py library CHAIN_HELPER
       vectors.py same CHAIN_HELPER      the bytes are those that were stored, and each record that is
                                         accepted is written again as it was, by both
"""

import hashlib
import pathlib
import shutil
import sys
import tempfile

import checker
import record as records

from library import Library  # tests/patch/oracle, which record.py put into the path
from state import read_safetensors, root

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE / "vectors/v0"
SUMS = "sha256sums.txt"
RUN = "run"


def seed(number):
    """The private keys of the vectors."""
    return bytes([number] * 32).hex()


def sums_of(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in paths
    )


class Vector:
    """A line of expected.txt."""

    def __init__(self, version, line):
        self.version = version
        self.check, self.follow, self.store, *options = line.split()
        self.options = dict(option.split("=", 1) for option in options)

    def __str__(self):
        return " ".join([self.store, *(f"{k}={v}" for k, v in self.options.items())])

    def assemble(self, to):
        """The store, put together in an empty directory."""
        if "over" in self.options:
            shutil.copytree(self.version / self.options["over"], to, dirs_exist_ok=True)
        shutil.copytree(self.version / self.store, to, dirs_exist_ok=True)
        for key in filter(None, self.options.get("without", "").split(",")):
            (to / key).unlink()

    def trusted(self):
        return [bytes.fromhex(key) for key in self.options.get("trust", "").split(",") if key]

    def base(self):
        return self.version / self.options["base"] if "base" in self.options else None

    def known(self, to):
        """The store as it was when it was followed before, put together there; or None."""
        if "known" not in self.options:
            return None
        store, _, last = self.options["known"].partition("@")
        shutil.copytree(self.version / store, to)
        for path in log_of(to):
            if last and int(path.name) > int(last):
                path.unlink()
        return to

    def memory(self):
        return self.version / self.options["memory"] if "memory" in self.options else None


def expected():
    for version in sorted(HERE.glob("vectors/v*")):
        for line in (version / "expected.txt").read_text().splitlines():
            if not line.startswith("#"):
                yield Vector(version, line)


def log_of(store):
    return sorted((store / RUN / "log").iterdir())


def checker_says(vector, store, scratch):
    known = vector.known(scratch / "known")
    said = checker.check(
        store,
        RUN,
        vector.trusted(),
        log_of(known)[-1].read_bytes() if known else None,
        read_safetensors(vector.base()) if vector.base() else None,
        int(vector.options.get("age", 0)),
        int(vector.options["now"]) if "now" in vector.options else None,
    )
    if vector.check == "ULP_OK" and vector.store.startswith("accept/") and said["broken"]:
        return str(said["broken"]), said["follow"]
    return said["check"], said["follow"]


def planned_bytes(vector, store):
    """What the checker would fetch: both take the cheapest way."""
    base = read_safetensors(vector.base()) if vector.base() else None
    return checker.check(store, RUN, base=base)["plan"]["bytes"]


class LibrarySays:
    def __init__(self, library):
        self.native = library

    def follow(self, store, replica, *options):
        return self.native.ask("follow", store, RUN, replica, *options)

    def __call__(self, vector, store, scratch):
        check, _ = self.native.ask("check", store, RUN)
        replica = scratch / "replica"
        known = vector.known(scratch / "known")
        if known:
            assert self.follow(known, replica, "-", "-", "-")[0] == "ULP_OK"
        if "now" in vector.options:
            self.native.ask("clock", vector.options["now"])
        if vector.memory():
            return check, self.native.ask("memory", store, RUN, vector.memory())[0]
        keys = vector.options.get("trust", "-")
        age = vector.options.get("age", "-")
        follow, said = self.follow(store, replica, vector.base(), keys, age)
        if follow == "ULP_OK":
            held = read_safetensors(next((replica / "current").glob("*.safetensors")))
            found, fetched = said.split()
            if root(held).hex() != found:
                return check, "another root"
            if not known and int(fetched) != planned_bytes(vector, store):
                return check, f"{fetched} bytes"
        return check, follow


def compare(says):
    counts = {True: 0, False: 0}
    for vector in expected():
        with tempfile.TemporaryDirectory() as scratch:
            store = pathlib.Path(scratch) / "store"
            vector.assemble(store)
            found = says(vector, store, pathlib.Path(scratch))
        right = found == (vector.check, vector.follow)
        if not right:
            print(f"{vector}: {found} instead of {(vector.check, vector.follow)}")
        counts[right] += 1
    print(f"{counts[True]} as expected, {counts[False]} not")
    return counts[False] > 0 or counts[True] == 0


# ---- the bytes -----------------------------------------------------------------------------------


def written_by_library(library, path, record, out):
    keys = {records.ed25519.public_key(bytes.fromhex(seed(i))): seed(i) for i in range(1, 5)}
    status, message = library.ask("rewrite", path, out, keys[record.signer] if record.signer else "-")
    return out.read_bytes() if status == "ULP_OK" else message


def compare_bytes(library):
    failed = 0
    for version in sorted(HERE.glob("vectors/v*")):
        if sums_of(version) != (version / SUMS).read_text():
            print(f"the vectors of {version.name} are not those that were stored")
            failed += 1
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(HERE.glob(f"vectors/v*/accept/*/{RUN}/log/*")):
            data = path.read_bytes()
            record = records.read(data)
            native = written_by_library(library, path, record, pathlib.Path(scratch) / "out")
            right = records.write(record) == data and native == data
            failed += not right
            count += 1
            if not right:
                print(f"{path.relative_to(HERE)}: written again it is another one")
    print(f"{count} records compared")
    return failed > 0 or count == 0


def main():
    if sys.argv[1] == "checker":
        return compare(checker_says)
    with Library(sys.argv[2]) as library:
        return compare_bytes(library) if sys.argv[1] == "same" else compare(LibrarySays(library))


if __name__ == "__main__":
    sys.exit(main())
