#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What inspect and bench show: test_patch_pictures.py ULPSYNC [unittest arguments]."""
import os
import pty
import random
import struct
import subprocess

import cli_case
from cli_case import CliCase, main, moved, run, weights, write_model


class Inspect(CliCase):
    def setUp(self):
        super().setUp()
        self.old, self.new, self.patch = (self.dir / name for name in ("old", "new", "p"))
        self.names = ["lm_head.weight", "model.layers.0.a", "model.layers.0.b", "model.layers.10.a", "model.layers.9.a"]
        self.states = [{name: weights(2_000, name) for name in self.names}]
        self.states.append({name: moved(data, 0.01 * i, name) for i, (name, data) in enumerate(self.states[0].items())})
        self.write(self.old, self.states[0])
        self.write(self.new, self.states[1])
        self.json("diff", self.old, self.new, "-o", self.patch)

    def write(self, path, state):
        write_model(path, {name: ("BF16", [20, len(data) // 40], data) for name, data in state.items()})

    def on_a_terminal(self, locale, *words):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([cli_case.ULPSYNC, *map(str, words)], stdout=theirs, stderr=subprocess.PIPE,
                                   env={"LC_ALL": locale, "PATH": os.environ["PATH"]})
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        process.stderr.close()
        return shown.decode()

    def changes(self, name):
        old, new = self.states[0][name], self.states[1][name]
        return [i for i in range(0, len(old), 2) if old[i:i + 2] != new[i:i + 2]]

    def test_json_has_all_of_it(self):
        for base in ([], ["--base", self.old]):
            seen = self.json("inspect", self.patch, *base)
            all_changes = sum(len(self.changes(name)) for name in self.names)
            self.assertEqual((seen["tensors"], seen["elements"], seen["changed"]), (5, 10_000, all_changes))
            self.assertEqual((seen["history"], seen["partial"], seen["steps_unknown"]), (False, False, 0))
            self.assertEqual((seen["parent_root"], seen["child_root"]), (self.root(self.old), self.root(self.new)))
            self.assertEqual(seen["patch_bytes"], self.patch.stat().st_size)
            self.assertEqual([step["from"] for step in seen["steps"][:5]], [1, 2, 3, 5, 9])
            self.assertEqual(seen["steps"][0], {"from": 1, "to": 1, "count": all_changes})
            self.assertNotIn("to", seen["steps"][-1])
            self.assertEqual([tensor["name"] for tensor in seen["list"]], self.names)
            for tensor in seen["list"]:
                self.assertEqual(tensor["changed"], len(self.changes(tensor["name"])))
                self.assertEqual((tensor["dtype"], tensor["shape"], tensor["elements"]), ("BF16", [20, 100], 2_000))
                self.assertAlmostEqual(tensor["density"], tensor["changed"] / 2_000)
                self.assertIs(tensor["exact"], True)
                self.assertEqual(sum(step["count"] for step in tensor["steps"]), tensor["changed"])
                self.assertEqual(tensor["bits_per_change"] is None, not tensor["changed"])
            self.assertEqual([group["name"] for group in seen["groups"]],
                             ["lm_head.weight", "model.layers.0", "model.layers.9", "model.layers.10"])
            self.assertEqual([group["tensors"] for group in seen["groups"]], [1, 2, 1, 1])
            self.assertEqual(seen["groups"][1]["changed"], len(self.changes("model.layers.0.a")) +
                             len(self.changes("model.layers.0.b")))

    def test_steps_are_known_where_they_can_be(self):
        """Steps of 1 to 100000 ulps; each has a bucket, with every coder when the base is there."""
        numbers = random.Random(1)
        steps = [min(2 ** numbers.randrange(20) + numbers.randrange(3), 100_000) for _ in range(500)]
        old = [numbers.randrange(1 << 20, 1 << 30) for _ in range(4_000)]
        new = [value + (steps[i // 8] if i % 8 == 0 else 0) for i, value in enumerate(old)]
        for path, state in ((self.old, old), (self.new, new)):
            write_model(path, {"w": ("F32", [4_000], struct.pack("<4000I", *state))})
        wanted = [0] * 17
        for step in steps:
            wanted[min((step - 1).bit_length(), 16)] += 1
        for coder in ("context", "plain", "dense"):
            self.json("diff", self.old, self.new, "-o", self.patch, "--replace", "--coder", coder)
            based = self.json("inspect", self.patch, "--base", self.old)
            self.assertEqual([bucket["count"] for bucket in based["steps"]], wanted, coder)
            self.assertEqual(based["steps_unknown"], 0)
            alone = self.json("inspect", self.patch)
            if coder == "context":
                self.assertEqual(alone["steps"], based["steps"])
            else:
                self.assertEqual((sum(bucket["count"] for bucket in alone["steps"]), alone["steps_unknown"]), (0, 500))
                self.assertIn("not known", run("inspect", self.patch).stdout)
            self.assertIs(alone["list"][0]["exact"], coder != "dense")
            self.assertEqual(alone["changed"], 500)
            self.assertEqual(based["list"][0]["changed"], 500)

    def test_text_in_a_pipe_is_plain_and_stable(self):
        text = run("inspect", self.patch, env={"LC_ALL": "C.UTF-8"}).stdout
        self.assertEqual(text, run("inspect", self.patch, env={"LC_ALL": "C"}).stdout)
        self.assertTrue(text.isascii())
        self.assertIn("history   not needed", text)
        self.assertRegex(text, r"\n +1  #{40} 100\.00 %  \d+\n")
        self.assertRegex(text, r"\n +\d+\.\d+ %  #+ +\d+\.\d\d  model\.layers\.0\n")
        self.assertLess(text.index("model.layers.9"), text.index("model.layers.10"))
        tensors = run("inspect", self.patch, "--tensors").stdout
        self.assertIn("model.layers.0.b BF16 [20, 100]\n", tensors)
        self.assertIn("  context  ", tensors)

    def test_bars_on_a_terminal(self):
        self.assertIn("█" * 40, self.on_a_terminal("C.UTF-8", "inspect", self.patch))
        self.assertIn("#" * 40, self.on_a_terminal("C", "inspect", self.patch))

    def test_history_is_named(self):
        state = {name: moved(data, 0.02, f"2{name}") for name, data in self.states[1].items()}
        third, patch = self.dir / "third", self.dir / "history"
        self.write(third, state)
        self.json("diff", self.new, third, "-o", patch, "--history", self.old)
        seen = self.json("inspect", patch)
        self.assertEqual((seen["history"], seen["before_root"]), (True, self.root(self.old)))
        self.assertIn(f"history   {self.root(self.old)}", run("inspect", patch).stdout)

    def test_names_cannot_drive_the_terminal(self):
        for path, data in ((self.old, b"\0\0"), (self.new, b"\1\0")):
            write_model(path, {"x\x1b[31m\x07.1.y": ("BF16", [1], data), "\x9b31mé": ("BF16", [1], data)})
        self.json("diff", self.old, self.new, "-o", self.patch, "--replace")
        for more in ([], ["--tensors"]):
            text = run("inspect", self.patch, *more).stdout
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\x9b", text)
            self.assertIn("x\\x1b[31m\\x07.1", text)
            self.assertIn("é", text)
        self.assertEqual({tensor["name"] for tensor in self.json("inspect", self.patch)["list"]},
                         {"x\x1b[31m\x07.1.y", "\x9b31mé"})
        self.assertEqual(self.json("inspect", self.patch)["groups"][0]["name"], "x\x1b[31m\x07.1")

    def test_a_model_of_many_loose_tensors(self):
        for path, data in ((self.old, b"\0\0"), (self.new, b"\1\0")):
            write_model(path, {f"t{i}": ("BF16", [1], data) for i in range(300)})
        self.json("diff", self.old, self.new, "-o", self.patch, "--replace")
        self.assertIn("and 100 more; --tensors lists everything", run("inspect", self.patch).stdout)
        self.assertIn("  t299 BF16 [1]\n", run("inspect", self.patch, "--tensors").stdout)
        self.assertEqual(len(self.json("inspect", self.patch)["list"]), 300)


class Bench(CliCase):
    LIMITS = {"read", "compare", "copy"}
    OURS = {"digest": "read", "scan": "compare", "encode": "compare", "encode_history": "compare", "decode": "read",
            "decode_history": "read", "apply": "read", "apply_history": "read"}

    def test_one_number_of_threads(self):
        seen = self.json("bench", "--size", "1MiB", "--threads", "1")
        self.assertEqual(set(seen), {"cpu", "regime", "lr", "bytes", "elements", "changed", "density", "make_seconds",
                                     "rounds", "sizes", "runs"})
        self.assertTrue(0.99 * 2**20 < seen["bytes"] <= 2**20)
        self.assertTrue(0.005 < seen["density"] < 0.02)
        self.assertEqual(seen["sizes"]["stateless"]["history"], False)
        for size in seen["sizes"].values():
            self.assertTrue(4 < size["bits_per_change"] < 20)
            self.assertAlmostEqual(size["ratio"], seen["bytes"] / size["patch_bytes"], places=3)
        (one,) = seen["runs"]
        self.assertEqual(set(one), {"threads", *self.LIMITS, *self.OURS})
        for name in self.LIMITS:
            self.assertEqual(set(one[name]), {"seconds", "gb_per_s"})
        for name, limit in self.OURS.items():
            self.assertEqual(set(one[name]), {"seconds", "gb_per_s", "limit", "percent"})
            self.assertEqual(one[name]["limit"], limit)
            self.assertAlmostEqual(one[name]["percent"] / 100, one[name]["gb_per_s"] / one[limit]["gb_per_s"], places=4)

    def test_one_and_all_threads(self):
        seen = self.json("bench", "-s", "1m")
        if os.cpu_count() > 1 and len(os.sched_getaffinity(0)) > 1:
            one, all_threads = seen["runs"]
            self.assertEqual((one["threads"], all_threads["threads"]), (1, len(os.sched_getaffinity(0))))
            for name in self.OURS:
                self.assertAlmostEqual(all_threads[name]["speed_up"],
                                       one[name]["seconds"] / all_threads[name]["seconds"], places=3)
        text = run("bench", "-s", "500KB").stdout
        for word in ("GB/s of one state", "1 thread", "diff and encode", "patch with history", "bits per change"):
            self.assertIn(word, text)

    def test_density_and_regime(self):
        for density in (0.001, 0.05, 0.4):
            for regime in ("master", "bf16"):
                seen = self.json("bench", "--size", "500KiB", "--threads", "1", "--regime", regime, "--density", density)
                self.assertEqual(seen["regime"], regime)
                self.assertTrue(0.6 * density < seen["density"] < 1.5 * density, (regime, density, seen["density"]))


if __name__ == "__main__":
    main()
