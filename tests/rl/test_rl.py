#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short run of trainer and workers, with the proof: test_rl.py EXAMPLES_RL BUILD [unittest arguments]."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

STEPS, PROOF_STEPS = 6, 3


class ShortRun(unittest.TestCase):
    """One run, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.out = Path(cls.directory.name) / "out"
        words = [EXAMPLES / "run", BUILD, "--out", cls.out, "--steps", STEPS, "--proof-steps", PROOF_STEPS, "--pretrain",
                 60, "--groups", 16, "--size", 8]
        cls.done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if cls.done.returncode == 0:
            cls.figures = json.loads((cls.out / "demo.json").read_text())

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def events(self, name, event):
        lines = (self.out / f"{name}.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["event"] == event]

    def compare(self, one, other):
        words = [str(EXAMPLES / "compare"), str(one), str(other)]
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

    def test_workers_ended_where_the_trainer_is(self):
        self.assertTrue(self.figures["identical_workers"])
        self.assertEqual({w["root"] for w in self.figures["workers"]}, {self.figures["root"]})

    def test_a_worker_was_killed_and_came_back(self):
        self.assertEqual([w["lives"] for w in self.figures["workers"]], [1, 2])
        self.assertIn("killing worker 1", self.done.stdout)

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
        self.assertTrue(self.figures["identical_proof"])
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
        return subprocess.run([str(BUILD / name), *map(str, words)], capture_output=True, text=True, check=False,
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
    EXAMPLES, BUILD = map(Path, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
