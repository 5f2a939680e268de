#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that do not keep the promises of a store are found out: test_check.py ULPSYNC DRIVER. First of all those that
break If-None-Match, which is what keeps two publishers apart."""
import os

import net_case
from net_case import Driver, NetCase, client_environment

SEVERAL, ONE, READ_ONLY, UNFIT = "several publishers", "one publisher", "read only", "unfit"

# behaviour, arguments of its rule, verdicts that will do
BROKEN = [
    # the six ways to break a condition
    ("condition", {"operation": "Put", "rule": "ignore"}, {ONE}),
    ("condition", {"operation": "Put", "rule": "invert"}, {ONE, UNFIT}),
    ("condition", {"operation": "Put", "rule": "racy"}, {ONE}),
    ("condition", {"operation": "Put", "rule": "after"}, {ONE, UNFIT}),
    ("condition", {"operation": "Put", "rule": "always"}, {ONE, UNFIT, READ_ONLY}),
    ("refused_own", {"operation": "Put"}, {ONE, UNFIT}),
    # some of the time
    ("condition", {"operation": "Put", "rule": "ignore", "nth": "10-40"}, {ONE}),
    # what was written is not what is read
    ("put_lost", {"operation": "Put"}, {UNFIT}),
    ("stale", {"operation": "Get,Head"}, {UNFIT}),
    ("one_bit", {"operation": "Get"}, {UNFIT}),
    ("head_wrong_length", {"operation": "Head"}, {UNFIT}),
    ("wrong_content_range", {"operation": "Get"}, {UNFIT}),
    # nothing can be written
    ("status", {"operation": "Put", "status": 403, "code": "AccessDenied"}, {READ_ONLY}),
    ("status", {"operation": "Put", "status": 405, "code": "MethodNotAllowed"}, {READ_ONLY}),
    # a listing is only a hint
    ("listing", {"operation": "List", "lie": "nothing"}, {SEVERAL}),
    ("listing", {"operation": "List", "lie": "unsorted"}, {SEVERAL}),
]


class Check(NetCase):
    def check(self, url="s3://bucket/p"):
        store = Driver(self, url)
        answer = store("check")
        store.close()
        return answer

    def test_as_it_should_be(self):
        for personality in ("aws", "radosgw", "huggingface"):
            with self.subTest(personality):
                server = self.serve(personality=personality)
                answer = self.check()
                self.assertEqual((answer["status"], answer["verdict"], answer["why"]), (0, SEVERAL, ""))
                self.assertEqual(dict(server.bucket.objects), {}, "it leaves something")
        if self.rados:
            client = self.rados.client(f"check-{os.getpid()}")
            self.environment = client_environment(self.rados.endpoint, self.rados.keys)
            answer = self.check(f"s3://{client.bucket}/p")
            self.assertEqual((answer["status"], answer["verdict"], answer["why"]), (0, SEVERAL, ""))
            self.assertEqual(client.keys_below(), [])

    def test_broken(self):
        for behaviour, arguments, verdicts in BROKEN:
            with self.subTest(behaviour, **arguments):
                server = self.serve()
                server.rule(behaviour, **arguments)
                answer = self.check()
                self.assertEqual(answer["status"], 0, answer["message"])
                self.assertIn(answer["verdict"], verdicts, answer["why"])
                self.assertTrue(answer["why"])

    def test_gone(self):
        """A server that cannot be tried is no verdict."""
        server = self.serve()
        server.rule("reset_before_headers")
        answer = self.check()
        self.assertNotEqual(answer["status"], 0, answer)


if __name__ == "__main__":
    net_case.main(with_radosgw=net_case.has_radosgw())
