#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in tiles: `publish --tiles`, `follow --slice`; test_tiles.py ULPSYNC [unittest arguments]."""
from cli_case import CliCase, main, moved, weights, write_model

USAGE, NOT_FOUND, REGIONS, UNREACHABLE, OTHER_RUN = 2, 20, 59, 75, 78
ROWS, COLUMNS, TILES = 64, 512, 4
RULES = "# input is divided\n*.down columns\n"


class Tiles(CliCase):
    def setUp(self):
        super().setUp()
        self.place = ["--store", self.dir / "store", "--run", "rl"]
        self.tensors = {"norm": weights(100, 1), "x.down": weights(ROWS * COLUMNS, 2), "x.up": weights(ROWS * COLUMNS, 3)}
        self.layout = self.dir / "layout"
        self.layout.write_text(RULES)
        self.step = 0

    def publish(self, *more):
        model = self.dir / f"model-{self.step}"
        model.mkdir()
        if self.step:
            self.tensors = {name: moved(data, seed=self.step) for name, data in self.tensors.items()}
        shapes = {"norm": [100]}
        write_model(model / "model.safetensors",
                    {name: ("BF16", shapes.get(name, [ROWS, COLUMNS]), data) for name, data in self.tensors.items()})
        (model / "config.json").write_text("{}")
        self.step += 1
        return self.json("publish", model, *self.place, "--state", self.dir / "state", "--step", self.step, *more)

    def follow(self, out, *more):
        return self.json("follow", *self.place, "--out", self.dir / out, "--once", *more)

    def slice(self, tile):
        """What tile `tile` sees of the model: bytes of the file's data section."""
        down, up = bytearray(2 * ROWS * COLUMNS), bytearray(2 * ROWS * COLUMNS)
        band, rows = COLUMNS // TILES * 2, ROWS // TILES * COLUMNS * 2
        for row in range(ROWS):
            at = row * COLUMNS * 2 + (tile - 1) * band
            down[at:at + band] = self.tensors["x.down"][at:at + band]
        up[(tile - 1) * rows:tile * rows] = self.tensors["x.up"][(tile - 1) * rows:tile * rows]
        return self.tensors["norm"] + bytes(down) + bytes(up)

    def test_slices(self):
        self.publish("--tiles", TILES, "--layout", self.layout)
        for version in range(4):
            for tile in range(1, TILES + 1):
                report = self.follow(f"rank-{tile}", "--slice", f"{tile}/{TILES}", "--layout", self.layout)
                current = self.dir / f"rank-{tile}" / "current"
                data = (current / "model.safetensors").read_bytes()
                self.assertEqual(data[-len(self.slice(tile)):], self.slice(tile))
                self.assertEqual((current / "config.json").read_text(), "{}")
                if version:
                    self.assertEqual((report["fetched_patches"], report["fetched_anchors"]), (1, 0))
                    self.assertLess(report["fetched_bytes"], report["patch_bytes"] / 2)
            self.assertEqual(self.follow("whole")["held_version"], version)
            self.assertEqual(self.root(self.dir / "whole" / "current"), self.root(self.dir / f"model-{version}"))
            self.publish("--tiles", TILES, "--layout", self.layout)

    def test_refusals(self):
        follow = ["follow", *self.place, "--out", self.dir / "out", "--once"]
        for text in ("", "1", "0/4", "5/4", "1/0", "1/1025", "-1/4", "1/4x", "1/-4", "a/b", " 1/4", "1/ 4", "1//4"):
            self.fails(USAGE, "K/N", *follow, "--slice", text)
        self.fails(USAGE, "--slice K/N", *follow, "--layout", self.layout)
        self.fails(NOT_FOUND, "layout", *follow, "--slice", "1/4", "--layout", self.dir / "none")
        bad = self.dir / "bad"
        for text, code in ((b"x diagonal\n", USAGE), (b"x rows\0\n", USAGE), (b"#" * 70000, 11)):
            bad.write_bytes(text)
            self.fails(code, "", *follow, "--slice", "1/4", "--layout", bad)
        self.publish()
        self.publish()
        self.fails(UNREACHABLE, "cut into 4 tiles", *follow, "--slice", "1/4")
        model = self.dir / "model-1"
        publish = ["publish", model, *self.place, "--state", self.dir / "state", "--step", "9"]
        self.fails(USAGE, "--tiles N", *publish, "--layout", self.layout)
        self.fails(USAGE, "", *publish, "--tiles", "0")
        bad.write_text("norm rows\n")
        self.fails(REGIONS, "norm", *publish, "--tiles", "3", "--layout", bad)

    def test_directories_are_not_mixed(self):
        self.publish("--tiles", 4)
        self.follow("out", "--slice", "1/4")
        self.fails(OTHER_RUN, "another tile", "follow", *self.place, "--out", self.dir / "out", "--once", "--slice", "2/4")
        self.fails(OTHER_RUN, "a slice", "follow", *self.place, "--out", self.dir / "out", "--once")


if __name__ == "__main__":
    main()
