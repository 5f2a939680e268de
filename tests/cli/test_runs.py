#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs on runs: test_runs.py ULPSYNC [unittest arguments]."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

from cli_case import CliCase, main, run, weights, write_model
from run_case import (CHAIN, FENCED, FETCHED, LAYOUT, NAME, NO_RUN, NOT_FOUND, OTHER_RUN, PART, PART_MISSING, PHASES,
                      RECORD, ROLLBACK, STORED, USAGE, RunCase)

class Verbs(RunCase):
    def setUp(self):
        super().setUp()
        self.steps = self.make_steps(4)

    def test_publish_follow_log(self):
        made = [self.publish(path, "--step", 10 * i) for i, path in enumerate(self.steps[:2])]
        self.assertEqual(set(made[0]), RECORD | STORED | {"fresh", "phases"})
        self.assertEqual(set(made[0]["phases"]), PHASES)
        self.assertEqual([m["sequence"] for m in made], [1, 2])
        self.assertEqual([m["version"] for m in made], [0, 1])
        self.assertEqual([m["step"] for m in made], [0, 10])
        self.assertEqual([m["root"] for m in made], [self.root(path) for path in self.steps[:2]])
        self.assertEqual(made[0]["anchor_bytes"], self.steps[0].stat().st_size)
        self.assertEqual((made[0]["patch_bytes"], made[1]["anchor_bytes"]), (0, 0))
        self.assertLess(made[1]["patch_bytes"], made[0]["anchor_bytes"] / 10)
        self.assertEqual(made[1]["stored_bytes"], made[1]["patch_bytes"])
        self.assertLess(abs(made[1]["time_ms"] / 1000 - time.time()), 600)

        done = self.follow()
        self.assertEqual(set(done), RECORD | FETCHED | {"fresh", "held_version", "held_step", "phases"})
        self.assertEqual(set(done["phases"]), PHASES)
        self.assertEqual((done["held_version"], done["held_step"]), (1, 10))
        self.assertEqual((done["fetched_anchors"], done["fetched_patches"], done["fresh"]), (1, 1, True))
        self.assertEqual(done["fetched_bytes"], made[0]["anchor_bytes"] + made[1]["patch_bytes"])
        self.assertEqual(self.current("out"), made[1]["root"])
        again = self.follow()
        self.assertEqual((again["fetched_bytes"], again["fresh"]), (0, False))

        self.assertEqual(self.log(), [{key: m[key] for key in RECORD} | {"publishes": True} for m in made])

    def test_a_patch_is_all_that_is_fetched(self):
        self.publish(self.steps[0])
        self.follow()
        for path in self.steps[1:]:
            made, done = self.publish(path), self.follow()
            self.assertEqual(done["fetched_bytes"], made["patch_bytes"])
            self.assertEqual((done["fetched_patches"], done["fetched_anchors"]), (1, 0))
        self.assertTrue(made["history"])

    def test_in_words(self):
        done = run("publish", self.steps[0], *self.place(), "--state", self.dir / "state", "-s", 7)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("version   0, step 7\n", done.stdout)
        self.assertIn("anchor ", done.stdout)
        self.assertIn(self.root(self.steps[0]), done.stdout)
        run("publish", self.steps[1], *self.place(), "--state", self.dir / "state", "-s", "8")
        done = run("follow", *self.place(), "-o", self.dir / "out", "--once", "--threads", 2)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("version 1, step 8: fetched ", done.stdout)
        self.assertIn("1 patch and 1 anchor\n", done.stdout)
        lines = run("log", *self.place()).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual([line.split()[:4] for line in lines[1:]], [["1", "0", "0", "7"], ["2", "1", "0", "8"]])
        self.assertRegex(lines[1], r"  anchor [0-9.]+ KiB$")

    def test_a_url_is_a_store(self):
        self.publish(self.steps[0])
        done = run("follow", "--store", f"file://{self.store}", "-r", "rl", "--out", self.dir / "out", "--once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.current("out"), self.root(self.steps[0]))

    def test_usage(self):
        place, state = self.place(), ["--state", self.dir / "state"]
        self.fails(USAGE, "--state", "publish", self.steps[0], *place)
        self.fails(USAGE, "--store", "publish", self.steps[0], *state)
        self.fails(USAGE, "--run", "publish", self.steps[0], *state, "--store", self.store)
        self.fails(USAGE, "", "publish", *place, *state)
        self.fails(USAGE, "step", "publish", self.steps[0], *place, *state, "--step", "-1")
        self.fails(USAGE, "--out", "follow", *place, "--once")
        self.fails(USAGE, "poll", "follow", *place, "--out", self.dir / "out", "--poll", "0")
        self.fails(USAGE, "--store", "log", "--run", "rl")
        self.assertFalse((self.dir / "state").exists())

    def test_refusals(self):
        place, out = self.place(), self.dir / "out"
        self.fails(NO_RUN, "rl", "log", *place)
        self.fails(NO_RUN, "rl", "follow", *place, "--out", out, "--once")
        self.fails(NAME, "a/b", "log", *self.place("a/b"))
        self.fails(NOT_FOUND, "none", "publish", self.dir / "none", *place, "--state", self.dir / "state")
        self.publish(self.steps[0])
        self.follow()
        other = self.dir / "other.safetensors"
        write_model(other, {"v": ("BF16", [3], b"123456")})
        self.fails(LAYOUT, "", "publish", other, *place, "--state", self.dir / "state")
        self.publish(self.steps[1])
        self.follow()
        last = self.store / "rl" / "log" / f"{2:020}"
        self.assertTrue(last.exists())
        kept = last.read_bytes()
        last.unlink()
        self.fails(ROLLBACK, "2 records", "follow", *place, "--out", out, "--once")
        last.write_bytes((self.store / "rl" / "log" / f"{1:020}").read_bytes())
        self.fails(CHAIN, "", "follow", *place, "--out", out, "--once")
        last.write_bytes(kept[:-1])
        self.fails(53, "damaged", "follow", *place, "--out", out, "--once")
        last.write_bytes(kept)
        self.assertFalse(self.follow()["fresh"])
        self.publish(self.steps[2], state="state2", name="rl2")
        self.publish(self.steps[3], state="state2", name="rl2")
        self.fails(OTHER_RUN, "another run", "follow", *self.place("rl2"), "--out", out, "--once")

    def test_a_missing_part(self):
        self.publish(self.steps[0])
        self.follow()
        before = {path.name for path in (self.store / "rl" / "part").rglob("*")}
        self.publish(self.steps[1])
        fresh, = [p for p in (self.store / "rl" / "part").rglob("*") if p.name not in before and p.is_file()]
        fresh.rename(self.dir / "kept")
        self.fails(PART_MISSING, "missing", "follow", *self.place(), "--out", self.dir / "out", "--once")
        self.assertEqual(self.current("out"), self.root(self.steps[0]))
        (self.dir / "kept").rename(fresh)
        self.follow()
        self.assertEqual(self.current("out"), self.root(self.steps[1]))

    def test_exec(self):
        heard = self.dir / "heard"
        words = ["--exec", f"readlink '{self.dir}/out/current' >> '{heard}'"]
        self.publish(self.steps[0])
        self.follow("out", *words)
        self.follow("out", *words)  # nothing new, so it is not run
        self.publish(self.steps[1])
        self.follow("out", *words)
        self.assertEqual(heard.read_text().split(), [f"versions/{i:020}" for i in range(2)])
        self.publish(self.steps[2])
        done = run("follow", *self.place(), "--out", self.dir / "out", "--once", "--exec", "exit 3")
        self.assertEqual(done.returncode, 24)
        self.assertIn("--exec", done.stderr)
        self.assertEqual(self.current("out"), self.root(self.steps[2]))

    def test_following_on(self):
        """It waits for a run that is not there yet, and tells of each version in a line."""
        process = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, "--json",
                             stdout=subprocess.PIPE, text=True)
        time.sleep(0.1)
        for number, path in enumerate(self.steps):
            self.publish(path, "--step", number)
            told = json.loads(process.stdout.readline())
            self.assertEqual((told["version"], told["root"], told["fresh"]), (number, self.root(path), True))
            self.assertEqual(self.current("out"), told["root"])
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 0)  # that is how it is meant to end

    def test_a_part_that_comes_late(self):
        """A follower waits for what may still arrive, and says so once."""
        self.publish(self.steps[0])
        follower = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 20, stdout=subprocess.DEVNULL)
        self.wait_for((self.dir / "out/current").exists)
        elsewhere = self.dir / "elsewhere"
        shutil.copytree(self.store, elsewhere)
        made = self.json("publish", self.steps[1], "--store", elsewhere, "--run", "rl", "--state", self.dir / "state")
        part, = {path.relative_to(elsewhere) for path in elsewhere.glob("rl/part/*/*")} - \
            {path.relative_to(self.store) for path in self.parts()}
        record = "rl/log/00000000000000000002"
        shutil.copy(elsewhere / record, self.dir / "record")
        (self.dir / "record").rename(self.store / record)
        time.sleep(0.2)
        self.assertIsNone(follower.poll())
        shutil.copy(elsewhere / part, self.dir / "part")
        (self.store / part).parent.mkdir()
        (self.dir / "part").rename(self.store / part)
        self.wait_for(lambda: self.current("out") == made["root"])
        self.assertIsNone(follower.poll())

    def test_a_version_of_the_past(self):
        made = [self.publish(path) for path in self.steps]
        for version in (1, 3, 0):
            seen = self.follow(f"out-{version}", "--version", version)
            self.assertEqual((seen["version"], seen["held_version"]), (3, version))
            self.assertEqual(self.current(f"out-{version}"), made[version]["root"])
        self.assertEqual(self.follow("out-0")["held_version"], 3)
        self.fails(USAGE, "there is no version 4 yet", "follow", *self.place(), "--out", self.dir / "o", "--version", 4)
        self.fails(USAGE, "which is newer", "follow", *self.place(), "--out", self.dir / "out-3", "--version", 1)


