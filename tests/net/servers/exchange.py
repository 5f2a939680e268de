# SPDX-License-Identifier: Apache-2.0
"""One request and its answer, over a connection that may be kept. Behaviours decide what is sent, down to the byte."""
import email.utils
import socket
import struct
import time
import urllib.parse
from xml.sax.saxutils import escape

REASONS = {100: "Continue", 200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
           304: "Not Modified", 307: "Temporary Redirect", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
           405: "Method Not Allowed", 409: "Conflict", 411: "Length Required", 412: "Precondition Failed",
           416: "Range Not Satisfiable", 429: "Too Many Requests", 500: "Internal Server Error",
           501: "Not Implemented", 503: "Slow Down"}
HEADER_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 256 << 20


class Gone(Exception):
    """The client has closed the connection, or sent what is no request."""


class Answer:
    def __init__(self, status, body=b"", headers=()):
        self.status, self.body, self.headers = status, body, list(headers)

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


def xml_answer(text, status=200, headers=()):
    body = ('<?xml version="1.0" encoding="UTF-8"?>\n' + text).encode()
    return Answer(status, body, [("Content-Type", "application/xml"), *headers])


def error_answer(status, code, message="", headers=(), more=""):
    return xml_answer(f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>{more}"
                      "<RequestId>0123456789ABCDEF</RequestId></Error>", status, headers)


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.path, _, self.query = target.partition("?")
        self.values = dict(reversed(headers))
        self.asked = dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))
        self.bucket, _, self.key = urllib.parse.unquote(self.path).lstrip("/").partition("/")
        self.operation = self.find_operation()

    def find_operation(self):
        asked, method = self.asked, self.method
        if not self.key:
            if method == "GET":
                return "ListUploads" if "uploads" in asked else "List" if self.bucket else "ListBuckets"
            return {"PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}.get(method, "Unknown")
        if "uploads" in asked:
            return "CreateUpload" if method == "POST" else "Unknown"
        if "uploadId" in asked:
            return {"PUT": "UploadPart", "POST": "CompleteUpload", "DELETE": "AbortUpload", "GET": "ListParts"}.get(
                method, "Unknown")
        return {"GET": "Get", "HEAD": "Head", "PUT": "Put", "DELETE": "Delete"}.get(method, "Unknown")


class Connection:
    def __init__(self, sock, number):
        self.socket, self.number, self.requests = sock, number, 0
        self.stream = sock.makefile("rb")
        self.close_next = False  # the next request on this connection is met with a closed door
        self.sent = 0

    def read_request(self):
        """None when the client is done."""
        line = self.stream.readline(HEADER_BYTES_MAX)
        if not line:
            return None
        words = line.decode("latin-1").split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise Gone("no request line")
        headers, used = [], len(line)
        while (line := self.stream.readline(HEADER_BYTES_MAX)).strip():
            used += len(line)
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or used > HEADER_BYTES_MAX:
                raise Gone("bad header")
            headers.append((name.strip().lower(), value.strip()))
        values = dict(headers)
        length = int(values.get("content-length", 0))
        if length > BODY_BYTES_MAX:
            raise Gone("too much")
        if "100-continue" in values.get("expect", "").lower():
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.stream.read(length) if length else b""
        if len(body) != length:
            raise Gone("the body is cut short")
        self.requests += 1
        return Request(words[0], words[1], headers, body)

    def send(self, data):
        try:
            self.socket.sendall(data)
            self.sent += len(data)
        except OSError as error:
            raise Gone(str(error)) from None

    def reset(self):
        """A reset instead of an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        """Also ends whoever waits in recv() on the other side, whatever still refers to the socket."""
        try:
            if not self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER):
                self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.stream.close()
        self.socket.close()


def head(status, headers):
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class Exchange:
    """What a behaviour gets."""

    def __init__(self, server, connection, request, arguments=None):
        self.server, self.connection, self.request = server, connection, request
        self.arguments = arguments or {}
        self.entry = {}  # of the log: complete before the client has its answer

    @property
    def status(self):
        return self.entry.get("status", 0)

    @status.setter
    def status(self, value):
        self.entry["status"] = value

    def perform(self, **lies):
        """Does what was asked; the answer is not sent yet."""
        return self.server.perform(self.request, **lies)

    def framed(self, answer, length=None):
        """All headers of an answer."""
        headers = [("Date", email.utils.formatdate(self.server.now(), usegmt=True)), ("Server", "scripted"),
                   ("x-amz-request-id", f"{self.connection.number}-{self.connection.requests}"), *answer.headers]
        if length is not None and not answer.header("Content-Length"):
            headers.append(("Content-Length", str(length)))
        return head(answer.status, headers)

    def body_of(self, answer):
        return b"" if self.request.method == "HEAD" else answer.body

    def send(self, answer):
        self.status = answer.status
        self.connection.send(self.framed(answer, len(answer.body)) + self.body_of(answer))

    def raw(self, data):
        self.connection.send(data)

    def trickle(self, data, seconds=0.05, step=1):
        for at in range(0, len(data), step):
            self.connection.send(data[at:at + step])
            if self.server.stopping.wait(seconds):
                raise Gone("stopped")

    def wait_for_client(self, seconds=120):
        """Says nothing until the client goes away."""
        self.connection.socket.settimeout(0.1)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.server.stopping.is_set():
            try:
                if not self.connection.socket.recv(65536):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        raise Gone("silent")
