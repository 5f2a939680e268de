#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Care of a run: long ways, deletion, keys: test_care.py ULPSYNC [unittest arguments]."""
import json
import signal
import subprocess
import time

from cli_case import main, run
from run_case import (KEY, NO_RUN, NOT_FOUND, PERMISSION, RECORD, SIGNATURE, STORED, UNREACHABLE, UNSIGNED, USAGE, RunCase)


class Tend(RunCase):
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(6)

    def publish_many(self, first, last, *more):
        for number in range(first, last):
            self.publish(self.models[number % 6], "--step", number, *more)

    def tend(self, *more):
        return self.json("tend", *self.place(), "--state", self.dir / "tend", "--once", *more)

    def test_a_long_way_is_taken(self):
        self.publish_many(0, 8)
        self.assertFalse(self.tend()["fresh"])  # seven steps are none
        self.publish_many(8, 10)
        self.follow("behind", "--version", 0)
        told = self.tend()
        self.assertTrue(told["fresh"])
        self.assertGreater(told["stored_bytes"], 0)
        self.assertLessEqual(RECORD | STORED | {"fresh", "phases"}, set(told))
        self.assertEqual((told["version"], told["ways"]), (9, 10))
        self.assertFalse(self.tend()["fresh"])
        seen = self.follow("behind")
        self.assertEqual((seen["held_version"], seen["fetched_patches"]), (9, 2))
        self.assertFalse(self.log()[-1]["publishes"])
        self.assertEqual(run("log", *self.place()).stdout.splitlines()[-1].split("  ")[-1].strip(), "same version")

    def test_staying(self):
        process = self.start("tend", *self.place(), "--state", self.dir / "tend", "--poll", 20, "--json",
                             stdout=subprocess.PIPE, text=True)  # before there is a run
        self.publish_many(0, 9)
        told = json.loads(process.stdout.readline())
        self.assertEqual((told["version"], told["fresh"]), (8, True))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 0)

    def test_in_words_and_refusals(self):
        self.fails(NO_RUN, "rl", "tend", *self.place(), "--state", self.dir / "tend", "--once")
        self.publish_many(0, 1)
        done = run("tend", *self.place(), "--state", self.dir / "tend", "--once")
        self.assertEqual(done.stdout, "version 0: nothing is due\n")
        self.publish_many(1, 9)
        done = run("tend", *self.place(), "--state", self.dir / "tend", "--once")
        self.assertRegex(done.stdout, r"^version 8: long ways of [0-9.]+ K?i?B were added\n$")
        self.fails(USAGE, "--state", "tend", *self.place(), "--once")
        self.fails(USAGE, "--run", "tend", "--store", self.store, "--state", self.dir / "tend")
        self.fails(USAGE, "poll", "tend", *self.place(), "--state", self.dir / "tend", "--poll", 0)


class Gc(RunCase):
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(4)
        for number in range(18):
            self.publish(self.models[number % 4], "--step", number, "--anchor-every", 8)

    def gc(self, *more):
        return self.json("gc", *self.place(), *more)

    def test_in_two_strokes(self):
        before, records = self.parts(), len(self.log())
        told = self.gc("--dry-run")
        self.assertEqual(set(told), {"dry_run", "deleted", "deleted_bytes", "kept", "condemned", "wait_ms", "announced",
                                     "boundary"})
        self.assertEqual((told["dry_run"], told["announced"], told["deleted"]), (True, False, 0))
        self.assertEqual(told["kept"] + told["condemned"], len(before))
        self.assertGreater(told["condemned"], 5)
        self.assertEqual((len(self.log()), self.parts()), (records, before))

        first = self.gc("--grace", "1.5")
        self.assertEqual((first["announced"], first["deleted"], first["condemned"]), (True, 0, told["condemned"]))
        self.assertTrue(0 < first["wait_ms"] <= 1500)
        self.assertEqual(self.parts(), before)
        self.assertEqual(self.log("--last", 1)[0]["boundary"], records + 1)
        self.assertIn("announces deletion", run("log", *self.place(), "-n", 1).stdout)
        self.assertEqual(self.gc()["deleted"], 0)  # not before an hour has passed
        time.sleep(1.5)
        second = self.gc("--grace", "1.5")
        self.assertEqual((second["deleted"], second["condemned"]), (told["condemned"], 0))
        self.assertEqual(len(self.parts()), told["kept"])
        self.assertEqual(run("fsck", self.store).returncode, 0)
        self.follow()
        self.assertEqual(self.current("out"), self.root(self.models[17 % 4]))

    def test_at_once_and_fewer_anchors(self):
        sizes = {path: path.stat().st_size for path in self.parts()}
        self.json("pull", *self.place(), "-o", self.dir / "old", "--version", 9)
        told = self.gc("--now", "--keep-anchors", 1)
        left = self.parts()
        self.assertEqual((told["deleted"], told["kept"], told["condemned"]), (len(sizes) - len(left), len(left), 0))
        self.assertEqual(told["deleted_bytes"], sum(size for path, size in sizes.items() if path not in left))
        self.assertEqual(self.log("-n", 1)[0]["oldest"], 16)
        self.fails(UNREACHABLE, "", "pull", *self.place(), "-o", self.dir / "older", "--version", 9)
        self.assertEqual(run("fsck", self.store).returncode, 0)

    def test_in_words(self):
        self.assertRegex(run("gc", *self.place(), "-n").stdout,
                         r"^would delete 0 parts, 0 B; \d+ are still named\nwould announce the deletion of \d+ parts\n$")
        self.assertRegex(run("gc", *self.place()).stdout,
                         r"^deleted 0 parts, .*\nannounced the deletion of \d+ parts: run this again in 3600 s\n$")
        self.assertRegex(run("gc", *self.place()).stdout, r"\n\d+ parts were announced, and can go in \d+ s\n$")
        self.assertRegex(run("gc", *self.place(), "--now").stdout, r"^deleted [1-9]\d* parts, [0-9.]+ KiB; \d+ are")

    def test_refusals(self):
        self.fails(USAGE, "either", "gc", *self.place(), "--now", "--grace", 5)
        self.fails(USAGE, "grace", "gc", *self.place(), "--grace", "x")
        self.fails(USAGE, "keep-anchors", "gc", *self.place(), "--keep-anchors", 0)
        self.fails(NO_RUN, "none", "gc", *self.place("none"))


