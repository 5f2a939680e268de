#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short run of trainer and workers, with the proof: test_rl.py EXAMPLES_RL BUILD [unittest arguments]."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import rl_case

STEPS, PROOF_STEPS = 6, 3
SHAPE = {
    "format": int, "identical": bool, "store": str, "run": str, "seed": int, "elements": int, "root": str,
    "identical_workers": bool, "killed": {"worker": int, "after_step": int},
    "seconds": {"pretraining": float, "learning": float, "proof": float, "all": float},
    "totals": {"mean_density": float, "mean_publish_ms": float, "mean_age": float, "reward_first": float, "reward_last": float,
               "exact_first": float, "exact_last": float, "times_smaller": float},
    "bytes": {way: {"total": int, "step": float} for way in ("full", "gaps", "gaps_zstd", "ulpsync")},
    "workers": [{"worker": int, "root": str, "lives": int, "versions_held": int, "bytes": int, "samples": int,
                 "publish_to_active_ms": [{"version": int, "ms": int}], "publish_to_active_ms_median": float,
                 "apply_ms_median": float}],
    "first": {"step": int, "version": int, "root": str, "bytes": int, "full_bytes": int},
    "steps": [{"step": int, "version": int, "root": str, "reward": float, "exact": float, "density": float, "changed": int,
               "bytes": int, "full_bytes": int, "gaps_bytes": int, "times_smaller": float, "age": float, "samples": int,
               "wait_ms": float, "train_ms": float, "publish_ms": float}],
    "pretraining": [{"step": int, "loss": float, "seconds": float}],
    "proof": {"identical": bool, "killed": {"worker": int, "after_step": int},
              "steps": [{"step": int, "roots": [str], "rewards": [object], "difference": object}]},
}


