# SPDX-License-Identifier: Apache-2.0
"""What the tests of the demo share: running it small, a build with one program exchanged, and who is still alive."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

EXAMPLES = BUILD = None
TINY = ("--away", 0, "--steps", 1, "--proof-steps", 1, "--pretrain", 20, "--batch", 16, "--groups", 16, "--size", 8)
SECONDS = 300  # nothing here takes that long; a slow machine may


def words_of(out, *words, build=None):
    return [str(word) for word in (EXAMPLES / "run", build or BUILD, "--out", out, *words)]


def run(out, *words, build=None, **more):
    return subprocess.run(words_of(out, *words, build=build), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=SECONDS, **more)


def figures(out):
    return json.loads((out / "demo.json").read_text())


def alive(path):
    """Processes that have `path` among their arguments, those who look left out."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(path) in words and int(process.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


class RlCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.out = self.dir / "out"
        self.addCleanup(shutil.rmtree, self.dir)

    def build_with(self, **programs):
        """The build, with other programs in it: a script for a shell that knows the real one as $real, or None for none."""
        build = self.dir / "build"
        build.mkdir()
        for name in ("ulpsync", "rl_trainer", "rl_worker"):
            if name not in programs:
                (build / name).symlink_to(BUILD / name)
            elif programs[name] is not None:
                (build / name).write_text(f"#!/bin/sh\nreal='{BUILD / name}'\n{programs[name]}\n")
                (build / name).chmod(0o755)
        return build

    def wait_for(self, condition, what):
        end = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, f"it took too long: {what}")
            time.sleep(0.02)

    def assert_nobody_is_left(self):
        """A process that was killed may take a moment to go."""
        self.wait_for(lambda: not alive(self.dir), f"to end {alive(self.dir)}")

    def assert_failed(self, done, *fragments):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for fragment in ("FAILED: ", *fragments):
            self.assertIn(fragment, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assert_nobody_is_left()


def main():
    """PROGRAM.py EXAMPLES_RL BUILD [unittest arguments]"""
    global EXAMPLES, BUILD
    EXAMPLES, BUILD = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
