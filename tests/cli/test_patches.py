#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs on patches, when all goes well: test_patches.py ULPSYNC [unittest arguments]."""
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import time

import cli_case
from cli_case import DTYPES, CliCase, main, moved, run, weights, write_model

PHASES = {"open", "digest", "history", "encode", "keep_root", "write", "total"}


class Patches(CliCase):
    def setUp(self):
        super().setUp()
        self.steps = [self.dir / f"step-{i}.safetensors" for i in range(4)]
        state = {"model.embed.weight": weights(40_000, 1), "model.layers.0.w": weights(30_000, 2),
                 "model.layers.10.w": weights(2_000, 3), "model.layers.9.w": weights(2_001, 4),
                 "lm_head.weight": weights(999, 5)}
        for step, path in enumerate(self.steps):
            write_model(path, {name: ("BF16", [len(data) // 2], data) for name, data in state.items()}, {"format": "pt"})
            state = {name: moved(data, seed=f"{name}{step}") for name, data in state.items()}

    def diff(self, old, new, *more):
        """The patch from step `old` to step `new`; its name tells them and what else was said."""
        path = self.dir / f"{old}-{new}-{len(more)}.ulp"
        self.assertEqual(run("diff", self.steps[old], self.steps[new], "-o", path, "--replace", *more).returncode, 0)
        return path

    def same(self, a, b):
        self.assertEqual(a.read_bytes(), b.read_bytes())

    def same_directories(self, a, b):
        self.assertEqual(sorted(os.listdir(a)), sorted(os.listdir(b)))
        for name in os.listdir(a):
            self.same(a / name, b / name)

    # ---- diff

    def test_diff_says_what_it_made(self):
        patch = self.dir / "p"
        made = self.json("diff", self.steps[0], self.steps[1], "-o", patch, "--threads", 2)
        self.assertEqual(set(made), {"elements", "changed", "density", "patch_bytes", "dense_bytes", "bits_per_change",
                                     "ratio", "parent_root", "child_root", "history", "threads", "seconds"})
        self.assertEqual(set(made["seconds"]), PHASES)
        self.assertEqual((made["elements"], made["dense_bytes"], made["threads"]), (75_000, 150_000, 2))
        old, new = (step.read_bytes() for step in self.steps[:2])
        changed = sum(old[i:i + 2] != new[i:i + 2] for i in range(len(old) % 2, len(old), 2))
        self.assertEqual(made["changed"], changed)
        self.assertAlmostEqual(made["density"], changed / 75_000, places=6)
        self.assertEqual(made["patch_bytes"], patch.stat().st_size)
        self.assertAlmostEqual(made["bits_per_change"], 8 * made["patch_bytes"] / changed, places=4)
        self.assertAlmostEqual(made["ratio"], 150_000 / made["patch_bytes"], places=4)
        self.assertEqual((made["parent_root"], made["child_root"]), (self.root(self.steps[0]), self.root(self.steps[1])))
        self.assertIs(made["history"], False)
        text = run("diff", self.steps[0], self.steps[1], "-o", patch, "--replace").stdout
        self.assertIn(f"changed   {changed} of 75000 elements", text)
        self.assertIn(made["child_root"], text)

    def test_every_coder_leads_to_the_same_state(self):
        sizes = {}
        for coder in ("best", "context", "plain", "dense"):
            patch, out = self.diff(0, 1, "--coder", coder), self.dir / f"{coder}.safetensors"
            sizes[coder] = patch.stat().st_size
            self.json("apply", patch, self.steps[0], "-o", out)
            self.same(out, self.steps[1])
            chunks = self.json("inspect", patch)["list"][0]["chunks"]
            self.assertEqual(chunks["context" if coder == "best" else coder], 1)
        self.assertLess(sizes["context"], sizes["plain"])
        self.assertLess(sizes["plain"], sizes["dense"])
        self.assertEqual(sizes["best"], sizes["context"])

    def test_patches_do_not_depend_on_the_number_of_threads(self):
        run("synth", "-o", self.dir, "-p", "40M", "-s", "2")  # three chunks
        before, old, new = (self.dir / f"step-00{i}.safetensors" for i in range(3))
        for history in ([], ["--history", before]):
            patches = [self.dir / f"threads-{n}" for n in (1, 2, 5)]
            for n, patch in zip((1, 2, 5), patches):
                made = self.json("diff", old, new, "-o", patch, "--threads", n, "--replace", *history)
                self.assertEqual((made["threads"], made["history"]), (n, bool(history)))
                self.same(patches[0], patch)
            for n in (1, 2, 5):
                out = self.dir / f"out-{n}-{len(history)}"
                self.json("apply", patches[0], old, "-o", out, "--threads", n, *history)
                self.assertEqual(self.root(out), self.root(new))

    def test_equal_states_give_a_tiny_patch(self):
        patch, out = self.dir / "p", self.dir / "out"
        made = self.json("diff", self.steps[0], self.steps[0], "-o", patch)
        self.assertEqual((made["changed"], made["bits_per_change"], made["parent_root"]), (0, None, made["child_root"]))
        self.assertLess(made["patch_bytes"], 500)
        self.assertIs(self.json("apply", patch, self.steps[0], "-o", out)["already"], False)
        self.same(out, self.steps[0])
        self.assertIn("changed   0 elements\n", run("inspect", patch).stdout)
        self.assertEqual(run("verify", patch, "--base", self.steps[0]).returncode, 0)

    def test_diff_replaces_only_when_told_to(self):
        patch = self.diff(0, 1)
        before = patch.read_bytes()
        self.fails(21, "exists", "diff", self.steps[0], self.steps[2], "-o", patch)
        self.assertEqual(patch.read_bytes(), before)
        self.json("diff", self.steps[0], self.steps[2], "-o", patch, "--replace")
        self.assertNotEqual(patch.read_bytes(), before)

    def test_files_do_not_matter(self):
        for shards in (2, 3):
            self.json("reshard", self.steps[shards - 2], "-o", self.dir / f"s{shards}", "--shards", shards)
        patch = self.dir / "p"
        self.json("diff", self.dir / "s2", self.dir / "s3", "-o", patch)
        self.same(patch, self.diff(0, 1))

    # ---- history

    def test_history_as_a_checkpoint_and_as_a_patch_are_the_same(self):
        first, model = self.diff(0, 1), self.diff(1, 2, "--history", self.steps[0])
        patch = self.diff(1, 2, "--history", first, "--history-base", self.steps[0])
        self.same(model, patch)
        for number, history in enumerate((["--history", self.steps[0]],
                                          ["--history", first, "--history-base", self.steps[0]])):
            out = self.dir / f"out{number}.safetensors"
            self.json("apply", model, self.steps[1], "-o", out, *history)
            self.same(out, self.steps[2])
            verified = self.json("verify", model, "--base", self.steps[1], *history)
            self.assertEqual((verified["result"], verified["history"]), (True, True))
            self.json("inspect", model, "--base", self.steps[1], *history)
            squashed = self.dir / f"squashed{number}"
            self.json("squash", model, "--base", self.steps[1], "-o", squashed, *history)
            self.same(squashed, self.diff(1, 2))

    def test_history_that_is_not_needed_is_ignored(self):
        out = self.dir / "out.safetensors"
        self.json("apply", self.diff(1, 2), self.steps[1], "-o", out, "--history", self.steps[0])
        self.same(out, self.steps[2])

    # ---- apply

    def test_apply_says_what_it_did(self):
        patch, out = self.diff(0, 1), self.dir / "out.safetensors"
        done = self.json("apply", patch, self.steps[0], "-o", out, "--threads", 1)
        self.assertEqual(set(done), {"parent_root", "child_root", "changed", "already", "in_place", "staged_bytes",
                                     "spilled_bytes", "threads", "seconds"})
        self.assertEqual(set(done["seconds"]), {"open", "decode", "keep_root", "write", "total"})
        self.assertEqual((done["parent_root"], done["child_root"]), (self.root(self.steps[0]), self.root(self.steps[1])))
        self.assertEqual((done["already"], done["in_place"], done["spilled_bytes"]), (False, False, 0))
        self.assertGreater(done["staged_bytes"], 6 * done["changed"])
        self.same(out, self.steps[1])
        text = run("apply", patch, self.steps[0], "-o", self.dir / "again").stdout
        self.assertIn(f"changed   {done['changed']} elements", text)

    def test_in_place_equals_the_copy_and_again_is_nothing(self):
        patch, model = self.diff(0, 1), self.dir / "mine.safetensors"
        shutil.copy(self.steps[0], model)
        done = self.json("apply", patch, model, "--in-place")
        self.assertEqual((done["already"], done["in_place"]), (False, True))
        self.assertGreater(done["seconds"]["write"], 0)
        self.same(model, self.steps[1])
        before = model.stat().st_mtime_ns
        again = self.json("apply", patch, model, "--in-place")
        self.assertEqual((again["already"], again["changed"]), (True, 0))
        self.assertIn("already", run("apply", patch, model, "-i").stdout)
        self.same(model, self.steps[1])
        self.assertEqual(model.stat().st_mtime_ns, before)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith(".")], [])

    def sharded(self, step, name):
        """Five files, an index, and what lies beside the weights of a model."""
        path = self.dir / name
        self.json("reshard", self.steps[step], "-o", path, "--shards", 5)
        (path / "config.json").write_text('{"architectures": []}')
        (path / "tokenizer.model").write_bytes(bytes(range(256)))
        (path / "empty.txt").write_bytes(b"")
        return path

    def test_sharded_models_with_side_files(self):
        patch, old, new = self.diff(0, 1), self.sharded(0, "old"), self.sharded(1, "new")
        (old / "cache").mkdir()
        (old / ".hidden").write_text("not part of the model")
        for number, path in enumerate((old, old / "model.safetensors.index.json", f"{old}/")):
            out = self.dir / f"out{number}"
            self.json("apply", patch, path, "-o", f"{out}/" if number == 1 else out)
            self.same_directories(out, new)
        shutil.rmtree(old / "cache")
        (old / ".hidden").unlink()
        self.json("apply", patch, old, "--in-place")
        self.same_directories(old, new)

    def test_changes_that_do_not_fit_into_memory_go_to_a_file(self):
        patch, spill, out = self.diff(0, 1), self.dir / "spill", self.dir / "out"
        spill.mkdir()
        done = self.json("apply", patch, self.steps[0], "-o", out, "--staging", "1KiB", "--spill-dir", spill)
        self.assertGreater(done["spilled_bytes"], 0)
        self.same(out, self.steps[1])
        self.assertEqual(os.listdir(spill), [])
        self.assertEqual(self.json("apply", patch, self.steps[0], "-o", self.dir / "x", "--staging=2g")["spilled_bytes"], 0)
        self.fails(20, "nowhere", "apply", patch, self.steps[0], "-o", self.dir / "y", "--staging", "1KiB", "--spill-dir",
                   self.dir / "nowhere")
        for bad in ("", "0", "x", "-1", "1.5.2", "1Kib", "inf", "0x10", "1 MiB", "nan"):
            self.fails(2, "give a size such as", "apply", patch, self.steps[0], "-o", self.dir / "y", f"--staging={bad}")

    # ---- shapes and dtypes

    def test_every_dtype(self):
        old, new = {}, {}
        for dtype, bits in DTYPES.items():
            width = max(1, bits // 8)
            data = weights(12 * bits, seed=dtype)  # 192 elements of any width
            old[f"t.{dtype}"] = (dtype, [8, 24], data)
            new[f"t.{dtype}"] = (dtype, [8, 24], moved(data, 0.1, width=width, seed=dtype))
            self.assertEqual(len(data) * 8, 192 * bits)
        self.round_trip(old, new)

    def test_empty_scalar_and_odd_tensors(self):
        shapes = {"scalar": [], "none": [0], "no rows": [0, 7], "no columns": [3, 0, 5], "one": [1], "odd": [7],
                  "odder": [3, 5, 11], "ones": [1, 1, 1, 1]}
        old, new = {}, {}
        for name, shape in shapes.items():
            count = 1
            for extent in shape:
                count *= extent
            for dtype in ("BF16", "U8", "F32", "I64"):
                data = os.urandom(count * DTYPES[dtype] // 8)
                old[f"{name}.{dtype}"] = (dtype, shape, data)
                new[f"{name}.{dtype}"] = (dtype, shape, bytes(255 - byte for byte in data))
        self.round_trip(old, new)
        self.round_trip(old, old)
        self.round_trip({}, {})
        self.round_trip({"none": ("BF16", [0], b"")}, {"none": ("BF16", [0], b"")})

    def round_trip(self, old, new):
        old_path, new_path, out, patch = (self.dir / name for name in ("old", "new", "out", "p"))
        write_model(old_path, old)
        write_model(new_path, new)
        for coder in ("best", "context", "plain", "dense"):
            self.json("diff", old_path, new_path, "-o", patch, "--replace", "--coder", coder)
            self.json("verify", patch, "--base", old_path)
            self.json("inspect", patch, "--base", old_path)
            self.json("apply", patch, old_path, "-o", out)
            self.same(out, new_path)
            out.unlink()
        shutil.copy(old_path, out)
        self.json("apply", patch, out, "--in-place")
        self.same(out, new_path)
        out.unlink()

    # ---- verify

    def test_verify_says_what_it_verified(self):
        patch = self.diff(0, 1)
        alone, based = self.json("verify", patch), self.json("verify", patch, "--base", self.steps[0])
        self.assertEqual(set(alone), {"patch", "result", "already", "parent_root", "child_root", "history", "partial",
                                      "patch_bytes", "changed", "chunks", "seconds"})
        self.assertEqual((alone["patch"], alone["result"], alone["already"]), (True, False, False))
        self.assertEqual((based["patch"], based["result"], based["already"]), (True, True, False))
        done = self.json("verify", patch, "--base", self.steps[1])
        self.assertEqual((done["result"], done["already"]), (False, True))
        self.assertIn("result    not checked; that takes the model", run("verify", patch).stdout)
        self.assertIn("result    sound", run("verify", patch, "--base", self.steps[0]).stdout)
        self.assertIn("already what the patch leads to", run("verify", patch, "--base", self.steps[1]).stdout)

    # ---- squash

    def test_squash_is_the_diff_of_the_ends(self):
        patches = [self.diff(0, 1), self.diff(1, 2, "--history", self.steps[0]), self.diff(2, 3)]
        out = self.dir / "squashed"
        for threads in (1, 3):
            made = self.json("squash", *patches, "--base", self.steps[0], "-o", out, "--replace", "--threads", threads)
            self.same(out, self.diff(0, 3))
        self.assertEqual((made["patches"], made["history"]), (3, False))
        self.assertEqual(made["patches_bytes"], sum(patch.stat().st_size for patch in patches))
        self.assertEqual(set(made["seconds"]), PHASES)
        self.assertEqual((made["parent_root"], made["child_root"]), (self.root(self.steps[0]), self.root(self.steps[3])))
        self.assertIn("squashed  1 patch of", run("squash", patches[0], "-b", self.steps[0], "-o", self.dir / "x").stdout)
        self.fails(21, "exists", "squash", *patches, "--base", self.steps[0], "-o", out)

    def test_squash_there_and_back_is_nothing(self):
        there, back, out = self.diff(0, 1), self.diff(1, 0), self.dir / "out"
        self.assertEqual(self.json("squash", there, back, "--base", self.steps[0], "-o", out)["changed"], 0)
        many = self.json("squash", *[there, back] * 100, there, "--base", self.steps[0], "-o", out, "--replace")
        self.assertEqual(many["patches"], 201)
        self.same(out, there)

    # ---- the terminal

    def test_progress_shows_on_a_terminal_only(self):
        big, size, patch = self.dir / "big.safetensors", 3 << 30, self.dir / "p"
        text = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
        big.write_bytes(struct.pack("<Q", len(text)) + text)
        os.truncate(big, 8 + len(text) + size)  # sparse: no disk space, but a second of reading
        ours, theirs = pty.openpty()
        process = subprocess.Popen([cli_case.ULPSYNC, "diff", big, big, "-o", patch, "-t", "1"], stdout=subprocess.DEVNULL,
                                   stderr=theirs)
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"digest ", shown)
        self.assertEqual(run("verify", patch, "--base", big).stderr, "")

    def test_interrupted_work_leaves_nothing_behind(self):
        run("synth", "-o", self.dir, "-p", "60M", "-s", "1")
        old, new = self.dir / "step-000.safetensors", self.dir / "step-001.safetensors"
        files = self.dir / "files"
        files.mkdir()
        for delay in (0.01, 0.03, 0.1):
            process = subprocess.Popen([cli_case.ULPSYNC, "diff", old, new, "-o", files / "p", "--threads", "1"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
            self.assertIn(process.returncode, (0, -signal.SIGINT), error)  # it may have been quicker
            self.assertIn(os.listdir(files), ([], ["p"]))
            if (files / "p").exists():  # then it is complete
                self.json("verify", files / "p", "--base", old)
                (files / "p").unlink()

    def test_verbose_says_what_is_done(self):
        self.assertIn("info: opened", run("diff", self.steps[0], self.steps[1], "-o", self.dir / "p", "-v").stderr)


if __name__ == "__main__":
    main()
