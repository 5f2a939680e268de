#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where secrets come from, and that they go nowhere: test_credentials_seen.py ULPSYNC DRIVER."""
import datetime
import json
import pathlib
import resource
import signal
import subprocess

import net_case
from net_case import CANARY, Driver, KEYS, NetCase, Secrets, TOKEN, client_environment

import cli_case
from exchange import Answer
from s3_server import Recorder

USAGE, PERMISSION, IO = 2, 22, 24


def in_seconds(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Credentials(NetCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve(token=TOKEN)
        self.server.bucket.put("p/a", net_case.Stored(b"found"))
        self.bare = {name: value for name, value in self.environment.items()
                     if name not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")}
        self.bare["HOME"] = str(self.dir)
        self.signing = self.environment

    def stat(self, environment):
        self.environment = environment
        store = Driver(self, "s3://bucket/p")
        return store.opened if store.opened["status"] else store("stat", "a")

    def agent(self, answers):
        """A container's agent: the last of the answers stays."""
        asked = []

        def answer(request):
            asked.append(request)
            return Answer(200, json.dumps(answers[min(len(asked), len(answers)) - 1]).encode(), [("Content-Type", "application/json")])

        recorder = Recorder(answer)
        recorder.start()
        self.addCleanup(recorder.stop)
        return asked, {**self.bare, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{recorder.port}/creds",
                       "AWS_CONTAINER_AUTHORIZATION_TOKEN": CANARY}

    @staticmethod
    def given(token=TOKEN, seconds=3600):
        return {"AccessKeyId": KEYS[0], "SecretAccessKey": KEYS[1], "Token": token, "Expiration": in_seconds(seconds)}

    def test_environment(self):
        self.assertEqual(self.stat(self.environment)["bytes"], 5)

    def test_none(self):
        answer = self.stat(self.bare)
        self.assertEqual(answer["status"], PERMISSION, answer)
        self.assertIn("AWS_ACCESS_KEY_ID", answer["message"])

    def test_a_profile(self):
        path = self.dir / ".aws" / "credentials"
        path.parent.mkdir()
        path.write_text(f"[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n\n# a comment\n[mine]\n"
                        f"aws_access_key_id={KEYS[0]}\naws_secret_access_key =  {KEYS[1]}\naws_session_token = {TOKEN}\n")
        path.chmod(0o600)
        self.addCleanup(path.unlink)  # before all files are searched for what has leaked
        self.assertEqual(self.stat({**self.bare, "AWS_PROFILE": "mine"})["bytes"], 5)
        self.assertEqual(self.stat(self.bare)["status"], PERMISSION)
        self.assertEqual(self.stat({**self.bare, "AWS_PROFILE": "none"})["status"], PERMISSION)

    def test_an_agent(self):
        asked, environment = self.agent([self.given()])
        self.environment = environment
        store = Driver(self, "s3://bucket/p")
        for _ in range(5):
            self.assertEqual(store("stat", "a")["bytes"], 5)
        self.assertEqual(len(asked), 1)
        self.assertEqual(asked[0].values["authorization"], CANARY)
        store.close()

    def test_anonymous(self):
        """Only 1 leaves requests unsigned, which this server refuses."""
        for value, expected in (("0", 0), ("", 0), ("1", PERMISSION), ("no", USAGE)):
            with self.subTest(value):
                answer = self.stat({**self.signing, "ULPSYNC_S3_ANONYMOUS": value})
                self.assertEqual(answer["status"], expected, answer)

    def test_an_agent_that_is_busy(self):
        """That may pass, and is no refusal; one that refuses is."""
        for code, expected in ((503, IO), (429, IO), (500, IO), (403, PERMISSION), (404, PERMISSION)):
            with self.subTest(code):
                recorder = Recorder(lambda _, code=code: Answer(code))
                recorder.start()
                where = f"http://127.0.0.1:{recorder.port}/"
                answers = [self.stat({**self.bare, "AWS_CONTAINER_CREDENTIALS_FULL_URI": where})]
                (self.dir / "identity").write_text("a.b.c")
                answers.append(self.stat({**self.bare, "AWS_ENDPOINT_URL_STS": where, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
                                          "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.dir / "identity")}))
                recorder.stop()
                self.assertEqual([answer["status"] for answer in answers], [expected] * 2, answers)
                self.assertIn(str(code), answers[1]["message"])

    def test_an_agent_is_asked_again(self):
        """When the server says that credentials have expired; at other times others' clocks decide: credentials.c."""
        asked, environment = self.agent([self.given()])
        self.environment = environment
        store = Driver(self, "s3://bucket/p")
        self.assertEqual(store("stat", "a")["bytes"], 5)
        self.server.rule("expired_token", operation="Get", nth="1")
        self.assertEqual(store("read", "a", 0, 10, self.dir / "out")["read"], 5)
        self.assertEqual(len(asked), 2)
        self.server.rule("expired_token", operation="Get")
        self.assertEqual(store("read", "a", 0, 10, self.dir / "out")["status"], PERMISSION)
        self.assertLessEqual(len(asked), 4)
        store.close()

    def test_a_hostile_agent(self):
        answers = [b"", b"{", b"null", b"[" * 100_000, b'{"AccessKeyId": 5}', b'{"AccessKeyId": "a\\u0000b", "SecretAccessKey": "x"}',
                   b'{"AccessKeyId": "a\\r\\nX-Injected: 1", "SecretAccessKey": "%s"}' % CANARY.encode(), b"x" * (32 << 20),
                   b'{"SecretAccessKey": "%s"}' % CANARY.encode()]
        for body in answers:
            recorder = Recorder(lambda _, body=body: Answer(200, body))
            recorder.start()
            answer = self.stat({**self.bare, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{recorder.port}/"})
            recorder.stop()
            self.assertNotEqual(answer["status"], 0, body[:50])
            self.assertLess(answer["seconds"], 10)
            self.assertNotIn("x-injected", str([e["headers"] for e in self.server.entries]))

    def test_an_agent_elsewhere_is_not_asked(self):
        """A secret is not fetched over plain HTTP from beyond this machine."""
        answer = self.stat({**self.bare, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/creds"})
        self.assertNotEqual(answer["status"], 0)
        self.assertLess(answer["seconds"], 2)


class Places(NetCase):
    """Where a secret could be seen from outside."""

    def test_in_a_store_url(self):
        self.environment = client_environment("http://127.0.0.1:1")
        for url in (f"s3://{KEYS[0]}:{CANARY}@bucket/p", f"http://user:{CANARY}@127.0.0.1:1/p"):
            # the argument list shows it, and that is the caller's doing; nothing else may
            process = subprocess.run([cli_case.ULPSYNC, "log", "--store", url, "--run", "rl"], env=self.environment,
                                     capture_output=True, timeout=60)
            self.assertNotEqual(process.returncode, 0)
            Secrets.check_text(self, process.stdout, process.stderr)

    def test_in_what_is_said(self):
        """Also where it is asked to say more, and where the server throws it back."""
        server = self.serve()
        body = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{CANARY} is wrong</Message></Error>".encode()
        server.verifier = None
        server.perform = lambda request, **_: Answer(403, body)
        for words in (["log"], ["fsck"], ["follow", "--out", self.dir / "out", "--once"]):
            done = self.run_command(*words, "--store", "s3://bucket/p", "--run", "rl", "--verbose")
            self.assertEqual(done.returncode, PERMISSION, done.stderr)

    def test_in_a_core(self):
        """A command that crashes leaves no secret in a dump."""
        self.server = self.serve()
        if pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").startswith("|"):
            self.skipTest("dumps of this machine go to a program")
        process = self.start(cli_case.ULPSYNC, "follow", "--store", "s3://bucket/p", "--run", "rl", "--out", self.dir / "out",
                             "--poll", "50", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
        self.wait_for(lambda: len(self.server.entries) > 3 or process.poll() is not None)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGSEGV)
        process.wait(30)
        self.assertEqual([path.name for path in self.dir.glob("core*")], [])


if __name__ == "__main__":
    net_case.main()
