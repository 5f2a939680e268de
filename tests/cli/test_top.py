#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live view of a run, on a terminal and in pipes: test_top.py ULPSYNC"""
import fcntl
import functools
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import cli_case
from cli_case import run
from run_case import IO, NO_RUN, UNSUPPORTED, USAGE, RunCase

ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[0m\x1b[?25h\x1b[?1049l"
# what a frame may be drawn with: home, clear, styles
DRAWN_WITH = re.compile(rb"\x1b\[(H|K|J|0m|1m|2m|31m|32m|33m)")
SPARKS = "▁▂▃▄▅▆▇█"


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, columns, rows, words, **environment):
        self.seen = b""
        ready, go = os.pipe()
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.read(ready, 1)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            os.execve(words[0], list(map(str, words)), {"TERM": "xterm", "PATH": os.environ["PATH"], **environment})
        self.status = None
        self.before = termios.tcgetattr(self.fd)
        os.write(go, b"!")
        os.close(ready)
        os.close(go)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:  # all ends are closed
                time.sleep(0.01)

    def frame(self):
        """The lines of the last frame that is complete, without styles."""
        frames = self.seen.split(b"\x1b[H")
        complete = [frame for frame in frames[1:] if b"\x1b[J" in frame]
        if not complete:
            return []
        text = DRAWN_WITH.sub(b"", complete[-1].split(b"\x1b[J")[0])
        return [line.strip("\r") for line in text.decode().split("\n")]

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("it took too long; last frame:\n" + "\n".join(self.frame()))
            self.read(0.05)

    def shows(self, text, seconds=20):
        self.wait_for(lambda: any(text in line for line in self.frame()), seconds)

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self, seconds=20):
        """The exit status, negative for a signal."""
        def ended():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return bool(pid)
        self.wait_for(ended, seconds)
        self.read(0.05)
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class TopCase(RunCase):
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(5)

    def publish_all(self, *more):
        for number, path in enumerate(self.models):
            self.publish(path, "--step", 10 * number, *more)

    def publish_telling(self):
        for number, path in enumerate(self.models):
            self.publish(path, "--step", 10 * number, "--tell", "trainer", "--note", f"kl={number}", "--note",
                         f"reward={number / 8}")
            self.follow("out", "--tell", "w-1")

    def top(self, columns=100, rows=30, *more, **environment):
        terminal = Terminal(columns, rows, [cli_case.ULPSYNC, "top", *self.place(), "--interval", 50, *more], **environment)
        self.addCleanup(terminal.close)
        return terminal


class InPipes(TopCase):
    def once(self, *more):
        done = run("top", *self.place(), "--once", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_all_of_it(self):
        self.publish_telling()
        text = self.once()
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"run rl   version 4   step 40 ")
        self.assertRegex(text, r"(?m)^reward +0\.5 ")
        self.assertRegex(text, r"(?m)^kl +4 ")
        self.assertRegex(text, r"(?m)^ +4 +40 .* 0\.5 ")
        self.assertRegex(text, r"(?m)^ +0 +0 .* whole ")
        self.assertRegex(text, r"(?m)^w-1 +4 +0 .* ms ")
        # the same where there is no terminal, without --once
        self.assertEqual(run("top", *self.place()).stdout.splitlines()[0][:20], text.splitlines()[0][:20])

    def test_json(self):
        self.publish_telling()
        log, story = self.log(), json.loads(self.once("--json"))
        self.assertEqual(len(story["steps"]), 5)
        for record, step in zip(log, story["steps"]):
            for key in ("version", "step", "epoch", "time_ms", "changed", "patch_bytes", "anchor_bytes"):
                self.assertEqual(step[key], record[key], key)
            self.assertEqual(step["notes"], {"kl": step["version"], "reward": step["version"] / 8})
            self.assertGreater(step["phases"]["commit_ms"] + step["phases"]["digest_ms"], 0)
        self.assertEqual(story["full_bytes"], log[0]["anchor_bytes"])
        self.assertAlmostEqual(story["steps"][4]["times_smaller"], log[0]["anchor_bytes"] / log[4]["patch_bytes"], 3)
        follower, = story["followers"]
        self.assertEqual((follower["name"], follower["version"], follower["lag"], follower["activations"]),
                         ("w-1", 4, 0, 5))

    def test_json_stays(self):
        self.publish(self.models[0])
        process = self.start("top", *self.place(), "--json", "--interval", 20, stdout=-1, text=True)
        self.assertEqual(json.loads(process.stdout.readline())["version"], 0)
        self.publish(self.models[1], "--step", 1, "--tell", "t", "--note", "reward=1")
        while not (story := json.loads(process.stdout.readline()))["steps"][-1]["told"]:
            pass
        self.assertEqual((story["version"], story["steps"][1]["notes"]), (1, {"reward": 1}))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def test_followers_come_and_go(self):
        """Whoever looks on for long remembers those that told last, and no more than so many."""
        self.publish_all()
        told = self.store / "rl" / "told"
        process = self.start("top", *self.place(), "--json", "--interval", 10, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        for life in (1, 2):
            aside = self.dir / f"told-{life}"
            for number in range(3000):
                folder = aside / f"w-{number}-{life}"
                folder.mkdir(parents=True)
                line = {"event": "follow", "held_version": 4, "told_ms": life * 5000 + number, "fresh": True,
                        "publish_to_active_ms": 1}
                (folder / "00000001").write_text(json.dumps(line) + "\n")
            if told.exists():
                told.rename(self.dir / "old")
            aside.rename(told)
            story = json.loads(process.stdout.readline())
        names = {follower["name"] for follower in story["followers"]}
        heard = [(number, 1) for number in range(1904, 3000)] + [(number, 2) for number in range(3000)]
        self.assertEqual(names, {f"w-{number}-{life}" for number, life in heard})

    def test_json_that_cannot_be_written(self):
        self.publish_all()
        with open("/dev/full", "w", encoding="ascii") as full:
            done = self.start("top", *self.place(), "--json", "--interval", 10, stdout=full)
            self.assertEqual(done.wait(60), IO)

    def test_without_tellings(self):
        self.publish_all()
        text = self.once()
        self.assertIn("--tell NAME", text)
        self.assertRegex(text, r"(?m)^density ")
        self.assertNotIn("reward ", text)
        self.assertEqual(json.loads(self.once("--json"))["followers"], [])

    def test_longer_than_it_remembers(self):
        """Only the newest records are read, and how large a full state is is still known."""
        folder = self.dir / "checkpoints"
        folder.mkdir()
        for number in range(270):
            os.link(self.models[number % 2], folder / f"step-{number}.safetensors")
        done = run("publish", folder, "--watch", "--once", "--settle", 0, *self.place(), "--state", self.dir / "state",
                   "--anchor-every", 100_000)
        self.assertEqual(done.returncode, 0, done.stderr)
        story, log = json.loads(self.once("--json")), self.log()
        self.assertGreater(len(log), 260)
        self.assertEqual([step["version"] for step in story["steps"]],
                         [record["version"] for record in log[-256:] if record["publishes"]])
        self.assertEqual(story["steps"][0]["full_bytes"], log[0]["anchor_bytes"])

    def test_refusals(self):
        self.assertEqual(run("top", *self.place("none"), "--once").returncode, NO_RUN)
        self.assertEqual(run("top", "--once").returncode, USAGE)
        self.assertEqual(run("top", *self.place(), "--interval", "0").returncode, USAGE)

    def test_hostile_tellings(self):
        self.publish_telling()
        hostile = [
            {"event": "publish", "version": 4, "notes": {"\x1b[31mred": 1, "a" * 40: 2, "<b>": 3, "reward": 1e300}},
            {"event": "publish", "version": 2**64 - 1, "notes": {"kl": -1e308}},
            {"event": "publish", "version": -1, "phases": {"encode_ms": 1e308}},
            {"event": "follow", "held_version": 10**30, "told_ms": 2**63, "fresh": True, "publish_to_active_ms": -5},
            {"event": "follow", "held_version": 2**64 - 1, "fetched_bytes": 2**64 - 1, "fresh": True},
            {"event": "\x1b]0;title\x07", "version": "\x1b[2J"},
        ]
        place = self.store / "rl" / "told" / "w-2"
        place.mkdir()
        text = "".join(json.dumps(line) + "\n" for line in hostile)
        text += '{"event":"publish","version":4,"notes":{"inf":1e999,"nan":null,"text":"5"}}\n\x1b[2J\n{"event":"fol'
        (place / "00000001").write_text(text)
        (self.store / "rl" / "told" / "\x1b[31m").mkdir()
        (self.store / "rl" / "told" / "\x1b[31m" / "00000001").write_text('{"event":"follow"}\n')
        shown = self.once()
        self.assertTrue(shown.isascii() and shown.replace("\n", "").isprintable(), ascii(shown))
        story = json.loads(self.once("--json"))
        self.assertEqual(set(story["steps"][4]["notes"]), {"kl", "reward"})
        self.assertEqual([follower["name"] for follower in story["followers"]], ["w-1", "w-2"])
        terminal = self.top()
        terminal.shows("w-2")
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        rest = DRAWN_WITH.sub(b"", terminal.seen.replace(ENTER, b"").replace(LEAVE, b""))
        self.assertNotIn(b"\x1b", rest)
        self.assertNotIn(b"\x07", rest)

    def tell(self, name, *lines):
        place = self.store / "rl" / "told" / name
        place.mkdir(parents=True)
        (place / "00000001").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def test_numbers_do_not_run_into_each_other(self):
        """A number that is too wide is cut, and says so; the widest that are usual are not."""
        self.publish(self.models[0], "--step", 2**64 - 1)
        self.tell("t", {"event": "publish", "version": 0, "fresh": True, "notes": {"reward": -1.7e308},
                        "phases": {"encode_ms": 6.6e6, "store_ms": 6.6e6}})
        self.assertRegex(self.once(), r"(?m)^ +0 1844674~ .* 110\.0 min 110\.0 min$")
        self.assertIn(f"step {2**64 - 1} ", self.once())

    def test_numbers_at_their_ends(self):
        self.publish_all()
        self.tell("t", *({"event": "publish", "version": version, "notes": {"reward": (-1) ** version * 1.7e308}}
                         for version in range(5)))
        follow = {"event": "follow", "held_version": 4, "told_ms": 2**64 - 1, "fresh": True}
        self.tell("w", {**follow, "publish_to_active_ms": 1.6e308}, {**follow, "publish_to_active_ms": 1.6e308},
                  {**follow, "publish_to_active_ms": None, "phases": {"fetch_ms": None}})
        shown = self.once()
        self.assertRegex(shown, r"(?m)^reward .* #_#_# ")
        self.assertRegex(shown, r"(?m)^w .* 0\.0 s +0$", "what is told from the future was just told")
        follower, = json.loads(self.once("--json"))["followers"]
        self.assertEqual(follower["publish_to_active_median_ms"], 1.6e308)
        self.assertEqual(follower["publish_to_active_ms"], 1.6e308, "null is no number")

    def test_a_store_that_cannot_be_listed(self):
        self.publish_telling()
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=self.store)
        handler.func.log_message = lambda *words: None
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        done = run("top", "--store", f"http://127.0.0.1:{server.server_port}", "--run", "rl", "--once")
        if done.returncode == UNSUPPORTED:
            self.skipTest("a build without libcurl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cannot be listed", done.stdout)
        self.assertRegex(done.stdout, r"version 4 ")


class OnTerminals(TopCase):
    def assert_restored(self, terminal):
        self.assertEqual(terminal.seen.count(ENTER), terminal.seen.count(LEAVE))
        self.assertTrue(terminal.seen.rindex(LEAVE) > terminal.seen.rindex(ENTER))
        self.assertEqual(termios.tcgetattr(terminal.fd), terminal.before)

    def test_it_fits(self):
        self.publish_telling()
        for columns, rows in ((80, 24), (120, 50), (40, 12), (10, 3)):
            terminal = self.top(columns, rows)
            terminal.shows("run rl")
            terminal.wait_for(lambda: terminal.seen.count(b"\x1b[J") > 2)
            frame = terminal.frame()
            self.assertLessEqual(len(frame), rows)
            self.assertLessEqual(max(map(len, frame)), columns, frame)
            if columns >= 80:
                self.assertTrue(any(line.startswith("w-1") for line in frame), frame)
                self.assertTrue(any(line.startswith("reward") for line in frame), frame)

    def test_a_terminal_that_does_not_know_its_size(self):
        self.publish_telling()
        terminal = self.top(0, 0)
        terminal.shows("run rl")
        self.assertLessEqual(len(terminal.frame()), 24)

    def test_resize(self):
        self.publish_telling()
        terminal = self.top(120, 40)
        terminal.shows("encode")
        terminal.resize(60, 20)
        terminal.wait_for(lambda: max(map(len, terminal.frame())) <= 60 and len(terminal.frame()) <= 20)
        terminal.resize(140, 40)
        terminal.shows("encode")
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_live(self):
        """From before the run begins."""
        self.store.mkdir()
        terminal = self.top()
        terminal.shows("waiting for the run")
        for number, path in enumerate(self.models):
            self.publish(path, "--step", number, "--tell", "trainer", "--note", f"reward={number}")
            terminal.shows(f"version {number}   step {number}")
            terminal.wait_for(lambda: any(re.match(rf"reward +{number}\b", line) for line in terminal.frame()))
        self.follow("out", "--tell", "w-7")
        terminal.shows("w-7")

    def test_a_run_that_begins_anew(self):
        self.publish_all()
        terminal = self.top()
        terminal.shows("version 4   step 40")
        os.rename(self.store / "rl", self.dir / "gone")
        self.publish(self.models[0], "--step", 7, state="other")
        terminal.shows("version 0   step 7")

    def test_every_end_restores_the_terminal(self):
        self.publish_all()
        ends = {"q": (b"q", 0), "ctrl-C": (b"\x03", 0), "TERM": (signal.SIGTERM, 0), "HUP": (signal.SIGHUP, 0),
                "INT": (signal.SIGINT, 0), "ABRT": (signal.SIGABRT, -signal.SIGABRT),
                "SEGV": (signal.SIGSEGV, -signal.SIGSEGV), "ctrl-backslash": (b"\x1c", -signal.SIGQUIT)}
        for name, (how, status) in ends.items():
            with self.subTest(name):
                terminal = self.top()
                terminal.shows("run rl")
                self.assertNotEqual(termios.tcgetattr(terminal.fd), terminal.before)
                if isinstance(how, bytes):
                    terminal.type(how)
                else:
                    os.kill(terminal.pid, how)
                self.assertEqual(terminal.end(), status)
                self.assert_restored(terminal)

    def test_suspended(self):
        """As a job of a shell, which says so, and gets the terminal back as it was."""
        self.publish_all()
        command = " ".join(map(str, [cli_case.ULPSYNC, "top", *self.place(), "--interval", 50]))
        terminal = Terminal(100, 30, ["/bin/sh", "-c", f"set -m; {command}; stty -a; echo suspended; read x; fg"])
        self.addCleanup(terminal.close)
        terminal.shows("run rl")
        terminal.type(b"\x1a")
        terminal.wait_for(lambda: b"suspended" in terminal.seen)
        self.assertLess(terminal.seen.index(LEAVE), terminal.seen.index(b"suspended"))
        self.assertRegex(terminal.seen, rb"[^-]icanon.*[^-]echo")
        terminal.type(b"\n")
        terminal.wait_for(lambda: terminal.seen.count(ENTER) == 2)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_nobody_to_suspend_it(self):
        """The system does not stop who nobody would wake."""
        self.publish_all()
        terminal = self.top()
        terminal.shows("run rl")
        os.kill(terminal.pid, signal.SIGTSTP)
        terminal.wait_for(lambda: terminal.seen.count(ENTER) == 2)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_characters_and_colours(self):
        self.publish_telling()
        fine = self.top(100, 30, LC_ALL="C.UTF-8")
        fine.shows("w-1")
        self.assertTrue(set("".join(fine.frame())) & set(SPARKS))
        self.assertIn(b"\x1b[32m", fine.seen)
        plain = self.top(100, 30, LC_ALL="C", NO_COLOR="1")
        plain.shows("w-1")
        self.assertTrue("".join(plain.frame()).isascii())
        self.assertNotRegex(plain.seen, rb"\x1b\[[0-9]+m(?!\x1b\[\?25h)")

    def test_once_and_dumb(self):
        self.publish_all()
        for more, environment in ((["--once"], {}), ([], {"TERM": "dumb"})):
            terminal = self.top(100, 30, *more, **environment)
            self.assertEqual(terminal.end(), 0)
            self.assertNotIn(ENTER, terminal.seen)
            self.assertIn(b"run ", terminal.seen)

    def test_a_failure_is_said_when_the_screen_is_gone(self):
        terminal = self.top(100, 30, "--run", "a/b")
        self.assertNotEqual(terminal.end(), 0)
        self.assertIn(b"not the name of a run", terminal.seen)
        self.assertGreater(terminal.seen.rindex(b"not the name"), terminal.seen.rfind(LEAVE))


if __name__ == "__main__":
    cli_case.main()
