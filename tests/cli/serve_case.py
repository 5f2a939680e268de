# SPDX-License-Identifier: Apache-2.0
"""What the tests of `ulpsync serve` share: a server, plain requests, and answers taken apart byte by byte."""
import http.client
import json
import re
import signal
import socket
import subprocess

from run_case import RunCase


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, {name.lower(): value for name, value in headers}, body


def read_answer(stream, head=False):
    """One answer from a file of bytes; None where the connection ends before it."""
    first = stream.readline()
    if not first:
        return None
    code, headers = int(first.split()[1]), []
    while (line := stream.readline().strip()):
        name, value = line.decode().split(":", 1)
        headers.append((name, value.strip()))
    answer = Answer(code, headers, b"")
    if not head and code != 304:
        answer.body = stream.read(int(answer.headers["content-length"]))
    return answer


class ServeCase(RunCase):
    def serve(self, *more, directory=None):
        """A server; its address becomes self.url."""
        self.server = self.start("serve", directory or self.store, "--listen", "127.0.0.1:0", "--json", *more,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_well, self.server)
        line = self.server.stdout.readline()
        self.assertTrue(line, "the server did not start")
        told = json.loads(line)
        self.assertEqual(set(told), {"url", "port", "directory"})
        self.url, self.port = told["url"], told["port"]
        return self.server

    def stop_server(self):
        self.end_well(self.server)

    def end_well(self, server):
        """Whatever it went through, it is stopped, which is no failure; nor has a sanitizer anything to say."""
        if server.poll() is None:
            self.wait_until_it_listens(server, signal.SIGTERM)
            server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(60), 0, server.stderr.read())

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(connection.close)
        return connection

    def ask(self, path, method="GET", **headers):
        """headers: Range="bytes=0-1", If_None_Match=..."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def send_raw(self, data, head=False):
        """What comes back for these bytes; None: nothing."""
        connection = self.connect()
        with connection, connection.makefile("rb") as stream:
            try:
                connection.sendall(data)
                return read_answer(stream, head)
            except ConnectionError:
                return None

    def metrics(self):
        """{(name, labels): value}, of a page that is held to the format's grammar."""
        answer = self.ask("/metrics")
        self.assertEqual(answer.code, 200)
        self.assertEqual(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        return parse_metrics(self, answer.body.decode())


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')


def parse_metrics(case, text):
    samples, types, last = {}, {}, None
    case.assertTrue(text.endswith("\n"))
    for line in text.splitlines():
        words = line.split(" ", 3)
        if words[0] == "#":
            case.assertIn(words[1], ("HELP", "TYPE"), line)
            case.assertTrue(words[3], line)
            if words[1] == "TYPE":
                case.assertEqual(last, words[2], "HELP comes before TYPE")
                case.assertNotIn(words[2], types, "once for each name")
                case.assertIn(words[3], ("counter", "gauge"))
                types[words[2]] = words[3]
            last = words[2]
            continue
        sample = SAMPLE.fullmatch(line)
        case.assertTrue(sample, line)
        name, labels, value = sample.groups()
        case.assertEqual(name, last, "samples of a name stand together, behind its type")
        case.assertEqual(types[name] == "counter", name.endswith("_total"), line)
        key = (name, *sorted(LABEL.findall(labels or "")))
        case.assertNotIn(key, samples, "a sample stands there once")
        samples[key] = float(value)
    return samples