class Plan(CliCase):
    def test_a_published_example(self):
        """A model of 7 B parameters, patches of 108 MB: what needs 20 Gbit/s whole needs about 0.2 as patches."""
        words = ["--params", "7B", "--density", "0.0103", "--bits", "12", "--step-time", "50.4"]
        seen = self.json("plan", *words, "--encode", "1e4", "--decode", "1e4")
        self.assertAlmostEqual(seen["full_bytes"], 14e9)
        self.assertAlmostEqual(seen["patch_bytes"], 108.15e6, delta=1e3)
        self.assertAlmostEqual(seen["full_link_gbit"], 20, delta=0.01)
        self.assertTrue(0.1 < seen["patch_link_gbit"] < 0.2)
        at_that_link = self.json("plan", *words, "--link", seen["full_link_gbit"])
        self.assertAlmostEqual(at_that_link["full_lost"], 0.1, places=4)

    def test_of_a_run(self):
        """Density, bits and time are those of the run's steps; options count more."""
        store = self.dir / "store"
        words = ["--store", store, "--run", "rl"]
        for number in range(3):
            data = bytearray(weights(20_000, 1))
            for i in range(number * 200):
                data[2 * i * 7] ^= 1
            write_model(self.dir / "m.safetensors", {"w": ("BF16", [20_000], bytes(data))})
            made = self.json("publish", self.dir / "m.safetensors", *words, "--state", self.dir / "state", "-s", number)
            if not number:
                self.fails(2, "no steps yet", "plan", *words)
        seen = self.json("plan", *words)
        self.assertAlmostEqual(seen["params"], 20_000, delta=100)  # the file has a header too
        self.assertAlmostEqual(seen["density"], 0.01, delta=1e-4)
        self.assertTrue(0 < seen["bits_per_change"] < 40)
        self.assertGreater(seen["step_seconds"], 0)
        seen = self.json("plan", *words, "--params", "40K", "--bits", "7", "--step-time", "3")
        self.assertAlmostEqual(seen["density"], 0.005)
        self.assertEqual((seen["params"], seen["bits_per_change"], seen["step_seconds"]), (40_000, 7, 3))
        self.fails(2, "--run", "plan", "--store", store)
        self.fails(NO_RUN, "none", "plan", "--store", store, "--run", "none")
        self.assertEqual(made["version"], 2)

    def test_break_even(self):
        """At that speed both take as long."""
        words = ["--params", "1B", "--encode", "4", "--decode", "4"]
        link = self.json("plan", *words)["break_even_gbit"]
        seen = self.json("plan", *words, "--link", link)
        self.assertAlmostEqual(seen["full_seconds"], seen["patch_seconds"] + seen["coding_seconds"], places=4)
        self.assertAlmostEqual(seen["full_lost"], seen["patch_lost"], places=4)

    def test_in_words(self):
        done = run("plan", "--params", "7B", "--followers", "16")
        self.assertEqual(done.returncode, 0)
        self.assertIn("leaves the store for each step", done.stdout)
        self.assertIn("not possible", run("plan", "--params", "7B", "--step-time", "1").stdout)
        self.assertEqual(run("plan").returncode, 2)
        self.assertEqual(run("plan", "--params", "7B", "--density", "2").returncode, 2)


