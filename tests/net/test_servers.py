#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The servers that other tests rely on: test_servers.py ULPSYNC DRIVER. The scripted one is compared with a real one
where that is installed, and its view of signatures with the examples that AWS has published."""
import datetime
import json
import subprocess
import sys
import threading
import unittest

import net_case
from net_case import KEYS, NetCase, S3Client, TOKEN

import sigv4
from behaviours import BEHAVIOURS

EXAMPLE_KEYS = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
EXAMPLE_TIME = datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc)


class Signatures(unittest.TestCase):
    """The examples of AWS's page on Signature Version 4 for S3."""

    def signed(self, method, path, query, headers, body):
        made = sigv4.sign(method, "examplebucket.s3.amazonaws.com", path, query, headers, body, EXAMPLE_KEYS, "us-east-1",
                          now=EXAMPLE_TIME)
        verifier = sigv4.Verifier(*EXAMPLE_KEYS, "us-east-1", clock=lambda: EXAMPLE_TIME)
        verifier.check(method, path, query, made, body)
        for at, (name, value) in enumerate(made):
            with self.assertRaises(sigv4.Refused, msg=name):
                verifier.check(method, path, query, made[:at] + [(name, value[:-1] + chr(ord(value[-1]) ^ 1))] + made[at + 1:], body)
            with self.assertRaises(sigv4.Refused, msg=name):
                verifier.check(method, path, query, made[:at] + made[at + 1:], body)
        for other in (("PUT" if method == "GET" else "GET", path, query, made, body), (method, path + "x", query, made, body),
                      (method, path, query + "&x=1", made, body), (method, path, query, made, body + b"x"),
                      (method, path, query, made + [("x-amz-acl", "public-read")], body)):
            with self.assertRaises(sigv4.Refused):
                verifier.check(*other)
        return dict(made)["authorization"].rpartition("=")[2]

    def test_get(self):
        self.assertEqual(self.signed("GET", "/test.txt", "", [("Range", "bytes=0-9")], b""),
                         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")

    def test_put(self):
        headers = [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")]
        self.assertEqual(self.signed("PUT", "/test%24file.text", "", headers, b"Welcome to Amazon S3."),
                         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")

    def test_list(self):
        self.assertEqual(self.signed("GET", "/", "max-keys=2&prefix=J", [], b""),
                         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
        self.assertEqual(self.signed("GET", "/", "lifecycle", [], b""),
                         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")


class Faithful(NetCase):
    """The same questions to every server, the same answers."""

    def clients(self):
        for personality in ("aws", "radosgw"):
            server = self.serve(personality=personality)
            yield personality, S3Client(server.endpoint, KEYS)
        if self.rados:
            yield "the real one", self.rados.client("faithful")

    def test_objects(self):
        for name, client in self.clients():
            with self.subTest(name):
                self.assertEqual(client.put("p/a", b"0123456789").status, 200)
                self.assertEqual([client.create("p/a", b"x").status, client.create("p/b", b"b").status], [412, 200])
                self.assertEqual(client.get("p/a").body, b"0123456789")
                head = client.head("p/a")
                self.assertEqual((head.status, head.headers["content-length"]), (200, "10"))
                for asked, status, body, span in (("bytes=2-4", 206, b"234", "bytes 2-4/10"), ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
                                                  ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=5-", 206, b"56789", "bytes 5-9/10")):
                    reply = client.get("p/a", ("Range", asked))
                    self.assertEqual((reply.status, reply.body, reply.headers["content-range"]), (status, body, span))
                self.assertEqual(client.get("p/a", ("Range", "bytes=10-20")).status, 416)
                missing = client.get("p/none")
                self.assertEqual((missing.status, missing.code), (404, "NoSuchKey"))
                self.assertEqual(client.delete("p/none").status, 204)
                self.assertEqual(client.delete("p/a").status, 204)
                self.assertEqual(client.keys_below("p/"), ["p/b"])

    def test_listing(self):
        names = sorted(f"l/{i:03}" for i in range(25))
        for name, client in self.clients():
            with self.subTest(name):
                for key in names:
                    client.put(key, key.encode())
                client.put("m/other", b"")
                self.assertEqual(client.keys_below("l/"), names)
                page = client.list("l/", max_keys=10, start_after="l/004")
                self.assertEqual((page.texts("Key"), page.texts("IsTruncated"), page.texts("Size")), (names[5:15], ["true"], ["5"] * 10))
                rest = client.list("l/", max_keys=10, continuation_token=page.texts("NextContinuationToken")[0])
                self.assertEqual(rest.texts("Key"), names[15:])

    def test_multipart(self):
        big = bytes(5 << 20)
        for name, client in self.clients():
            with self.subTest(name):
                upload = client.begin("big")
                tags = [client.part("big", upload, n, data).headers["etag"] for n, data in ((1, big), (2, b"end"))]
                self.assertEqual(client.get("big").status, 404)
                self.assertIn(("big", upload), client.uploads())
                self.assertEqual(client.complete("big", upload, list(enumerate(tags, 1))).status, 200)
                self.assertEqual(client.get("big").body, big + b"end")
                upload = client.begin("big2")
                tag = client.part("big2", upload, 1, b"small").headers["etag"]
                tag2 = client.part("big2", upload, 2, b"end").headers["etag"]
                self.assertEqual(client.complete("big2", upload, [(1, tag), (2, tag2)]).status, 400)
                self.assertEqual(client.complete("big2", upload, [(1, '"' + "0" * 32 + '"')]).status, 400)
                self.assertEqual(client.abort("big2", upload).status, 204)
                self.assertEqual(client.uploads(), [])

    def test_signatures(self):
        for name, client in self.clients():
            with self.subTest(name):
                client.put("s", b"1")
                wrong = S3Client("http://" + client.host, (client.keys[0], "wrong"), bucket=client.bucket)
                self.assertEqual(wrong.get("s").status, 403)
                unsigned = wrong.ask("GET", "s", signed=[("host", client.host)])
                self.assertEqual(unsigned.status, 403)

    def test_one_creates(self):
        for name, client in self.clients():
            with self.subTest(name):
                seen = []
                threads = [threading.Thread(target=lambda i=i: seen.append(client.create("race", b"%d" % i).status)) for i in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sorted(seen), [200] + [412] * 7)


class Scripted(NetCase):
    def test_rules_and_log(self):
        server = self.serve()
        client = S3Client(server.endpoint, KEYS)
        server.rule("status", operation="Put", key="a/*", nth="2-3", status=503)
        self.assertEqual([client.put("a/b", b"x").status for _ in range(4)], [200, 503, 503, 200])
        self.assertEqual(client.put("b/b", b"x").status, 200)
        seen = server.requests("Put")
        self.assertEqual([e["rule"] for e in seen], [None, "status", "status", None, None])
        self.assertEqual([e["status"] for e in seen], [200, 503, 503, 200, 200])
        self.assertEqual(len({e["connection"] for e in seen}), 5)
        self.assertEqual({e["headers"]["authorization"] for e in seen}, {"(hidden)"})

    def test_token(self):
        server = self.serve(token=TOKEN)
        self.assertEqual(S3Client(server.endpoint, KEYS, token=TOKEN).put("a", b"").status, 200)
        self.assertEqual(S3Client(server.endpoint, KEYS, token="other").put("a", b"").status, 403)
        self.assertEqual(S3Client(server.endpoint, KEYS).put("a", b"").status, 400)

    def test_huggingface(self):
        server = self.serve(personality="huggingface")
        client = S3Client(server.endpoint, KEYS)
        client.put("a", b"0123", ("x-amz-meta-b", "c"))
        reply = client.get("a", ("Range", "bytes=1-2"))
        self.assertEqual(reply.status, 302)
        self.assertNotIn("x-amz-meta-b", client.head("a").headers)
        elsewhere = S3Client("http://" + reply.headers["location"].split("/")[2], KEYS, bucket="cdn")
        self.assertEqual(elsewhere.get("a").status, 403)
        found = elsewhere.ask("GET", "a", signed=[("host", elsewhere.host), ("range", "bytes=1-2")])
        self.assertEqual((found.status, found.body), (206, b"12"))
        self.assertEqual(client.ask("GET").status, 501)

    def test_as_a_program(self):
        process = self.start(sys.executable, net_case.HERE / "servers" / "s3_server.py", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        endpoint = json.loads(process.stdout.readline())["endpoint"]
        self.assertEqual(S3Client(endpoint, KEYS).put("a", b"1").status, 200)
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)

    def test_there_are_enough(self):
        self.assertGreaterEqual(len(BEHAVIOURS), 40)
        for function in BEHAVIOURS.values():
            self.assertTrue(function.__name__)


if __name__ == "__main__":
    net_case.main(with_radosgw=net_case.has_radosgw())
