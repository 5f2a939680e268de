#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ulpsync study: test_study.py ULPSYNC [unittest arguments]. The answers are computed here in another way."""
import collections
import math
import random
import xml.etree.ElementTree

from cli_case import CliCase, main, run, weights, write_model

# dtype: bytes, lowest bit and number of bits of its exponent, exponent of the first cell, bias
FLOATS = {"BF16": (2, 7, 8, 64, 127), "F16": (2, 10, 5, 0, 15), "F32": (4, 23, 8, 64, 127),
          "F64": (8, 52, 11, 192, 1023), "F8_E4M3": (1, 3, 4, 0, 7), "F8_E5M2": (1, 2, 5, 0, 15)}
WIDTHS = {"I8": 1, "U8": 1, "I32": 4, "I64": 8, "F4": 1}
CELLS = 64


def width_of(dtype):
    return FLOATS[dtype][0] if dtype in FLOATS else WIDTHS[dtype]


def words(data, width):
    return [int.from_bytes(data[i:i + width], "little") for i in range(0, len(data), width)]


def cell_of(dtype, value):
    if dtype not in FLOATS:
        return 0
    _, shift, bits, lowest, _ = FLOATS[dtype]
    return min(max((value >> shift & (1 << bits) - 1) - lowest, 0), CELLS - 1)


def step_of(old, new, width):
    step = (new - old) % (1 << 8 * width)
    return step - (1 << 8 * width) if step >> 8 * width - 1 else step


def bucket_of(move):
    size = abs(move)
    return next((i for i, most in enumerate((0, 1, 2, 4, 8, 24)) if size <= most), 6)


def octave_of(size):
    """Steps beyond 64: 65-128 is 6, 129-256 is 7, ..."""
    return (size - 1).bit_length() - 1


def entropy(symbols):
    """Bits of all of them together."""
    counts = collections.Counter(symbols)
    total = sum(counts.values())
    return sum(n * math.log2(total / n) for n in counts.values())


def conditional(pairs):
    """Bits of the second of each, given the first."""
    by_context = collections.defaultdict(list)
    for context, symbol in pairs:
        by_context[context].append(symbol)
    return sum(entropy(symbols) for symbols in by_context.values())


def step_bits(pairs):
    """The same of steps: within an octave beyond 64 all are alike."""
    symbols = [(c, s if abs(s) <= 64 else (s > 0, octave_of(abs(s)))) for c, s in pairs]
    return conditional(symbols) + sum(octave_of(abs(s)) for _, s in pairs if abs(s) > 64)