def misfits(value, shape, where="demo.json"):
    """What `value` has not that `shape` asks for. A whole number is a number; more fields are allowed."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [where]
        return [m for name in shape for m in misfits(value.get(name), shape[name], f"{where}.{name}")]
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return [where]
        return [m for i, each in enumerate(value) for m in misfits(each, shape[0], f"{where}[{i}]")]
    kinds = (int, float) if shape is float else shape
    fits = isinstance(value, kinds) and (shape in (bool, object) or not isinstance(value, bool))
    return [] if fits else [where]


class ShortRun(unittest.TestCase):
    """One run, looked at from several sides; OpenBLAS is told to use an odd number of threads, which must not matter."""

    @classmethod
    def setUpClass(cls):
        directory = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, directory)
        cls.out = directory / "out"
        cls.done = rl_case.run(cls.out, *rl_case.TINY, "--steps", STEPS, "--proof-steps", PROOF_STEPS, "--pretrain", 60,
                               env={**os.environ, "OPENBLAS_NUM_THREADS": "3"})
        if cls.done.returncode == 0:
            cls.figures = rl_case.figures(cls.out)

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def events(self, name, event):
        lines = (self.out / f"{name}.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["event"] == event]

    def compare(self, one, other):
        words = [str(rl_case.EXAMPLES / "compare.py"), str(one), str(other)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def test_every_step_is_there(self):
        steps = self.figures["steps"]
        self.assertEqual([s["step"] for s in steps], list(range(1, STEPS + 1)))
        for step in steps:
            self.assertLess(step["bytes"], step["full_bytes"] / 4)
            self.assertEqual(step["full_bytes"], 2 * self.figures["elements"])
            self.assertLessEqual(step["age"], 1)
            self.assertLessEqual(0, step["reward"])
        self.assertGreater(sum(s["changed"] for s in steps), 0, "nothing was learned, so nothing was tested")
        for before, after in zip([self.figures["first"], *steps], steps):
            self.assertEqual(before["root"] != after["root"], after["changed"] > 0)

    def test_every_figure_is_there(self):
        has_zstd = self.figures["bytes"]["gaps_zstd"] is not None
        self.assertEqual(misfits(self.figures, SHAPE), [] if has_zstd else ["demo.json.bytes.gaps_zstd"])
        self.assertTrue(misfits({**self.figures, "root": 1}, SHAPE))

    def test_figures_fit_each_other(self):
        steps, ways = self.figures["steps"], self.figures["bytes"]
        for way, name in (("full", "full_bytes"), ("gaps", "gaps_bytes"), ("ulpsync", "bytes")):
            self.assertEqual(ways[way]["total"], sum(s[name] for s in steps))
            self.assertEqual(ways[way]["step"], ways[way]["total"] / STEPS)
            self.assertIn(f"{ways[way]['total']:14}", self.done.stdout)
        self.assertEqual(self.figures["totals"]["times_smaller"], ways["full"]["total"] / ways["ulpsync"]["total"])
        self.assertEqual(steps[-1]["root"], self.figures["root"])
        for step in steps:
            self.assertEqual(step["density"], step["changed"] / self.figures["elements"])
            self.assertIn(f"reward {step['reward']:.3f}  right", self.done.stdout)

    def test_the_report_is_there(self):
        self.assertIn("<svg", (self.out / "report.html").read_text())
        self.assertIn(str(self.out / "report.html"), self.done.stdout)

    def test_who_looks_on_sees_the_same(self):
        words = [str(rl_case.BUILD / "ulpsync"), "top", "--store", self.figures["store"], "--run", "rl", "--once", "--json"]
        story = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=rl_case.SECONDS).stdout)
        self.assertEqual(story["root"], self.figures["root"])
        for seen, step in zip(story["steps"][1:], self.figures["steps"], strict=True):
            self.assertAlmostEqual(seen["notes"]["reward"], step["reward"], places=6)
            self.assertEqual(seen["changed"], step["changed"])
        self.assertEqual([(f["name"], f["version"]) for f in story["followers"]], [("worker-0", STEPS), ("worker-1", STEPS)])

    def test_workers_ended_where_the_trainer_is(self):
        self.assertTrue(self.figures["identical_workers"])
        self.assertEqual({w["root"] for w in self.figures["workers"]}, {self.figures["root"]})

    def test_a_worker_was_killed_and_came_back(self):
        self.assertEqual([w["lives"] for w in self.figures["workers"]], [1, 2])
        for killed in (self.figures["killed"], self.figures["proof"]["killed"]):
            self.assertEqual(killed["worker"], 1)
            self.assertIn(f"worker 1 is killed after step {killed['after_step']}", self.done.stdout)

    def test_what_is_told(self):
        told = self.out / "store" / "rl" / "told"
        lines = {place.name: [json.loads(line) for path in sorted(place.iterdir()) for line in path.read_text().splitlines()]
                 for place in told.iterdir()}
        self.assertEqual(set(lines), {"trainer", "worker-0", "worker-1"})
        self.assertEqual([line["version"] for line in lines["trainer"]], list(range(STEPS + 1)))
        self.assertEqual([line["notes"].get("reward") for line in lines["trainer"][1:]],
                         [float(f"{step['reward']:.9g}") for step in self.figures["steps"]])
        for name in ("worker-0", "worker-1"):
            self.assertEqual(lines[name][-1]["held_version"], STEPS)
            self.assertEqual({line["event"] for line in lines[name]}, {"follow"})

    def test_the_proof_held(self):
        self.assertTrue(self.figures["identical"])
        self.assertTrue(self.figures["proof"]["identical"])
        self.assertEqual(len(self.figures["proof"]["steps"]), PROOF_STEPS + 1)
        self.assertIn(f"IDENTICAL: {PROOF_STEPS + 1} states and {PROOF_STEPS} rewards", self.done.stdout)

    def test_all_weights_were_sent_in_one_of_them(self):
        for sync, whole in (("full", True), ("ulpsync", False)):
            steps = [e for e in self.events(f"proof-{sync}/trainer", "step") if e["step"]]
            self.assertEqual([e["bytes"] > e["full_bytes"] for e in steps], [whole] * PROOF_STEPS)
            self.assertEqual({e["age"] for e in steps}, {0})

    def test_a_comparison_can_fail(self):
        logs = self.out / "proof-full" / "trainer.jsonl", self.out / "proof-ulpsync" / "trainer.jsonl"
        self.assertEqual(self.compare(*logs).returncode, 0)
        lines = logs[1].read_text().splitlines()
        changed = self.out / "changed.jsonl"
        last = json.loads(next(line for line in reversed(lines) if '"step"' in line))
        for name, value in (("root", "0" * 64), ("reward", last["reward"] + 1e-16 if last["reward"] else 1e-16)):
            other = dict(last, **{name: value})
            changed.write_text("\n".join([line for line in lines if json.loads(line).get("step") != last["step"]]
                                         + [json.dumps(other)]) + "\n")
            done = self.compare(logs[0], changed)
            if other != last:
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"THEY PART at step {PROOF_STEPS}: {name}", done.stdout)
        changed.write_text(lines[0] + "\n")
        self.assertEqual(self.compare(logs[0], changed).returncode, 1)
        self.assertEqual(self.compare(changed, changed).returncode, 1, "nothing was compared")


class Refusals(unittest.TestCase):
    def program(self, name, *words):
        return subprocess.run([str(rl_case.BUILD / name), *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=120)

    def test_arguments(self):
        for name in ("rl_trainer", "rl_worker"):
            self.assertEqual(self.program(name).returncode, 2)
            self.assertEqual(self.program(name, "--steps", "many").returncode, 2)
            self.assertEqual(self.program(name, "--no-such").returncode, 2)
            self.assertIn("not by", self.program(name, "--store", "x", "--sync", "hope").stderr)

    def test_nobody_waits_for_ever(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.program("rl_worker", "--store", directory, "--patience", "0.2")
            self.assertEqual(done.returncode, 20)
            self.assertIn("is the trainer running?", done.stderr)


if __name__ == "__main__":
    rl_case.main()