class Fsck(Verbs):
    """Whether a run is whole. The tests of Verbs are not repeated."""

    test_publish_follow_log = test_a_patch_is_all_that_is_fetched = test_in_words = test_a_url_is_a_store = None
    test_usage = test_refusals = test_a_missing_part = test_exec = test_following_on = None
    test_a_part_that_comes_late = test_a_version_of_the_past = None

    def setUp(self):
        super().setUp()
        for path in self.steps:
            self.publish(path)

    def check(self, code):
        done = run("fsck", *self.place(), "--json")
        self.assertEqual(done.returncode, code)
        return json.loads(done.stdout.splitlines()[0])

    def objects(self):
        return sorted(path for path in self.store.rglob("*") if path.is_file())

    def test_whole(self):
        seen = self.check(0)
        self.assertEqual((seen["damaged"], seen["records"], seen["parts"], seen["reachable"]), ([], 4, 4, True))
        self.assertIn("rl: 4 records, 4 parts, ", run("fsck", *self.place()).stdout)
        self.assertIn("0 damaged; the newest version can be reached", run("fsck", *self.place()).stdout)
        self.assertEqual(run("fsck", *self.place("none")).returncode, NO_RUN)

    def test_every_object(self):
        """Each flipped, cut short or gone is named, and nothing else is but a record that can no longer be compared."""
        newest = max(path for path in self.objects() if path.parent.name == "log")
        for path in self.objects():
            whole = path.read_bytes()
            for damaged in (whole[:9] + bytes([whole[9] ^ 4]) + whole[10:], whole[:-1], None):
                path.unlink()
                if damaged is not None:
                    path.write_bytes(damaged)
                elif path == newest:  # the store alone cannot tell; whoever has seen it can
                    self.assertEqual(self.check(0)["records"], 3)
                    path.write_bytes(whole)
                    continue
                seen = self.check(PART)
                self.assertIn(str(path.relative_to(self.store)), [one["key"] for one in seen["damaged"]])
                self.assertEqual(len(seen["damaged"]), 1)
                needed = path.parent.name != "log" or path == newest
                self.assertEqual(seen["reachable"], not needed)
                path.unlink(missing_ok=True)
                path.write_bytes(whole)
        self.check(0)

    def test_an_anchor_leads_around_damage(self):
        self.parts()[-1].write_bytes(b"damaged")
        self.assertFalse(self.check(PART)["reachable"])
        for number in range(4, 9):
            made = self.publish(self.steps[number % 4], "--anchor-every", 8)
        self.assertEqual((made["version"], made["anchors"]), (8, 2))
        seen = self.check(PART)
        self.assertEqual((len(seen["damaged"]), seen["reachable"]), (1, True))
        self.follow("late")
        self.assertEqual(self.current("late"), made["root"])

    def test_all_runs_of_a_store(self):
        """One line for each, whatever lies between them; what is no run is passed over."""
        for name in ("rl-2", "rl.x", "rl0", "a"):
            self.publish(self.steps[0], state=f"state-{name}", name=name)
        (self.store / "norun/part").mkdir(parents=True)
        (self.store / "norun/part/x").write_bytes(b"x")
        (self.store / "file").write_bytes(b"x")
        told = self.lines("fsck", self.store)
        self.assertEqual([one["run"] for one in told], ["a", "rl-2", "rl.x", "rl", "rl0"])
        self.assertEqual([one["records"] for one in told], [1, 1, 1, 4, 1])
        self.parts("rl0")[0].unlink()
        done = run("fsck", self.store)
        self.assertEqual(done.returncode, PART)
        self.assertEqual(len(done.stdout.splitlines()), 6)
        self.assertIn("1 objects are missing or damaged; 1 of 5 runs cannot", done.stderr)
        self.assertEqual(run("fsck", "--store", self.store, "--run", "rl").returncode, 0)
        (self.dir / "empty").mkdir()
        self.fails(NO_RUN, "no run", "fsck", self.dir / "empty")
        self.fails(USAGE, "STORE", "fsck")
        self.fails(USAGE, "STORE", "fsck", self.store, "--store", self.store)


