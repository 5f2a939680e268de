#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run as a page: test_report.py ULPSYNC"""
import collections
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

import cli_case
from cli_case import moved, run, weights, write_model
from run_case import NO_RUN, NOT_FOUND, PHASES, SIGNATURE, USAGE, RunCase

SVG = "{http://www.w3.org/1999/xhtml}"  # inline, so in the namespace of the page
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01}
HOSTILE = "<script>alert('\"1\"')</script>&amp;\u202e]]><!--"


def entropy(counts):
    whole = sum(counts)
    return -sum(n * math.log2(n / whole) for n in counts if n)


def elements(data):
    return struct.unpack(f"<{len(data) // 2}H", data)


def floor_bytes(old, new):
    """Of BF16: which elements change given the old exponent, and by which step given the same."""
    places, steps = collections.Counter(), collections.Counter()
    for before, after in zip(old, new):
        exponent = min(max((before >> 7) & 255, 64), 127)  # the coder tells 64 of them apart
        places[exponent, before != after] += 1
        if before != after:
            steps[exponent, after - before] += 1
    bits = 0
    for exponent in {key[0] for key in places}:
        bits += entropy([places[exponent, False], places[exponent, True]])
        bits += entropy([count for (e, _), count in steps.items() if e == exponent])
    return bits / 8


class Page:
    """A report, read by a strict parser."""

    def __init__(self, text):
        self.text = text
        self.root = ElementTree.fromstring(text)

    def all(self, name):
        return list(self.root.iter(SVG + name))

    def words(self, name):
        return ["".join(element.itertext()) for element in self.all(name)]

    def figure(self, title):
        found = [f for f in self.all("figure") if f.find(SVG + "h3").text == title]
        return found[0] if found else None

    def tooltips(self, title):
        """name -> {x: value}, of the marks of a figure."""
        series = collections.defaultdict(dict)
        for mark in self.figure(title).iter(SVG + "path"):
            tip = mark.find(SVG + "title")
            found = tip is not None and re.fullmatch(r"(.*): (\S+)(?: (\S+))? \(\D+ ?(\d+)\)", tip.text)
            if found:
                series[found[1]][int(found[4])] = float(found[2]) * UNITS.get(found[3], 1)
        return series

    def shades(self, title):
        """(row, x) -> value"""
        cells = {}
        for cell in self.figure(title).iter(SVG + "path"):
            tip = cell.find(SVG + "title")
            found = tip is not None and re.fullmatch(r"(.*), \w+ (\d+): (\S+) %", tip.text, re.DOTALL)
            if found:
                cells[found[1], int(found[2])] = float(found[3]) / 100
        return cells

    def table(self, number):
        rows = self.all("table")[number].iter(SVG + "tr")
        cells = [["".join(cell.itertext()) for cell in row] for row in rows]
        return [dict(zip(cells[0], row)) for row in cells[1:]]