def varint(number):
    return max(1, (number.bit_length() + 6) // 7)


class Expected:
    """Everything about one patch, by loops over elements. A state: name -> (dtype, data)."""

    def __init__(self, before, old, new):
        self.elements = self.changed = self.again = self.same = 0
        self.by_tensor, self.steps = {}, collections.Counter()
        self.cells = collections.defaultdict(lambda: [0, 0])
        self.sizes = collections.Counter()
        places, places_after, steps, steps_after = [], [], [], []
        for name, (dtype, data) in old.items():
            width = width_of(dtype)
            a, b = words(data, width), words(new[name][1], width)
            z = words(before[name][1], width) if before else a
            found = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
            for i, (x, y) in enumerate(zip(a, b)):
                kind = dtype if dtype in FLOATS else width
                context, step, move = (kind, cell_of(dtype, x)), step_of(x, y, width), step_of(z[i], x, width)
                self.cells[dtype, context[1]][0] += 1
                self.cells[dtype, context[1]][1] += step != 0
                places.append((context, step != 0))
                places_after.append(((context, bucket_of(move)), step != 0))
                if step:
                    steps.append((context, step))
                    steps_after.append(((context, bucket_of(move)), -step if move < 0 else step))
                    self.steps[(abs(step) - 1).bit_length(), step > 0] += 1
                    self.again += move != 0
                    self.same += move * step > 0
            self.elements += len(a)
            self.changed += len(found)
            self.by_tensor[name] = (len(a), len(found))
            gaps = [i - j - 1 for i, j in zip(found, [-1] + found)]
            self.sizes["state"] += len(data)
            self.sizes["pairs"] += len(found) * (4 + width)
            self.sizes["bitmap"] += (len(a) + 7) // 8 + len(found) * width
            self.sizes["gaps"] += sum(map(varint, gaps)) + len(found) * width
            self.sizes["gaps16"] += len(found) * (width + (4 if max(gaps, default=0) > 65535 else 2))
        self.floor = (conditional(places), step_bits(steps))
        self.floor_after = (conditional(places_after), step_bits(steps_after)) if before else None


def wander(state, seed, most=3):
    """The state a step later: a part of the elements moves, now and then far."""
    numbers, after = random.Random(seed), {}
    for name, (dtype, data) in state.items():
        width = width_of(dtype)
        values = words(data, width)
        for i in range(len(values)):
            if numbers.random() < 0.2:
                far = numbers.random() < 0.1
                step = numbers.randint(1, 1000 if far else most) * numbers.choice((1, -1))
                values[i] = (values[i] + step) % (1 << 8 * width)
        after[name] = (dtype, b"".join(v.to_bytes(width, "little") for v in values))
    return after


class StudyCase(CliCase):
    def write(self, states):
        """Each as a model with one row of elements for each tensor."""
        paths = []
        for i, state in enumerate(states):
            path = self.dir / f"step-{i:03d}.safetensors"
            write_model(path, {name: (dtype, [2 * len(data)] if dtype == "F4" else [len(data) // width_of(dtype)], data)
                               for name, (dtype, data) in state.items()})
            paths.append(path)
        return paths


class Answers(StudyCase):
    def setUp(self):
        super().setUp()
        numbers = random.Random(5)
        first = {"model.embed_tokens.weight": ("BF16", weights(701, 1)),
                 "model.layers.0.mlp.down_proj.weight": ("BF16", weights(900, 2)),
                 "model.layers.0.mlp.experts.3.up_proj.weight": ("BF16", weights(300, 3)),
                 "model.layers.0.mlp.experts.4.up_proj.weight": ("BF16", weights(300, 4)),
                 "model.layers.10.mlp.down_proj.weight": ("F16", numbers.randbytes(1200)),
                 "model.layers.9.mlp.down_proj.weight": ("F32", numbers.randbytes(1600)),
                 "model.layers.9.mlp.down_proj.scale": ("F8_E4M3", numbers.randbytes(333)),
                 "model.norm.weight": ("F64", numbers.randbytes(800)),
                 "none": ("BF16", b""), "other.counter": ("I64", numbers.randbytes(80)),
                 "other.packed": ("F4", numbers.randbytes(77)), "other.small": ("I8", numbers.randbytes(99)),
                 "other.wide": ("F8_E5M2", numbers.randbytes(256))}
        self.states = [dict(sorted(first.items()))]
        for seed in range(5):
            self.states.append(wander(self.states[-1], seed))
        self.paths = self.write(self.states)
        self.seen = self.json("study", *self.paths)

    def expected(self, k):
        starts = range(0, len(self.states) - k, k)
        return [Expected(self.states[i - k] if i else None, self.states[i], self.states[i + k]) for i in starts]

    def each_interval(self):
        self.assertEqual([interval["k"] for interval in self.seen["intervals"]], [1, 2, 4])
        for interval in self.seen["intervals"]:
            yield interval, self.expected(interval["k"])

    def assertNear(self, seen, expected):
        self.assertAlmostEqual(seen, expected, delta=1e-6 * max(1, abs(expected)))

    def test_density_by_layer_and_by_kind(self):
        layers = {"model.layers.0": "model.layers.0.", "model.layers.9": "model.layers.9.",
                  "model.layers.10": "model.layers.10.", "none": "none", "other.small": "other.small"}
        kinds = {"mlp.down_proj": "mlp.down_proj.weight", "mlp.down_proj.scale": "down_proj.scale",
                 "mlp.experts.up_proj": "up_proj.weight", "model.embed_tokens": "embed_tokens", "model.norm": "norm"}
        for interval, patches in self.each_interval():
            self.assertEqual(interval["changed"], sum(p.changed for p in patches))
            self.assertEqual(interval["elements"], sum(p.elements for p in patches))
            self.assertNear(interval["density"], interval["changed"] / interval["elements"])
            for key, groups in (("layers", layers), ("kinds", kinds)):
                listed = {group["name"]: group for group in interval[key]}
                self.assertEqual(len(listed), len(interval[key]))
                self.assertEqual(sum(g["changed"] for g in interval[key]), interval["changed"])
                for name, part in groups.items():
                    counts = [p.by_tensor[t] for p in patches for t in p.by_tensor if part in t]
                    self.assertEqual((listed[name]["elements"], listed[name]["changed"]),
                                     tuple(map(sum, zip(*counts))), name)
            names = [group["name"] for group in interval["layers"]]
            self.assertLess(names.index("model.layers.9"), names.index("model.layers.10"))

    def test_exponents(self):
        for interval, patches in self.each_interval():
            for entry in interval["dtypes"]:
                if entry["dtype"] not in FLOATS:
                    self.assertEqual(entry["exponents"], [])
                    continue
                _, _, _, lowest, bias = FLOATS[entry["dtype"]]
                for line in entry["exponents"]:
                    cell = line["power"] + bias - lowest
                    counts = [p.cells.get((entry["dtype"], cell), [0, 0]) for p in patches]
                    self.assertEqual([line["elements"], line["changed"]], [sum(c) for c in zip(*counts)])
                self.assertEqual(sum(line["elements"] for line in entry["exponents"]), entry["elements"])
            self.assertEqual(sorted(entry["dtype"] for entry in interval["dtypes"]),
                             sorted([*FLOATS, "I64", "F4, I8"]))

    def test_steps(self):
        for interval, patches in self.each_interval():
            counts = sum((p.steps for p in patches), collections.Counter())
            for bucket, line in enumerate(interval["steps"]):
                self.assertEqual((line["down"], line["up"]), (counts.pop((bucket, False), 0), counts.pop((bucket, True), 0)))
                self.assertEqual(line["to"], 1 << bucket)
            self.assertEqual(+counts, {})

    def test_recurrence_and_floors(self):
        for interval, patches in self.each_interval():
            after = [p for p in patches if p.floor_after]
            seen, floor = interval["recurrence"], interval["floor"]
            self.assertEqual((seen["changes"], seen["again"], seen["same_direction"]),
                             tuple(sum(getattr(p, of) for p in after) for of in ("changed", "again", "same")))
            changes, changes_after = (sum(p.changed for p in some) for some in (patches, after))
            self.assertNear(floor["place"] * changes, sum(p.floor[0] for p in patches))
            self.assertNear(floor["step"] * changes, sum(p.floor[1] for p in patches))
            self.assertNear(floor["stateless"] * changes, sum(sum(p.floor) for p in patches))
            if not after:
                self.assertIsNone(floor["history"])
                continue
            self.assertNear(floor["place_history"] * changes_after, sum(p.floor_after[0] for p in after))
            self.assertNear(floor["history"] * changes_after, sum(sum(p.floor_after) for p in after))
            self.assertNear(interval["patches"][1]["floor"]["history"] * after[0].changed, sum(after[0].floor_after))

    def test_sizes_that_are_counted(self):
        for interval, patches in self.each_interval():
            sizes = {size["name"]: size for size in interval["sizes"]}
            for name in ("state", "pairs", "bitmap", "gaps", "gaps16"):
                self.assertEqual(sizes[name]["basis"], "counted")
                self.assertNear(sizes[name]["bytes"], sum(p.sizes[name] for p in patches) / len(patches))
                self.assertNear(sizes[name]["bits_per_change"] * interval["changed"], 8 * sum(p.sizes[name] for p in patches))
            for name in ("rice", "rice_classes"):
                self.assertEqual(sizes[name]["basis"], "estimate")
                self.assertGreater(sizes[name]["bytes"], 0)
            for name in ("state_zstd", "xor_zstd", "gaps_zstd", "gaps_xor_zstd"):
                if sizes[name]["basis"] == "not known":  # a build without zstd
                    self.assertIsNone(sizes[name]["bytes"])
                else:
                    self.assertEqual(sizes[name]["basis"], "encoded")
                    self.assertGreater(sizes[name]["bytes"], 100)

    def test_patches_are_those_of_diff(self):
        for interval, _ in self.each_interval():
            k = interval["k"]
            for patch in interval["patches"]:
                old, new, out = self.paths[patch["from"]], self.paths[patch["to"]], self.dir / "p"
                made = self.json("diff", old, new, "-o", out, "--replace")
                self.assertEqual((patch["ulpsync_bytes"], patch["changed"]), (made["patch_bytes"], made["changed"]))
                self.assertEqual(made["elements"] * len(interval["patches"]), interval["elements"])
                if patch["from"]:
                    made = self.json("diff", old, new, "-o", out, "--replace", "--history", self.paths[patch["from"] - k])
                    self.assertEqual(patch["ulpsync_history_bytes"], made["patch_bytes"])
                else:
                    self.assertIsNone(patch["ulpsync_history_bytes"])

    def test_threads_do_not_matter(self):
        for threads in (1, 3):
            again = self.json("study", *self.paths, "-t", threads)
            again["seconds"] = self.seen["seconds"]
            self.assertEqual(again, self.seen)

    def test_text_and_page(self):
        page = self.dir / "study.html"
        done = run("study", *self.paths, "--html", page)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        density = self.seen["intervals"][0]["density"]
        for words_ in (f"{100 * density:.3f} %", "mlp.experts.up_proj", "estimate; PULSEPT1 v3", "F8_E4M3 by exponent"):
            self.assertIn(words_, done.stdout)
        text = page.read_text()
        self.assertEqual(run("study", *self.paths, "--html", "-").stdout, text)
        tree = xml.etree.ElementTree.fromstring(text)
        charts = [e for e in tree.iter() if e.tag.endswith("svg")]
        self.assertGreaterEqual(len(charts), 10)
        everything = "".join(tree.itertext())
        self.assertIn("Bits per change, and their floor", everything)
        self.assertIn("mlp.experts.up_proj", everything)

    def test_quick_counts_alone(self):
        quick = self.json("study", *self.paths, "--quick", "--html", self.dir / "quick.html")
        for seen, full in zip(quick["intervals"], self.seen["intervals"]):
            self.assertNotIn("sizes", seen)
            for key in ("changed", "floor", "recurrence", "steps", "dtypes"):
                self.assertEqual(seen[key], full[key])
        self.assertTrue((self.dir / "quick.html").exists())
        self.assertNotIn("zstd", run("study", *self.paths, "--quick").stdout)


class Edges(StudyCase):
    def test_pieces_are_joined(self):
        """One tensor of more than one piece of 32 MiB, beside a small one."""
        places = [0, 5, 100_000, (16 << 20) - 2, 16 << 20, (16 << 20) + 300, (17 << 20) - 1]
        old = bytes(34 << 20)
        new = bytearray(old)
        for place in places:
            new[2 * place] = 1
        small = weights(999)
        states = [{"a.small": ("BF16", small), "big": ("BF16", data)} for data in (old, bytes(new))]
        paths = self.write(states)
        seen = self.json("study", *paths)["intervals"][0]
        gaps = [i - j - 1 for i, j in zip(places, [-1] + places)]
        sizes = {size["name"]: size["bytes"] for size in seen["sizes"]}
        self.assertEqual(seen["changed"], len(places))
        self.assertEqual(sizes["gaps"], sum(map(varint, gaps)) + 2 * len(places))
        self.assertEqual(sizes["gaps16"], 6 * len(places))
        alone = self.json("study", *paths, "-t", 1)["intervals"][0]
        self.assertEqual(alone, seen)

    def test_many_checkpoints(self):
        state = {"w": ("BF16", weights(500))}
        states = [state]
        for seed in range(37):
            states.append(wander(states[-1], seed))
        seen = self.json("study", *self.write(states))
        self.assertEqual([(i["k"], len(i["patches"])) for i in seen["intervals"]],
                         [(1, 37), (2, 18), (4, 9), (8, 4), (16, 2)])
        self.assertEqual([(p["from"], p["to"]) for p in seen["intervals"][4]["patches"]], [(0, 16), (16, 32)])
        self.assertEqual(seen["intervals"][4]["patches"][1]["changed"], Expected(None, states[16], states[32]).changed)

    def test_nothing_changed(self):
        paths = self.write([{"w": ("BF16", weights(500))}] * 3)
        seen = self.json("study", *paths, "--html", self.dir / "page.html")["intervals"][0]
        self.assertEqual((seen["changed"], seen["density"], seen["steps"]), (0, 0, []))
        self.assertEqual((seen["floor"]["stateless"], seen["recurrence"]["share"]), (None, None))
        self.assertEqual(run("study", *paths).returncode, 0)

    def test_no_elements_at_all(self):
        paths = self.write([{"w": ("BF16", b"")}] * 2)
        self.assertEqual(self.json("study", *paths, "--html", self.dir / "page.html")["intervals"][0]["density"], None)
        self.assertEqual(run("study", *paths).returncode, 0)

    def test_names_from_outside_are_escaped(self):
        name = "model.layers.1.<script>alert(1)</script>\x1b[2J&\u202e"
        old = {name: ("BF16", weights(300))}
        paths, page = self.write([old, wander(old, 1)]), self.dir / "page.html"
        done = run("study", *paths, "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("<script>alert(1)</script>\\x1b[2J", done.stdout)
        text = page.read_text()
        self.assertNotIn("<script>alert", text)
        self.assertNotIn("\x1b", text)
        self.assertIn("alert(1)", text)
        self.json("study", *paths)


class Refusals(StudyCase):
    def test_what_does_not_fit(self):
        base = {"a": ("BF16", weights(100)), "b": ("BF16", weights(50))}
        good = self.write([base, wander(base, 1)])
        bad = self.dir / "bad.safetensors"
        for change, words_ in (({"b": None}, "has no tensor 'b'"), ({"c": ("BF16", [1], bytes(2))}, "has a tensor 'c'"),
                               ({"b": ("F16", [50], bytes(100))}, "is F16 in"),
                               ({"b": ("BF16", [25, 2], bytes(100))}, "has another shape in")):
            tensors = {n: (d, [len(v) // 2], v) for n, (d, v) in base.items()} | change
            write_model(bad, {n: t for n, t in tensors.items() if t})
            self.fails(55, words_, "study", *good, bad)
            self.fails(55, words_, "study", good[0], bad, "--html", self.dir / "page.html")
            self.assertFalse((self.dir / "page.html").exists())

    def test_what_cannot_be_read(self):
        good = self.write([{"a": ("BF16", weights(100))}])[0]
        self.fails(2, "CKPT1", "study", good)
        self.fails(2, "", "study")
        self.fails(20, "missing", "study", good, self.dir / "missing")
        (self.dir / "text").write_text("no model at all, but long enough to be read")
        self.assertIn(run("study", good, self.dir / "text").returncode, range(30, 43))
        self.fails(20, "nowhere", "study", good, good, "--html", self.dir / "nowhere" / "page.html")
        done = run("study", good, good, "--html", "-", "--json")
        self.assertEqual((done.returncode, "not both" in done.stdout), (2, True))
        self.fails(2, "threads", "study", good, good, "-t", "many")

    def test_temporary_files_need_a_place(self):
        paths = self.write([{"a": ("BF16", weights(100))}] * 2)
        done = run("study", *paths, env={"TMPDIR": str(self.dir / "nowhere")})
        self.assertEqual(done.returncode, 20, done.stderr)
        self.assertIn("cannot write", done.stderr)


class Calibrated(StudyCase):
    """Synthetic runs move as recorded ones do: docs/synth.md."""

    def study(self, regime, params, steps):
        self.json("synth", "-o", self.dir / regime, "--params", params, "--steps", steps, "--regime", regime)
        return self.json("study", *sorted((self.dir / regime).iterdir()))["intervals"]

    def figures(self, interval):
        sizes = {size["name"]: size["bits_per_change"] for size in interval["sizes"]}
        return {"density": 100 * interval["density"], "recurrence": interval["recurrence"]["share"],
                "same": interval["recurrence"]["share_same_direction"], "stateless": interval["floor"]["stateless"],
                "history": interval["floor"]["history"],
                "one": (interval["steps"][0]["up"] + interval["steps"][0]["down"]) / interval["changed"],
                "coded": sizes["ulpsync"] / interval["floor"]["stateless"],
                "coded after": sizes["ulpsync_history"] / interval["floor"]["history"]}

    def check(self, seen, expected, slack):
        for name, value in expected.items():
            self.assertAlmostEqual(seen[name], value, delta=slack * value, msg=name)

    def test_master(self):
        each, two, four = self.study("master", "4M", 4)
        seen = self.figures(each)
        self.check(seen, {"density": 1.112, "recurrence": 0.208, "same": 0.890, "one": 0.900, "stateless": 6.74,
                          "history": 6.46}, 0.05)
        self.check({"2": two["density"] / each["density"], "4": four["density"] / each["density"]},
                   {"2": 1.773, "4": 3.086}, 0.03)
        self.assertTrue(1 < seen["coded"] < 1.1 and 1 < seen["coded after"] < 1.15, seen)

    def test_bf16(self):
        each, two, four = self.study("bf16", "4M", 4)
        seen = self.figures(each)
        self.check(seen, {"density": 1.031, "recurrence": 0.842, "same": 0.979, "one": 0.665, "stateless": 4.22,
                          "history": 2.43}, 0.06)
        self.check({"2": two["density"] / each["density"], "4": four["density"] / each["density"]},
                   {"2": 1.156, "4": 1.345}, 0.03)
        self.assertTrue(1 < seen["coded"] < 1.15 and 1 < seen["coded after"] < 1.3, seen)


if __name__ == "__main__":
    main()
