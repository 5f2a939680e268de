# SPDX-License-Identifier: Apache-2.0
"""What the tests of the verbs on runs share."""
import json
import subprocess
import time

import cli_case
from cli_case import CliCase, moved, run, weights, write_model

RECORD = {"sequence", "version", "epoch", "step", "time_ms", "root", "elements", "changed", "patch_bytes", "bits_per_change",
          "anchor_bytes", "history", "anchors", "ways", "oldest", "boundary", "signer"}
STORED = {"stored_bytes", "stored_objects"}
FETCHED = {"fetched_bytes", "fetched_patch_bytes", "fetched_anchor_bytes", "fetched_record_bytes", "fetched_patches",
           "fetched_anchors", "fetched_records", "fetched_objects"}
PHASES = {f"{phase}_ms" for phase in ("poll", "fetch", "verify", "decode", "digest", "stage", "apply", "encode", "store",
                                      "commit")}
USAGE, UNSUPPORTED, NOT_FOUND, EXISTS, PERMISSION, IO, TRUNCATED, NAME = 2, 13, 20, 21, 22, 24, 30, 40
SHARDS, LAYOUT, WRONG_BASE, BUSY = 41, 55, 56, 61
NO_RUN, CHAIN, FENCED, ROLLBACK, UNREACHABLE, PART, OTHER_RUN = 70, 72, 73, 74, 75, 76, 78
FROZEN, UNSIGNED, SIGNATURE, PART_MISSING, KEY = 80, 81, 82, 83, 84


class RunCase(CliCase):
    def setUp(self):
        super().setUp()
        self.store = self.dir / "store"
        self.processes = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()

    def start(self, *words, **more):
        process = subprocess.Popen([cli_case.ULPSYNC, *map(str, words)], **{"stderr": subprocess.DEVNULL, **more})
        self.processes.append(process)
        return process

    def wait_until_it_listens(self, process, number):
        """Who is signalled before its handler stands ends by the signal, however well it is written."""
        def listens():
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                    lines = file.read().splitlines()
            except FileNotFoundError:
                return True
            caught = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")]
            return not caught or caught[0] >> (number - 1) & 1 or process.poll() is not None
        self.wait_for(listens, 20)

    def place(self, name="rl"):
        return ["--store", self.store, "--run", name]

    def publish(self, model, *more, state="state", name="rl"):
        return self.json("publish", model, *self.place(name), "--state", self.dir / state, *more)

    def follow(self, out="out", *more, name="rl"):
        return self.json("follow", *self.place(name), "--out", self.dir / out, "--once", *more)

    def current(self, out):
        return self.root(self.dir / out / "current")

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it took too long")
            time.sleep(0.01)

    def lines(self, *words):
        """JSON, one object on each line."""
        done = run(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def log(self, *more, name="rl"):
        return self.lines("log", *self.place(name), *more)

    def make_steps(self, count, params=20_000, folder=None):
        """Models, each a little further than the one before."""
        paths, data = [], weights(params, 1)
        for number in range(count):
            path = (folder or self.dir) / f"step-{number}.safetensors"
            write_model(path, {"w": ("BF16", [len(data) // 2], data)})
            paths.append(path)
            data = moved(data, seed=number)
        return paths

    def make_key(self, name):
        """The paths of a private and a public key."""
        done = run("keygen", self.dir / name)
        if done.returncode == UNSUPPORTED:
            self.skipTest("a build without OpenSSL")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.dir / name, self.dir / f"{name}.pub"

    def parts(self, name="rl"):
        return sorted(path for path in (self.store / name / "part").rglob("*") if path.is_file())
