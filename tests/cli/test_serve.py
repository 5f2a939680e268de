#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A directory's runs over HTTP, for followers and collectors: test_serve.py ULPSYNC [unittest arguments]."""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

from cli_case import main, run
from run_case import BUSY, NAME, NOT_FOUND, USAGE
from serve_case import ServeCase, read_answer

FILE_KIND = 25
IMMUTABLE = "public, max-age=31536000, immutable"


class Verb(ServeCase):
    def test_says_where_and_ends_well(self):
        self.store.mkdir()
        process = self.start("serve", self.store, "--listen", "127.0.0.1:0", stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        self.assertRegex(line, r"^serving \S+/store on http://127\.0\.0\.1:[1-9]\d*\n$")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.serve()
            self.wait_until_it_listens(self.server, number)
            self.server.send_signal(number)
            self.assertEqual(self.server.wait(30), 0)
        self.assertIsNone(process.poll())

    def test_addresses(self):
        self.store.mkdir()
        for wrong in ("", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "[::1", "[::1]",
                      "::1:80", "127.0.0.1:-1", "[]:80", "no.such.host.invalid:80"):
            with self.subTest(wrong):
                self.fails(USAGE, wrong, "serve", self.store, "--listen", wrong)
        self.serve()
        self.fails(BUSY, "in use", "serve", self.store, "--listen", f"127.0.0.1:{self.port}")
        self.assertRegex(self.url, rf"^http://127\.0\.0\.1:{self.port}$")
        if socket.has_ipv6 and pathlib.Path("/proc/net/if_inet6").exists():
            process = self.start("serve", self.store, "--listen", "[::1]:0", "--json", stdout=subprocess.PIPE, text=True)
            line = process.stdout.readline()
            if line:  # a machine may have the file and no loopback
                self.assertRegex(json.loads(line)["url"], r"^http://\[::1\]:\d+$")

    def test_few_files(self):
        """Where the system allows few open files there are fewer connections; who asks for more is told."""
        self.store.mkdir()
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))}
        process = self.start("serve", self.store, "--listen", "127.0.0.1:0", stdout=subprocess.PIPE, text=True, **limited)
        self.assertTrue(process.stdout.readline())
        self.fails(USAGE, "ulimit -n", "serve", self.store, "--connections", 1000, **limited)

    def test_directories(self):
        self.fails(NOT_FOUND, "there is no directory", "serve", self.dir / "nowhere")
        self.assertFalse((self.dir / "nowhere").exists(), "it only reads")
        (self.dir / "file").write_text("x")
        self.fails(FILE_KIND, "is no directory", "serve", self.dir / "file")
        self.fails(USAGE, "is no directory", "serve", "s3://bucket/prefix")
        self.store.mkdir()
        self.fails(NAME, "not the name of a run", "serve", self.store, "--run", "a/b")
        for option, wrong in (("--connections", 7), ("--connections", "x"), ("--patience", 0), ("--patience", "-1")):
            self.fails(USAGE, "", "serve", self.store, option, wrong)


class Served(ServeCase):
    """A run of three steps, served."""
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(4, 5000)
        for number, model in enumerate(self.models[:3]):
            self.publish(model, "--step", number * 10)

    def follow_web(self, out, *more, name="rl"):
        return self.json("follow", "--store", self.url, "--run", name, "--out", self.dir / out, "--once", *more)

    def record(self, number):
        return f"/rl/log/{number:020}"

    def parts(self):
        return sorted((self.store / "rl/part").rglob("*/*"))

    def part_path(self, part):
        return "/" + str(part.relative_to(self.store))


