#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long objects come over several connections: test_wide.py ULPSYNC DRIVER. In order and whole, whichever of the
connections breaks, and never with a wrong byte."""
import net_case
from net_case import Driver, NetCase, Stored

from cli_case import weights, write_model

IO, CHANGED, PART, MISSING = 24, 26, 76, 83
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
                ("one_bit", "5", {PART}), ("other_bytes", "1", {PART}), ("wrong_total", "4", {PART, IO, CHANGED}),
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

    def test_another_object(self):
        """Pieces of two objects are not put together, even where nobody knows a hash."""
        self.server.bucket.put("where/long", Stored(weights(2_500_000, 2)))
        for nth in ("1", "3", "8"):
            with self.subTest(nth=nth):
                self.server.forget()
                self.server.rule("replaced", operation="Get", key="where/long", nth=nth)
                store = Driver(self, "s3://bucket/where")
                answer = store("stream", "long", 0, 5_000_000, self.dir / "long")
                self.assertEqual(answer["status"], CHANGED, answer)
                self.assertIn("replaced", answer["message"])
                store.close()

    def test_a_wrong_clock(self):
        """All connections have signed with it before the first of them is told."""
        data = weights(2_500_000, 2)
        self.server.bucket.put("where/long", Stored(data))
        for offset in (-86400, 3600):
            with self.subTest(offset=offset):
                self.server.forget()
                self.server.clock_offset = offset
                self.server.rule("late", operation="Get", key="where/long", nth="1-8")
                store = Driver(self, "s3://bucket/where")
                for asked in (16, 24):  # the second time the clock is known
                    answer = store("stream", "long", 0, len(data), self.dir / "long")
                    self.assertEqual(answer["status"], 0, answer)
                    self.assertEqual((self.dir / "long").read_bytes(), data)
                    self.assertEqual(len(self.server.requests("Get", "where/long")), asked)
                store.close()


if __name__ == "__main__":
    net_case.main()