class Keys(RunCase):
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(4)
        self.old, self.old_public = self.make_key("old")
        self.new, self.new_public = self.make_key("new")
        self.publish(self.models[0], "--sign", self.old)
        self.follow("out", "--trust", self.old_public)

    def test_a_run_stays_with_its_key(self):
        """Nobody goes on without it, or with another."""
        state = ["--state", self.dir / "state"]
        self.fails(UNSIGNED, "", "publish", self.models[1], *self.place(), *state, "--step", 1)
        self.fails(SIGNATURE, "", "publish", self.models[1], *self.place(), *state, "--step", 1, "--sign", self.new)
        self.fails(PERMISSION, "chmod", "publish", self.models[1], *self.place(), *state, "--sign", self.old_public)
        self.old_public.chmod(0o600)
        self.fails(KEY, "", "publish", self.models[1], *self.place(), *state, "--sign", self.old_public)
        self.assertEqual(len(self.log()), 1)
        self.publish(self.models[1], "--step", 1, "--sign", self.old)
        self.assertEqual(self.follow()["held_version"], 1)

    def test_another_key(self):
        told = self.json("rekey", *self.place(), "--sign", self.old, "--to", self.new)
        self.assertEqual(set(told), RECORD)
        self.assertEqual((told["sequence"], told["version"]), (2, 0))
        self.assertEqual(told["signer"], self.new_public.read_text().split()[1])
        self.assertRegex(run("log", *self.place()).stdout.splitlines()[-1],
                         rf"  {told['signer'][:8]}  another key, same version$")
        self.publish(self.models[1], "--step", 1, "--sign", self.new)
        self.follow("out", "--trust", self.old_public)
        self.follow("fresh", "--trust", self.old_public)
        self.follow("newer", "--trust", self.new_public)
        for out in ("out", "fresh", "newer"):
            self.assertEqual(self.current(out), self.root(self.models[1]))
        self.fails(SIGNATURE, "", "publish", self.models[2], *self.place(), "--state", self.dir / "state", "--step", 2,
                   "--sign", self.old)

    def test_rekey_refusals(self):
        _, stranger = self.make_key("stranger")
        stranger.chmod(0o600)
        self.fails(USAGE, "both keys", "rekey", *self.place(), "--sign", self.old)
        self.fails(USAGE, "both keys", "rekey", *self.place(), "--to", self.new)
        self.fails(SIGNATURE, "", "rekey", *self.place(), "--sign", self.dir / "stranger", "--to", self.new)
        self.fails(KEY, "", "rekey", *self.place(), "--sign", self.old, "--to", stranger)
        self.fails(NO_RUN, "none", "rekey", *self.place("none"), "--sign", self.old, "--to", self.new)
        self.assertEqual(len(self.log()), 1)
        self.assertRegex(run("rekey", *self.place(), "--sign", self.old, "--to", self.new).stdout,
                         r"^record 2 is signed by [0-9a-f]{64}\n$")

    def test_care_needs_the_key(self):
        for number in range(1, 17):
            self.publish(self.models[number % 4], "--step", number, "--sign", self.old, "--anchor-every", 8,
                         "--keep-anchors", 1)
        self.fails(UNSIGNED, "", "gc", *self.place(), "--now")
        self.fails(NOT_FOUND, "nokey", "gc", *self.place(), "--sign", self.dir / "nokey")
        told = self.json("gc", *self.place(), "--now", "--sign", self.old, "--trust", self.old_public)
        self.assertGreater(told["deleted"], 0)
        self.assertEqual(self.follow("out", "--trust", self.old_public)["held_version"], 16)
        self.fails(SIGNATURE, "", "gc", *self.place(), "--now", "--sign", self.old, "--trust", self.new_public)
        for number in range(17, 25):
            self.publish(self.models[number % 4], "--step", number, "--sign", self.old)
        tend = ["tend", *self.place(), "--state", self.dir / "tend", "--once"]
        self.fails(UNSIGNED, "", *tend)
        self.assertTrue(self.json(*tend, "--sign", self.old, "--trust", self.old_public)["fresh"])
        self.assertEqual(self.follow("fresh", "--trust", self.old_public)["held_version"], 24)


class Log(RunCase):
    def test_last_and_epochs(self):
        models = self.make_steps(3)
        for number, step in enumerate((10, 20, 10)):
            self.publish(models[number], "--step", step)
        records = self.log()
        self.assertEqual([(r["sequence"], r["epoch"], r["step"]) for r in records], [(1, 0, 10), (2, 0, 20), (3, 1, 10)])
        self.assertEqual(self.log("--last", 2), records[1:])
        self.assertEqual(self.log("--last", 9), records)
        self.assertEqual(records[1]["bits_per_change"],
                         float(f"{8 * records[1]['patch_bytes'] / records[1]['changed']:.9g}"))
        self.assertEqual([r["ways"] for r in records], [0, 1, 2])
        self.assertEqual({r["signer"] for r in records}, {None})
        lines = run("log", *self.place(), "--last", 1).stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[1].endswith("the step went back"))
        self.fails(USAGE, "last", "log", *self.place(), "--last", 0)


if __name__ == "__main__":
    main()
