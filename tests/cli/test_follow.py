#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Following and pulling, with all options: test_follow.py ULPSYNC [unittest arguments]."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from cli_case import main, run, weights, write_model
from run_case import (BUSY, EXISTS, FETCHED, FROZEN, IO, KEY, NO_RUN, NOT_FOUND, PART_MISSING, PHASES, RECORD,
                      SIGNATURE, UNREACHABLE, UNSIGNED, USAGE, WRONG_BASE, RunCase)


def parse_metrics(text):
    """Prometheus' text format, strictly: {(name, ((label, value), ...)): number}, {name: type}."""
    samples, types, helped, family = {}, {}, set(), None
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# "):
            kind, name, rest = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line).groups()
            if kind == "HELP":
                assert name not in helped, "a second HELP"
                helped.add(name)
            else:
                assert name in helped and name not in types and rest in ("gauge", "counter"), line
                types[name], family = rest, name
            continue
        name, labels, value = re.fullmatch(
            r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\S+)', line).groups()
        assert name == family, "a sample outside its family"
        assert not labels.endswith(",")
        pairs = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"', labels)
        unescaped = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
        pairs = tuple((label, re.sub(r"\\.", lambda m: unescaped[m[0]], text)) for label, text in pairs)
        assert len({label for label, _ in pairs}) == len(pairs), "a label twice"
        assert (name, pairs) not in samples, "a sample twice"
        samples[name, pairs] = float(value)
        assert types[name] != "counter" or (name.endswith("_total") and samples[name, pairs] >= 0)
    return samples, types


GAUGES = {"ulpsync_version", "ulpsync_step", "ulpsync_epoch", "ulpsync_lag_versions", "ulpsync_head_age_seconds"}
COUNTERS = {"ulpsync_polls_total", "ulpsync_applies_total", "ulpsync_errors_total", "ulpsync_fetched_bytes_total",
            "ulpsync_fetched_objects_total", "ulpsync_phase_seconds_total"}


class FollowCase(RunCase):
    def setUp(self):
        super().setUp()
        self.steps = self.make_steps(4)

    def publish_all(self, *more):
        return [self.publish(path, "--step", 10 * number, *more) for number, path in enumerate(self.steps)]


