#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a bucket of a real server: test_runs_s3.py ULPSYNC DRIVER. Processes are killed at any time, publishers race,
and a large state arrives whole or not at all. ULPSYNC_TEST_SLOW=1 asks for more of everything."""
import os
import random
import subprocess
import time

import net_case
from net_case import NetCase, Secrets, client_environment

import cli_case
import test_runs
from cli_case import run as plain_run

SLOW = bool(os.environ.get("ULPSYNC_TEST_SLOW"))
NO_RUN, PART_MISSING = 70, 83


def run(*words, **more):
    done = plain_run(*words, **more)
    for text in (done.stdout, done.stderr):
        for word in Secrets.words:
            assert word.decode() not in text, "a secret got out"
    return done


# the tests of runs, too, look at everything that is said
test_runs.run = cli_case.run = run


class InBucket:
    """Takes the place of the directory that the tests of runs publish to."""

    def setUp(self):
        super().setUp()
        bucket = f"runs-{os.getpid()}-{time.time_ns()}"
        self.client = NetCase.rados.client(bucket)
        self.store = f"s3://{bucket}/some/where"
        environment = client_environment(NetCase.rados.endpoint, NetCase.rados.keys)
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)

    def start(self, *words, **more):
        """What it says goes to a file, which is looked at when all is done."""
        with open(self.dir / f"said-{len(self.processes)}-{time.time_ns()}", "wb") as said:
            process = subprocess.Popen([cli_case.ULPSYNC, *map(str, words)], **{"stderr": said, **more})
        self.processes.append(process)
        Secrets.check_arguments(self, process.pid)
        return process

    def end_all(self):
        super().end_all()
        Secrets.check_files(self, self.dir)


class Disturbed(InBucket, test_runs.Disturbed):
    followers, steps, params = (8, 30, "4M") if SLOW else (4, 30, "4M")


class Rivals(InBucket, test_runs.Rivals):
    publishers, rounds = (16, 60) if SLOW else (16, 3)


class LargeAnchor(InBucket, test_runs.RunCase):
    """A state of many parts, whose publisher is killed again and again."""
    params, kills = ("512M", 12) if SLOW else ("32M", 8)

    def test_never_half_visible(self):
        seed = int(os.environ.get("ULPSYNC_TEST_SEED", time.time_ns() % 1_000_000))
        print(f"ULPSYNC_TEST_SEED={seed}", flush=True)
        numbers = random.Random(seed)
        self.assertEqual(run("synth", "-o", self.dir / "run", "-p", self.params, "-s", 1, "--seed", seed).returncode, 0)
        models = sorted((self.dir / "run").glob("step-*.safetensors"))
        words = ["publish", models[0], *self.place(), "--state", self.dir / "state"]
        began = time.monotonic()
        self.json("publish", models[0], "--store", self.store, "--run", "timed", "--state", self.dir / "timed")
        usual = time.monotonic() - began
        done = False
        for _ in range(self.kills):
            process = self.start(*words, stdout=subprocess.DEVNULL)
            time.sleep(numbers.random() * usual)
            process.kill()
            done = process.wait() == 0 or done
            self.check_visible(models[0], done)
        self.assertEqual(self.start(*words, stdout=subprocess.DEVNULL).wait(600), 0)
        self.check_visible(models[0], True)
        checked = self.json("fsck", *self.place())
        self.assertEqual((checked["damaged"], checked["reachable"]), ([], True))
        print(f"{usual:.1f} s undisturbed; multipart uploads left: {len(self.client.uploads())}", flush=True)
        self.check_leftovers()

    def check_visible(self, model, published):
        """Either there is no run, or it is whole."""
        done = run("log", *self.place(), "--json")
        if done.returncode == NO_RUN:
            self.assertFalse(published)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        checked = self.json("fsck", *self.place())
        self.assertEqual((checked["damaged"], checked["reachable"]), ([], True))
        if not (self.dir / "out").exists():
            self.follow()
            self.assertEqual(self.current("out"), self.root(model))

    def check_leftovers(self):
        """What killed publishers left unfinished can be seen with S3's own means, and removed so."""
        for key, upload in self.client.uploads():
            self.assertTrue(key.startswith("some/where/rl/part/"), key)
            self.assertEqual(self.client.abort(key, upload).status, 204)
        self.assertEqual(self.client.uploads(), [])


class Everyday(InBucket, test_runs.Verbs):
    """Publishing, following and the log, as in a directory."""
    test_a_part_that_comes_late = test_refusals = test_a_missing_part = test_a_url_is_a_store = test_usage = None

    def test_gone_and_damaged(self):
        """Parts and records that went or rotted in the bucket."""
        for path in self.steps[:2]:
            self.publish(path)
        self.follow()
        before = set(self.client.keys_below("some/where/rl/"))
        made = self.publish(self.steps[2])
        newest, fresh = sorted(set(self.client.keys_below("some/where/rl/")) - before)
        self.assertIn("/log/", newest)
        whole = self.client.get(fresh).body
        self.client.delete(fresh)
        self.fails(PART_MISSING, "missing", "follow", *self.place(), "--out", self.dir / "out", "--once")
        self.assertEqual(self.current("out"), self.root(self.steps[1]))
        self.client.put(fresh, whole[:-1] + bytes([whole[-1] ^ 1]))
        self.fails(76, "", "follow", *self.place(), "--out", self.dir / "out", "--once")
        self.assertEqual(self.current("out"), self.root(self.steps[1]))
        self.assertEqual(run("fsck", *self.place()).returncode, 76)
        self.client.put(fresh, whole)
        record = self.client.get(newest).body
        self.client.put(newest, record[:-1])
        self.fails(53, "", "follow", *self.place(), "--out", self.dir / "out", "--once")
        self.client.put(newest, record)
        self.follow()
        self.assertEqual(self.current("out"), made["root"])


class Told(InBucket, test_runs.RunCase):
    """What publishers and followers leave beside a run, and who looks at it."""

    def test_top(self):
        for number, path in enumerate(self.make_steps(3)):
            self.publish(path, "--step", number, "--tell", "trainer", "--note", f"reward={number}")
            self.follow("out", "--tell", "w-0")
        told = list(self.client.keys_below("some/where/rl/told/"))
        self.assertEqual(told, [f"some/where/rl/told/{name}/00000001" for name in ("trainer", "w-0")])
        story = self.json("top", *self.place(), "--once")
        self.assertEqual([step["notes"] for step in story["steps"]], [{"reward": number} for number in range(3)])
        follower, = story["followers"]
        self.assertEqual((follower["name"], follower["version"], follower["activations"]), ("w-0", 2, 3))


if __name__ == "__main__":
    net_case.main(with_radosgw=True)