class Followers(Served):
    def test_follow(self):
        self.serve()
        told = self.follow_web("out")
        self.assertEqual((told["held_version"], told["held_step"]), (2, 20))
        self.assertEqual(self.current("out"), self.root(self.models[2]))
        self.publish(self.models[3], "--step", 30)
        told = self.follow_web("out")
        self.assertEqual((told["held_version"], told["fetched_patches"], told["fetched_anchors"]), (3, 1, 0))
        self.assertEqual(self.current("out"), self.root(self.models[3]))
        done = run("pull", "--store", self.url, "--run", "rl", "--version", 1, "--out", self.dir / "one")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.root(self.dir / "one"), self.root(self.models[1]))
        self.assertEqual(run("log", "--store", self.url, "--run", "rl", "--json").stdout,
                         run("log", "--store", self.store, "--run", "rl", "--json").stdout)
        done = run("follow", "--store", self.url, "--run", "other", "--out", self.dir / "none", "--once")
        self.assertEqual(done.returncode, 70, done.stderr)
        done = run("publish", self.models[3], "--store", self.url, "--run", "rl", "--state", self.dir / "s", "--step", 40)
        self.assertNotEqual(done.returncode, 0, "nothing can be written")
        self.stop_server()

    def test_only_one_run(self):
        self.publish(self.models[0], "--step", 1, name="secret", state="state2")
        self.serve("--run", "rl")
        self.assertEqual(self.ask(self.record(1)).code, 200)
        self.assertEqual(self.ask(f"/secret/log/{1:020}").code, 404)

    def test_many_at_once_while_it_grows(self):
        """Eight followers stay while a publisher goes on; all end with its root."""
        models, steps = self.make_steps(8, 20_000, folder=self.dir), 8
        self.store = self.dir / "grows"
        self.publish(models[0], "--step", 0, state="grows-state")
        self.serve()
        followers = [self.start("follow", "--store", self.url, "--run", "rl", "--out", self.dir / f"out{i}", "--poll", 20,
                                "--json", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(8)]
        for number in range(1, steps):
            self.publish(models[number], "--step", number, state="grows-state")
        wanted = self.root(models[steps - 1])

        def version(i):
            try:
                return os.readlink(self.dir / f"out{i}" / "current")
            except OSError:
                return ""
        self.wait_for(lambda: all(re.search(rf"\b0*{steps - 1}\b", version(i)) for i in range(8)), 120)
        for i, follower in enumerate(followers):
            self.wait_until_it_listens(follower, signal.SIGTERM)
            follower.send_signal(signal.SIGTERM)
            self.assertEqual(follower.wait(60), 0)
            self.assertEqual(self.current(f"out{i}"), wanted)
        figures = self.metrics()
        self.assertGreater(figures["ulpsync_serve_requests_total", ("code", "206")], 8 * steps)
        self.assertGreater(figures["ulpsync_serve_requests_total", ("code", "404")], 0)
        self.stop_server()

    def test_stops_amid_everything(self):
        """Connections that send, wait and idle do not keep it."""
        big = self.parts()[0]
        big.write_bytes(os.urandom(32 << 20))
        self.serve()
        idle, sending = self.connect(), self.connect()
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sending.sendall(f"GET {self.part_path(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertTrue(sending.recv(100))
        half = self.connect()
        half.sendall(b"GET /metri")
        asking = threading.Event()

        def ask_on():
            while not asking.is_set():
                try:
                    self.ask("/metrics")
                except OSError:
                    return
        threads = [threading.Thread(target=ask_on) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)  # while they ask
        try:
            self.stop_server()
        finally:
            asking.set()
            for thread in threads:
                thread.join()
        self.assertEqual(idle.recv(1), b"")


class Objects(Served):
    def setUp(self):
        super().setUp()
        self.serve()
        self.part = max(self.parts(), key=lambda path: path.stat().st_size)
        self.data = self.part.read_bytes()
        self.path = self.part_path(self.part)

    def test_parts_last_and_records_do_not(self):
        answer = self.ask(self.path)
        self.assertEqual((answer.code, answer.body), (200, self.data))
        self.assertEqual(hashlib.sha256(answer.body).hexdigest(), self.part.name)
        self.assertEqual(answer.headers["cache-control"], IMMUTABLE)
        self.assertEqual(answer.headers["etag"], f'"{self.part.name}"')
        self.assertEqual(answer.headers["content-length"], str(len(self.data)))
        self.assertEqual(answer.headers["accept-ranges"], "bytes")
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        record = self.ask(self.record(3))
        self.assertEqual((record.code, record.body), (200, (self.store / self.record(3)[1:]).read_bytes()))
        self.assertEqual(record.headers["cache-control"], "no-store")
        self.assertNotIn("etag", record.headers)
        missing = self.ask(self.record(4))
        self.assertEqual((missing.code, missing.headers["cache-control"]), (404, "no-store"))
        self.assertEqual(self.ask(self.record(4), If_None_Match="*").code, 404)

    def test_head(self):
        for path, length in ((self.path, len(self.data)), (self.record(1), (self.store / self.record(1)[1:]).stat().st_size)):
            answer = self.ask(path, "HEAD")
            self.assertEqual((answer.code, answer.body, answer.headers["content-length"]), (200, b"", str(length)))
        answer = self.ask(self.path, "HEAD", Range="bytes=5-6")
        self.assertEqual((answer.code, answer.headers["content-length"]), (200, str(len(self.data))), "ranges are of GET")
        self.assertEqual(self.ask(self.record(9), "HEAD").code, 404)
        connection = self.connect()  # nothing of a body comes in between
        with connection.makefile("rb") as stream:
            for _ in range(3):
                connection.sendall(f"HEAD {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                self.assertEqual(read_answer(stream, head=True).code, 200)
            connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            self.assertEqual(read_answer(stream).body, self.data)

    def test_ranges(self):
        total = len(self.data)
        for asked, first, last in (("0-0", 0, 0), ("0-99", 0, 99), (f"{total - 1}-{total - 1}", total - 1, total - 1),
                                   ("100-", 100, total - 1), ("-1", total - 1, total - 1), ("-100", total - 100, total - 1),
                                   (f"-{total * 2}", 0, total - 1), (f"5-{total * 9}", 5, total - 1),
                                   ("0-99999999999999999999999999", 0, total - 1), ("000-0004", 0, 4)):
            with self.subTest(asked):
                answer = self.ask(self.path, Range=f"bytes={asked}")
                self.assertEqual(answer.code, 206)
                self.assertEqual(answer.headers["content-range"], f"bytes {first}-{last}/{total}")
                self.assertEqual(answer.body, self.data[first:last + 1])
                self.assertEqual(answer.headers["cache-control"], IMMUTABLE)

    def test_ranges_that_there_are_not(self):
        total = len(self.data)
        for asked in (f"{total}-", f"{total}-{total + 5}", "-0", "99999999999999999999999999-", f"{2 ** 64}-{2 ** 64 + 1}"):
            with self.subTest(asked):
                answer = self.ask(self.path, Range=f"bytes={asked}")
                self.assertEqual((answer.code, answer.headers["content-range"]), (416, f"bytes */{total}"))
        for asked in ("bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "bytes=1-2,4-5", "bytes=0x1-2", "bytes 0-1", "lines=0-1",
                      "bytes=0-1;", "bytes=1", "bytes=--1", "bytes=+1-2", "bytes= 0-1", "bytes=0-1-2"):
            with self.subTest(asked):
                self.assertEqual(self.ask(self.path, Range=asked).code, 200, "what makes no sense is not there")
        self.part.write_bytes(b"")
        self.assertEqual(self.ask(self.path).body, b"")
        self.assertEqual(self.ask(self.path, Range="bytes=0-").code, 416)
        self.assertEqual(self.ask(self.path, Range="bytes=-5").code, 416)

    def test_conditions(self):
        tag = f'"{self.part.name}"'
        for value in (tag, f"W/{tag}", f'"x", {tag}'):
            answer = self.ask(self.path, If_None_Match=value)
            self.assertEqual((answer.code, answer.body, answer.headers["etag"]), (304, b"", tag))
        for value in ('"x"', self.part.name, tag[:-2] + '"', '"'):
            self.assertEqual(self.ask(self.path, If_None_Match=value).code, 200)
        self.assertEqual(self.ask(self.path, Range="bytes=0-1", If_Range=tag).code, 206)
        for value in ('"x"', "Sat, 29 Oct 1994 19:43:31 GMT", f"W/{tag}", tag + "x"):
            self.assertEqual(self.ask(self.path, Range="bytes=0-1", If_Range=value).code, 200)
        self.assertEqual(self.ask(self.record(1), Range="bytes=0-1", If_Range=tag).code, 200, "records have no tags")

    def test_long_objects_take_no_memory(self):
        """Some megabytes beside a part of 96 MiB that eight take at a time, and every byte of it."""
        size = 96 << 20
        with open(self.part, "wb") as file:
            for number in range(size >> 20):
                file.write(number.to_bytes(4, "little") * (1 << 18))
        wanted = hashlib.sha256(self.part.read_bytes()).hexdigest()

        def fetch(_):
            digest = hashlib.sha256()
            with self.connect() as connection, connection.makefile("rb") as stream:
                connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                while stream.readline().strip():
                    pass
                left = size
                while left:
                    data = stream.read(min(left, 1 << 20))
                    digest.update(data)
                    left -= len(data) or self.fail("it ended too early")
            return digest.hexdigest()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(set(pool.map(fetch, range(8))), {wanted})
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        peak = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) >> 10
        if not os.environ.get("ULPSYNC_TEST_SANITIZED"):
            self.assertLess(peak, 64, "MiB")

    def test_an_object_that_changes_is_not_sent_on(self):
        size = 64 << 20  # more than there is room for on the way
        self.part.write_bytes(bytes(size))
        connection = self.connect()
        connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = len(connection.recv(1000))
        os.truncate(self.part, 1000)
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(1 << 20):
                got += len(data)
        self.assertLess(got, size, "the client sees that something is missing")
        self.assertEqual(self.ask(self.record(1)).code, 200)


class Hostile(Served):
    def setUp(self):
        super().setUp()
        (self.store / "README").write_text("not of a run")
        (self.store / "trainer.key").write_text("secret")
        (self.store / "rl/private").write_text("secret")
        (self.store / "rl/log/notes").write_text("secret")
        (self.dir / "secret").write_text("secret")
        log = self.store / "rl/log"
        os.symlink(self.dir / "secret", log / f"{50:020}")
        os.mkfifo(log / f"{51:020}")
        os.mkdir(log / f"{52:020}")
        os.symlink(self.store / "rl", self.store / "link")
        (log / f".{53:020}").write_text("secret")
        os.symlink("/", self.store / "rl/part" / f"{9:020}")

    def test_nothing_but_objects(self):
        self.serve()
        number, digest = f"{1:020}", "a" * 64
        paths = ["/README", "/trainer.key", "/rl", "/rl/", "/rl/log", "/rl/log/", "/rl/private", "/rl/log/notes", "/link",
                 f"/link/log/{number}", f"/rl/log/{50:020}", f"/rl/log/{51:020}", f"/rl/log/{52:020}", f"/rl/log/.{53:020}",
                 f"/rl/log/{number}/", f"/rl/log/{number}0", f"/rl/log/{number[1:]}", f"/rl//log/{number}", f"//rl/log/{number}",
                 f"/./rl/log/{number}", f"/../rl/log/{number}", f"/rl/../rl/log/{number}", f"/rl/log/../log/{number}",
                 f"/rl/log/%2e%2e/log/{number}", f"/%72l/log/{number}", f"/rl%2flog%2f{number}", f"/rl/log/{number}%00",
                 "/../secret", "/..%2fsecret", "/%2e%2e/secret", "/..%252fsecret", "/....//secret", "/..\\secret", "/%c0%ae%c0%ae/secret",
                 "/rl/part/" + number, f"/rl/part/{number}/{digest}", f"/rl/part/{number}/{digest.upper()}",
                 f"/rl/part/{number}/{digest[1:]}", f"/rl/part/{9:020}/{digest}", f"/rl/part/{number}/../{number}/{digest}",
                 f"/.rl/log/{number}", f"/{'x' * 201}/log/{number}", "/" + "x/" * 1000, "/" + "x" * 5000, "/%", "/%zz", "/~", "/~/",
                 "/~/run/", "/~/run/..", "/~/run/../../secret", "/~/figures/", "/~/run/rl/x", "/metrics/", "/metricsx", "/-/",
                 "http://other/rl", "*", "rl/log/" + number]
        for path in paths:
            with self.subTest(path[:100]):
                answer = self.send_raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode("utf-8"))
                self.assertIn(answer.code, (400, 404))
                self.assertNotIn(b"secret", answer.body)
                self.assertNotIn(str(self.dir).encode(), answer.body)
        self.assertEqual(self.ask(f"/rl/log/{number}").code, 200)

    def test_methods_and_bodies(self):
        self.serve()
        path = self.record(1)
        before = sorted(path for path in self.store.rglob("*"))
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X" * 50):
            answer = self.send_raw(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello".encode())
            self.assertEqual((answer.code, answer.headers.get("allow")), (405, "GET, HEAD"), method)
        for head in ("Content-Length: 5", "Content-Length: 99999999999999", "Transfer-Encoding: chunked"):
            answer = self.send_raw(f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\nhello".encode())
            self.assertIn(answer.code if answer else 400, (400, 413), head)
        self.assertEqual(self.send_raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()).code, 200)
        self.assertEqual(sorted(path for path in self.store.rglob("*")), before)

    def test_heads_that_are_none(self):
        self.serve("--patience", "2")
        good = f"GET {self.record(1)} HTTP/1.1\r\nHost: x\r\n".encode()
        for data in (good + b"X: " + b"a" * 100_000 + b"\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                     good + b"".join(b"X%d: y\r\n" % i for i in range(20_000)) + b"\r\n", good + b"X" * 100_000 + b"\r\n\r\n"):
            answer = self.send_raw(data)
            self.assertIn(answer.code if answer else 431, (400, 413, 414, 431))
        for data in (b"\r\n\r\n\r\n", b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe\xfd\r\n\r\n", os.urandom(4000),
                     b"GET / HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            connection = self.connect()
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while True:
                try:
                    if not connection.recv(65536):
                        break
                except ConnectionError:
                    break
        for value in ("bytes=" + "9" * 5000 + "-", "bytes=" + "0-0," * 3000, '"' * 9000):
            self.assertEqual(self.ask(self.record(1), Range=value).code in (200, 416), True)
            self.assertEqual(self.ask(self.part_path(self.parts()[0]), If_None_Match=value, If_Range=value).code, 200)
        self.assertEqual(self.ask(self.record(1)).code, 200)

    def test_one_connection_for_many(self):
        self.serve()
        connection = self.connect()
        asked = [(f"GET {self.record(1)}", 200), ("GET /nothing", 404), ("GET /metrics", 200), (f"GET {self.record(2)}", 200)] * 25
        with connection.makefile("rb") as stream:
            for line, _ in asked:  # all of them before the first answer is read
                connection.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            for line, code in asked:
                self.assertEqual(read_answer(stream).code, code, line)

    def test_slow_clients(self):
        """Who drips a head, who takes nothing of an answer, who takes little, who says nothing: all are cut off."""
        big = self.parts()[0]
        big.write_bytes(bytes(64 << 20))
        self.serve("--patience", "1")
        silent, dripping, deaf, slow = (self.connect() for _ in range(4))
        for connection in (deaf, slow):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET {self.part_path(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        dripping.sendall(b"GET /metrics HTTP/1.1\r\n")

        for connection in (silent, dripping, slow):
            connection.settimeout(0.001)

        def go_on():
            """As slow ones do, for as long as they may."""
            with contextlib.suppress(OSError):
                dripping.sendall(b"X")
            with contextlib.suppress(OSError):
                slow.recv(100)
            return self.metrics()["ulpsync_serve_connections",] == 1  # ours
        self.wait_for(go_on)
        self.assertGreaterEqual(self.metrics()["ulpsync_serve_cut_connections_total",], 2)
        self.assertEqual(self.ask(self.record(1)).code, 200)

    def test_thousands_of_connections(self):
        """They come and stay, more than there are places; who asks is still answered."""
        self.serve("--connections", "200")
        crowd = []
        try:
            for number in range(2000):
                try:
                    crowd.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))
                    if number % 3:
                        crowd[-1].sendall(b"GET /metr")
                except OSError:
                    pass
                if number % 400 == 399:
                    self.assertEqual(self.ask(self.record(1)).code, 200)
                    self.assertLessEqual(self.metrics()["ulpsync_serve_connections",], 200)
        finally:
            for connection in crowd:
                connection.close()
        self.assertGreater(self.metrics()["ulpsync_serve_cut_connections_total",], 500)
        files = len(os.listdir(f"/proc/{self.server.pid}/fd"))
        self.assertLess(files, 300)
        self.stop_server()


class Metrics(Served):
    def test_figures_are_those_of_the_log(self):
        self.publish(self.models[0], "--step", 7, name="other_run-2", state="state2")
        for number, follower in enumerate(("worker-0", "worker-1")):
            self.follow(follower, "--tell", follower, *(["--version", 1] if number else []))
        self.serve()
        begun = time.time()
        figures, log = self.metrics(), self.log()
        newest, rl = log[-1], ("run", "rl")
        for name, member in (("version", "version"), ("step", "step"), ("epoch", "epoch"), ("elements", "elements"),
                             ("changed", "changed"), ("patch_bytes", "patch_bytes")):
            self.assertEqual(figures[f"ulpsync_head_{name}", rl], newest[member], name)
        self.assertAlmostEqual(figures["ulpsync_head_density", rl], newest["changed"] / newest["elements"], 12)
        self.assertAlmostEqual(figures["ulpsync_head_time_seconds", rl], newest["time_ms"] / 1000, 3)
        self.assertAlmostEqual(figures["ulpsync_head_age_seconds", rl], begun - newest["time_ms"] / 1000, delta=30)
        self.assertEqual(figures["ulpsync_versions", rl], 3)
        self.assertEqual(figures["ulpsync_run_readable", rl], 1)
        other = ("run", "other_run-2")
        self.assertEqual((figures["ulpsync_head_step", other], figures["ulpsync_versions", other]), (7, 1))
        self.assertNotIn(("ulpsync_head_density", other), figures, "of the first version there is none")
        for follower, version in (("worker-0", 2), ("worker-1", 1)):
            labels = (("follower", follower), rl)
            self.assertEqual(figures[("ulpsync_version", *labels)], version)
            self.assertEqual(figures[("ulpsync_step", *labels)], version * 10)
            self.assertEqual(figures[("ulpsync_lag_versions", *labels)], 2 - version)
            self.assertGreater(figures[("ulpsync_publish_to_active_seconds", *labels)], 0)
            self.assertGreater(figures[("ulpsync_told_fetched_bytes", *labels)], 0)
            self.assertLess(figures[("ulpsync_told_age_seconds", *labels)], 60)

    def test_a_new_step_and_the_server_itself(self):
        self.serve()
        self.assertEqual(self.metrics()["ulpsync_head_version", ("run", "rl")], 2)
        before = self.metrics()
        part = self.parts()[0]
        for _ in range(3):
            self.ask(self.part_path(part))
        self.ask(self.part_path(part), Range="bytes=0-9")
        self.ask(self.part_path(part), "HEAD")
        self.ask("/nothing")
        self.ask("/nothing", "POST")
        after = self.metrics()

        def more(code):
            key = ("ulpsync_serve_requests_total", ("code", code))
            return after.get(key, 0) - before.get(key, 0)
        self.assertEqual([more(code) for code in ("200", "206", "404", "405")], [5, 1, 1, 1])  # one of them the page before
        self.assertGreaterEqual(after["ulpsync_serve_sent_bytes_total",] - before["ulpsync_serve_sent_bytes_total",],
                                3 * part.stat().st_size + 10)
        self.publish(self.models[3], "--step", 30)
        self.wait_for(lambda: self.metrics()["ulpsync_head_version", ("run", "rl")] == 3)

    def test_a_run_that_cannot_be_read(self):
        """One that is damaged is said to be, and is not in the way of the others."""
        self.publish(self.models[0], "--step", 7, name="whole", state="state2")
        (self.store / self.record(3)[1:]).write_bytes(b"damaged")
        (self.store / "empty/log").mkdir(parents=True)
        self.serve()
        figures = self.metrics()
        self.assertEqual(figures["ulpsync_run_readable", ("run", "rl")], 0)
        self.assertEqual(figures["ulpsync_head_version", ("run", "whole")], 0)
        self.assertNotIn(("ulpsync_run_readable", ("run", "empty")), figures)
        self.assertEqual(self.ask("/~/run/rl").code, 200)
        self.assertIn(b"cannot be read", self.ask("/~/figures/rl").body)
        self.assertEqual(self.ask("/~/run/whole").code, 200)


class Pages(Served):
    """What can be said of the pages without a browser; test_dashboard.py has one."""
    def test_a_page_allows_nothing_but_itself(self):
        self.serve()
        self.assertEqual(self.ask("/").code, 302)
        self.assertEqual(self.ask("/").headers["location"], "/~/run/rl")
        answers = [self.ask("/~/run/rl") for _ in range(2)]
        nonces = []
        for answer in answers:
            policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
            nonce = re.fullmatch(r"'nonce-([0-9a-f]{32})'", policy["script-src"])[1]
            self.assertEqual(policy, {"default-src": "'none'", "script-src": f"'nonce-{nonce}'", "style-src": f"'nonce-{nonce}'",
                                      "img-src": "'self'", "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'",
                                      "frame-ancestors": "'none'"})
            self.assertEqual(answer.headers["cache-control"], "no-store")
            text = answer.body.decode()
            for tag in re.findall(r"<(?:script|style)\b[^>]*>", text):
                self.assertIn(f'nonce="{nonce}"', tag)
            self.assertNotRegex(text, r"(?:src|href)=\"(?:https?:)?//", "nothing comes from elsewhere")
            self.assertNotRegex(text, r"\sstyle=|\son[a-z]+=", "the policy would not allow it")
            nonces.append(nonce)
        self.assertNotEqual(*nonces)

    def test_figures_have_tags(self):
        self.serve()
        answer = self.ask("/~/figures/rl")
        self.assertEqual((answer.code, answer.headers["cache-control"]), (200, "no-cache"))
        self.assertIn(b"<svg", answer.body)
        self.assertNotIn(b"<html", answer.body)
        same = self.ask("/~/figures/rl", If_None_Match=answer.headers["etag"])
        self.assertEqual((same.code, same.body), (304, b""))
        self.publish(self.models[3], "--step", 30)

        def changed():
            return self.ask("/~/figures/rl", If_None_Match=answer.headers["etag"]).code == 200
        self.wait_for(changed)
        self.assertEqual(self.ask("/~/figures/rl", "HEAD").body, b"")

    def test_a_run_that_is_deleted_is_not_shown(self):
        self.serve("--run", "rl")
        self.assertIn(b"Newest version", self.ask("/~/figures/rl").body)
        shutil.rmtree(self.store / "rl")
        self.wait_for(lambda: b"Newest version" not in self.ask("/~/figures/rl").body)
        self.assertIn(b"The run has no version yet.", self.ask("/~/run/rl").body)

    def test_runs_of_any_name(self):
        """Names that look like pages, and pages that look like names."""
        names = ["-", "run", "metrics", "log", "part", "x" * 200, "_.-"]
        for name in names:
            self.publish(self.models[0], "--step", 1, name=name, state=f"state-{name[:9]}")
        self.serve()
        listed = self.ask("/").body.decode()
        for name in names:
            self.assertIn(f'<a href="/~/run/{name}">{name}</a>', listed)
            self.assertEqual(self.ask(f"/~/run/{name}").code, 200, name)
            self.assertEqual(self.ask(f"/{name}/log/{1:020}").code, 200, name)
            self.assertIn(("ulpsync_head_version", ("run", name)), self.metrics())
        self.assertEqual(self.follow_web("far", name="run")["held_step"], 1)
        for path in ("/~/run/none", "/~/figures/none"):
            self.assertEqual(self.ask(path).code, 404)

    def test_thousands_of_runs(self):
        """Those that are not shown cost little: nobody waits for a minute."""
        for number in range(2500):
            log = self.store / f"run-{number:04}" / "log"
            log.mkdir(parents=True)
            (log / f"{1:020}").write_bytes(b"?")
        self.serve()
        began = time.monotonic()
        listed = self.ask("/").body.decode()
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(listed.count("<li>"), 256)
        self.assertIn("There are more", listed)

    def test_many_ask_for_pages(self):
        """Pages are made one after the other; nobody who fetches objects waits for them."""
        self.serve()

        def ask(number):
            path = ("/~/run/rl", "/metrics", "/~/figures/rl", self.record(1))[number % 4]
            return self.ask(path).code
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertEqual(set(pool.map(ask, range(400))), {200})
        self.stop_server()


if __name__ == "__main__":
    main()