class Metrics(FollowCase):
    def setUp(self):
        super().setUp()
        self.file = self.dir / "m.prom"

    def read(self):
        return parse_metrics(self.file.read_text())

    def value(self, name, run="rl", **labels):
        return self.read()[0].get((name, (("run", run), *labels.items())))

    def test_after_each_look(self):
        made = [self.publish(path, "--step", 10 * i) for i, path in enumerate(self.steps[:2])]
        told = self.follow("out", "--metrics", self.file)
        samples, types = self.read()
        self.assertEqual({name for name, kind in types.items() if kind == "gauge"}, GAUGES)
        self.assertEqual({name for name, kind in types.items() if kind == "counter"}, COUNTERS)
        self.assertEqual((self.value("ulpsync_version"), self.value("ulpsync_step"), self.value("ulpsync_epoch"),
                          self.value("ulpsync_lag_versions")), (1, 10, 0, 0))
        self.assertLess(abs(self.value("ulpsync_head_age_seconds") - (time.time() - made[1]["time_ms"] / 1000)), 60)
        self.assertEqual((self.value("ulpsync_polls_total"), self.value("ulpsync_applies_total")), (1, 1))
        for kind in ("patch", "anchor", "record"):
            self.assertEqual(self.value("ulpsync_fetched_bytes_total", kind=kind), told[f"fetched_{kind}_bytes"])
        self.assertEqual(self.value("ulpsync_fetched_bytes_total", kind="patch"), made[1]["patch_bytes"])
        self.assertEqual(self.value("ulpsync_fetched_objects_total"), told["fetched_objects"])
        phases = {f"{dict(labels)['phase']}_ms" for name, labels in samples if name == "ulpsync_phase_seconds_total"}
        self.assertEqual(phases, PHASES)
        self.assertAlmostEqual(self.value("ulpsync_phase_seconds_total", phase="fetch"),
                               told["phases"]["fetch_ms"] / 1000, places=8)
        self.assertEqual(sorted(os.listdir(self.dir)).count(".m.prom"), 0)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith(".")], [])

    def test_counters_grow_while_it_stays(self):
        self.publish(self.steps[0])
        self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, "--metrics", self.file,
                   stdout=subprocess.DEVNULL)
        self.wait_for(lambda: self.file.exists() and self.value("ulpsync_polls_total") > 5)
        self.assertEqual(self.value("ulpsync_applies_total"), 1)
        made = self.publish(self.steps[1], "--step", 5)
        self.wait_for(lambda: self.value("ulpsync_version") == 1)
        self.assertEqual((self.value("ulpsync_applies_total"), self.value("ulpsync_step")), (2, 5))
        self.assertEqual(self.value("ulpsync_fetched_bytes_total", kind="patch"), made["patch_bytes"])

    def test_failures_and_lag(self):
        """A part that is missing: the follower cannot get on, and the file says so."""
        self.publish(self.steps[0])
        process = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, "--metrics", self.file,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: self.file.exists() and self.value("ulpsync_version") == 0)
        process.send_signal(signal.SIGSTOP)
        self.publish(self.steps[1])
        part, = [path for path in self.parts() if path.parent.name == f"{2:020}"]
        part.rename(self.dir / "kept")
        process.send_signal(signal.SIGCONT)
        self.wait_for(lambda: (self.value("ulpsync_errors_total", status="ULP_E_PART_MISSING") or 0) > 2)
        self.assertEqual((self.value("ulpsync_version"), self.value("ulpsync_lag_versions")), (0, 1))
        (self.dir / "kept").rename(part)
        self.wait_for(lambda: self.value("ulpsync_lag_versions") == 0)
        self.assertEqual(self.value("ulpsync_version"), 1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 0)
        self.assertEqual(process.stderr.read().count("still following"), 1)

    def test_a_run_that_is_not_there(self):
        """Nothing is held yet, and whatever the name is, the file can be read."""
        name = 'a"b\\c\nd'
        done = run("follow", *self.place(name), "--out", self.dir / "out", "--once", "--metrics", self.file)
        self.assertEqual(done.returncode, 40)
        self.assertEqual(self.value("ulpsync_errors_total", run=name, status="ULP_E_NAME"), 1)
        self.assertEqual(set(self.read()[1]), COUNTERS)
        self.fails(NO_RUN, "none", "follow", *self.place("none"), "--out", self.dir / "o2", "--once", "--metrics",
                   self.file)
        self.assertEqual(self.value("ulpsync_errors_total", run="none", status="ULP_E_NO_RUN"), 1)

    def test_a_file_that_cannot_be_written(self):
        self.publish(self.steps[0])
        done = run("follow", *self.place(), "--out", self.dir / "out", "--once", "--metrics", self.dir / "no/m.prom")
        self.assertEqual(done.returncode, IO)
        self.assertIn("m.prom", done.stderr)
        self.assertEqual(self.current("out"), self.root(self.steps[0]))  # which is no reason not to follow


