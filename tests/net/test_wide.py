#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long objects come over several connections: test_wide.py ULPSYNC DRIVER. In order and whole, whichever of the
connections breaks, and never with a wrong byte."""
import net_case
from net_case import NetCase

from cli_case import weights, write_model

IO, PART, MISSING = 24, 76, 83
PARTS = "where/rl/part/*"


class Wide(NetCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve(bucket="bucket")
        self.model = self.dir / "model.safetensors"
        data = weights(2_600_000, 1)
        write_model(self.model, {"w": ("BF16", [len(data) // 2], data)})
        self.json("publish", self.model, *self.place(), "--state", self.dir / "state")

    def place(self):
        return ["--store", "s3://bucket/where", "--run", "rl"]

    def follow(self, name):
        self.json("follow", *self.place(), "--out", self.dir / name, "--once")
        self.assertEqual(self.root(self.dir / name / "current"), self.root(self.model))

    def ranges(self):
        return [request for request in self.server.requests("Get") if "/part/" in request["key"]]

    def test_several_connections(self):
        before = len(self.ranges())
        self.follow("out")
        asked = self.ranges()[before:]
        self.assertEqual(len(asked), 8)
        self.assertGreater(len({request["connection"] for request in asked}), 1)

    def test_connections_that_break(self):
        for number, (behaviour, nth, more) in enumerate([
                ("reset_mid_body", "1", {}), ("reset_mid_body", "3-6", {}), ("reset_before_headers", "2", {}),
                ("short_body", "8", {}), ("status", "1-8", {"status": 503}), ("close_after", "*", {})]):
            with self.subTest(behaviour, nth=nth):
                self.server.forget()
                self.server.rule(behaviour, operation="Get", key=PARTS, nth=nth, **more)
                self.follow(f"out-{number}")

    def test_wrong_bytes(self):
        for number, (behaviour, nth, codes) in enumerate([
                ("one_bit", "5", {PART}), ("other_bytes", "1", {PART}), ("wrong_total", "4", {PART, IO, 26}),
                ("whole_for_range", "2", {IO, PART})]):
            with self.subTest(behaviour, nth=nth):
                self.server.forget()
                self.server.rule(behaviour, operation="Get", key=PARTS, nth=nth)
                out = self.dir / f"wrong-{number}"
                done = self.run_command("follow", *self.place(), "--out", out, "--once")
                self.assertIn(done.returncode, codes, done.stderr)
                self.assertFalse((out / "current").exists())
                self.server.forget()
                self.follow(out.name)


if __name__ == "__main__":
    net_case.main()
