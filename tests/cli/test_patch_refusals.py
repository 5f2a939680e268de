#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the verbs on patches refuse, each with its own exit code: test_patch_refusals.py ULPSYNC [...]."""
import fcntl
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

import cli_case
from cli_case import CliCase, main, moved, run, weights, write_model

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "digest"))
from root_oracle import content_sum  # noqa: E402: checksums are made of the same sums

# Status numbers, as include/ulpsync/status.h pins them.
USAGE = 2
NOT_FOUND, EXISTS, NO_SPACE, FILE_KIND = 20, 21, 23, 25
TRUNCATED, TRAILING, HEADER, NO_MODEL = 30, 31, 32, 42
CODE, NOT_A_PATCH, VERSION, CHECKSUM, TABLE, LAYOUT, WRONG_BASE = 50, 51, 52, 53, 54, 55, 56
WRONG_RESULT, NEEDS_HISTORY, REGIONS, INTERRUPTED, BUSY, JOURNAL = 57, 58, 59, 60, 61, 62


class Refusals(CliCase):
    def setUp(self):
        super().setUp()
        self.steps = [self.dir / f"step-{i}.safetensors" for i in range(4)]
        self.data = [weights(3_000)]
        for step in range(3):
            self.data.append(moved(self.data[-1], seed=step))
        for path, data in zip(self.steps, self.data):
            self.write(path, data)
        self.patch = self.diff(0, 1)

    def write(self, path, data, name="w", dtype="BF16", shape=(30, 100)):
        write_model(path, {name: (dtype, list(shape), data), "z": ("F32", [2], bytes(8))})

    def diff(self, old, new, *more):
        path = self.dir / f"{old}-{new}-{len(more)}.ulp"
        done = run("diff", self.steps[old], self.steps[new], "-o", path, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def fails(self, code, fragment, *words, **more):
        """As always, and nothing may be left or made."""
        before = self.everything()
        super().fails(code, fragment, *words, **more)
        self.assertEqual(self.everything(), before)
        error = json.loads(run(*words, "--json", **more).stdout)["error"]
        self.assertEqual(error["code"], code)
        self.assertIn(fragment, error["message"])
        self.assertEqual(self.everything(), before)

    def everything(self):
        return {path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file()}

    def apply_fails(self, code, fragment, patch, model, *more):
        """The same answer whichever way it is asked."""
        for words in (["apply", patch, model, "-o", self.dir / "out"], ["apply", patch, model, "--in-place"],
                      ["verify", patch, "--base", model], ["inspect", patch, "--base", model]):
            self.fails(code, fragment, *words, *more)

    # ---- the command line

    def test_mistakes_on_the_command_line(self):
        old, new, patch, out = self.steps[0], self.steps[1], self.patch, self.dir / "out"
        self.fails(USAGE, "say where the result goes", "apply", patch, old)
        self.fails(USAGE, "exclude each other", "apply", patch, old, "-o", out, "--in-place")
        self.fails(USAGE, "say where to write", "diff", old, new)
        self.fails(USAGE, "is missing", "diff", old, "-o", out)
        self.fails(USAGE, "choose one of best, context, plain, dense", "diff", old, new, "-o", out, "--coder", "zip")
        self.fails(USAGE, "say which model", "squash", patch, "-o", out)
        self.fails(USAGE, "say where to write", "squash", patch, "--base", old)
        self.fails(USAGE, "PATCH... is missing", "squash", "--base", old, "-o", out)
        self.fails(USAGE, "goes with --base", "verify", patch, "--history", old)
        self.fails(USAGE, "together with --base", "inspect", patch, "--history", old)
        self.fails(USAGE, "goes with --history", "diff", old, new, "-o", out, "--history-base", old)
        self.fails(USAGE, "is a patch; say with --history-base", "diff", old, new, "-o", out, "--history", patch)
        self.fails(USAGE, "has no place", "diff", old, new, "-o", out, "--history", old, "--history-base", old)
        for bad in ("10", "1e99", "0.5KiB", "x"):
            self.fails(USAGE, "give a size", "bench", "--size", bad)
        self.fails(USAGE, "give a number from", "bench", "--density", "2")
        self.fails(USAGE, "choose one of master, bf16", "bench", "--regime", "fp8")

    # ---- files that are something else

    def test_messages_say_what_a_file_is(self):
        old, patch, out = self.steps[0], self.patch, self.dir / "out"
        other = self.dir / "other"
        self.fails(NOT_A_PATCH, "is not a patch (it is a safetensors file)", "apply", old, patch, "-o", out)
        self.fails(NOT_A_PATCH, "it is a safetensors file", "verify", old)
        self.fails(NOT_A_PATCH, "it is a safetensors file", "inspect", old)
        self.fails(NOT_A_PATCH, "it is a safetensors file", "squash", old, "--base", old, "-o", out)
        self.fails(HEADER, "(it is a patch)", "apply", patch, patch, "-o", out)
        self.fails(HEADER, "(it is a patch)", "apply", patch, patch, "--in-place")
        for words in (["info"], ["digest"], ["reshard", "-o", out], ["recover"]):
            self.fails(HEADER, "(it is a patch)", *words, patch)
        self.fails(HEADER, "(it is a patch)", "diff", patch, old, "-o", out)
        self.fails(HEADER, "(it is a patch)", "diff", old, patch, "-o", out)
        for first, what in ((b"PK\x03\x04", "a ZIP archive"), (b"GGUF", "a GGUF file"), (b"\x1f\x8b", "gzip")):
            other.write_bytes(first + bytes(100))
            self.fails(NOT_A_PATCH, what, "verify", other)
        other.write_bytes(b"PK\x03\x04" + b"\xff" * 100)
        self.fails(HEADER, "a ZIP archive", "diff", old, other, "-o", out)
        self.fails(FILE_KIND, "directory", "verify", self.dir)
        other.unlink()
        other.mkdir()
        self.fails(NO_MODEL, "other", "diff", other, old, "-o", out)
        self.fails(NOT_FOUND, "nowhere", "diff", self.dir / "nowhere", old, "-o", out)
        self.fails(NOT_FOUND, "nowhere", "verify", self.dir / "nowhere")
        self.fails(NOT_FOUND, "nowhere", "recover", self.dir / "nowhere")
        self.fails(NOT_FOUND, "nowhere", "verify", patch, "--base", self.dir / "nowhere")
        self.fails(NOT_FOUND, "nowhere", "apply", patch, old, "-o", self.dir / "nowhere/out")
        self.fails(NOT_FOUND, "nowhere", "diff", old, old, "-o", self.dir / "nowhere/out")
        self.fails(NOT_FOUND, "nowhere", "diff", old, old, "-o", out, "--history", self.dir / "nowhere")

    # ---- damaged patches

    def test_a_patch_of_another_version(self):
        data = bytearray(self.patch.read_bytes())
        data[7] += 1
        self.patch.write_bytes(data)
        self.fails(VERSION, "version", "verify", self.patch)
        self.apply_fails(VERSION, "version", self.patch, self.steps[0])
        self.fails(VERSION, "version", "squash", self.patch, "--base", self.steps[0], "-o", self.dir / "out")

    def test_truncated_patches(self):
        data, cut = self.patch.read_bytes(), self.dir / "cut.ulp"
        for length in [0, 1, 7, 8, 40, *range(100, len(data), 97), len(data) - 1]:
            cut.write_bytes(data[:length])
            done = run("verify", cut)
            self.assertIn(done.returncode, (TRUNCATED, NOT_A_PATCH, CHECKSUM, TABLE), f"{length}: {done.stderr}")
        cut.write_bytes(data + b"x")
        self.assertIn(run("verify", cut).returncode, (TRUNCATED, TRAILING, CHECKSUM, TABLE))
        cut.write_bytes(data[:20])
        self.apply_fails(TRUNCATED, "cut.ulp", cut, self.steps[0])

    def test_every_flipped_byte_is_found(self):
        data, flipped = self.patch.read_bytes(), self.dir / "flipped.ulp"
        codes = set()
        for at in range(len(data)):
            if at > 200 and at % 7:
                continue
            flipped.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:])
            done = run("verify", flipped)
            codes.add(done.returncode)
            self.assertNotEqual(done.returncode, 0, f"byte {at}")
        self.assertLessEqual({NOT_A_PATCH, VERSION, CHECKSUM}, codes)
        flipped.write_bytes(data[:40] + bytes([data[40] ^ 4]) + data[41:])
        before = self.everything()
        self.assertEqual(run("apply", flipped, self.steps[0], "--in-place").returncode, CHECKSUM)
        self.assertEqual(run("apply", flipped, self.steps[0], "-o", self.dir / "out").returncode, CHECKSUM)
        self.assertEqual(run("squash", flipped, "-b", self.steps[0], "-o", self.dir / "out").returncode, CHECKSUM)
        self.assertEqual(self.everything(), before)

    # ---- forged patches: wrong, with checksums that are right

    def parts(self, number, data):
        """The patch from the first step to one that holds `data`: its payload, and its table taken apart."""
        new, patch = self.dir / f"forged-{number}", self.dir / f"forged-{number}.ulp"
        for path, content in ((self.dir / "forged-0", self.data[0]), (new, data)):
            write_model(path, {"w": ("BF16", [3_000], content)})
        self.json("diff", self.dir / "forged-0", new, "-o", patch)
        raw = patch.read_bytes()
        table = raw[-16 - int.from_bytes(raw[-8:-4], "little"):-16]
        self.assertEqual(struct.pack("<Q", content_sum(table)[0]), raw[-16:-8])
        return raw[8:-16 - len(table)], table[:65], table[65:-16], table[-16:]

    def forge(self, payload, *table):
        patch, body = self.dir / "forged.ulp", b"".join(table)
        patch.write_bytes(b"ulpatch\1" + payload + body + struct.pack("<QI", content_sum(body)[0], len(body)) + b"ulpe")
        return patch

    def test_forged_patches(self):
        base = self.dir / "forged-0"
        nothing, roots, layout, sums = self.parts(0, self.data[0])
        self.assertEqual((nothing, layout[-1]), (b"", 0))
        layout = layout[:-1]
        payload, one_roots, one_entry, one_sums = self.parts(1, self.data[1])
        other, _, other_entry, _ = self.parts(2, self.data[2])
        self.json("verify", self.forge(payload, one_roots, one_entry, one_sums), "--base", base)
        self.apply_fails(TABLE, "flags that are not known", self.forge(b"", b"\4", roots[1:], layout, b"\0", sums), base)
        self.apply_fails(TABLE, "do not give the root", self.forge(b"", one_roots, layout, b"\0", sums), base)
        self.apply_fails(TABLE, "the chunks do not fill the file", self.forge(b"x", roots, layout, b"\0", sums), base)
        forged = self.forge(other, one_roots, other_entry, one_sums)
        self.json("verify", forged)
        for words in (["apply", forged, base, "-o", self.dir / "out"], ["apply", forged, base, "-i"],
                      ["verify", forged, "--base", base], ["squash", forged, "--base", base, "-o", self.dir / "out"]):
            self.fails(WRONG_RESULT, "would not become what the patch says", *words)
        region = bytes([1, 0, 0, 1, 0, 0xb8, 0x17])  # one: tensor 0, row 0 of 1, columns 0 to 3000
        parent = roots[1:33]
        self.json("inspect", self.forge(b"", b"\2", parent, layout, region, b"\0", sums))
        self.apply_fails(TABLE, "regions cannot be coded with history",
                         self.forge(b"", b"\3", parent, parent, layout, region, b"\0", sums), base)

    def partial_patch(self):
        """The model from which a patch of regions starts, and that patch: its one region is all of the model."""
        _, roots, layout, _ = self.parts(0, self.data[0])
        payload, _, entry, sums = self.parts(1, self.data[1])
        region = bytes([1, 0, 0, 1, 0, 0xb8, 0x17])  # one: tensor 0, row 0 of 1, columns 0 to 3000
        table = (b"\2", roots[1:33], layout[:-1], region, entry[len(layout) - 1:], sums)
        return self.dir / "forged-0", self.forge(payload, *table)

    def test_a_patch_of_regions_is_not_for_changes_in_place(self):
        base, patch = self.partial_patch()
        self.fails(REGIONS, "covers only regions", "apply", patch, base, "--in-place")
        self.json("apply", patch, base, "-o", self.dir / "out")  # its regions are all there are
        self.assertEqual(list(self.dir.glob(".*")), [])

    def test_a_patch_of_regions_leads_nowhere_by_itself(self):
        base, patch = self.partial_patch()
        self.fails(REGIONS, "without --base", "verify", patch, "--base", base)
        seen = self.json("verify", patch)
        self.assertEqual((seen["partial"], seen["result"], seen["already"]), (True, False, False))
        self.assertNotIn("child_root", seen)
        text = run("verify", patch).stdout
        self.assertIn("covers regions only", text)
        self.assertNotIn("\nto ", text)
        self.assertTrue(self.json("inspect", patch, "--base", base)["partial"])

    def test_forged_payloads(self):
        base, codes = self.dir / "forged-0", set()
        payload, roots, entry, sums = self.parts(1, self.data[1])
        for at in range(len(payload)):
            bad = payload[:at] + bytes([payload[at] ^ 1 << at % 8]) + payload[at + 1:]
            patch = self.forge(bad, roots, entry[:-8], struct.pack("<Q", content_sum(bad)[0]), sums)
            codes.add(run("verify", patch, "--base", base).returncode)
        self.assertIn(CODE, codes)
        self.assertLessEqual(codes, {0, CODE, TABLE, WRONG_RESULT})  # 0: a bit that nothing is read from

    # ---- models that do not fit

    def test_the_wrong_base(self):
        self.apply_fails(WRONG_BASE, "starts from state", self.patch, self.steps[2])
        self.fails(WRONG_BASE, "does not start where the base is", "squash", self.patch, "--base", self.steps[2], "-o",
                   self.dir / "out")
        self.fails(WRONG_BASE, "does not start where the one before it ends", "squash", self.patch, self.patch, "--base",
                   self.steps[0], "-o", self.dir / "out")

    def test_models_with_other_tensors(self):
        other, old = self.dir / "other.safetensors", self.steps[0]
        cases = {"renamed": ({"name": "v"}, "tensor 'v' is in"), "reshaped": ({"shape": (3_000,)}, "another shape"),
                 "transposed": ({"shape": (100, 30)}, "another shape"), "other dtype": ({"dtype": "F16"}, "'F16' in")}
        for what, (how, fragment) in cases.items():
            with self.subTest(what):
                self.write(other, self.data[0], **how)
                self.apply_fails(LAYOUT, fragment, self.patch, other)
                self.fails(LAYOUT, fragment, "diff", old, other, "-o", self.dir / "out")
                self.fails(LAYOUT, fragment, "squash", self.patch, "--base", other, "-o", self.dir / "out")
                self.fails(LAYOUT, fragment, "diff", old, self.steps[1], "-o", self.dir / "out", "--history", other)
        self.write(other, self.data[0] + bytes(200), shape=(31, 100))
        self.apply_fails(LAYOUT, "another shape", self.patch, other)
        write_model(other, {"w": ("BF16", [30, 100], self.data[0])})
        self.apply_fails(LAYOUT, "tensor 'z' is in the patch, but not in the model", self.patch, other)
        write_model(other, {})
        self.apply_fails(LAYOUT, "but not in the model", self.patch, other)

    # ---- history

    def test_missing_and_wrong_history(self):
        patch = self.diff(1, 2, "--history", self.steps[0])
        second = self.diff(1, 2)
        self.assertTrue(self.json("verify", patch)["history"])  # as far as it goes without
        self.apply_fails(NEEDS_HISTORY, "is coded with history", patch, self.steps[1])
        self.apply_fails(NEEDS_HISTORY, "with the history from state", patch, self.steps[1], "--history", self.steps[3])
        for more in ([], ["--history", self.steps[3]]):
            self.fails(NEEDS_HISTORY, "is coded with history", "squash", patch, "--base", self.steps[1], "-o",
                       self.dir / "out", *more)
        # a patch as history must start at its base and lead to ours
        self.fails(WRONG_BASE, "leads to state", "diff", self.steps[1], self.steps[2], "-o", self.dir / "out",
                   "--history", second, "--history-base", self.steps[1])
        self.fails(WRONG_BASE, "but --history-base is", "diff", self.steps[1], self.steps[2], "-o", self.dir / "out",
                   "--history", self.patch, "--history-base", self.steps[3])
        self.fails(WRONG_BASE, "leads to state", "apply", patch, self.steps[1], "-o", self.dir / "out", "--history", second,
                   "--history-base", self.steps[1])
        self.fails(NEEDS_HISTORY, "with the history from state", "apply", patch, self.steps[1], "-o", self.dir / "out",
                   "--history", self.patch, "--history-base", self.steps[3])

    # ---- outputs

    def test_outputs_that_exist(self):
        out = self.dir / "out"
        for make in (lambda: out.write_text("mine"), out.mkdir, lambda: out.symlink_to("nowhere")):
            make()
            self.fails(EXISTS, "exists already", "apply", self.patch, self.steps[0], "-o", out)
            if not out.is_dir() and not out.is_symlink():
                self.fails(EXISTS, "exists", "diff", self.steps[0], self.steps[1], "-o", out)
            if out.is_dir() and not out.is_symlink():
                out.rmdir()
            else:
                out.unlink()
        directory = self.dir / "model"
        self.json("reshard", self.steps[0], "-o", directory)
        for make in (lambda: out.write_text("mine"), lambda: out.symlink_to("nowhere")):
            make()  # said before the models are even looked for
            for words in (["diff", "nowhere", "nowhere"], ["squash", "nowhere", "--base", "nowhere"]):
                self.fails(EXISTS, "exists already; --replace replaces it", *words, "-o", out)
            for words in (["diff", *self.steps[:2]], ["squash", self.patch, "--base", self.steps[0]]):
                self.fails(EXISTS, "exists already", *words, "-o", out)
                self.json(*words, "-o", out, "--replace")
                self.assertTrue(self.json("verify", out)["patch"])
            out.unlink()
        out.mkdir()
        self.fails(EXISTS, "exists already", "apply", self.patch, directory, "-o", out)
        self.fails(EXISTS, "exists already", "apply", self.patch, directory, "-o", directory)
        self.fails(EXISTS, "exists already", "apply", self.patch, self.steps[0], "-o", self.steps[0])

    def test_a_full_disk(self):
        def limited(*words):
            return subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", cli_case.ULPSYNC, *map(str, words)],
                                  capture_output=True, text=True)

        self.write(self.dir / "far", moved(self.data[0], share=1))
        self.json("diff", self.steps[0], self.dir / "far", "-o", self.dir / "far.ulp")
        for words in (["diff", self.steps[0], self.steps[1], "-o", self.dir / "out", "--coder", "dense"],
                      ["apply", self.patch, self.steps[0], "-o", self.dir / "out"],
                      ["apply", self.dir / "far.ulp", self.steps[0], "--in-place"],  # its journal does not fit
                      ["squash", self.dir / "far.ulp", "--base", self.steps[0], "-o", self.dir / "out"]):
            before = self.everything()
            done = limited(*words)
            self.assertEqual(done.returncode, NO_SPACE, f"{words[0]}: {done.stderr}")
            self.assertEqual(self.everything(), before)
        # behind the journal there is no way back, but one forward
        self.assertEqual(limited("apply", self.patch, self.steps[0], "--in-place").returncode, NO_SPACE)
        self.fails(INTERRUPTED, "recover", "digest", self.steps[0])
        self.assertTrue(self.json("recover", self.steps[0])["recovered"])
        self.assertEqual(self.steps[0].read_bytes(), self.steps[1].read_bytes())

    # ---- in place

    def test_links_are_not_followed_in_place(self):
        link, directory = self.dir / "link.safetensors", self.dir / "model"
        link.symlink_to(self.steps[0])
        self.fails(FILE_KIND, "is a symbolic link", "apply", self.patch, link, "--in-place")
        self.fails(FILE_KIND, "is a symbolic link", "recover", link)
        self.json("apply", self.patch, link, "-o", self.dir / "out")
        directory.mkdir()
        (directory / "model.safetensors").symlink_to(self.steps[0])
        self.fails(FILE_KIND, "is a symbolic link", "apply", self.patch, directory, "--in-place")
        self.json("apply", self.patch, directory, "-o", self.dir / "copied")
        self.assertEqual((self.dir / "copied/model.safetensors").read_bytes(), self.steps[1].read_bytes())
        self.assertFalse((self.dir / "copied/model.safetensors").is_symlink())

    def test_a_model_that_somebody_changes(self):
        with open(self.steps[0]) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.fails(BUSY, "or changed by another process", "apply", self.patch, self.steps[0], "--in-place")
            self.fails(BUSY, "or changed by another process", "recover", self.steps[0])
            self.fails(BUSY, "is being changed by another process", "digest", self.steps[0])
            fcntl.flock(held, fcntl.LOCK_SH)
            self.fails(BUSY, "is being read", "apply", self.patch, self.steps[0], "--in-place")
            self.json("digest", self.steps[0])
        self.json("apply", self.patch, self.steps[0], "--in-place")

    # ---- interrupted

    def journal(self, old=0, new=1):
        """The journal of the change from one step to another, as the library would leave it."""
        a, b = self.data[old], self.data[new]
        places = [i for i in range(len(a) // 2) if a[2 * i:2 * i + 2] != b[2 * i:2 * i + 2]]
        record = struct.pack("<4I", 0, 0, len(places), 0) + struct.pack(f"<{len(places)}I", *places)
        record += b"".join(b[2 * i:2 * i + 2] for i in places)
        record += bytes(-len(record) % 8)
        roots = bytes.fromhex(self.root(self.steps[old])) + bytes.fromhex(self.root(self.steps[new]))
        return b"ulpjrnl\0" + roots + struct.pack("<Q", 1) + record

    def interrupted(self, name="mine.safetensors"):
        """A model half of whose changes were written."""
        model = self.dir / name
        self.write(model, self.data[1][:1_500] + self.data[0][1_500:])
        journal = model.parent / f".{model.name}.ulpsync-journal"
        return model, journal

    def test_an_interrupted_model_is_refused_and_recovered(self):
        model, journal = self.interrupted()
        text = self.journal()
        journal.write_bytes(text)
        for words in (["info"], ["digest"], ["reshard", "-o", self.dir / "out"], ["apply", self.patch, "-o", self.dir / "o"],
                      ["verify", self.patch, "--base"], ["diff", "-o", self.dir / "o", self.steps[0]]):
            self.fails(INTERRUPTED, "recover", *words, model)
        self.assertEqual(self.json("recover", model), {"recovered": True})
        self.assertEqual(model.read_bytes(), self.steps[1].read_bytes())
        self.assertFalse(journal.exists())
        self.assertEqual(self.json("recover", model), {"recovered": False})
        self.assertIn("nothing to finish", run("recover", model).stdout)
        model, journal = self.interrupted()
        journal.write_bytes(text)
        self.assertIn("was finished", run("recover", model).stdout)

    def test_apply_in_place_recovers_by_itself(self):
        text = self.journal()
        for patch, step, already in ((self.patch, 1, True), (self.diff(1, 2), 2, False)):
            model, journal = self.interrupted()
            journal.write_bytes(text)
            self.assertEqual(self.json("apply", patch, model, "--in-place")["already"], already)
            self.assertEqual(model.read_bytes(), self.steps[step].read_bytes())
            self.assertFalse(journal.exists())

    def test_an_interrupted_directory(self):
        directory = self.dir / "model"
        directory.mkdir()
        self.interrupted("model/model.safetensors")
        text = self.journal()
        (directory / ".ulpsync-journal").write_bytes(text)
        self.fails(INTERRUPTED, "recover", "digest", directory)
        self.fails(INTERRUPTED, "recover", "digest", directory / "model.safetensors")
        self.assertTrue(self.json("recover", directory)["recovered"])
        self.assertEqual((directory / "model.safetensors").read_bytes(), self.steps[1].read_bytes())

    def test_a_journal_of_the_file_is_seen_from_its_directory_and_the_other_way_round(self):
        directory = self.dir / "model"
        directory.mkdir()
        text = self.journal()
        for journal, asked, right in (
                (".model.safetensors.ulpsync-journal", directory, directory / "model.safetensors"),
                (".ulpsync-journal", directory / "model.safetensors", directory)):
            self.interrupted("model/model.safetensors")
            (directory / journal).write_bytes(text)
            self.fails(INTERRUPTED, journal, "recover", asked)
            self.fails(INTERRUPTED, f"`ulpsync recover` on '{right.resolve()}'", "recover", asked)
            self.fails(INTERRUPTED, f"`ulpsync recover` on '{right.resolve()}'", "digest", right)
            self.fails(INTERRUPTED, journal, "apply", self.patch, asked, "--in-place")
            self.assertTrue(self.json("recover", right)["recovered"])

    def test_damaged_and_stray_journals(self):
        model, journal = self.interrupted()
        good = self.journal()
        stray = self.journal(1, 2)
        for what, text in {"empty": b"", "text": b"hello", "cut": good[:-8], "header alone": good[:80],
                           "longer": good + bytes(8), "a place outside": good[:96] + b"\xff" * 4 + good[100:],
                           "another block": good[:84] + b"\x09" + good[85:], "another chunk": b"".join((good[:80], b"\x09", good[81:])),
                           "another value": good[:-10] + bytes([good[-10] ^ 1]) + good[-9:], "of another step": stray,
                           "no records": good[:72] + bytes(8), "too many": good[:88] + b"\xff\xff\xff\xff" + good[92:]}.items():
            with self.subTest(what):
                journal.write_bytes(text)
                self.fails(JOURNAL, "", "recover", model)
                self.fails(JOURNAL, "", "apply", self.patch, model, "--in-place")
        journal.write_bytes(good)
        self.assertTrue(self.json("recover", model)["recovered"])

    def test_killed_at_any_moment_it_is_old_or_new_or_can_be_finished(self):
        run("synth", "-o", self.dir, "-p", "20M", "-s", "1")
        old, new = self.dir / "step-000.safetensors", self.dir / "step-001.safetensors"
        patch, model = self.dir / "big.ulp", self.dir / "big"
        self.json("diff", old, new, "-o", patch)
        roots = {self.root(old): "old", self.root(new): "new"}
        shutil.copy(old, model)
        started = time.monotonic()
        run("apply", patch, model, "--in-place")
        needed = time.monotonic() - started
        for part in range(1, 13):
            shutil.copy(old, model)
            process = subprocess.Popen([cli_case.ULPSYNC, "apply", patch, model, "--in-place"], stdout=subprocess.DEVNULL)
            time.sleep(needed * part / 12)
            process.send_signal(signal.SIGKILL)
            process.wait()
            state = run("digest", model)
            self.assertIn(state.returncode, (0, INTERRUPTED), state.stderr)
            recovered = self.json("recover", model)["recovered"]
            self.assertEqual(recovered, state.returncode == INTERRUPTED)
            self.assertIn(self.root(model), roots)
            if recovered:
                self.assertEqual(roots[self.root(model)], "new")
            self.assertEqual(self.json("apply", patch, model, "--in-place")["child_root"], self.root(new))
            for left in self.dir.glob(".big*"):
                self.assertNotIn("journal", left.name)


if __name__ == "__main__":
    main()