class Follow(FollowCase):
    def test_what_the_command_is_told(self):
        self.publish_all()
        heard = self.dir / "heard"
        self.follow("out", "--exec", f'echo "$ULPSYNC_VERSION $ULPSYNC_STEP $ULPSYNC_MODEL" > "{heard}"')
        self.assertEqual(heard.read_text(), f"3 30 {self.dir}/out/current\n")
        self.follow("old", "--version", 1, "--exec", f'echo "$ULPSYNC_VERSION $ULPSYNC_STEP" > "{heard}"')
        self.assertEqual(heard.read_text(), "1 10\n")

    def test_a_command_that_fails_does_not_end_it(self):
        self.publish(self.steps[0])
        process = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, "--exec", "exit 3",
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: (self.dir / "out/current").exists())
        self.publish(self.steps[1])
        self.wait_for(lambda: self.current("out") == self.root(self.steps[1]))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 0)
        self.assertIn("--exec failed after version 0", process.stderr.read())

    def test_to_a_step(self):
        made = self.publish_all()
        told = self.follow("out", "--step", 20)
        self.assertEqual((told["held_version"], told["held_step"], told["version"]), (2, 20, 3))
        self.assertEqual(self.current("out"), made[2]["root"])
        self.fails(UNREACHABLE, "step 25", "follow", *self.place(), "--out", self.dir / "o", "--step", 25)
        self.fails(USAGE, "either", "follow", *self.place(), "--out", self.dir / "o", "--step", 20, "--version", 2)
        self.assertIn("the run is at version 3; stopped at version 1, step 10: fetched",
                      run("follow", *self.place(), "-o", self.dir / "o1", "--version", 1).stdout)

    def test_a_base_of_ones_own(self):
        made = self.publish_all()
        told = self.follow("out", "--base", self.steps[0])
        self.assertEqual((told["fetched_anchors"], told["fetched_anchor_bytes"], told["fetched_patches"]), (0, 0, 3))
        self.assertEqual(told["fetched_bytes"], sum(m["patch_bytes"] for m in made))
        self.assertEqual(self.current("out"), made[3]["root"])
        other = self.dir / "other.safetensors"
        write_model(other, {"w": ("BF16", [20_000], weights(20_000, 9))})
        self.fails(WRONG_BASE, "other", "follow", *self.place(), "-o", self.dir / "o", "--once", "--base", other)
        self.fails(NOT_FOUND, "none", "follow", *self.place(), "-o", self.dir / "o2", "--once", "--base", self.dir / "none")

    def test_by_reference(self):
        """The first version is not stored; whoever has it fetches patches only."""
        first = self.publish(self.steps[0], "--reference", "org/base-model")
        self.assertEqual((first["anchor_bytes"], first["stored_objects"]), (0, 1))
        made = self.publish(self.steps[1], "--step", 1)
        self.assertEqual(self.follow("out", "--base", self.steps[0])["held_version"], 1)
        self.assertEqual(self.current("out"), made["root"])
        done = run("follow", *self.place(), "--out", self.dir / "o", "--once")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("org/base-model", done.stderr)

    def test_cache(self):
        """A second follower of the machine fetches nothing from the store; records it does."""
        made = self.publish_all()
        cache = ["--cache", self.dir / "cache", "--cache-bytes", "64MiB"]
        self.follow("first", *cache)
        for path in self.parts():
            path.unlink()
        self.follow("second", *cache)
        self.assertEqual(self.current("second"), made[3]["root"])
        self.fails(PART_MISSING, "", "follow", *self.place(), "--out", self.dir / "third", "--once")
        self.fails(USAGE, "--cache", "follow", *self.place(), "--out", self.dir / "o", "--once", "--cache-bytes", "64MiB")
        self.fails(USAGE, "size", "follow", *self.place(), "--out", self.dir / "o", "--once", *cache[:3], "many")

    def test_max_age(self):
        self.publish(self.steps[0])
        place = ["follow", *self.place(), "--out", self.dir / "out"]
        self.assertEqual(run(*place, "--once", "--max-age", 3600).returncode, 0)
        time.sleep(0.02)
        self.fails(FROZEN, "", *place, "--once", "--max-age", "0.01")
        for wrong in ("0", "-1", "x"):
            self.fails(USAGE, "max-age", *place, "--once", "--max-age", wrong)
        process = self.start(*place, "--poll", 10, "--max-age", "0.01", stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
        self.assertIn("still following", process.stderr.readline())
        self.assertIsNone(process.poll())  # the run may go on

    def test_trust(self):
        key, public = self.make_key("key")
        _, stranger = self.make_key("stranger")
        follow = ["follow", *self.place(), "--once", "--trust"]
        self.publish(self.steps[0])
        self.fails(UNSIGNED, "", *follow, public, "--out", self.dir / "o1")
        self.publish(self.steps[0], "--sign", key, name="signed", state="s2")
        signer = public.read_text().split()[1]
        self.assertEqual(self.follow("out", "--trust", public, name="signed")["signer"], signer)
        signed = ["follow", *self.place("signed"), "--once", "--trust"]
        self.fails(SIGNATURE, "", *signed, stranger, "--out", self.dir / "o2")
        self.fails(KEY, "", *signed, self.steps[0], "--out", self.dir / "o3")
        self.fails(NOT_FOUND, "none", *signed, self.dir / "none", "--out", self.dir / "o4")

    def test_an_event_for_each_change(self):
        process = self.start("follow", *self.place(), "--out", self.dir / "out", "--poll", 10, "--json",
                             stdout=subprocess.PIPE, text=True)
        for path in self.steps[:3]:
            made = self.publish(path)
            told = json.loads(process.stdout.readline())
            self.assertEqual(set(told), RECORD | FETCHED | {"fresh", "held_version", "held_step", "phases"})
            self.assertEqual(told["fetched_patch_bytes"], made["patch_bytes"])
            self.assertEqual(told["fetched_anchor_bytes"], made["anchor_bytes"])
            self.assertEqual(told["fetched_bytes"], made["patch_bytes"] + made["anchor_bytes"])
            self.assertGreater(told["phases"]["apply_ms"], 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 0)
        self.assertEqual(process.stdout.read(), "")

    def test_usage(self):
        for words in (["--poll", 0], ["--poll", "x"], ["--version", -1], ["--step", "x"], ["--cache-bytes", 1]):
            self.assertEqual(run("follow", *self.place(), "--out", self.dir / "out", "--once", *words).returncode, USAGE)
        self.assertFalse((self.dir / "out").exists())


class Pull(FollowCase):
    def setUp(self):
        super().setUp()
        first = self.dir / "first"
        self.assertEqual(run("reshard", self.steps[0], "-o", first).returncode, 0)
        (first / "config.json").write_text("{}")
        self.publish(first)
        self.made = [self.publish(path, "--step", 10 * number) for number, path in enumerate(self.steps)][1:]
        self.work = self.dir / "work"
        self.work.mkdir()

    def pull(self, name, *more):
        return self.json("pull", *self.place(), "-o", self.work / name, *more)

    def test_any_version(self):
        for number, words in enumerate((["--version", 1], ["--step", 20], [])):
            told = self.pull(f"v{number}", *words)
            self.assertEqual((told["version"], told["root"]), (number + 1, self.made[number]["root"]))
            self.assertEqual(told["path"], str(self.work / f"v{number}"))
            self.assertEqual(set(told), RECORD | FETCHED | {"path", "phases"})
            self.assertEqual(self.root(self.work / f"v{number}"), told["root"])
        self.assertEqual(sorted(os.listdir(self.work)), ["v0", "v1", "v2"])
        self.assertEqual(sorted(os.listdir(self.work / "v0")), ["config.json", "model.safetensors"])
        self.assertEqual(self.pull("slash/")["version"], 3)
        done = run("pull", *self.place(), "-o", "here", cwd=self.work)
        self.assertEqual((done.returncode, done.stdout[:18]), (0, "version 3, step 30"))
        self.assertEqual(self.root(self.work / "here"), self.made[2]["root"])

    def test_refusals(self):
        goal = ["pull", *self.place(), "-o", self.work / "x"]
        self.fails(UNREACHABLE, "step 7", *goal, "--step", 7)
        self.fails(USAGE, "no version 9", *goal, "--version", 9)
        self.fails(USAGE, "either", *goal, "--version", 1, "--step", 1)
        self.fails(USAGE, "--out", "pull", *self.place())
        self.fails(USAGE, "--store", "pull", "--run", "rl", "-o", self.work / "x")
        self.fails(NO_RUN, "none", "pull", *self.place("none"), "-o", self.work / "x")
        self.fails(NOT_FOUND, "", "pull", *self.place(), "-o", self.work / "no/x")
        self.fails(FROZEN, "", *goal, "--max-age", "0.001")
        self.fails(EXISTS, "", "pull", *self.place(), "-o", "/")
        self.assertEqual(os.listdir(self.work), [])
        (self.work / "x").mkdir()
        self.fails(EXISTS, "x", *goal)
        self.assertEqual(os.listdir(self.work), ["x"])

    def test_what_fails_leaves_nothing(self):
        for path in self.parts():
            if path.parent.name == f"{4:020}":
                path.unlink()
        self.fails(PART_MISSING, "", "pull", *self.place(), "-o", self.work / "x")
        self.assertEqual(os.listdir(self.work), [])
        self.assertEqual(self.pull("x", "--version", 2)["version"], 2)

    def catch(self):
        """A pull that is stopped in the middle, and what it was called with."""
        big = self.dir / "big.safetensors"
        write_model(big, {"w": ("BF16", [48 << 20], bytes(96 << 20))})
        made = self.publish(big, name="big", state="big-state")
        words = ["pull", *self.place("big"), "-o", self.work / "x", "--threads", 1]
        for _ in range(20):
            process = self.start(*words)
            self.wait_for(lambda: (self.work / ".x.pull/versions").exists() or process.poll() is not None)
            process.send_signal(signal.SIGSTOP)
            if process.poll() is None and (self.work / ".x.pull/versions").exists() and not (self.work / "x").exists():
                return process, words, made["root"]
            process.send_signal(signal.SIGCONT)  # it was too fast
            process.wait()
            shutil.rmtree(self.work / "x")
        return self.fail("it was always too fast")

    def test_killed_half_way(self):
        """Nothing is visible, and the next one cleans up."""
        process, words, root = self.catch()
        self.fails(BUSY, "another process", *words)
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.assertEqual(os.listdir(self.work), [".x.pull"])
        self.assertEqual(run(*words).returncode, 0)
        self.assertEqual(os.listdir(self.work), ["x"])
        self.assertEqual(self.root(self.work / "x"), root)

    def test_a_signal_leaves_nothing(self):
        process, _, _ = self.catch()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(60), -signal.SIGTERM)
        self.assertEqual(os.listdir(self.work), [])


if __name__ == "__main__":
    main()
