# SPDX-License-Identifier: Apache-2.0
"""What the tests of network stores share: servers, the environment of a client, and that no secret gets out."""
import contextlib
import json
import os
import pathlib
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "servers"), str(HERE.parent / "cli")]

import cli_case  # noqa: E402
from bucket import Stored  # noqa: E402,F401 (for tests)
from s3_client import S3Client  # noqa: E402
from s3_server import S3Server  # noqa: E402

ANSWER_SECONDS = 60  # no operation of a hasty client takes that long
RADOSGW = HERE / "servers" / "radosgw"
DRIVER = ""
SKIPPED = 77

# The secrets of every test, so that one search finds any of them.
CANARY = "CANARY" + secrets.token_hex(17)
TOKEN = "TOKENCANARY" + secrets.token_hex(40)
KEYS = ("TESTACCESSKEY0000000", CANARY)

# Environment variables that would change what a client does.
FOREIGN = ("AWS_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")

# A patient client makes a slow test: milliseconds of silence, attempts, milliseconds until it gives up.
HASTY = (1000, 5, 6000)
HASTY_COMMAND = {"ULPSYNC_STALL_SECONDS": "1", "ULPSYNC_OPERATION_SECONDS": "6"}


def client_environment(endpoint, keys=KEYS, token=None, region="us-east-1", **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**clean, "AWS_ENDPOINT_URL_S3": endpoint, "AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1],
            "AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true", **({"AWS_SESSION_TOKEN": token} if token else {}), **more}


class Secrets:
    """Watches what a test's processes show: what they say, their argument lists, and the files that they leave."""
    words = [CANARY.encode(), TOKEN.encode()]

    @classmethod
    def check_text(cls, case, *texts):
        for text in texts:
            data = text.encode() if isinstance(text, str) else text or b""
            for word in cls.words:
                case.assertFalse(word in data, "a secret got out")  # and is not shown here either

    @classmethod
    def check_arguments(cls, case, pid):
        try:
            cls.check_text(case, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            pass

    @classmethod
    def check_files(cls, case, directory):
        for path in pathlib.Path(directory).rglob("*"):
            cls.check_text(case, os.fsencode(path))
            if not path.is_file() or path.is_symlink() or path.name == "environment":
                continue
            kept = b""
            with contextlib.suppress(OSError), open(path, "rb") as file:
                while data := file.read(1 << 20):
                    cls.check_text(case, kept + data)
                    kept = data[-200:]


class NetCase(unittest.TestCase):
    """Every command goes through run() or start(), which look for secrets."""
    server = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.environment = {}
        self.processes = []
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream and not stream.closed:
                    Secrets.check_text(self, stream.read())
                    stream.close()
        Secrets.check_files(self, self.dir)

    def serve(self, **more):
        server = S3Server(**{"keys": KEYS, **more})
        server.__enter__()
        self.addCleanup(server.__exit__)
        self.environment = client_environment(server.endpoint, region=server.region, token=more.get("token"))
        return server

    def start(self, program, *words, **more):
        process = subprocess.Popen([program, *map(str, words)], env={**self.environment, **more.pop("env", {})},
                                   cwd=self.dir, **more)
        self.processes.append(process)
        Secrets.check_arguments(self, process.pid)
        return process

    def run_command(self, *words, seconds=60, env=()):
        """A command of ulpsync, in bounded time and memory."""
        process = self.start(cli_case.ULPSYNC, *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(env))
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"{' '.join(map(str, words))}: not done after {seconds} s; {err.decode(errors='replace')}")
        Secrets.check_text(self, out, err)
        return subprocess.CompletedProcess(words, process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def json(self, *words, **more):
        done = self.run_command(*words, "--json", **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def root(self, model):
        return self.json("digest", model)["root"]

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it took too long")
            time.sleep(0.01)


class Driver:
    """store_driver: one operation of a store per line, the outcome as JSON."""

    def __init__(self, case, url, patience=HASTY, **environment):
        self.case = case
        self.process = case.start(DRIVER, url, *patience, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=environment)
        # read beside, so that a process that says much is not held up
        self.said = []
        thread = threading.Thread(target=lambda: self.said.append(self.process.stderr.read()), daemon=True)
        thread.start()
        self.thread, self.pending = thread, b""
        self.opened = self.answer()

    def answer(self):
        """A line, in bounded time."""
        end = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                self.case.fail(f"no answer within {ANSWER_SECONDS} s")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                break
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        Secrets.check_text(self.case, line)
        if not line:
            self.process.wait(10)
            self.thread.join(10)
            self.case.fail(f"the driver ended with {self.process.returncode}: {b''.join(self.said).decode(errors='replace')[-2000:]}")
        return json.loads(line)

    def __call__(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(30)
        self.thread.join(10)
        Secrets.check_text(self.case, *self.said)
        self.case.assertEqual(code, 0, self.said)


def has_radosgw():
    return subprocess.run([sys.executable, RADOSGW, "have"], capture_output=True).returncode == 0


class Radosgw:
    """One for all tests of a program; a program without it is skipped as a whole."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="ulpsync-radosgw-")
        done = subprocess.run([sys.executable, RADOSGW, "start", self.dir, "--secret", CANARY], capture_output=True, text=True, timeout=300)
        if done.returncode == SKIPPED:
            shutil.rmtree(self.dir)
            print(f"skipped: {done.stderr.strip()}")
            sys.exit(SKIPPED)
        if done.returncode:
            raise RuntimeError(done.stderr)
        told = json.loads(done.stdout)
        self.endpoint, self.keys = told["endpoint"], (told["access_key"], told["secret_key"])

    def client(self, bucket):
        client = S3Client(self.endpoint, self.keys, bucket=bucket)
        reply = client.make_bucket()
        if reply.status != 200:
            raise RuntimeError(f"no bucket: {reply.status} {reply.body}")
        return client

    def stop(self):
        subprocess.run([sys.executable, RADOSGW, "stop", self.dir], check=True, timeout=60)


def main(with_radosgw=False):
    """PROGRAM.py ULPSYNC DRIVER [unittest arguments]"""
    global DRIVER
    cli_case.ULPSYNC, DRIVER = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    NetCase.rados = Radosgw() if with_radosgw else None
    try:
        unittest.main()
    finally:
        if NetCase.rados:
            NetCase.rados.stop()