class Disturbed(RunCase):
    """Followers and the publisher are killed at any time: all end with the publisher's bits."""
    followers, steps, params = 4, 15, "8M"

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("ULPSYNC_TEST_SEED", time.time_ns() % 1_000_000))
        print(f"ULPSYNC_TEST_SEED={self.seed}", flush=True)
        self.numbers = random.Random(self.seed)
        done = run("synth", "-o", self.dir / "run", "-p", self.params, "-s", self.steps, "--seed", self.seed)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.models = sorted((self.dir / "run").glob("step-*.safetensors"))
        self.assertEqual(len(self.models), self.steps + 1)

    def start_follower(self, out):
        return self.start("follow", *self.place(), "--out", self.dir / out, "--poll", 20, "--threads", 1, "--json",
                          stdout=subprocess.DEVNULL)

    def disturb(self, running):
        """One of them is killed and started again."""
        out = self.numbers.choice(sorted(running))
        self.assertIsNone(running[out].poll(), "a follower gave up")
        running[out].kill()
        running[out].wait()
        current = self.dir / out / "current"
        if current.exists():
            self.assertIn(self.root(current), self.roots)
        running[out] = self.start_follower(out)

    def publish_through_kills(self, model, step):
        """Until it is told of success; a record may have got through before a kill."""
        for attempt in range(20):
            process = self.start("publish", model, *self.place(), "--state", self.dir / "state", "--step", step,
                                 "--threads", 1, stdout=subprocess.DEVNULL)
            if attempt < 3 and self.numbers.random() < 0.4:
                time.sleep(self.numbers.random() * 0.3)
                process.kill()
            code = process.wait()
            if code == 0:
                return
            self.assertEqual(code, -signal.SIGKILL)
        self.fail("it was never left alone")

    def test_killed_at_any_time(self):
        self.roots = {self.root(model) for model in self.models}
        running = {f"f{i}": self.start_follower(f"f{i}") for i in range(self.followers)}
        for step, model in enumerate(self.models):
            self.publish_through_kills(model, step)
            for _ in range(self.numbers.randrange(3)):
                self.disturb(running)
        records = self.log()
        published = [r["version"] for r in records if r["publishes"]]
        self.assertEqual(published, list(range(len(published))))
        self.assertEqual(sorted({r["step"] for r in records}), list(range(self.steps + 1)))
        last = f"versions/{records[-1]['version']:020}"
        for out, process in running.items():
            link = self.dir / out / "current"
            self.wait_for(lambda: link.is_symlink() and os.readlink(link) == last or process.poll() is not None)
            self.assertIsNone(process.poll(), "a follower gave up")
            self.assertEqual(self.current(out), self.root(self.models[-1]))
        self.assertEqual(records[-1]["root"], self.root(self.models[-1]))

    def test_bytes_of_a_step(self):
        """A follower that is left alone fetches the patches and nothing else."""
        self.publish(self.models[0])
        self.follow()
        for model in self.models[1:6]:
            made, done = self.publish(model), self.follow()
            self.assertLessEqual(abs(done["fetched_bytes"] - made["patch_bytes"]), 0.05 * made["patch_bytes"])
            self.assertEqual(done["root"], made["root"])
        self.assertEqual(self.current("out"), self.root(self.models[5]))


