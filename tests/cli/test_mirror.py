#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies of a run in another store, and what a store is fit for: test_mirror.py ULPSYNC [unittest arguments]."""
import json
import pathlib
import resource
import signal
import subprocess
import time

from cli_case import main, run
from run_case import FETCHED, FROZEN, NO_RUN, RECORD, STORED, USAGE, RunCase


class MirrorCase(RunCase):
    def setUp(self):
        super().setUp()
        self.copy = self.dir / "copy"
        self.models = self.make_steps(4, 5000)

    def words(self, *more):
        return ["mirror", self.store, self.copy, "--run", "rl", *more]

    def mirror(self, *more):
        return self.json(*self.words(*more))

    def stay(self, *more):
        return self.start(*self.words("--follow", "--poll", 20, "--json", *more), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)

    def stop(self, process):
        self.wait_until_it_listens(process, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)
        return process.stderr.read()

    def root_of_copy(self):
        """What somebody has who follows the copy."""
        self.json("follow", "--store", self.copy, "--run", "rl", "--out", self.dir / "far", "--once")
        return self.current("far")

    def parts_of_copy(self):
        return sorted(path.name for path in (self.copy / "rl/part").rglob("*") if path.is_file())

    def names(self):
        return sorted(path.name for path in self.parts())


class Mirror(MirrorCase):
    def test_once(self):
        made = [self.publish(model, "--step", number) for number, model in enumerate(self.models[:2])]
        told = self.mirror()
        self.assertEqual(set(told), RECORD | FETCHED | STORED | {"fresh"})
        self.assertEqual((told["version"], told["root"], told["fresh"]), (1, made[1]["root"], True))
        self.assertGreater(told["stored_bytes"], 0)
        self.assertEqual(self.root_of_copy(), self.root(self.models[1]))
        told = self.mirror()
        self.assertEqual((told["fresh"], told["stored_objects"]), (False, 0))
        self.assertRegex(run(*self.words()).stdout, r"^version 1, step 1: copied [0-9.]+ K?i?B in 0 objects\n$")

    def test_staying(self):
        process = self.stay()  # before there is a run
        for number in range(2):
            self.publish(self.models[number])
            self.assertEqual(json.loads(process.stdout.readline())["version"], number)
            self.assertEqual(self.root_of_copy(), self.root(self.models[number]))
        self.assertNotIn("still mirroring", self.stop(process))
        self.assertEqual(process.stdout.read(), "")

    def test_failures_are_said_once(self):
        self.publish(self.models[0])
        part, = self.parts()
        part.rename(self.dir / "kept")
        process = self.stay()
        self.assertIn("still mirroring", process.stderr.readline())
        time.sleep(0.3)
        (self.dir / "kept").rename(part)
        self.assertEqual(json.loads(process.stdout.readline())["version"], 0)
        self.assertNotIn("still mirroring", self.stop(process))
        self.assertEqual(self.root_of_copy(), self.root(self.models[0]))

    def test_refusals(self):
        self.fails(NO_RUN, "rl", *self.words())
        self.publish(self.models[0])
        self.fails(USAGE, "--run", "mirror", self.store, self.copy)
        self.fails(USAGE, "poll", *self.words("--poll", 0))
        self.fails(USAGE, "grace", *self.words("--grace", "x"))
        time.sleep(0.01)
        self.fails(FROZEN, "", *self.words("--max-age", "0.001"))


class Delete(MirrorCase):
    def setUp(self):
        super().setUp()
        for number in range(18):
            self.publish(self.models[number % 4], "--step", number, "--anchor-every", 8)

    def announce(self):
        """The copy knows then that some of its parts may go, and has all of them."""
        self.mirror()
        before = self.parts_of_copy()
        self.json("gc", *self.place(), "--keep-anchors", 1, "--now")
        self.assertLess(set(self.names()), set(before))
        self.assertTrue(self.mirror()["fresh"])
        self.assertEqual(self.parts_of_copy(), before)
        return before

    def test_at_once(self):
        before = self.announce()
        self.assertFalse(self.mirror("--delete")["fresh"])  # not before an hour has passed
        self.assertEqual(self.parts_of_copy(), before)
        self.assertFalse(self.mirror("--delete", "--grace", 0)["fresh"])
        self.assertEqual(self.parts_of_copy(), self.names())
        self.assertEqual(run("fsck", self.copy).returncode, 0)
        self.assertEqual(self.root_of_copy(), self.root(self.models[17 % 4]))

    def test_when_the_grace_has_run_out(self):
        """Though nothing new comes."""
        before = self.announce()
        announced = self.log("-n", 1)[0]["time_ms"] / 1000
        process = self.stay("--delete", "--grace", 3)
        process.stdout.readline()
        if time.time() < announced + 2.5:
            self.assertEqual(self.parts_of_copy(), before)
        self.wait_for(lambda: self.parts_of_copy() == self.names(), 20)
        self.assertGreaterEqual(time.time(), announced + 3)
        self.assertNotIn("still mirroring", self.stop(process))
        self.assertEqual(process.stdout.read(), "")


class StoreCheck(RunCase):
    PROMISES = {"writes", "reads_own", "ranges", "refuses_second", "one_of_many", "lists", "removes"}

    def test_a_directory(self):
        self.store.mkdir()
        told = self.json("store", "check", self.store)
        self.assertEqual(set(told), self.PROMISES | {"verdict", "why"})
        self.assertEqual({told[name] for name in self.PROMISES}, {True})
        self.assertEqual((told["verdict"], told["why"]), ("several publishers", ""))
        done = run("store", "check", self.store)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:-1]], ["yes"] * len(self.PROMISES))
        self.assertEqual(lines[-1], "fit for: several publishers")
        self.assertEqual([path for path in self.store.rglob("*") if path.is_file()], [])

    def test_refusals(self):
        file = self.dir / "file"
        file.write_text("no store")
        self.fails(25, "not a directory", "store", "check", file)
        self.assertEqual(file.read_text(), "no store")
        self.fails(USAGE, "store check", "store", "mend", self.dir)


class Secrets(RunCase):
    def test_no_core_of_who_signs(self):
        key, _ = self.make_key("key")
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        if not hard:
            self.skipTest("no core dumps here anyway")
        process = self.start("tend", *self.place(), "--state", self.dir / "tend", "--sign", key, "--poll", 20,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
        limits = pathlib.Path(f"/proc/{process.pid}/limits")
        if not limits.exists():
            self.skipTest("no /proc here")
        self.wait_for(lambda: " 0 " in [line for line in limits.read_text().splitlines() if "core file" in line][0], 20)
        self.wait_until_it_listens(process, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)


if __name__ == "__main__":
    main()
