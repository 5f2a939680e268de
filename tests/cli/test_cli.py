#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command as users meet it: test_cli.py ULPSYNC [unittest arguments]."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import time

import cli_case
from cli_case import CliCase, main, run, write_model


class Cli(CliCase):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "model.safetensors"
        write_model(self.model, {"b.weight": ("BF16", [2, 3], bytes(range(12))), "a": ("F8_E4M3", [5], b"hello")},
                    {"format": "pt"})

    # ---- the frame

    def test_help_lists_every_verb_and_each_teaches(self):
        program = run("--help").stdout
        verbs = re.findall(r"^  (\w+) ", program, re.M)
        self.assertGreaterEqual(set(verbs), {"info", "digest", "synth", "reshard", "diff", "apply", "recover",
                                                "verify", "inspect", "squash", "bench"})
        for verb in verbs:
            for form in ([verb, "--help"], ["help", verb], [verb, "-h"]):
                done = run(*form)
                self.assertEqual(done.returncode, 0)
                self.assertIn(f"Usage: ulpsync {verb} ", done.stdout)
                self.assertIn(f"$ ulpsync {verb} ", done.stdout)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_index_of_the_documents_lists_every_verb(self):
        index = (pathlib.Path(__file__).parents[2] / "docs/README.md").read_text()
        for verb in re.findall(r"^  (\w+) ", run("--help").stdout, re.M):
            self.assertRegex(index, rf"(?m)^\| `{verb}\b", f"the table of verbs in docs/README.md lacks {verb}")

    def test_manual_page_holds_the_text_of_the_help(self):
        page = run("help", "--man", "digest").stdout
        self.assertTrue(page.startswith(".TH ULPSYNC"))
        self.assertIn("bit for bit", page)
        if shutil.which("man"):
            source = self.dir / "page.1"
            source.write_text(page)
            shown = subprocess.run(["man", "-l", source], capture_output=True, text=True, env={**os.environ, "MANWIDTH": "80"})
            self.assertIn("NAME", shown.stdout)
            self.assertEqual(shown.stderr, "")

    def test_manual_page_of_the_program_lists_verbs_and_exit_codes(self):
        page = run("help", "--man").stdout
        for line in run("help", "codes").stdout.splitlines():
            code, name, _ = line.split(maxsplit=2)
            self.assertIn(f"\n.B {code} {name}\n", page)
        for verb in re.findall(r"^  (\w+) ", run("--help").stdout, re.M):
            self.assertIn(f".BR ulpsync\\-{verb} (1)", page)

    def test_version_names_version_and_instruction_sets(self):
        self.assertRegex(run("--version").stdout, r"^ulpsync \d+\.\d+\.\d+ \((portable|avx2|avx512|neon)\)\n$")

    def test_codes_are_listed(self):
        lines = run("help", "codes").stdout.splitlines()
        self.assertIn(" 30  ULP_E_TRUNCATED", "\n".join(lines))
        self.assertEqual(len(lines), len({line.split()[0] for line in lines}))

    def test_mistakes_on_the_command_line(self):
        self.fails(2, "there is no verb 'frobnicate'", "frobnicate")
        self.fails(2, "there is no verb 'frobnicate'", "help", "frobnicate")
        self.fails(2, "unknown option '--frob'", "info", self.model, "--frob")
        self.fails(2, "MODEL is missing: ulpsync info MODEL", "info")
        self.fails(2, "is one too many", "info", self.model, self.model)
        self.fails(2, "takes no value", "info", self.model, "--json=yes")
        self.fails(2, "needs a value: --threads N", "digest", self.model, "--threads")
        for bad in ("0", "-1", "x", "1.5", "", ".", "1.2.3", "0x10", "1e2", "nan", "1.0005K", "99999999999999999999"):
            self.fails(2, "give a whole number from 1 to ", "digest", self.model, f"--threads={bad}")
        self.fails(11, "1025 threads asked for; the limit is 1024", "digest", self.model, "--threads=1025")

    def test_operands_may_look_like_options_behind_two_dashes(self):
        self.fails(20, "'--json'", "info", "--", "--json")

    def test_failures_are_json_too(self):
        done = run("digest", self.dir / "nowhere", "--json")
        self.assertEqual((done.returncode, done.stderr), (20, ""))
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], error["name"]), (20, "ULP_E_NOT_FOUND"))
        self.assertIn("nowhere", error["message"])

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([cli_case.ULPSYNC, "info", self.model], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 24)
        self.assertIn("standard output", done.stderr)

    # ---- info and digest

    def test_info(self):
        info = self.json("info", self.model, "--tensors")
        self.assertEqual((info["tensors"], info["elements"], info["bytes"], info["files"]), (2, 11, 17, 1))
        self.assertEqual(info["dtypes"]["BF16"], {"tensors": 1, "elements": 6, "bytes": 12})
        self.assertEqual(info["metadata"], {"format": "pt"})
        self.assertEqual(info["list"][0], {"name": "a", "dtype": "F8_E4M3", "shape": [5], "elements": 5, "bytes": 5})
        self.assertIn("tensors   2 in 1 file", run("info", self.model).stdout)

    def test_names_cannot_drive_the_terminal(self):
        write_model(self.model, {"x\x1b[31m\x07": ("U8", [1], b"x")})
        self.assertIn("x\\x1b[31m\\x07", run("info", self.model, "--tensors").stdout)
        self.assertEqual(self.json("info", self.model, "--tensors")["list"][0]["name"], "x\x1b[31m\x07")

    def test_arguments_cannot_break_json_or_drive_the_terminal(self):
        bad = os.fsencode(self.dir) + b"/\xff\xed\xa0\x80\x1b[31m/x"
        done = subprocess.run([cli_case.ULPSYNC, "synth", "-o", bad, "--json"], capture_output=True)
        self.assertEqual(json.loads(done.stdout.decode())["error"]["code"], 20)
        for words in (["synth", "-o", bad], ["info", "--" + "\x1b[31m"], ["digest", bad]):
            done = subprocess.run([cli_case.ULPSYNC, *words], capture_output=True)
            self.assertNotIn(b"\x1b", done.stderr)
            self.assertIn(b"\\x1b[31m", done.stderr)

    def test_verbose_says_what_is_done(self):
        done = run("digest", self.model, "--verbose")
        self.assertIn("info: opened", done.stderr)
        self.assertIn("debug: digesting on", done.stderr)

    def test_outputs_of_equal_models_are_equal(self):
        self.assertEqual(run("digest", self.model, "--tensors").stdout, run("digest", self.model, "--tensors").stdout)

    def test_digest(self):
        digest = self.json("digest", self.model)
        self.assertRegex(digest["root"], "^[0-9a-f]{64}$")
        self.assertEqual((digest["tensors"], digest["bytes"]), (2, 17))
        self.assertIn(f"root     {digest['root']}", run("digest", self.model).stdout)
        for threads in (1, 2, 5):
            self.assertEqual(self.json("digest", self.model, "--threads", threads)["root"], digest["root"])

    def test_digest_says_which_tensor_differs(self):
        other = self.dir / "other.safetensors"
        write_model(other, {"b.weight": ("BF16", [2, 3], bytes(range(1, 13))), "a": ("F8_E4M3", [5], b"hello")})
        mine, its = (self.json("digest", m, "--tensors")["sums"] for m in (self.model, other))
        self.assertEqual([name for name in mine if mine[name] != its[name]], ["b.weight"])
        self.assertIn(mine["a"] + "  a\n", run("digest", self.model, "--tensors").stdout)

    def test_file_truncated_while_mapped_is_a_clean_failure(self):
        big, size = self.dir / "big.safetensors", 3 << 30
        text = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
        big.write_bytes(struct.pack("<Q", len(text)) + text)
        os.truncate(big, 8 + len(text) + size)  # sparse: no disk space, but a second of reading
        process = subprocess.Popen([cli_case.ULPSYNC, "digest", big, "--threads", "1"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        while process.poll() is None and str(big) not in maps.read_text():
            time.sleep(0.001)
        os.truncate(big, 4096)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 26, error)
        self.assertIn("a mapped file shrank", error)

    # ---- reshard

    def test_resharded_models_have_the_same_root(self):
        run("synth", "-o", self.dir, "-p", "200K", "-s", "0", "--layers", "2")
        source = self.dir / "step-000.safetensors"
        root = self.json("digest", source)["root"]
        for shards in (1, 2, 5, 12):
            out = self.dir / f"out{shards}"
            self.assertEqual(self.json("reshard", source, "-o", out, "--shards", shards)["files"], shards)
            self.assertEqual(len(list(out.glob("*.safetensors"))), shards)
            self.assertEqual((out / "model.safetensors.index.json").exists(), shards > 1)
            digest = self.json("digest", out)
            self.assertEqual((digest["root"], digest["files"]), (root, shards))
            self.assertEqual(self.json("info", out)["metadata"]["format"], "pt")
        self.fails(21, "holds a model already", "reshard", source, "-o", self.dir / "out5")
        self.fails(2, "cannot go into", "reshard", source, "-o", self.dir / "out99", "--shards", "99")
        self.fails(2, "say where to write", "reshard", source)
        again = self.dir / "again"
        self.json("reshard", self.dir / "out5", "-o", again)
        self.assertEqual((again / "model.safetensors").read_bytes(), (self.dir / "out1/model.safetensors").read_bytes())

    def test_half_a_sharded_model_is_refused(self):
        run("synth", "-o", self.dir, "-p", "200K", "-s", "0", "--layers", "2")
        out = self.dir / "out"
        self.json("reshard", self.dir / "step-000.safetensors", "-o", out, "--shards", "3")
        (out / "model.safetensors.index.json").unlink()
        self.json("digest", out)  # all three files are there: nothing is missing
        (out / "model-00002-of-00003.safetensors").unlink()
        self.fails(41, "is one of 3 files, but there are 2 and no index", "digest", out)

    # ---- synth

    def test_synth_is_a_function_of_its_options(self):
        roots = {}
        for name, options in {"one": [], "same": ["--threads", "1"], "seed": ["--seed", "2"], "bf16": ["--regime", "bf16"],
                              "lr": ["--lr", "2e-6"], "f16": ["--dtype", "f16"], "f32": ["--dtype", "f32"]}.items():
            out = self.dir / name
            made = self.json("synth", "-o", out, "--params", "300K", "--steps", "2", *options)
            self.assertEqual(made["checkpoints"], 3)
            self.assertEqual(sorted(p.name for p in out.iterdir()), [f"step-00{i}.safetensors" for i in range(3)])
            roots[name] = [self.json("digest", out / f"step-00{i}.safetensors")["root"] for i in range(3)]
            self.assertEqual(len(set(roots[name])), 3)
        self.assertEqual(roots["one"], roots["same"])
        self.assertEqual(len({r[2] for r in roots.values()}), 6)

    def test_a_shorter_run_replaces_a_longer_one_whole(self):
        out = self.dir / "run"
        self.json("synth", "-o", out, "-p", "20K", "-s", "4")
        self.json("synth", "-o", out, "-p", "20K", "-s", "2", "--seed", "9", "--force")
        self.assertEqual(sorted(p.name for p in out.iterdir()), [f"step-00{i}.safetensors" for i in range(3)])
        for path in out.iterdir():
            self.assertIn("seed=9", self.json("info", path)["metadata"]["ulpsync.synth"])

    def test_synth_gives_the_parameters_asked_for(self):
        made = self.json("synth", "-o", self.dir / "point", "-p", "0.0803M", "-s", "0")
        self.assertTrue(80_300 - made["hidden"] < made["params"] <= 80_300)
        for params, layers in ((10_000, None), (123_456, 3), (2_000_000, None), (2_000_000, 24)):
            out = self.dir / f"p{params}-{layers}"
            words = ["--layers", layers] if layers else []
            made = self.json("synth", "-o", out, "-p", params, "-s", "0", *words)
            info = self.json("info", out / "step-000.safetensors")
            self.assertEqual(info["elements"], made["params"])
            self.assertTrue(params - made["hidden"] < made["params"] <= params)
            self.assertEqual(info["tensors"], 9 * made["layers"] + 2)
            if layers:
                self.assertEqual(made["layers"], layers)

    def test_synth_refuses_what_makes_no_sense(self):
        self.fails(2, "say where to write", "synth")
        self.fails(2, "choose one of master, bf16", "synth", "-o", self.dir, "--regime", "fp8")
        self.fails(2, "choose one of bf16, f16, f32", "synth", "-o", self.dir, "--dtype", "int4")
        self.fails(2, "do not go into", "synth", "-o", self.dir, "-p", "10K", "--layers", "500")
        self.fails(2, "use --regime master", "synth", "-o", self.dir, "--regime", "bf16", "--dtype", "f32")
        self.fails(20, "cannot make directory", "synth", "-o", self.dir / "a/b/c", "-p", "10K")
        self.fails(25, "is not a directory", "synth", "-o", self.model, "-p", "10K")
        self.fails(23, "free", "synth", "-o", self.dir, "-p", "1000G", "-s", "255")
        run("synth", "-o", self.dir / "x", "-p", "10K", "-s", "1")
        self.fails(21, "add --force", "synth", "-o", self.dir / "x", "-p", "10K", "-s", "1")
        self.assertEqual(run("synth", "-o", self.dir / "x", "-p", "10K", "-s", "1", "--force").returncode, 0)

    def test_interrupted_synth_leaves_nothing_behind(self):
        out = self.dir / "big"
        process = subprocess.Popen([cli_case.ULPSYNC, "synth", "-o", out, "-p", "300M", "-s", "2", "--threads", "1"],
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not out.is_dir() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT, error)
        self.assertIn("ULP_E_CANCELLED", error)
        self.assertEqual(list(out.iterdir()), [])

    def test_ignored_signals_stay_ignored(self):
        out = self.dir / "deaf"
        process = subprocess.Popen(["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", cli_case.ULPSYNC, "synth", "-o", out,
                                    "-p", "30M", "-s", "1"], stdout=subprocess.DEVNULL)
        while not out.is_dir():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=60), 0)

    def test_a_file_size_limit_is_a_clean_failure(self):
        done = subprocess.run(["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", cli_case.ULPSYNC, "synth", "-o", self.dir / "small",
                               "-p", "1M", "-s", "1"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 23, done.stderr)
        self.assertEqual(list((self.dir / "small").iterdir()), [])

    def test_too_few_open_files_is_a_clean_failure(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 20; exec "$@"', "sh", cli_case.ULPSYNC, "synth", "-o", self.dir / "few",
                               "-p", "20K", "-s", "20"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("ulimit", done.stderr)
        self.assertEqual(list((self.dir / "few").iterdir()), [])

    def test_progress_shows_on_a_terminal_only(self):
        words = [cli_case.ULPSYNC, "synth", "-o", self.dir / "t", "-p", "60M", "-s", "2", "--threads", "1"]
        ours, theirs = pty.openpty()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs)
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
        self.assertEqual(process.wait(), 0)
        os.close(ours)
        self.assertIn(b"synth ", shown)
        self.assertEqual(run(*words[1:], "--force").stderr, "")


if __name__ == "__main__":
    main()
