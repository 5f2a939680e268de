#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys from the command: test_keys.py ULPSYNC [unittest arguments]."""
import json
import os
import re
import shutil
import subprocess
import unittest

from cli_case import CliCase, main, run

USAGE, LIMIT, UNSUPPORTED, NOT_FOUND, EXISTS = 2, 11, 13, 20, 21
OPENSSL = shutil.which("openssl")

# what stands before the 32 bytes in the DER forms of RFC 8410
PRIVATE_DER = bytes.fromhex("302e020100300506032b657004220420")
PUBLIC_DER = bytes.fromhex("302a300506032b6570032100")


class Keygen(CliCase):
    def setUp(self):
        super().setUp()
        self.path, self.public = self.dir / "key", self.dir / "key.pub"
        if run("keygen", self.dir / "probe").returncode == UNSUPPORTED:
            self.skipTest("a build without OpenSSL")
        (self.dir / "probe").unlink()
        (self.dir / "probe.pub").unlink()

    def seed(self, comment=""):
        return re.fullmatch(rf"ulpsync-ed25519-private ([0-9a-f]{{64}}){comment}\n", self.path.read_text())[1]

    def test_both_files_and_what_is_printed(self):
        done = run("keygen", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^ulpsync-ed25519 [0-9a-f]{64}\n$")
        self.assertEqual(self.public.read_text(), done.stdout)
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)
        self.assertNotIn(self.seed(), done.stdout)
        self.assertEqual(sorted(os.listdir(self.dir)), ["key", "key.pub"])

    def test_the_private_file_is_private_whatever_the_umask(self):
        self.assertEqual(run("keygen", self.path, umask=0).returncode, 0)
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)
        self.assertEqual(self.public.stat().st_mode & 0o7777, 0o666)

    def test_comment(self):
        done = run("keygen", self.path, "--comment", "trainer, Zürich 2026")
        self.assertRegex(done.stdout, r"^ulpsync-ed25519 [0-9a-f]{64} trainer, Zürich 2026\n$")
        self.assertEqual(self.public.read_text(), done.stdout)
        self.seed(" trainer, Zürich 2026")

    def test_json(self):
        told = self.json("keygen", self.path, "--comment", "a \"b\"")
        self.assertEqual(set(told), {"path", "public_key", "comment"})
        self.assertEqual((told["path"], told["comment"]), (str(self.path), "a \"b\""))
        self.assertEqual(self.public.read_text(), f"ulpsync-ed25519 {told['public_key']} a \"b\"\n")

    def test_the_log_tells_no_secret(self):
        done = run("keygen", self.path, "--verbose")
        self.assertIn("committed", done.stderr)
        self.assertNotIn(self.seed(), done.stdout + done.stderr)

    def test_existing_files_stay_and_nothing_is_left_behind(self):
        for name in ("key", "key.pub"):
            for make in (lambda p: p.write_text("mine"), lambda p: p.symlink_to("nowhere"), lambda p: p.mkdir()):
                there = self.dir / name
                make(there)
                before = there.lstat()
                self.fails(EXISTS, repr(str(there)), "keygen", self.path)
                self.assertEqual(os.listdir(self.dir), [name])
                self.assertEqual((there.lstat().st_ino, there.lstat().st_mtime_ns), (before.st_ino, before.st_mtime_ns))
                there.rmdir() if there.is_dir() else there.unlink()

    def test_a_second_key_does_not_replace_the_first(self):
        run("keygen", self.path)
        before = self.path.read_text(), self.public.read_text()
        self.fails(EXISTS, "key", "keygen", self.path)
        self.assertEqual((self.path.read_text(), self.public.read_text()), before)

    def test_refusals(self):
        self.fails(USAGE, "PATH is missing", "keygen")
        self.fails(USAGE, "one too many", "keygen", self.path, self.path)
        self.fails(USAGE, "one line", "keygen", self.path, "--comment", "two\nlines")
        self.fails(LIMIT, "the limit is 200", "keygen", self.path, "--comment", "c" * 201)
        self.fails(NOT_FOUND, "nowhere", "keygen", self.dir / "nowhere" / "key")
        self.assertEqual(os.listdir(self.dir), [])
        done = run("keygen", self.dir / "nowhere" / "key", "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["code"], NOT_FOUND)

    @unittest.skipUnless(OPENSSL, "needs the openssl command")
    def test_another_program_agrees_on_the_public_key(self):
        public = self.json("keygen", self.path)["public_key"]
        done = subprocess.run([OPENSSL, "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], check=True,
                              input=PRIVATE_DER + bytes.fromhex(self.seed()), capture_output=True)
        self.assertEqual(done.stdout, PUBLIC_DER + bytes.fromhex(public))


if __name__ == "__main__":
    main()
