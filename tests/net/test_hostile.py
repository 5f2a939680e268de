#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store meets a hostile server: test_hostile.py ULPSYNC DRIVER [unittest arguments]. ULPSYNC_TEST_ONLY=TEXT runs the
cases whose names contain it."""
import concurrent.futures
import multiprocessing
import os
import random
import re
import shutil
import time
import traceback
import unittest

import net_case
from hostile_cases import EXISTS, MEETS, all_cases
from net_case import Driver, NetCase, S3Server, Secrets, TOKEN, client_environment

DATA = random.Random(7).randbytes(100_000)
LARGE = random.Random(8).randbytes(20 << 20)
NEW = b"a small new object" * 20
LEGAL = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
PEAK_KIB = 96 << 10
AT_ONCE = 10


class Met(NetCase):
    """One case, as an object of its own: many run at once."""

    def __init__(self, case):
        super().__init__("check")
        self.case = case

    def prepare(self):
        self.setUp()
        case = self.case
        self.server = S3Server(keys=None if case.web else net_case.KEYS, token=TOKEN, **case.server)
        self.server.__enter__()
        self.environment = client_environment(self.server.endpoint, token=TOKEN)
        for name, data in (("a", DATA), ("b", b"two"), ("c/d", b"three")):
            self.server.bucket.put(f"p/{name}", net_case.Stored(data))
        for name, data in (("data", NEW), ("large", LARGE)):
            (self.dir / name).write_bytes(data)

    def url(self):
        return f"{self.server.endpoint}/bucket/p" if self.case.web else "s3://bucket/p"

    def do(self, store, act):
        return store(*{"read": ("read", "a", 0, 200_000, self.dir / "out"), "range": ("read", "a", 1000, 500, self.dir / "out"),
                       "stat": ("stat", "a"), "list": ("list", "-", "-", 100_000), "create": ("create", "new", self.dir / "data"),
                       "put": ("put", "new", self.dir / "data", 100), "large": ("put", "new", self.dir / "large", 1 << 20),
                       "remove": ("remove", "b")}[act])

    def check_right(self, act, answer, honest):
        """What is said to be done is done. Where a listing may lie, it still keeps to its form."""
        held = self.server.bucket.objects
        if act in ("read", "range"):
            wanted = DATA if act == "read" else DATA[1000:1500]
            self.assertEqual((self.dir / "out").read_bytes(), wanted)
            self.assertEqual((answer["read"], answer["total"]), (len(wanted), len(DATA)))
        elif act == "stat":
            self.assertEqual(answer["bytes"], len(DATA))
        elif act == "list":
            self.check_listing(answer["entries"])
            if honest:
                self.assertEqual(answer["entries"][:3], [["a", len(DATA)], ["b", 3], ["c/d", 5]])
        elif act == "remove":
            self.assertNotIn("p/b", held)
        else:
            self.assertEqual(held["p/new"].data, LARGE if act == "large" else NEW)

    def check_listing(self, entries):
        keys = [key for key, _ in entries]
        self.assertEqual(keys, sorted(set(keys)), "not ascending")
        for key in keys:
            self.assertTrue(LEGAL.fullmatch(key) and len(key) <= 900, key)

    def check_failure(self, act, answer):
        for name in ("read", "total", "bytes"):
            self.assertEqual(answer.get(name, 77), 77, "an output of a failure")
        self.assertTrue(answer["message"])
        self.assertTrue(all(" " <= c <= "~" for c in answer["message"]), ascii(answer["message"]))
        self.assertLess(len(answer["message"]), 2000)
        if act in ("put", "large"):
            held = self.server.bucket.get("p/new")
            self.assertTrue(held is None or held.data == (LARGE if act == "large" else NEW), "a part of an object")
        if answer["status"] == EXISTS:
            self.assertEqual(self.server.bucket.get("p/new").data, NEW)

    def check_bounds(self, answer, rule):
        case, server = self.case, self.server
        self.assertLessEqual(answer["seconds"], case.seconds)
        if "ULPSYNC_TEST_SANITIZED" not in os.environ:
            self.assertLess(answer["peak_kib"], PEAK_KIB + (len(LARGE) >> 10) * 3)
        with server.lock:
            entries = list(server.entries)
        self.assertLessEqual(len(entries), case.requests_max, [(e["operation"], e["status"]) for e in entries][-20:])
        self.assertLess(sum(e["sent"] for e in entries if e["rule"]), case.sent_max)
        if rule:
            self.assertGreater(rule.used, 0, "the behaviour was never met")
        for request in server.other.heard:
            Secrets.check_text(self, str(request.headers), request.target)
            self.assertEqual([n for n, _ in request.headers if n == "authorization" or n.startswith("x-amz-")], [])
            self.assertIn(request.method, ("GET", "HEAD"))

    def check(self):
        case = self.case
        self.prepare()
        try:
            store = Driver(self, self.url(), case.patience)
            self.assertEqual(store.opened["status"], 0, store.opened)
            if case.behaviour.startswith("close"):
                self.do(store, "stat")
            self.server.forget()
            rule = None
            if case.behaviour != "skewed":
                rule = self.server.rule(case.behaviour, operation=case.operation or MEETS[case.act], nth=case.nth, **case.arguments)
            answer = self.do(store, case.act)
            self.assertIn(answer["status"], case.want, answer["message"])
            if answer["status"]:
                self.check_failure(case.act, answer)
                self.assertIn(case.message, answer["message"])
            else:
                self.check_right(case.act, answer, case.behaviour not in ("listing", "xml_huge"))
            self.check_bounds(answer, rule)
            if case.behaviour == "long_body":
                # What comes behind an answer may come after the client has looked for it, on a connection that is
                # kept: only a new one is free of it. What is read of runs has hashes for that.
                store.close()
                store = Driver(self, self.url(), case.patience)
            self.check_afterwards(store)
            store.close()
        finally:
            self.server.__exit__()
            self.end_all()
            shutil.rmtree(self.dir)

    def check_afterwards(self, store):
        """When the server behaves again, so does the store."""
        self.server.forget()
        self.server.clock_offset = 0
        if self.case.server:
            return
        for act in ("read", "stat") if self.case.web else ("read", "list", "stat"):
            answer = self.do(store, act)
            self.assertEqual(answer["status"], 0, answer["message"])
            if act != "list":
                self.check_right(act, answer, True)
        if self.case.act in ("create", "put", "large", "remove"):
            answer = self.do(store, self.case.act)
            self.assertIn(answer["status"], (0, EXISTS) if self.case.act == "create" else (0,), answer["message"])
            if not answer["status"]:
                self.check_right(self.case.act, answer, True)


def meet(case):
    """What went wrong, as a text; in a process of its own, so that servers do not wait for each other."""
    try:
        Met(case).check()
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc()
    return ""


class Hostile(unittest.TestCase):
    def test_all(self):
        only = os.environ.get("ULPSYNC_TEST_ONLY", "")
        cases = [case for case in all_cases() if only in case.name]
        began = time.monotonic()
        with concurrent.futures.ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("fork")) as pool:
            outcomes = list(pool.map(meet, cases))
        for case, outcome in zip(cases, outcomes):
            with self.subTest(case.name):
                self.assertFalse(outcome, outcome)
        print(f"{len(cases)} cases in {time.monotonic() - began:.0f} s", flush=True)
        if not only:
            self.assertGreater(len({case.behaviour for case in cases}), 40)


if __name__ == "__main__":
    net_case.main()
