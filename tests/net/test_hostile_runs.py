#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Publishing to and following from a hostile server: test_hostile_runs.py ULPSYNC DRIVER. Whatever it does, a follower
holds exactly a version that was published, says so only of the right one, and gets on when the server is well again."""
import concurrent.futures
import json
import os
import shutil
import time
from dataclasses import dataclass, field

import net_case
from net_case import HASTY_COMMAND, NetCase, S3Server, Secrets, client_environment

from cli_case import moved, weights, write_model

OK = {0}
IO, NOT_FOUND, CHECKSUM, RECORD, CHAIN, FENCED, ROLLBACK, PART, FORK, MISSING = 24, 20, 53, 71, 72, 73, 74, 76, 77, 83
UNSUPPORTED, LIMIT, PERMISSION, NO_RUN = 13, 11, 22, 70
AT_ONCE = 6
RUN = "where/rl"


@dataclass
class Case:
    """What a behaviour makes of a command. `held`: whether what was stored must be there, or must not, or may be."""
    behaviour: str
    want: set
    operation: str = "*"
    key: str = "*"
    nth: str = "*"
    seconds: float = 30
    arguments: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{self.behaviour} {self.operation} {self.key} {self.nth} {self.arguments or ''}".strip()


PARTS, RECORDS = f"{RUN}/part/*", f"{RUN}/log/*"

FOLLOWING = [
    # wrong bytes are never taken
    Case("other_bytes", {PART}, "Get", PARTS), Case("one_bit", {PART}, "Get", PARTS),
    Case("other_bytes", {CHECKSUM, RECORD, 52}, "Get", RECORDS), Case("one_bit", {CHECKSUM}, "Get", RECORDS),
    Case("one_bit", OK | {PART}, "Get", PARTS, "1"), Case("one_bit", OK | {CHECKSUM}, "Get", RECORDS, "1"),
    Case("wrong_total", {PART, IO}, "Get", PARTS), Case("wrong_total", {CHECKSUM, RECORD, IO}, "Get", RECORDS),
    Case("whole_for_range", OK | {IO}, "Get"), Case("wrong_content_range", {IO}, "Get"),
    Case("gzip_surprise", {IO}, "Get"), Case("chunked", OK | {IO}, "Get"), Case("long_body", OK | {IO}, "Get"),
    Case("short_body", OK, "Get", PARTS, "1"), Case("reset_mid_body", OK, "Get", PARTS, "1"),
    Case("reset_mid_body", OK, "Get", RECORDS, "1"),
    # another host may be asked, but not trusted
    Case("redirect_away", {PART, IO, PERMISSION, NOT_FOUND, MISSING}, "Get", PARTS),
    Case("redirect_away", {CHECKSUM, RECORD, IO, PERMISSION, NO_RUN, ROLLBACK}, "Get", RECORDS),
    Case("redirect_loop", {IO}, "Get"), Case("redirect_file", {IO}, "Get"),
    # what is gone, or seems to be
    Case("status", {MISSING, PART}, "Get", PARTS, arguments={"status": 404, "code": "NoSuchKey"}),
    Case("status", {ROLLBACK, NO_RUN}, "Get", RECORDS, arguments={"status": 404, "code": "NoSuchKey"}),
    Case("status", {PERMISSION}, "Get", PARTS, arguments={"status": 403, "code": "AccessDenied"}),
    Case("status", OK, "*", "*", "1-2", arguments={"status": 503}), Case("status", {IO}, arguments={"status": 503}),
    Case("status", OK, "*", "*", "3-5", arguments={"status": 500, "code": "InternalError"}),
    Case("close_after", OK), Case("close_at_reuse", OK),
    # lies about lengths and lists
    Case("head_wrong_length", OK | {IO, PART}, "Head"),
    *(Case("listing", OK | {IO, LIMIT}, "List", arguments={"lie": lie})
      for lie in ("missing", "nothing", "extra", "unsorted", "duplicate", "outside", "traversal")),
    Case("listing_endless", OK | {IO, LIMIT}, "List"),
]

PUBLISHING = [
    # an answer that is lost: the bytes in the store decide
    Case("lost_response", OK, "Put", RECORDS, "1"), Case("lost_by_500", OK, "Put", RECORDS, "1"),
    Case("refused_own", OK, "Put", RECORDS, "1"), Case("conflict_done", OK, "Put", RECORDS, "1"),
    Case("conflict", OK, "Put", RECORDS, "1"), Case("lost_response", OK, "Put", PARTS, "1"),
    Case("lost_by_500", OK, "Put", PARTS, "1"), Case("reset_before_headers", OK, "Put", "*", "1"),
    Case("status", OK, "Put", "*", "1-2", arguments={"status": 503}), Case("status", {IO}, "Put", arguments={"status": 503}),
    Case("status", {PERMISSION}, "Put", RECORDS, arguments={"status": 403, "code": "AccessDenied"}),
    Case("conflict", {IO}, "Put", RECORDS), Case("redirect_away", {IO, PERMISSION}, "Put"),
    Case("etag_wrong", OK | {IO}, "Put"), Case("stale", OK | {IO, FENCED, ROLLBACK, MISSING, PART}, "Get"),
    Case("put_lost", OK | {IO, MISSING, PART}, "Put", PARTS),
    # broken conditions
    Case("condition", {IO}, "Put", RECORDS, arguments={"rule": "always"}),
    Case("condition", {IO}, "Put", RECORDS, arguments={"rule": "invert"}),
]


class Prepared:
    """A run of three versions, a follower that holds the second, and the publisher's state: made once, copied often."""

    def __init__(self, case):
        self.dir = case.dir
        self.models, data = [], weights(20_000, 1)
        for number in range(4):
            self.models.append(case.dir / f"step-{number}.safetensors")
            write_model(self.models[-1], {"w": ("BF16", [len(data) // 2], data)})
            data = moved(data, seed=number)
        self.roots = [case.root(model) for model in self.models]
        case.server = case.serve(bucket="bucket")
        for number in range(3):
            case.publish(self.models[number])
            if number == 1:
                case.follow()
        self.objects = dict(case.server.bucket.objects)


class RunOverS3(NetCase):
    def place(self):
        return ["--store", "s3://bucket/where", "--run", "rl"]

    def publish(self, model):
        return self.json("publish", model, *self.place(), "--state", self.dir / "state")

    def records(self):
        """All of them, whether they come one in a line or as one list."""
        lines = [json.loads(line) for line in self.run_command("log", *self.place(), "--json").stdout.splitlines()]
        return [one for line in lines for one in line.get("records", [line])]

    def follow(self):
        return self.json("follow", *self.place(), "--out", self.dir / "out", "--once")


class Met(RunOverS3):
    def __init__(self, prepared, case, verb):
        super().__init__("check")
        self.prepared, self.case, self.verb = prepared, case, verb

    def words(self, verb, out="out"):
        if verb == "follow":
            return ["follow", *self.place(), "--out", self.dir / out, "--once"]
        return ["publish", self.prepared.models[3], *self.place(), "--state", self.dir / "state"]

    def check(self):
        self.setUp()
        prepared = self.prepared
        for name in ("out", "state"):
            shutil.copytree(prepared.dir / name, self.dir / name, symlinks=True)
        self.server = S3Server(keys=net_case.KEYS)
        self.server.__enter__()
        try:
            self.environment = client_environment(self.server.endpoint, **HASTY_COMMAND)
            self.server.bucket.objects = dict(prepared.objects)
            case = self.case
            rule = self.server.rule(case.behaviour, operation=case.operation, key=case.key, nth=case.nth, **case.arguments)
            (self.check_follow if self.verb == "follow" else self.check_publish)(rule)
        finally:
            self.server.__exit__()
            self.end_all()
            shutil.rmtree(self.dir)

    def check_bounds(self, done, rule, began):
        self.assertIn(done.returncode, self.case.want, done.stderr)
        self.assertLess(time.monotonic() - began, self.case.seconds)
        self.assertTrue(rule.used or self.case.operation in ("Head", "List"), "the behaviour was never met")
        for request in self.server.other.heard:
            Secrets.check_text(self, str(request.headers), request.target)
            self.assertEqual([n for n, _ in request.headers if n == "authorization" or n.startswith("x-amz-")], [])
            self.assertIn(request.method, ("GET", "HEAD"))

    def held(self, out="out"):
        current = self.dir / out / "current"
        return self.root(current) if current.exists() else None

    def check_follow(self, rule):
        roots = self.prepared.roots
        began = time.monotonic()
        done = self.run_command(*self.words("follow"))
        self.check_bounds(done, rule, began)
        self.assertEqual(self.held(), roots[2] if done.returncode == 0 else roots[1])
        fresh = self.run_command(*self.words("follow", "fresh"))
        self.assertIn(self.held("fresh"), [roots[2]] if fresh.returncode == 0 else [None, roots[2]])
        self.server.forget()
        for out in ("out", "fresh"):
            self.assertEqual(self.run_command(*self.words("follow", out)).returncode, 0)
            self.assertEqual(self.held(out), roots[2])

    def check_publish(self, rule):
        roots = self.prepared.roots
        began = time.monotonic()
        done = self.run_command(*self.words("publish"))
        self.check_bounds(done, rule, began)
        self.server.forget()
        for key, stored in self.prepared.objects.items():
            self.assertEqual(self.server.bucket.objects[key].data, stored.data, "what was published has changed")
        records = self.records()
        self.assertEqual([r["root"] for r in records[:3]], roots[:3])
        self.assertIn([r["root"] for r in records[3:]], [[roots[3]]] if done.returncode == 0 else [[], [roots[3]]])
        followed = self.run_command(*self.words("follow"))
        if self.case.behaviour == "put_lost" and followed.returncode:  # acknowledged and not kept: the store's own fault
            self.assertIn(followed.returncode, (MISSING, PART))
            self.assertEqual(self.held(), roots[1])
            return
        self.assertEqual(followed.returncode, 0, followed.stderr)
        self.assertEqual(self.held(), roots[len(records) - 1])
        again = self.run_command(*self.words("publish"))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.run_command(*self.words("follow")).returncode, 0)
        self.assertEqual(self.held(), roots[3])
        checked = self.run_command("fsck", *self.place())
        self.assertEqual(checked.returncode, 0, checked.stdout)


class Hostile(RunOverS3):
    def check_all(self, verb, cases):
        only = os.environ.get("ULPSYNC_TEST_ONLY", "")
        cases = [case for case in cases if only in f"{verb} {case.name}"]
        prepared = Prepared(self)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {pool.submit(Met(prepared, case, verb).check): case for case in cases}
            concurrent.futures.wait(futures)
        for future, case in futures.items():
            with self.subTest(f"{verb}: {case.name}"):
                if future.exception():
                    raise future.exception()
        print(f"{len(cases)} cases of {verb}", flush=True)

    def test_following(self):
        self.check_all("follow", FOLLOWING)

    def test_publishing(self):
        self.check_all("publish", PUBLISHING)

    def test_telling(self):
        """A store that is silent where tellings are kept delays for some seconds, and stops nobody."""
        models = [self.dir / f"{number}.safetensors" for number in range(2)]
        for number, model in enumerate(models):
            write_model(model, {"w": ("BF16", [2000], weights(2000, number + 1))})
        server = self.serve(bucket="bucket")
        self.publish(models[0])
        rule = server.rule("silent", operation="*", key=f"{RUN}/told/*", nth="*")
        began = time.monotonic()
        done = self.run_command("publish", models[1], *self.place(), "--state", self.dir / "state", "--tell", "t", "--step", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("going on without telling"), 1, done.stderr)
        self.assertLess(time.monotonic() - began, 20)
        self.assertTrue(rule.used)
        self.assertEqual(self.records()[-1]["step"], 1)


if __name__ == "__main__":
    net_case.main()
