#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals that come while models are patched: test_patch_stops.py ULPSYNC [unittest arguments]."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

import cli_case
from cli_case import CliCase, main, run

MODEL_BYTES = 400 << 20
NO_SPACE, INTERRUPTED = 23, 60


def bytes_written(process):
    """By all its calls so far; 0 when it is gone."""
    try:
        lines = pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)


class Stops(CliCase):
    def setUp(self):
        super().setUp()
        self.old, self.new = self.dir / "old.safetensors", self.dir / "new.safetensors"
        self.patch, self.out = self.dir / "p.ulp", self.dir / "out"
        self.write(self.old, b"")
        self.write(self.new, b"\x01\x00\x02\x00")
        self.json("diff", self.old, self.new, "-o", self.patch)

    def write(self, path, end):
        """Zeros that take no room on the disk, and a few bytes at their end."""
        header = json.dumps({"w": {"dtype": "BF16", "shape": [MODEL_BYTES // 2], "data_offsets": [0, MODEL_BYTES]}})
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header.encode())
            file.truncate(8 + len(header) + MODEL_BYTES)
            file.seek(-len(end), os.SEEK_END)
            file.write(end)

    def start(self, *words):
        return subprocess.Popen([cli_case.ULPSYNC, *map(str, words), "-v", "--threads", "1"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def start_recover(self, model):
        return subprocess.Popen([cli_case.ULPSYNC, "recover", model, "-v"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def wait_for(self, process, text):
        """Until it says so on standard error."""
        said = ""
        for line in process.stderr:
            said += line
            if text in line:
                return
        self.fail(f"it never said {text!r}: {said}")

    def ended_by(self, number, process):
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -number, error)
        return error

    def test_a_copy_stops_while_digesting(self):
        before = sorted(os.listdir(self.dir))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("apply", self.patch, self.old, "-o", self.out)
            self.wait_for(process, "opened")
            process.send_signal(number)
            self.assertIn("once more stops at once", self.ended_by(number, process))
            self.assertEqual(sorted(os.listdir(self.dir)), before)

    @unittest.skipUnless(os.access("/proc/self/io", os.R_OK), "nothing tells how far it is")
    def test_a_copy_stops_while_copying(self):
        before = sorted(os.listdir(self.dir))
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("apply", self.patch, self.old, "-o", self.out)
            while process.poll() is None and bytes_written(process) < 1 << 20:
                time.sleep(0.001)
            process.send_signal(number)
            self.ended_by(number, process)
            self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_in_place_stops_before_it_writes(self):
        before = self.old.stat().st_mtime_ns
        process = self.start("apply", self.patch, self.old, "--in-place")
        self.wait_for(process, "opened")
        process.send_signal(signal.SIGINT)
        self.assertIn("ULP_E_CANCELLED", self.ended_by(signal.SIGINT, process))
        self.assertEqual(self.old.stat().st_mtime_ns, before)
        self.assertEqual(list(self.dir.glob(".*journal*")), [])

    def test_recover_is_cut_off_and_can_be_run_again(self):
        limited = subprocess.run(["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", cli_case.ULPSYNC, "apply", self.patch,
                                  self.old, "--in-place"], capture_output=True, text=True)
        self.assertEqual(limited.returncode, NO_SPACE, limited.stderr)
        journal = self.dir / ".old.safetensors.ulpsync-journal"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start_recover(self.old)
            self.wait_for(process, "finishing an interrupted change")
            process.send_signal(number)
            self.ended_by(number, process)
            self.assertTrue(journal.exists())  # it did not go on to the end first
            self.assertEqual(run("info", self.old).returncode, INTERRUPTED)
        self.assertTrue(self.json("recover", self.old)["recovered"])
        self.assertFalse(journal.exists())
        self.assertEqual(self.root(self.old), self.root(self.new))


class InPlace(CliCase):
    def test_at_any_moment_it_is_old_or_new(self):
        run("synth", "-o", self.dir, "-p", "20M", "-s", "1")
        old, new = self.dir / "step-000.safetensors", self.dir / "step-001.safetensors"
        patch, model = self.dir / "p.ulp", self.dir / "model"
        self.json("diff", old, new, "-o", patch)
        roots = {self.root(old), self.root(new)}
        shutil.copy(old, model)
        started = time.monotonic()
        run("apply", patch, model, "--in-place")
        needed = time.monotonic() - started
        for part in range(1, 9):
            shutil.copy(old, model)
            process = subprocess.Popen([cli_case.ULPSYNC, "apply", patch, model, "--in-place"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(needed * part / 8)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=60)
            self.assertIn(process.returncode, (0, -signal.SIGTERM), error)
            self.assertIn(self.root(model), roots)  # so there is no journal


if __name__ == "__main__":
    main()
