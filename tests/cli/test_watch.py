#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A publisher that stays beside a directory of checkpoints: test_watch.py ULPSYNC [unittest arguments]."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time

from cli_case import main, moved, run, weights, write_model
from run_case import BUSY, FENCED, LAYOUT, NOT_FOUND, PHASES, RECORD, SHARDS, STORED, TRUNCATED, USAGE, RunCase

SETTLE = 300
NO_SETTLE = 1  # where nobody writes any more
LONG_SETTLE = 2000  # of tests in which a machine that is busy must not look like a writer that has ended


class WatchCase(RunCase):
    def setUp(self):
        super().setUp()
        self.models = self.make_steps(6, 5000)
        self.folder = self.dir / "checkpoints"
        self.folder.mkdir()

    def words(self, *more):
        settle = NO_SETTLE if "--once" in more else SETTLE
        return ["publish", "--watch", self.folder, *self.place(), "--state", self.dir / "state", "--settle", settle,
                "--poll", 20, *more]

    def once(self, *more):
        return [told for told in self.lines(*self.words("--once", *more)) if told["event"] == "publish"]

    def watch(self, *more):
        process = self.start(*self.words("--json", *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process

    def put(self, number, name):
        """A file, or a directory if the name has no ending; in one go."""
        goal, unfinished = self.folder / name, self.folder / ".unfinished"
        if name.endswith(".safetensors"):
            shutil.copy(self.models[number], unfinished)
        else:
            unfinished.mkdir()
            shutil.copy(self.models[number], unfinished / "model.safetensors")
        unfinished.rename(goal)
        return goal

    def stop(self, process, number=signal.SIGTERM):
        self.wait_until_it_listens(process, number)
        process.send_signal(number)
        self.assertEqual(process.wait(20), 0)
        return process.stderr.read()

    def steps(self):
        return [record["step"] for record in self.log() if record["publishes"]]


class Once(WatchCase):
    def test_all_kinds_of_names_in_order(self):
        names = ["checkpoint-200", "step-9", "global_step_1000.safetensors", "step-0010", "7"]
        for number, name in enumerate(names):
            self.put(number, name)
        told = self.once("--settle", SETTLE)
        self.assertEqual([one["step"] for one in told], [7, 9, 10, 200, 1000])
        self.assertEqual([os.path.basename(one["path"]) for one in told], ["7", "step-9", "step-0010", "checkpoint-200",
                                                                           "global_step_1000.safetensors"])
        self.assertEqual(set(told[0]), RECORD | STORED | {"event", "path", "fresh", "phases"})
        self.assertEqual(set(told[0]["phases"]), PHASES)
        self.assertGreater(told[1]["phases"]["encode_ms"], 0)
        self.assertEqual([one["root"] for one in told], [self.root(self.models[i]) for i in (4, 1, 3, 0, 2)])
        self.assertEqual(self.once(), [])  # all is there already
        self.assertEqual(self.steps(), [7, 9, 10, 200, 1000])

    def test_what_is_no_checkpoint(self):
        self.put(0, "step-5")
        for name in ("tmp-checkpoint-6", "step-7.tmp", "latest", "step-8x", "model-00001-of-00002.safetensors",
                     "step-99999999999999999999", "notes-12.txt"):
            shutil.copytree(self.folder / "step-5", self.folder / name)
        (self.folder / "notes-12.txt/model.safetensors").unlink()
        shutil.copytree(self.folder / "step-5", self.folder / ".step-9")
        (self.folder / "step-10").symlink_to(self.dir / "nowhere")
        (self.folder / "loss-11").write_text("no model")
        self.assertEqual([one["step"] for one in self.once()], [5])

    def test_only_what_is_newer(self):
        self.publish(self.models[0], "--step", 20)
        for number, step in ((1, 10), (2, 20), (3, 30)):
            self.put(number, f"step-{step}")
        self.assertEqual([one["step"] for one in self.once()], [30])
        self.assertEqual(self.steps(), [20, 30])

    def test_a_lost_state(self):
        """Where the run is, is known from the store."""
        self.put(0, "step-1")
        self.once()
        shutil.rmtree(self.dir / "state")
        self.put(1, "step-2")
        self.assertEqual([one["step"] for one in self.once()], [2])

    def test_broken_ones_are_told(self):
        """The others are published all the same."""
        self.put(0, "step-1")
        cut = self.put(1, "step-2.safetensors")
        cut.write_bytes(cut.read_bytes()[:-10])
        self.put(2, "step-3")
        done = run(*self.words("--once"))
        self.assertEqual(done.returncode, TRUNCATED)
        self.assertEqual(done.stderr.count("step-2.safetensors' is left out until it changes"), 1)
        self.assertEqual(self.steps(), [1, 3])
        cut.unlink()
        write_model(self.folder / "step-4.safetensors", {"v": ("BF16", [3], b"123456")})
        self.put(4, "step-5")
        done = run(*self.words("--once"))
        self.assertEqual(done.returncode, LAYOUT)
        self.assertEqual(self.steps(), [1, 3, 5])

    def test_names_are_printed_safely(self):
        self.folder = self.dir / "a\x1b[31mb"
        self.folder.mkdir()
        cut = self.put(0, "step-1.safetensors")
        cut.write_bytes(cut.read_bytes()[:-10])
        done = run(*self.words("--once"))
        self.assertEqual(done.returncode, TRUNCATED)
        self.assertIn("/a\\x1b[31mb/step-1.safetensors' is left out until it changes", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_shards_that_are_missing(self):
        """Without an index, half of the shards are a model too."""
        folder = self.folder / "step-1"
        folder.mkdir()
        for number in (1, 2):
            write_model(folder / f"model-{number:05}-of-00003.safetensors", {f"w{number}": ("BF16", [3], b"123456")})
        done = run(*self.words("--once"))
        self.assertEqual(done.returncode, SHARDS)
        self.assertIn("is one of 3 files", done.stderr)
        write_model(folder / "model-00003-of-00003.safetensors", {"w3": ("BF16", [3], b"123456")})
        self.assertEqual([one["step"] for one in self.once()], [1])

    def test_anchors(self):
        for number in range(10):
            self.put(number % 6, f"step-{number}")
        events = self.lines(*self.words("--once", "--anchor-every", 8, "--keep-anchors", 1))
        self.assertEqual([one["event"] for one in events], ["publish"] * 9 + ["anchor", "publish"])
        self.assertEqual((events[9]["version"], events[9]["oldest"], events[9]["anchors"]), (8, 8, 1))

    def test_usage(self):
        place = [*self.place(), "--state", self.dir / "state"]
        self.fails(USAGE, "--step", "publish", "--watch", self.folder, *place, "--step", 1)
        self.fails(USAGE, "--state", "publish", "--watch", self.folder, *self.place())
        self.fails(USAGE, "MODEL", "publish", "--watch", *place)
        self.fails(USAGE, "settle", "publish", "--watch", self.folder, *place, "--settle", "-1")
        self.fails(USAGE, "poll", "publish", "--watch", self.folder, *place, "--poll", 0)
        for option in (["--once"], ["--settle", 1], ["--poll", 1]):
            self.fails(USAGE, "--watch", "publish", self.models[0], *place, *option)
        for option in ("--anchor-every", "--keep-anchors"):
            self.fails(USAGE, option[2:], "publish", self.models[0], *place, option, 0)
        self.fails(NOT_FOUND, "none", "publish", "--watch", self.dir / "none", *place, "--once")
        self.assertFalse((self.dir / "state").exists())


class Staying(WatchCase):
    def test_a_slow_writer(self):
        """A file that grows is not taken before it is complete; it holds up the one behind it."""
        self.publish(self.models[0], "--step", 1)  # so that there is a run; the watcher would take two seconds for it
        process = self.watch("--settle", LONG_SETTLE)
        data = self.models[1].read_bytes()
        with open(self.folder / "step-2.safetensors", "wb") as file:
            self.put(2, "step-3")
            for at in range(0, len(data), len(data) // 12):
                file.write(data[at:at + len(data) // 12])
                file.flush()
                time.sleep(LONG_SETTLE / 1000 / 8)
                self.assertEqual(self.steps(), [1])
        told = [json.loads(process.stdout.readline()) for _ in range(2)]
        self.assertEqual([one["step"] for one in told], [2, 3])
        self.assertEqual([one["root"] for one in told], [self.root(self.models[i]) for i in (1, 2)])
        self.assertNotIn("left out", self.stop(process))

    def test_a_directory_that_fills_slowly(self):
        """Also what lies deeper counts as a change."""
        process = self.watch("--settle", LONG_SETTLE)
        folder = self.folder / "step-4"
        (folder / "optimizer").mkdir(parents=True)
        shutil.copy(self.models[0], folder / "model.safetensors")
        with open(folder / "optimizer/state.bin", "wb") as file:
            for _ in range(12):
                file.write(b"state")
                file.flush()
                time.sleep(LONG_SETTLE / 1000 / 8)
                self.assertFalse((self.store / "rl").exists())
        self.assertEqual(json.loads(process.stdout.readline())["step"], 4)
        self.stop(process)

    def test_a_broken_one_that_is_mended(self):
        process = self.watch()
        bad = self.folder / "step-1.safetensors"
        bad.write_bytes(self.models[0].read_bytes()[:-1])
        self.assertIn("left out until it changes", process.stderr.readline())
        time.sleep(0.3)
        shutil.copy(self.models[0], bad)
        self.assertEqual(json.loads(process.stdout.readline())["step"], 1)
        self.assertNotIn("left out", self.stop(process, signal.SIGINT))

    def test_many_while_it_stays_and_a_follower(self):
        process = self.watch("--threads", 1)
        self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, stdout=subprocess.DEVNULL)
        for number in range(6):
            self.put(number, f"step-{number}")
        told = [json.loads(process.stdout.readline()) for _ in range(6)]
        self.assertEqual([one["version"] for one in told], list(range(6)))
        self.wait_for(lambda: (self.dir / "out/current").exists() and self.current("out") == told[-1]["root"])
        self.stop(process)

    def test_stopped_in_the_middle(self):
        """Whenever it is asked to end, it ends well, and the next one goes on."""
        numbers, data = 0, weights(3 << 20, 1)
        for round_ in range(6):
            path = self.folder / f"step-{round_}.safetensors"
            write_model(path, {"w": ("BF16", [len(data) // 2], data)})
            data = moved(data[:20_000], seed=round_) + data[20_000:]
            process = self.watch("--settle", NO_SETTLE)
            time.sleep(0.06 * round_)
            self.stop(process, (signal.SIGTERM, signal.SIGINT)[round_ % 2])
            if (self.store / "rl").exists():
                self.assertEqual(run("fsck", self.store).returncode, 0)
                numbers = len(self.steps())
        self.once()
        self.assertEqual(self.steps(), list(range(6)))
        self.assertLessEqual(numbers, 6)
        self.assertEqual(run("fsck", self.store).returncode, 0)

    def test_somebody_else_publishes(self):
        process = self.watch()
        self.put(0, "step-1")
        process.stdout.readline()
        self.fails(BUSY, "", "publish", self.models[1], *self.place(), "--state", self.dir / "state")
        self.publish(self.models[1], "--step", 2, state="other")
        self.put(2, "step-3")
        self.assertEqual(process.wait(20), FENCED)
        self.assertEqual(self.steps(), [1, 2])

    def test_signed(self):
        key, public = self.make_key("key")
        self.fails(NOT_FOUND, "nokey", *self.words("--sign", self.dir / "nokey"))
        process = self.watch("--sign", key, "--trust", public)
        self.put(0, "step-1")
        self.put(1, "step-2")
        signer = public.read_text().split()[1]
        self.assertEqual({json.loads(process.stdout.readline())["signer"] for _ in range(2)}, {signer})
        self.stop(process)

    def test_a_disk_that_is_full_for_a_while(self):
        """It tries again, and says so once."""
        process = self.watch()
        self.put(0, "step-1")
        process.stdout.readline()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        self.put(1, "step-2")
        self.assertIn("trying again", process.stderr.readline())
        time.sleep(0.3)
        self.assertEqual(self.steps(), [1])
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assertEqual(json.loads(process.stdout.readline())["step"], 2)
        self.assertEqual(self.stop(process).count("trying again"), 0)


if __name__ == "__main__":
    main()
