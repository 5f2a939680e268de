#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo over a real S3 server: test_s3.py EXAMPLES_RL BUILD [unittest arguments]. Skipped where radosgw is not installed."""
import pathlib
import sys

import rl_case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "net"))
import net_case  # noqa: E402


class OverS3(rl_case.RlCase):
    def setUp(self):
        super().setUp()
        self.client = RADOS.client("learning")
        self.environment = net_case.client_environment(RADOS.endpoint, RADOS.keys)

    def demo(self, *words):
        done = rl_case.run(self.out, "--store", "s3://learning/demos", *rl_case.TINY, *words, env=self.environment)
        net_case.Secrets.check_text(self, done.stdout, done.stderr)
        net_case.Secrets.check_files(self, self.dir)
        return done

    def test_same_flags(self):
        done = self.demo("--steps", 3, "--run", "first")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        seen = rl_case.figures(self.out)
        self.assertTrue(seen["identical"])
        self.assertEqual([worker["lives"] for worker in seen["workers"]], [1, 2])
        self.assertFalse((self.out / "store").exists())
        self.assertTrue((self.out / "report.html").exists())
        again = self.demo("--run", "first")
        self.assert_failed(again, "the store has a run first already; choose another name")

    def test_a_bucket_that_is_not_there(self):
        self.assert_failed(self.demo("--store", "s3://nobody/demos"), "s3://nobody/demos")


if __name__ == "__main__":
    RADOS = net_case.Radosgw()
    try:
        rl_case.main()
    finally:
        RADOS.stop()
