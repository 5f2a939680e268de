#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bucket is a store as a directory is one: test_store.py ULPSYNC DRIVER. The same tests on every kind of server that
is scripted, and on the real one where it is installed."""
import hashlib
import os
import random
import unittest

import net_case
from net_case import Driver, NetCase, Secrets, TOKEN, client_environment

NOT_FOUND, EXISTS, CANCELLED, PERMISSION, NAME = 20, 21, 12, 22, 40
PARTS_BYTES = 20 << 20  # more than one part of a multipart upload


class Place:
    """Tests of a store; a subclass gives the server in prepare()."""
    contenders, rounds = 16, 30
    number = 0

    def setUp(self):
        super().setUp()
        Place.number += 1
        self.prefix = f"t{Place.number}"
        self.prepare()
        self.url = f"s3://{self.bucket}/{self.prefix}"

    def open(self, **environment):
        driver = Driver(self, self.url, **environment)
        self.assertEqual(driver.opened["status"], 0, driver.opened)
        return driver

    def file(self, data, name="data"):
        path = self.dir / name
        path.write_bytes(data)
        return path

    def ok(self, answer):
        self.assertEqual(answer["status"], 0, answer["message"])
        return answer

    def create(self, store, key, data):
        return store("create", key, self.file(data))

    def put(self, store, key, data, piece=1 << 20):
        return store("put", key, self.file(data), piece)

    def read(self, store, key, offset=0, room=1_000_000):
        """(bytes, length of the object)"""
        answer = self.ok(store("read", key, offset, room, self.dir / "out"))
        data = (self.dir / "out").read_bytes()
        self.assertEqual(len(data), answer["read"])
        return data, answer["total"]

    def keys(self, store, prefix="-", after="-"):
        return [key for key, _ in self.ok(store("list", prefix, after, 1 << 40))["entries"]]

    def fails(self, status, answer):
        self.assertEqual(answer["status"], status, answer)
        for name in ("read", "total", "bytes"):
            self.assertEqual(answer.get(name, 77), 77, "an output of a failure")
        self.assertTrue(answer["message"])

    def test_ranges(self):
        store, data = self.open(), random.Random(1).randbytes(5000)
        self.ok(self.create(store, "a/b", data))
        for offset, room in ((0, 5000), (0, 10), (0, 0), (17, 1), (4990, 10), (4990, 5000), (4999, 1), (5000, 1), (5001, 9),
                             (1 << 40, 3), (0, 100_000)):
            self.assertEqual(self.read(store, "a/b", offset, room), (data[offset:offset + room], 5000), (offset, room))
        self.ok(self.create(store, "empty", b""))
        self.assertEqual(self.read(store, "empty"), (b"", 0))
        self.assertEqual(self.read(store, "empty", 5, 5), (b"", 0))
        self.assertEqual(self.ok(store("stat", "empty"))["bytes"], 0)
        self.assertEqual(self.ok(store("stat", "a/b"))["bytes"], 5000)
        store.close()

    def test_absent(self):
        store = self.open()
        self.fails(NOT_FOUND, store("read", "none", 0, 10, self.dir / "out"))
        self.fails(NOT_FOUND, store("read", "none", 10, 0, self.dir / "out"))
        self.fails(NOT_FOUND, store("stat", "none"))
        self.ok(store("remove", "none"))
        self.assertEqual(self.keys(store), [])
        self.fails(NAME, store("stat", "../none"))
        store.close()

    def test_create_put_remove(self):
        store = self.open()
        self.ok(self.create(store, "k", b"first"))
        for _ in range(3):
            self.fails(EXISTS, self.create(store, "k", b"second one"))
        self.assertEqual(self.read(store, "k"), (b"first", 5))
        self.ok(self.put(store, "k", b"put over it"))
        self.assertEqual(self.read(store, "k")[0], b"put over it")
        self.fails(EXISTS, self.create(store, "k", b""))
        self.ok(store("remove", "k"))
        self.fails(NOT_FOUND, store("stat", "k"))
        self.ok(self.create(store, "k", b"third"))
        self.assertEqual(self.read(store, "k")[0], b"third")
        self.ok(store("drop", "dropped", self.file(b"x"), 1))
        self.fails(NOT_FOUND, store("stat", "dropped"))
        store.close()

    def test_large(self):
        store, data = self.open(), random.Random(2).randbytes(PARTS_BYTES + 12345)
        self.ok(self.put(store, "large", data, 1_000_003))
        found, total = self.read(store, "large", room=1 << 26)
        self.assertEqual((hashlib.sha256(found).digest(), total), (hashlib.sha256(data).digest(), len(data)))
        self.assertEqual(self.read(store, "large", PARTS_BYTES - 5, 10)[0], data[PARTS_BYTES - 5:PARTS_BYTES + 5])
        self.ok(store("drop", "large2", self.file(data), 1 << 20))
        self.fails(NOT_FOUND, store("stat", "large2"))
        self.assertEqual(self.keys(store), ["large"])
        self.assertEqual(self.uploads(), [], "multipart uploads are left over")
        store.close()

    def test_keys(self):
        store = self.open()
        keys = ["a", "a-b", "a.b", "a/b", "a/b/c", "a_b", "A", "Z/9", "0", "x" * 200, "/".join(["p" * 179] * 4 + ["q" * 100])]
        for key in keys:
            self.ok(self.create(store, key, key.encode()))
        for key in keys:
            self.assertEqual(self.read(store, key)[0], key.encode())
        self.assertEqual(self.keys(store), sorted(keys))
        store.close()

    def test_list(self):
        store = self.open()
        keys = sorted(f"{folder}/{i}" for folder in ("a", "b", "ab") for i in range(13))
        for key in keys:
            self.ok(self.create(store, key, b"x" * (len(key) + int(key[-1]))))
        self.assertEqual(self.keys(store), keys)
        self.assertEqual(self.keys(store, "a"), [k for k in keys if k.startswith("a")])
        self.assertEqual(self.keys(store, "a/"), [k for k in keys if k.startswith("a/")])
        self.assertEqual(self.keys(store, "a/", "a/10"), [k for k in keys if k.startswith("a/") and k > "a/10"])
        self.assertEqual(self.keys(store, "none"), [])
        self.assertEqual(self.keys(store, "-", "b/5"), [k for k in keys if k > "b/5"])
        entries = self.ok(store("list", "ab/", "-", 1000))["entries"]
        self.assertEqual(entries, [[k, len(k) + int(k[-1])] for k in keys if k.startswith("ab/")])
        stopped = store("list", "-", "-", 3)
        self.assertEqual((stopped["status"], stopped["entries"]), (CANCELLED, [[k, len(k) + int(k[-1])] for k in keys[:3]]))
        store.close()

    def test_one_of_many_creates(self):
        """Processes that create the same object at the same moment: one succeeds, and its bytes stay."""
        stores = [self.open() for _ in range(self.contenders)]
        files = [self.file(b"contender %d" % i * 100, f"c{i}") for i in range(self.contenders)]
        for number in range(self.rounds):
            for store, path in zip(stores, files):
                store.process.stdin.write(f"create race/{number} {path}\n".encode())
                store.process.stdin.flush()
            seen = [store.answer()["status"] for store in stores]
            self.assertEqual(sorted(seen), [0] + [EXISTS] * (self.contenders - 1))
            self.assertEqual(self.read(stores[0], f"race/{number}")[0], files[seen.index(0)].read_bytes())
        for store in stores:
            store.close()

    def test_a_wrong_secret(self):
        store = Driver(self, self.url, AWS_SECRET_ACCESS_KEY="x" + "wrong" * 8)
        if not store.opened["status"]:
            for words in (("stat", "a"), ("read", "a", 0, 9, self.dir / "o"), ("create", "a", self.file(b"1")),
                          ("put", "a", self.file(b"1"), 1), ("list", "-", "-", 9), ("remove", "a")):
                answer = store(*words)
                self.assertEqual(answer["status"], PERMISSION, answer)
                self.assertNotIn("wrongwrong", answer["message"])


class Scripted(Place):
    personality, token = "aws", None

    def prepare(self):
        self.server = self.serve(personality=self.personality, token=self.token)
        self.bucket = self.server.name

    def uploads(self):
        return list(self.server.bucket.uploads)

    def test_large_is_what_is_stored(self):
        """By this test's own reading of the server's memory."""
        store, data = self.open(), random.Random(3).randbytes(PARTS_BYTES)
        self.ok(self.put(store, "large", data, 999_999))
        self.assertEqual(self.server.bucket.objects[f"{self.prefix}/large"].data, data)
        store.close()

    def test_connections_are_kept(self):
        store = self.open()
        self.server.forget()
        for i in range(20):
            self.ok(self.create(store, f"k{i}", b"x"))
            self.read(store, f"k{i}")
        seen = [e for e in self.server.entries if "cdn" not in e["target"]]
        self.assertEqual(len({e["connection"] for e in seen}), 1)
        self.assertLessEqual(len(seen), 20 + 20 * (2 if self.personality == "huggingface" else 1))
        store.close()

    def test_nothing_is_given_to_the_other_host(self):
        store = self.open()
        self.ok(self.create(store, "k", b"x" * 100))
        self.read(store, "k")
        for request in self.server.other.heard:
            self.assertEqual([n for n, _ in request.headers if n == "authorization" or n.startswith("x-amz")], [])
            Secrets.check_text(self, str(request.headers), request.target)
        self.assertEqual(bool(self.server.other.heard), self.personality == "huggingface")
        store.close()

    def test_no_surprising_headers(self):
        """What some servers cannot take: Expect, chunked bodies, trailers, metadata."""
        store = self.open()
        self.ok(self.create(store, "k", b"x" * 100))
        self.ok(self.put(store, "l", b"x" * PARTS_BYTES))
        self.read(store, "k")
        for entry in self.server.entries:
            names = set(entry["headers"])
            self.assertFalse(names & {"expect", "transfer-encoding", "trailer", "te", "cookie"}, entry)
            self.assertIn(entry["headers"].get("accept-encoding", "identity"), ("identity", ""))
            self.assertFalse([n for n in names if n.startswith("x-amz-meta")])
        store.close()


class Aws(Scripted, NetCase):
    pass


class AwsWithToken(Scripted, NetCase):
    token = TOKEN
    rounds = 1


class LikeRadosgw(Scripted, NetCase):
    personality, rounds = "radosgw", 1


class LikeHuggingFace(Scripted, NetCase):
    personality, rounds = "huggingface", 1


@unittest.skipUnless(net_case.has_radosgw(), "radosgw is not installed: tools/setup does that")
class RealRadosgw(Place, NetCase):
    def prepare(self):
        self.bucket = f"store-{os.getpid()}-{Place.number}"
        self.client = self.rados.client(self.bucket)
        self.environment = client_environment(self.rados.endpoint, self.rados.keys)

    def uploads(self):
        return self.client.uploads()


if __name__ == "__main__":
    net_case.main(with_radosgw=net_case.has_radosgw())