class ReportCase(RunCase):
    def report(self, *more, name="rl"):
        path = self.dir / "report.html"
        summary = self.json("report", *self.place(name), "-o", path, *more)
        self.assertEqual(os.listdir(self.dir).count(".report.html.replay"), 0)
        text = path.read_text()
        self.assertEqual(summary["bytes"], len(text.encode()))
        self.needs_nothing(text)
        return summary, Page(text)

    def needs_nothing(self, text):
        page = ElementTree.fromstring(text)
        for element in page.iter():
            self.assertNotIn(element.tag, (SVG + "script", SVG + "link", SVG + "img", SVG + "iframe", SVG + "object"))
            self.assertFalse([key for key in element.attrib if key.startswith("on") or key in ("src", "href", "style")])
        self.assertEqual(set(re.findall(r"url\(([^)]*)\)", text)), {f"#h{i}" for i in range(1, 11)})
        self.assertNotIn("@import", text)
        for svg in page.iter(SVG + "svg"):
            self.assertTrue(svg.get("aria-hidden") or (svg.get("role") == "img" and svg.get("aria-label")))
        for number in re.findall(r'(?: d|viewBox|x|y)="([^"]*)"', text):
            self.assertNotRegex(number, "nan|inf")

    def make_layers(self, count):
        """Models of three layers that change at different paces; returns paths and contents."""
        tensors = {"emb.weight": weights(3000, 1), "layers.0.a": weights(2000, 2), "layers.0.b": weights(1000, 3),
                   "layers.1.a": weights(4000, 4), "layers.10.a": weights(500, 5)}
        paths, contents = [], []
        for number in range(count):
            paths.append(self.dir / f"step-{number}.safetensors")
            write_model(paths[-1], {name: ("BF16", [len(data) // 2], data) for name, data in tensors.items()})
            contents.append(tensors)
            tensors = {name: moved(data, 0.01 * (1 + i), number * 10 + i) for i, (name, data) in enumerate(tensors.items())}
        return paths, contents


class Figures(ReportCase):
    made = None  # a store that the first test fills; each has a copy
    contents = None

    def setUp(self):
        super().setUp()
        if not Figures.made:
            Figures.made = pathlib.Path(tempfile.mkdtemp())
            self.addClassCleanup(shutil.rmtree, Figures.made)
            self.make_run()
            shutil.copytree(self.store, Figures.made / "store")
        else:
            shutil.copytree(Figures.made / "store", self.store)
        self.log_records = {record["version"]: record for record in self.log() if record["publishes"]}

    def make_run(self):
        paths, Figures.contents = self.make_layers(12)
        for number, path in enumerate(paths):
            self.publish(path, "--step", number * 10, "--tell", "trainer", "--note", f"reward={number / 8}",
                         *(["--note", "kl=0.25"] if number != 3 else []))
            if number % 2:
                self.follow("a", "--tell", "worker-a")
        self.follow("b", "--tell", "worker-b", "--step", 40)

    def test_against_the_log(self):
        summary, page = self.report()
        self.assertEqual((summary["steps"], summary["version"], summary["told"], summary["followers"], summary["missing"]),
                         (12, 11, True, 2, None))
        size = page.tooltips("Bytes of each step")
        density = page.tooltips("Density by step")["density"]
        full = self.log_records[0]["anchor_bytes"]
        self.assertEqual(summary["full_bytes"], full)
        for version, record in self.log_records.items():
            step = record["step"]
            self.assertAlmostEqual(size["full state"][step] / full, 1, delta=0.01)
            if version:
                self.assertAlmostEqual(size["patch"][step] / record["patch_bytes"], 1, delta=0.01)
                self.assertAlmostEqual(density[step] / (record["changed"] / record["elements"]), 1, delta=0.01)
        self.assertEqual(set(size["patch"]), set(density))
        bits = page.tooltips("Bits of each change")
        for version, record in list(self.log_records.items())[1:]:
            self.assertAlmostEqual(bits["patch"][record["step"]], record["bits_per_change"], delta=1e-3)
            self.assertLess(bits["entropy floor"][record["step"]], bits["patch"][record["step"]])
        self.assertEqual(page.tooltips("reward by step")["reward"], {n * 10: n / 8 for n in range(12)})
        self.assertEqual(page.tooltips("kl by step")["kl"], {n * 10: 0.25 for n in range(12) if n != 3})

    def test_tables(self):
        _, page = self.report("--no-replay")
        followers, steps = page.table(0), page.table(1)
        self.assertEqual([(f["follower"], f["step"], f["behind"]) for f in followers],
                         [("worker-a", "110", "0"), ("worker-b", "40", "7")])
        self.assertEqual([row["updates"] for row in followers], ["6", "1"])
        self.assertEqual([int(row["version"]) for row in steps], list(range(11, -1, -1)))
        for row in steps:
            record = self.log_records[int(row["version"])]
            self.assertEqual((int(row["step"]), int(row["changed"]), row["root"]),
                             (record["step"], record["changed"], record["root"]))
            self.assertEqual(float(row["reward"]), record["version"] / 8)
            if record["version"]:
                self.assertAlmostEqual(float(row["bits each"]), record["bits_per_change"], delta=0.006)

    def test_times(self):
        _, page = self.report("--no-replay")
        told = [json.loads(line) for line in (self.store / "rl/told/worker-a/00000001").read_text().splitlines()]
        active = page.tooltips("Publish to active")
        for event in told:
            self.assertAlmostEqual(active["worker-a"][event["step"]], event["publish_to_active_ms"] / 1e3,
                                   delta=0.06 * event["publish_to_active_ms"] / 1e3)
        rows = [text for text in page.figure("Time to follow").iter(SVG + "text") if text.get("class") == "value"]
        mean = sum(sum(event["phases"].values()) for event in told) / len(told)
        number, unit = "".join(rows[0].itertext()).split()
        self.assertAlmostEqual(float(number) * UNITS[unit] * 1e3 / mean, 1, delta=0.02)
        self.assertIsNotNone(page.figure("Time to publish"))

    def test_replay_against_the_weights(self):
        """The floor and the layers, computed once more from the checkpoints themselves."""
        summary, page = self.report()
        self.assertEqual([step["version"] for step in summary["replayed"]], list(range(1, 12)))
        groups = {"emb.weight": ["emb.weight"], "layers.0": ["layers.0.a", "layers.0.b"], "layers.1": ["layers.1.a"],
                  "layers.10": ["layers.10.a"]}
        shades, floors = page.shades("Density by layer and step"), page.tooltips("Bytes of each step")["entropy floor"]
        for seen in summary["replayed"]:
            old, new = self.contents[seen["version"] - 1], self.contents[seen["version"]]
            words = {name: (elements(old[name]), elements(new[name])) for name in old}
            self.assertEqual(list(seen["layers"]), list(groups))  # layer 10 behind layer 1
            for layer, names in groups.items():
                pairs = [pair for name in names for pair in zip(*words[name])]
                share = sum(a != b for a, b in pairs) / len(pairs)
                self.assertAlmostEqual(seen["layers"][layer], share)
                self.assertAlmostEqual(shades[layer, seen["step"]], share, delta=0.0002)
            floor = floor_bytes([e for name in old for e in words[name][0]], [e for name in old for e in words[name][1]])
            self.assertAlmostEqual(seen["floor_bytes"] / floor, 1, delta=1e-6)
            self.assertAlmostEqual(floors[seen["step"]] / floor, 1, delta=0.01)
            self.assertEqual(seen["changed"], self.log_records[seen["version"]]["changed"])

    def test_the_last_steps_alone(self):
        summary, page = self.report("--last", 3)
        self.assertEqual([step["version"] for step in summary["replayed"]], [9, 10, 11])
        self.assertEqual(set(page.tooltips("Bytes of each step")["entropy floor"]), {90, 100, 110})

    def test_long_ways_hide_no_version(self):
        done = run("tend", *self.place(), "--state", self.dir / "tend", "--once")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary, _ = self.report()
        self.assertEqual([step["version"] for step in summary["replayed"]], list(range(1, 12)))

    def test_fewer_records(self):
        summary, page = self.report("--steps", 4)
        self.assertEqual(summary["steps"], 4)
        self.assertEqual(len(page.table(1)), 4)
        self.assertIn("The last 4 of 12 versions", page.text)

    def test_standard_output_and_replacing(self):
        first, _ = self.report("--no-replay")
        done = subprocess.run([cli_case.ULPSYNC, "report", *map(str, self.place()), "-o", "-", "--last", "2"],
                              capture_output=True, text=True, timeout=60, cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.needs_nothing(done.stdout)
        self.assertFalse([name for name in os.listdir(self.dir) if "ulpsync-report" in name])
        again, _ = self.report()
        self.assertGreater(again["bytes"], first["bytes"])

    def test_pipes_are_written_to(self):
        """And not replaced: a device would be lost to everybody."""
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.processes.append(reader)
        self.json("report", *self.place(), "-o", pipe)
        self.assertTrue(pipe.is_fifo())
        self.assertTrue(reader.communicate(timeout=60)[0].startswith(b"<!DOCTYPE html>"))


class Missing(ReportCase):
    def test_one_version_and_no_word(self):
        path, = self.make_steps(1)
        self.publish(path, "--step", 7)
        summary, page = self.report()
        self.assertEqual((summary["steps"], summary["told"], summary["replayed"], summary["missing"]), (1, False, [], None))
        self.assertEqual(page.all("figure"), [])
        self.assertIn("the run has no patch yet", page.text)
        self.assertIn("nobody told of it", page.text)
        self.assertEqual(page.table(0)[0]["step"], "7")

    def test_two_versions(self):
        for number, path in enumerate(self.make_steps(2)):
            self.publish(path, "--step", number, "--tell", "t")
        _, page = self.report()
        self.assertIn("the trainer told none", page.text)
        self.assertIn("none has told of itself", page.text)
        self.assertEqual(len(page.tooltips("Density by step")["density"]), 1)

    def test_no_replay(self):
        for number, path in enumerate(self.make_steps(3)):
            self.publish(path, "--step", number)
        for options, sentence in ((["--no-replay"], "because of --no-replay"),
                                  (["--replay-bytes", "10KiB"], "more than the 10.0 KiB that --replay-bytes allows")):
            summary, page = self.report(*options)
            self.assertIn(sentence, summary["missing"])
            self.assertIn(sentence, page.text)
            self.assertIsNone(page.figure("Density by layer and step"))
            self.assertIsNotNone(page.figure("Density by step"))

    def test_collected(self):
        """Anchors that are close, of which one is kept: what led there is gone."""
        for number, path in enumerate(self.make_steps(10, 3000)):
            self.publish(path, "--step", number, "--anchor-every", 8, "--keep-anchors", 1)
        done = run("gc", *self.place(), "--now")
        self.assertEqual(done.returncode, 0, done.stderr)
        oldest = self.log()[-1]["oldest"]
        self.assertEqual(oldest, 8)
        summary, page = self.report()
        self.assertEqual([step["version"] for step in summary["replayed"]], [9])
        self.assertIn("the run does not keep what leads to older versions", page.text)
        self.assertEqual(len(page.tooltips("Density by step")["density"]), 9)

    def test_a_part_that_is_lost(self):
        for number, path in enumerate(self.make_steps(4)):
            self.publish(path, "--step", number)
        patches = [part for part in self.parts() if part.stat().st_size < 10_000]
        for part in patches:
            part.unlink()
        self.assertEqual(len(patches), 3)
        summary, page = self.report()
        self.assertEqual(summary["replayed"], [])
        self.assertIn("the versions could not be replayed", page.text)
        self.assertIsNotNone(page.figure("Bytes of each step"))

    def test_steps_that_go_back(self):
        for path, step in zip(self.make_steps(4), (0, 10, 20, 10)):
            self.publish(path, "--step", step)
        _, page = self.report()
        self.assertEqual(set(page.tooltips("Density by step")["density"]), {1, 2, 3})
        self.assertIn(">version</text>", page.text)

    def test_refusals(self):
        self.publish(self.make_steps(1)[0])
        self.fails(USAGE, "-o report.html", "report", *self.place())
        self.fails(NO_RUN, "none", "report", *self.place("none"), "-o", self.dir / "x.html")
        self.fails(NOT_FOUND, "no/x.html", "report", *self.place(), "-o", self.dir / "no/x.html")
        self.fails(USAGE, "--last", "report", *self.place(), "-o", self.dir / "x.html", "--last", 0)
        done = run("report", *self.place(), "-o", "-", "--json")
        self.assertEqual(done.returncode, USAGE)
        self.assertFalse((self.dir / "x.html").exists())


class Hostile(ReportCase):
    def test_keys(self):
        """Another's run has no page, whether or not its weights are looked at."""
        for name in ("ours", "theirs"):
            self.assertEqual(run("keygen", self.dir / name).returncode, 0)
        for number, path in enumerate(self.make_steps(2)):
            self.publish(path, "--step", number, "--sign", self.dir / "ours")
        self.assertEqual(len(self.report("--trust", self.dir / "ours.pub")[0]["replayed"]), 1)
        (self.dir / "report.html").unlink()
        for more in ([], ["--no-replay"]):
            self.fails(SIGNATURE, "not trusted", "report", *self.place(), "-o", self.dir / "report.html", "--trust",
                       self.dir / "theirs.pub", *more)
        self.assertFalse((self.dir / "report.html").exists())

    def test_names(self):
        """Tensors, followers, notes and the rest may be called anything; nothing of it is markup."""
        tensors = {HOSTILE: weights(300, 1), "layers.0." + HOSTILE: weights(300, 2), "\x1b[31m\x07\u2028": weights(300, 3),
                   "x" * 3000: weights(300, 4), "\ufffe\uffff": weights(300, 5)}
        for number in range(3):
            path = self.dir / f"{number}.safetensors"
            write_model(path, {name: ("BF16", [len(data) // 2], data) for name, data in tensors.items()})
            self.publish(path, "--step", number, "--tell", "t", "--note", "reward=1")
            tensors = {name: moved(data, 0.2, number) for name, data in tensors.items()}
        summary, page = self.report()
        self.assertEqual(summary["missing"], None)
        self.assertNotIn("<script", page.text)
        self.assertIn("&lt;script&gt;alert(&#39;&quot;1&quot;&#39;)&lt;/script&gt;&amp;amp;\\xe2\\x80\\xae]]&gt;&lt;!--", page.text)
        self.assertIn("\\x1b[31m\\x07", page.text)
        self.assertNotIn("\u202e", page.text)

    def test_tellings(self):
        for number, path in enumerate(self.make_steps(3)):
            self.publish(path, "--step", number, "--tell", "t", "--note", "reward=1")
        folder = self.store / "rl" / "told" / "evil"
        folder.mkdir()
        lines = [{"event": "follow", "version": 2, "step": 2, "held_version": 2, "held_step": 2, "told_ms": 1 << 70,
                  "publish_to_active_ms": value, "fetched_bytes": 1e300, "phases": {phase: value for phase in PHASES},
                  "notes": {HOSTILE: value, "loss": value}} for value in (1e308, -1e308, -5, 0, 5e-324, "x", None)]
        lines += [{**line, "event": "publish"} for line in lines] + [{"event": HOSTILE}, {}]
        (folder / "00000001").write_text("".join(json.dumps(line) + "\n" for line in lines))
        summary, page = self.report()
        self.assertTrue(summary["told"])
        self.assertNotIn("<script", page.text)
        self.assertIsNotNone(page.figure("Bytes of each step"))

    def test_steps_and_times_at_their_ends(self):
        """Where the next number is thousands away, and where a quotient is beyond all numbers."""
        for number, path in enumerate(self.make_steps(3)):
            self.publish(path, "--step", 2**64 - 3 + number, "--tell", "t", "--note", f"reward={1 + number * 2.3e-16!r}")
        folder = self.store / "rl" / "told" / "far"
        folder.mkdir()
        lines = [{"event": "follow", "held_version": 2, "held_step": 2**64 - 1, "told_ms": 2**64 - 1, "fresh": True,
                  "publish_to_active_ms": value} for value in (1e-240, 1e240)]
        (folder / "00000001").write_text("".join(json.dumps(line) + "\n" for line in lines))
        page = self.report()[1]
        self.assertNotIn("1970-", page.text)


if __name__ == "__main__":
    cli_case.main()
