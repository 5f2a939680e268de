#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An S3 server that does what a script says: on loopback, in memory, with the standard library alone.

    s3_server.py [--personality aws|radosgw|huggingface] [--rules FILE] [--log FILE] [--port N] ...

prints its endpoint as one line of JSON and serves until standard input ends. Tests start it inside themselves:

    with S3Server(personality="aws", keys=("ACCESS", "SECRET")) as server:
        server.rule("reset_mid_body", operation="Get", key="*/log/*", nth="1-2")
        ... server.endpoint, server.bucket.objects, server.requests("Get") ...

Every request is written to the log, secrets left out. See behaviours.py for what can go wrong.
"""
import argparse
import datetime
import fnmatch
import json
import re
import socket
import sys
import threading
import time
import urllib.parse
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from behaviours import BEHAVIOURS
from bucket import PERSONALITIES, Bucket, Stored, etag_of
from exchange import Answer, Connection, Exchange, Gone, error_answer, xml_answer
from sigv4 import Refused, Verifier

SECRET_HEADERS = {"authorization", "x-amz-security-token"}
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
PAGE = 1000


class Rule:
    """One behaviour, for the nth requests (from 1) of an operation whose key matches."""

    def __init__(self, behaviour, operation="*", key="*", nth="*", **arguments):
        self.function, self.name, self.arguments = BEHAVIOURS[behaviour], behaviour, arguments
        self.operation, self.key, self.nth, self.seen, self.used = operation, key, str(nth), 0, 0

    def takes(self, request):
        if not any(fnmatch.fnmatchcase(request.operation, one) for one in self.operation.split(",")):
            return False
        if not fnmatch.fnmatchcase(request.key, self.key):
            return False
        self.seen += 1
        for span in self.nth.split(","):
            first, dash, last = span.partition("-")
            if span == "*" or int(first) == self.seen or dash and int(first) <= self.seen and (
                    not last or self.seen <= int(last)):
                self.used += 1
                return True
        return False


class Listener:
    """Threads that serve the connections of one port."""

    def __init__(self, port=0, context=None):
        self.socket = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self.socket.getsockname()[1]
        self.context = context
        self.stopping = threading.Event()
        self.connections, self.threads, self.number = set(), [], 0
        self.lock = threading.RLock()

    def start(self):
        thread = threading.Thread(target=self.accept_all, daemon=True)
        thread.start()
        self.threads.append(thread)

    def accept_all(self):
        while not self.stopping.is_set():
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with self.lock:
            self.number += 1
            number = self.number
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, number)
        except OSError:
            sock.close()
            return
        with self.lock:
            self.connections.add(connection)
        try:
            self.serve_connection(connection)
        except (Gone, OSError, ValueError):
            pass
        finally:
            connection.close()
            with self.lock:
                self.connections.discard(connection)

    def stop(self):
        self.stopping.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        with self.lock:
            for connection in list(self.connections):
                connection.close()


class Recorder(Listener):
    """Another host: what arrives there is written down, and `answer` is what it gets."""

    def __init__(self, answer=None, context=None):
        super().__init__(context=context)
        self.answer, self.heard = answer or (lambda request: Answer(200, b"from another host")), []
        self.now = time.time

    def serve_connection(self, connection):
        while request := connection.read_request():
            self.heard.append(request)
            Exchange(self, connection, request).send(self.answer(request))


class S3Server(Listener):
    def __init__(self, personality="aws", keys=None, token=None, region="us-east-1", bucket="bucket", port=0, log=None,
                 clock_offset=0, context=None, chunk=PAGE):
        super().__init__(port, context)
        self.kind = PERSONALITIES[personality]
        self.clock_offset, self.page = clock_offset, chunk
        self.verifier = keys and Verifier(*keys, region, token, lambda: datetime.datetime.fromtimestamp(
            self.now(), datetime.timezone.utc))
        self.name, self.region = bucket, region
        self.bucket, self.rules, self.entries, self.log = Bucket(), [], [], log
        self.scheme = "https" if context else "http"
        self.endpoint = f"{self.scheme}://127.0.0.1:{self.port}"
        self.other = Recorder(self.answer_elsewhere)

    def now(self):
        return time.time() + self.clock_offset

    def __enter__(self):
        self.start()
        self.other.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.other.stop()

    def rule(self, behaviour, **more):
        rule = Rule(behaviour, **more)
        with self.lock:
            self.rules.append(rule)
        return rule

    def forget(self):
        """No rules and no log from here on; what is stored stays."""
        with self.lock:
            self.rules, self.entries = [], []
        self.other.heard = []

    def requests(self, operation="*", key="*"):
        with self.lock:
            return [e for e in self.entries
                    if fnmatch.fnmatchcase(e["operation"], operation) and fnmatch.fnmatchcase(e["key"], key)]

    # what is heard

    def serve_connection(self, connection):
        while request := connection.read_request():
            if connection.close_next:
                raise Gone("closed at reuse")
            with self.lock:
                rule = next((rule for rule in self.rules if rule.takes(request)), None)
            exchange = Exchange(self, connection, request, rule.arguments if rule else None)
            entry = exchange.entry = self.enter(connection, request, rule)
            before = connection.sent
            try:
                if rule:
                    rule.function(exchange)
                else:
                    exchange.send(self.perform(request))
            finally:
                entry["sent"] = connection.sent - before
                self.write(entry)
            if request.values.get("connection", "").lower() == "close":
                return

    def enter(self, connection, request, rule):
        entry = {"time": time.time(), "connection": connection.number, "number": connection.requests, "method": request.method,
                 "target": request.target, "operation": request.operation, "key": request.key,
                 "headers": {name: "(hidden)" if name in SECRET_HEADERS else value for name, value in request.headers},
                 "received": len(request.body), "rule": rule.name if rule else None, "status": 0, "sent": 0}
        with self.lock:
            self.entries.append(entry)
        return entry

    def write(self, entry):
        if self.log:
            with self.lock:
                self.log.write(json.dumps(entry) + "\n")
                self.log.flush()

    # what is done

    def perform(self, request, **lies):
        try:
            if self.verifier:
                self.verifier.check(request.method, request.path, request.query, request.headers, request.body)
            if request.bucket != self.name:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            if "transfer-encoding" in request.values:
                raise Refused(411, "MissingContentLength", "chunked bodies are not taken")
            return getattr(self, "do_" + request.operation, self.do_Unknown)(request, **lies)
        except Refused as refused:
            more = ""
            if refused.code == "RequestTimeTooSkewed":
                more = f"<ServerTime>{datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}</ServerTime>"
            return error_answer(refused.status, refused.code, refused.message, more=more)

    def do_Unknown(self, request):
        raise Refused(501, "NotImplemented", "this server does not do that")

    def do_HeadBucket(self, request):
        return Answer(200)

    def do_CreateBucket(self, request):
        return Answer(200)

    def found(self, key):
        stored = self.bucket.get(key)
        if stored is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        return stored

    def do_Head(self, request):
        stored = self.found(request.key)
        answer = Answer(200, b"", self.object_headers(stored))
        answer.headers.append(("Content-Length", str(len(stored.data))))
        return answer

    @staticmethod
    def object_headers(stored):
        return [("ETag", f'"{stored.etag}"'), ("Content-Type", "application/octet-stream"), ("Accept-Ranges", "bytes"),
                *((f"x-amz-meta-{name}", value) for name, value in stored.metadata.items())]

    def do_Get(self, request):
        stored = self.found(request.key)
        if self.kind.reads_by_redirect:
            where = f"http://127.0.0.1:{self.other.port}/cdn/{urllib.parse.quote(request.key)}?signed=yes"
            return Answer(302, b"", [("Location", where)])
        return self.ranged(stored, request)

    def ranged(self, stored, request):
        data, total = stored.data, len(stored.data)
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.values.get("range", ""))
        if not match or match.groups() == ("", ""):
            return Answer(200, data, self.object_headers(stored))
        first, last = match.groups()
        if not first:
            first, last = max(0, total - int(last)), total - 1
        else:
            first, last = int(first), min(int(last or total), total - 1)
        if first >= total or last < first:
            answer = error_answer(416, "InvalidRange", "The requested range is not satisfiable")
            answer.headers.append(("Content-Range", f"bytes */{total}"))
            return answer
        return Answer(206, data[first:last + 1],
                      [*self.object_headers(stored), ("Content-Range", f"bytes {first}-{last}/{total}")])

    def answer_elsewhere(self, request):
        """What the CDN says: it knows no signatures, and is angry about them."""
        if any(name == "authorization" or name.startswith("x-amz-") for name, _ in request.headers):
            return error_answer(403, "AccessDenied", "signature headers do not belong here")
        stored = self.bucket.get(urllib.parse.unquote(request.path).removeprefix("/cdn/"))
        if not request.path.startswith("/cdn/") or stored is None:
            return error_answer(404, "NoSuchKey")
        return self.ranged(stored, request)

    def stored_of(self, request):
        metadata = {name[11:]: value for name, value in request.headers if name.startswith("x-amz-meta-")}
        return Stored(request.body, metadata=metadata if self.kind.keeps_metadata else None)

    def check_condition(self, request, conditions):
        """Whether the request may go on, and whether that must still be so when it writes."""
        wants_none = request.values.get("if-none-match") == "*"
        there = self.bucket.get(request.key) is not None
        if not wants_none or conditions == "ignore":
            return
        if conditions == "always" or there != (conditions == "invert"):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")

    def do_Put(self, request, conditions="honour", etag=None):
        if "content-length" not in request.values:
            raise Refused(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
        stored = self.stored_of(request)
        wants_none = request.values.get("if-none-match") == "*"
        if wants_none and conditions == "honour":
            if not self.bucket.create(request.key, stored):
                raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        elif wants_none and conditions == "after":
            there = self.bucket.get(request.key) is not None
            self.bucket.put(request.key, stored)
            if there:
                raise Refused(412, "PreconditionFailed", "there was one, and now it is yours")
        else:
            self.check_condition(request, conditions)
            if conditions == "racy":
                time.sleep(0.3)
            self.bucket.put(request.key, stored)
        return Answer(200, b"", [("ETag", f'"{etag or stored.etag}"')])

    def do_Delete(self, request):
        self.bucket.remove(request.key)
        return Answer(204)

    # multipart

    def do_CreateUpload(self, request):
        name = self.bucket.begin(request.key)
        return xml_answer(f"<InitiateMultipartUploadResult {NAMESPACE}><Bucket>{self.name}</Bucket><Key>{escape(request.key)}"
                          f"</Key><UploadId>{escape(name)}</UploadId></InitiateMultipartUploadResult>")

    def upload_of(self, request):
        upload = self.bucket.uploads.get(request.asked["uploadId"])
        if upload is None or upload.key != request.key:
            raise Refused(404, "NoSuchUpload", "The specified upload does not exist.")
        return upload

    def do_UploadPart(self, request, lose=False, etag=None):
        upload, number = self.upload_of(request), int(request.asked.get("partNumber", 0))
        if not 1 <= number <= 10000:
            raise Refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000")
        if not lose:
            with self.bucket.lock:
                upload.parts[number] = request.body
        return Answer(200, b"", [("ETag", f'"{etag or etag_of(request.body)}"')])

    def do_CompleteUpload(self, request, etag=None):
        upload = self.upload_of(request)
        try:
            root = ElementTree.fromstring(request.body)
        except ElementTree.ParseError:
            raise Refused(400, "MalformedXML", "The XML you provided was not well-formed") from None
        asked = []
        for part in root.iter():
            if part.tag.rpartition("}")[2] == "Part":
                fields = {child.tag.rpartition("}")[2]: child.text or "" for child in part}
                asked.append((int(fields["PartNumber"]), fields["ETag"].strip('"')))
        if not asked:
            raise Refused(400, "MalformedXML", "You must specify at least one part")
        if [n for n, _ in asked] != sorted({n for n, _ in asked}):
            raise Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        for number, tag in asked:
            data = upload.parts.get(number)
            if data is None or etag_of(data) != tag:
                raise Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
            if number != asked[-1][0] and len(data) < self.kind.part_bytes_min:
                raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
        if self.kind.complete_honours_conditions:
            self.check_condition(request, "honour")
        data = b"".join(upload.parts[number] for number, _ in asked)
        stored = Stored(data, f"{etag_of(data)}-{len(asked)}")
        with self.bucket.lock:
            self.bucket.put(request.key, stored)
            self.bucket.uploads.pop(request.asked["uploadId"], None)
        tag = f'"{etag or stored.etag}"' if self.kind.complete_tells_etag else ""
        return xml_answer(f"<CompleteMultipartUploadResult {NAMESPACE}><Location>here</Location><Bucket>{self.name}</Bucket>"
                          f"<Key>{escape(request.key)}</Key><ETag>{escape(tag)}</ETag></CompleteMultipartUploadResult>")

    def do_AbortUpload(self, request):
        self.upload_of(request)
        with self.bucket.lock:
            self.bucket.uploads.pop(request.asked["uploadId"], None)
        return Answer(204)

    def do_ListUploads(self, request):
        prefix = request.asked.get("prefix", "")
        with self.bucket.lock:
            found = [(upload.key, name) for name, upload in self.bucket.uploads.items() if upload.key.startswith(prefix)]
        items = "".join(f"<Upload><Key>{escape(key)}</Key><UploadId>{escape(name)}</UploadId>"
                        "<Initiated>2024-01-01T00:00:00.000Z</Initiated></Upload>" for key, name in sorted(found))
        return xml_answer(f"<ListMultipartUploadsResult {NAMESPACE}><Bucket>{self.name}</Bucket>{items}"
                          "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")

    # listing

    def do_List(self, request, change=None, token=None):
        """`change` is told the entries (key, bytes) of a page and gives others; `token` continues for ever."""
        asked = request.asked
        if asked.get("list-type") != "2" and not self.kind.lists_v1:
            raise Refused(501, "NotImplemented", "only ListObjectsV2 is served")
        after = max(asked.get("start-after", asked.get("marker", "")), asked.get("continuation-token", "")[1:], key=str.encode)
        prefix, room = asked.get("prefix", ""), min(int(asked.get("max-keys", PAGE)), self.page)
        keys = self.bucket.keys(prefix, after)
        entries = [(key, len(self.bucket.objects[key].data)) for key in keys[:room]]
        more = f"~{entries[-1][0]}" if len(keys) > room and entries else ""
        if change:
            entries = change(entries)
        more = token or more
        encoded = asked.get("encoding-type") == "url"

        def show(text):
            return escape(urllib.parse.quote(text, safe="/") if encoded else text)

        items = "".join(f"<Contents><Key>{show(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
                        f"<ETag>&quot;{'0' * 32}&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
                        for key, size in entries)
        next_token = f"<NextContinuationToken>{escape(more)}</NextContinuationToken>" if more else ""
        return xml_answer(f"<ListBucketResult {NAMESPACE}><Name>{self.name}</Name><Prefix>{show(prefix)}</Prefix>"
                          f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>{room}</MaxKeys>"
                          f"{'<EncodingType>url</EncodingType>' if encoded else ''}"
                          f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{next_token}{items}</ListBucketResult>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--personality", choices=sorted(PERSONALITIES), default="aws")
    parser.add_argument("--access")
    parser.add_argument("--secret-file", help="its first line is the secret key; with --access every request is verified")
    parser.add_argument("--token")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--bucket", default="bucket")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--clock-offset", type=float, default=0)
    parser.add_argument("--rules", type=argparse.FileType("r"), help='[{"behaviour": ..., "operation": ..., "nth": ...}]')
    parser.add_argument("--log", type=argparse.FileType("a"))
    options = parser.parse_args()
    keys = None
    if options.access:
        with open(options.secret_file, encoding="utf-8") as file:
            keys = (options.access, file.readline().strip())
    with S3Server(options.personality, keys, options.token, options.region, options.bucket, options.port, options.log,
                  options.clock_offset) as server:
        for rule in json.load(options.rules) if options.rules else []:
            server.rule(rule.pop("behaviour"), **rule)
        print(json.dumps({"endpoint": server.endpoint, "other": server.other.port, "bucket": server.name}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
