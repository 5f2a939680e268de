#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much is asked of a server, counted by it: test_requests.py ULPSYNC DRIVER. The program that asks is beside them."""
import pathlib
import subprocess
import unittest

import net_case
from net_case import NetCase, Secrets


class Requests(NetCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        program = pathlib.Path(net_case.DRIVER).parent / "net_requests"
        done = subprocess.run([program], env={**self.environment, "ULPSYNC_TEST_URL": "s3://bucket/p"}, capture_output=True, timeout=120)
        Secrets.check_text(self, done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.phases = [[]]
        for entry in self.server.entries:
            if "/mark/" in entry["target"]:
                self.phases.append([])
            else:
                self.phases[-1].append(entry)

    def asked(self, phase):
        return [(e["operation"], "log" if "/log/" in e["target"] else "part", e["status"]) for e in self.phases[phase]]

    def test_all(self):
        """A step is two requests, a look for a new one is one; parts come whole, and on one connection."""
        for phase in (1, 2, 6):
            self.assertEqual(self.asked(phase), [("Put", "part", 200), ("Put", "log", 200)])
        for phase in (4, 5):
            self.assertEqual(self.asked(phase), [("Get", "log", 404)])
        step = self.asked(7)
        self.assertEqual([what for what in step if what[1] == "part"], [("Get", "part", 206)])
        self.assertLessEqual(len(step), 4, step)
        # a follower that has to catch up fetches ahead; afterwards nothing is asked beside anything else
        self.assertEqual(len({e["connection"] for phase in self.phases[4:] for e in phase}), 1)
        self.assertLessEqual(len({e["connection"] for e in self.server.entries}), 2)
        for entry in self.server.entries:
            self.assertNotIn("expect", entry["headers"])


if __name__ == "__main__":
    net_case.main()