class Rivals(RunCase):
    """Many publish at once: one record for each sequence, and everybody else is told."""
    publishers, rounds = 8, 6

    def watch(self, out):
        """A follower, and what it tells."""
        told = open(self.dir / f"{out}.json", "w+", encoding="utf-8")
        self.addCleanup(told.close)
        return self.start("follow", *self.place(), "--out", self.dir / out, "--poll", 5, "--threads", 1, "--json",
                          stdout=told)

    def check_watcher(self, process, out, records):
        """All that it told is in the log, in order, and it has reached the end."""
        path = self.dir / f"{out}.json"
        self.wait_for(lambda: process.poll() is not None or
                      path.read_text().count(records[-1]["root"] + '"') and
                      json.loads(path.read_text().splitlines()[-1])["version"] == records[-1]["version"])
        self.assertIsNone(process.poll(), "a follower gave up")
        told = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([t["version"] for t in told], sorted({t["version"] for t in told}))
        for one in told:
            record = records[one["sequence"] - 1]
            self.assertEqual({key: one[key] for key in RECORD}, {key: record[key] for key in RECORD})
        self.assertEqual(self.current(out), records[-1]["root"])

    def test_one_is_first(self):
        models = []
        for i in range(self.publishers):
            models.append(self.dir / f"m{i}.safetensors")
            write_model(models[-1], {"w": ("BF16", [3000], weights(3000, i))})
        roots = [self.root(model) for model in models]
        won = fenced = 0
        watchers = {out: self.watch(out) for out in ("w0", "w1")}
        for number in range(self.rounds):
            before = won
            crowd = [self.start("publish", model, *self.place(), "--state", self.dir / f"s{i}", "--step", number,
                                "--threads", 1, stdout=subprocess.DEVNULL) for i, model in enumerate(models)]
            codes = [process.wait(60) for process in crowd]
            self.assertLessEqual(set(codes), {0, FENCED})
            self.processes = list(watchers.values())
            won += codes.count(0)
            fenced += codes.count(FENCED)
            self.assertGreater(won, before)
            self.assertEqual(self.follow("all")["version"], won - 1)
            self.assertIn(self.current("all"), roots)
        self.assertGreater(fenced, 0)
        records = self.log()
        self.assertEqual([r["sequence"] for r in records], list(range(1, len(records) + 1)))
        self.assertEqual([r["version"] for r in records if r["publishes"]], list(range(won)))
        self.follow("late")
        self.assertEqual(self.current("late"), records[-1]["root"])
        self.assertEqual(self.current("all"), records[-1]["root"])
        for out, process in watchers.items():
            self.check_watcher(process, out, records)


if os.environ.get("ULPSYNC_TEST_SLOW"):
    Disturbed.followers, Disturbed.steps, Disturbed.params = 8, 50, "64M"
    Rivals.publishers, Rivals.rounds = 16, 200

if __name__ == "__main__":
    main()
