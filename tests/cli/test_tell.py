#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What publishers and followers leave beside a run: test_tell.py ULPSYNC"""
import json
import os
import signal
import subprocess
import time

import cli_case
from cli_case import run
from run_case import FETCHED, NAME, PHASES, RECORD, STORED, USAGE, RunCase

TOLD = {"event", "told_ms"}


class Telling(RunCase):
    def told(self, name):
        objects = sorted((self.store / "rl" / "told" / name).iterdir())
        return [json.loads(line) for path in objects for line in path.read_text().splitlines()]

    def objects(self, name):
        return sorted(path.name for path in (self.store / "rl" / "told" / name).iterdir())

    def test_publish(self):
        steps = self.make_steps(3)
        before = time.time() * 1000
        for number, path in enumerate(steps):
            event = self.publish(path, "--step", number, "--tell", "trainer", "--note", f"reward={number / 4}",
                                 "--note=kl=-1e-3")
            self.assertNotIn("notes", event)
        told = self.told("trainer")
        self.assertEqual(len(told), 3)
        for number, line in enumerate(told):
            self.assertEqual(set(line), RECORD | STORED | TOLD | {"fresh", "phases", "notes"})
            self.assertEqual(set(line["phases"]), PHASES)
            self.assertEqual(line["event"], "publish")
            self.assertEqual(line["step"], number)
            self.assertEqual(line["notes"], {"reward": number / 4, "kl": -0.001})
            self.assertTrue(before <= line["told_ms"] <= time.time() * 1000)
        # the last one is the event that was printed
        self.assertEqual({key: told[-1][key] for key in event}, event)
        self.assertEqual(self.objects("trainer"), ["00000001"])

    def test_follow(self):
        steps = self.make_steps(2)
        self.publish(steps[0])
        first = self.follow("out", "--tell", "w-0")
        self.publish(steps[1], "--step", 1)
        self.follow("out", "--tell", "w-0")
        self.follow("out", "--tell", "w-0")
        told = self.told("w-0")
        active = "publish_to_active_ms"
        self.assertEqual([set(line) - {active} for line in told],
                         3 * [RECORD | FETCHED | TOLD | {"fresh", "phases", "held_version", "held_step"}])
        self.assertEqual([line["held_version"] for line in told], [0, 1, 1])
        self.assertEqual([line["fresh"] for line in told], [True, True, False])
        self.assertEqual([active in line for line in told], [True, True, False])
        self.assertTrue(0 <= told[1][active] < 60_000)
        self.assertEqual({key: told[0][key] for key in first}, first)

    def test_who_stays(self):
        steps = self.make_steps(3)
        folder = self.dir / "checkpoints"
        folder.mkdir()
        follower = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 20, "--tell", "w",
                              stdout=subprocess.DEVNULL)
        watcher = self.start("publish", folder, "--watch", *self.place(), "--state", self.dir / "state", "--poll", 20,
                             "--settle", 10, "--tell", "t", stdout=subprocess.DEVNULL)
        for number, path in enumerate(steps):
            os.rename(path, folder / f"step-{number}.safetensors")
            self.wait_for(lambda: (self.store / "rl" / "told" / "w").is_dir() and
                          self.told("w")[-1:] and self.told("w")[-1]["held_version"] == number)
        for process in (follower, watcher):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 0)
        told = self.told("t")
        self.assertEqual([line["version"] for line in told], [0, 1, 2])
        self.assertNotIn("path", told[0])
        # one object for all that a process tells
        self.assertEqual((self.objects("t"), self.objects("w")), (["00000001"], ["00000001"]))

    def test_tend(self):
        for number, path in enumerate(self.make_steps(9)):
            self.publish(path, "--step", number)
        self.json("tend", *self.place(), "--state", self.dir / "tend", "--once", "--tell", "carer")
        self.assertEqual([line["event"] for line in self.told("carer")], ["tend"])

    def test_refusals(self):
        model = self.make_steps(1)[0]
        place = [model, *self.place(), "--state", self.dir / "state"]
        for words, code in (((["--tell", "a/b"]), NAME), (["--tell", ".a"], NAME), (["--tell", "x" * 65], NAME),
                            (["--note", "a=1"], USAGE), (["--tell", "a", "--note", "a"], USAGE),
                            (["--tell", "a", "--note", "a=inf"], USAGE), (["--tell", "a", "--note", "=1"], USAGE),
                            (["--tell", "a", "--note", "a=1", "--note", "a=1"], USAGE),
                            (["--tell", "a", "--note", "a b=1"], USAGE),
                            (["--watch", "--tell", "a", "--note", "a=1"], USAGE)):
            done = run("publish", *place, *words)
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertFalse((self.store / "rl").exists())

    def test_a_telling_that_fails_is_no_failure(self):
        steps = self.make_steps(2)
        self.publish(steps[0])
        (self.store / "rl" / "told").write_text("a file where a directory should be")
        done = run("publish", steps[1], *self.place(), "--state", self.dir / "state", "--step", 1, "--tell", "t")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("going on without telling"), 1)
        follower = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 20, "--tell", "w",
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: (self.dir / "out" / "current").exists())
        for number in range(2, 4):
            self.publish(steps[number % 2], "--step", number)
            root = self.root(steps[number % 2])
            self.wait_for(lambda: self.current("out") == root)
        follower.send_signal(signal.SIGTERM)
        _, errors = follower.communicate(timeout=20)
        self.assertEqual(follower.returncode, 0, errors)
        self.assertEqual(errors.count("going on without telling"), 1, errors)

    def test_others_leave_it_alone(self):
        for number, path in enumerate(self.make_steps(3)):
            self.publish(path, "--step", number, "--tell", "t", "--anchor-every", 1, "--keep-anchors", 1)
        before = self.told("t")
        self.assertEqual(run("gc", *self.place(), "--now").returncode, 0)
        self.assertEqual(run("fsck", *self.place()).returncode, 0)
        self.assertEqual(run("mirror", self.store, self.dir / "copy", "--run", "rl").returncode, 0)
        self.assertEqual(self.told("t"), before)
        self.assertFalse((self.dir / "copy" / "rl" / "told").exists())


if __name__ == "__main__":
    cli_case.main()
