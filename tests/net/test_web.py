#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores on web servers, which are only read: test_web.py ULPSYNC DRIVER. Servers with and without ranges, with and
without lengths, that point elsewhere, that compress."""
import http.server
import pathlib
import re
import threading
import unittest

import net_case
from net_case import Driver, NetCase

UNSUPPORTED, NOT_FOUND, IO, PERMISSION = 13, 20, 24, 22
DATA = bytes(range(251)) * 400
PART = "rl/part/" + "ab" * 32


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ranges, lengths, compresses, head = True, True, False, True
    heard, objects, elsewhere = None, None, None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        if not self.head:
            return self.reply(405, [], b"")
        self.do_GET()

    def do_GET(self):
        self.heard.append((self.command, self.path, dict(self.headers)))
        if self.elsewhere and not self.path.startswith("/cdn"):
            return self.reply(302, [("Location", self.elsewhere + "/cdn" + self.path)], b"")
        data = self.objects.get(self.path.removeprefix("/cdn"))
        if data is None:
            return self.reply(404, [], b"<html>not here</html>")
        if self.compresses:
            return self.reply(200, [("Content-Encoding", "gzip")], data)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if self.ranges else None
        if not asked:
            return self.reply(200, [], data)
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if first >= len(data):
            return self.reply(416, [("Content-Range", f"bytes */{len(data)}")], b"")
        return self.reply(206, [("Content-Range", f"bytes {first}-{last}/{len(data)}")], data[first:last + 1])

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.lengths:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.lengths:
            self.wfile.write(body)
        else:
            for at in range(0, len(body), 1000):
                piece = body[at:at + 1000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")


class Web(NetCase):
    def web(self, **more):
        heard, objects = [], {"/s/a": DATA, "/s/empty": b"", "/s/rl/log/1": b"record", f"/s/{PART}": DATA}
        kind = type("Kind", (Handler,), {"heard": heard, "objects": objects, **more})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.environment = net_case.client_environment("http://127.0.0.1:1")
        server.heard, server.objects, server.url = heard, objects, f"http://127.0.0.1:{server.server_port}"
        return server

    def open(self, server):
        store = Driver(self, server.url + "/s/")
        self.assertEqual(store.opened["status"], 0, store.opened)
        self.addCleanup(store.close)
        return store

    def read(self, store, key, offset, room):
        answer = store("read", key, offset, room, self.dir / "out")
        self.assertEqual(answer["status"], 0, answer["message"])
        return (self.dir / "out").read_bytes(), answer["total"]

    def check_reads(self, server):
        store = self.open(server)
        for offset, room in ((0, 200_000), (0, len(DATA)), (0, 10), (1000, 500), (len(DATA) - 1, 5), (len(DATA), 5), (10 ** 9, 5), (5, 0)):
            with self.subTest(offset=offset, room=room):
                self.assertEqual(self.read(store, "a", offset, room), (DATA[offset:offset + room], len(DATA)))
        self.assertEqual(self.read(store, "empty", 0, 10), (b"", 0))
        self.assertEqual(store("stat", "a")["bytes"], len(DATA))
        self.assertEqual(store("stat", "empty")["bytes"], 0)
        for act in (("read", "none", 0, 10, self.dir / "out"), ("stat", "none")):
            self.assertEqual(store(*act)["status"], NOT_FOUND)

    def test_ranges(self):
        self.check_reads(self.web())

    def test_no_ranges(self):
        self.check_reads(self.web(ranges=False))

    def test_no_lengths(self):
        self.check_reads(self.web(lengths=False))

    def test_neither(self):
        self.check_reads(self.web(ranges=False, lengths=False))

    def test_no_head(self):
        self.check_reads(self.web(head=False))

    def test_elsewhere(self):
        other = self.web()
        server = self.web(elsewhere=other.url)
        other.objects.update(server.objects)
        self.check_reads(server)
        for _, _, headers in other.heard + server.heard:
            self.assertFalse({name.lower() for name in headers} & {"authorization", "x-amz-security-token", "x-amz-date", "cookie"})

    def test_compressed(self):
        store = self.open(self.web(compresses=True))
        answer = store("read", "a", 0, 10, self.dir / "out")
        self.assertEqual(answer["status"], IO)
        self.assertIn("compressed", answer["message"])

    def test_only_reading(self):
        store = self.open(self.web())
        (self.dir / "data").write_bytes(b"x")
        for act in (("create", "n", self.dir / "data"), ("put", "n", self.dir / "data", 1), ("list", "-", "-", 10), ("remove", "a")):
            answer = store(*act)
            self.assertEqual(answer["status"], UNSUPPORTED, act)
            self.assertIn("s3://", answer["message"])

    def test_records_are_not_from_a_cache(self):
        server = self.web()
        store = self.open(server)
        self.read(store, "rl/log/1", 0, 100)
        self.read(store, PART, 0, 100)
        record, part = [headers for command, path, headers in server.heard if command == "GET"]
        self.assertEqual(record["Cache-Control"], "no-cache")
        self.assertNotIn("Cache-Control", part)
        self.assertEqual(part["Accept-Encoding"], "identity")


if __name__ == "__main__":
    net_case.main()
