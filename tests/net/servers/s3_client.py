# SPDX-License-Identifier: Apache-2.0
"""A small S3 client for tests: makes buckets, looks at what a server holds, and compares servers with each other."""
import http.client
import urllib.parse
from xml.etree import ElementTree

import sigv4


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers}, body

    def texts(self, tag):
        """The text of every element of that name."""
        root = ElementTree.fromstring(self.body)
        return [e.text or "" for e in root.iter() if e.tag.rpartition("}")[2] == tag]

    @property
    def code(self):
        return self.texts("Code")[0] if self.body else ""


class S3Client:
    def __init__(self, endpoint, keys, region="us-east-1", bucket="bucket", token=None):
        self.host = urllib.parse.urlsplit(endpoint).netloc
        self.keys, self.region, self.bucket, self.token = keys, region, bucket, token

    def ask(self, method, key="", query=(), headers=(), body=b"", signed=None):
        """signed: headers to send as they are, instead of ours."""
        path = sigv4.encode(f"/{self.bucket}" + (f"/{key}" if key else ""), "/")
        text = "&".join(f"{sigv4.encode(n)}={sigv4.encode(v)}" for n, v in sorted(query))
        if signed is None:
            signed = sigv4.sign(method, self.host, path, text, list(headers), body, self.keys, self.region, self.token)
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.putrequest(method, path + ("?" + text if text else ""), skip_host=True, skip_accept_encoding=True)
            for name, value in signed:
                connection.putheader(name, value)
            if body or method in ("PUT", "POST"):
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            reply = connection.getresponse()
            return Reply(reply.status, reply.getheaders(), reply.read())
        finally:
            connection.close()

    def make_bucket(self):
        return self.ask("PUT")

    def put(self, key, data, *headers):
        return self.ask("PUT", key, headers=headers, body=data)

    def create(self, key, data):
        return self.put(key, data, ("If-None-Match", "*"))

    def get(self, key, *headers):
        return self.ask("GET", key, headers=headers)

    def head(self, key):
        return self.ask("HEAD", key)

    def delete(self, key):
        return self.ask("DELETE", key)

    def list(self, prefix="", **more):
        query = [("list-type", "2"), ("prefix", prefix), *((n.replace("_", "-"), str(v)) for n, v in more.items())]
        return self.ask("GET", query=query)

    def keys_below(self, prefix=""):
        found, token = [], None
        while True:
            reply = self.list(prefix, **({"continuation_token": token} if token else {}))
            found += reply.texts("Key")
            token = (reply.texts("NextContinuationToken") or [None])[0]
            if reply.texts("IsTruncated")[0] != "true":
                return found

    def uploads(self):
        """(key, id) of multipart uploads that are neither complete nor aborted."""
        reply = self.ask("GET", query=[("uploads", "")])
        return list(zip(reply.texts("Key"), reply.texts("UploadId")))

    def begin(self, key):
        return self.ask("POST", key, [("uploads", "")]).texts("UploadId")[0]

    def part(self, key, upload, number, data):
        return self.ask("PUT", key, [("partNumber", str(number)), ("uploadId", upload)], body=data)

    def complete(self, key, upload, parts, *headers):
        items = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in parts)
        return self.ask("POST", key, [("uploadId", upload)], headers,
                        f"<CompleteMultipartUpload>{items}</CompleteMultipartUpload>".encode())

    def abort(self, key, upload):
        return self.ask("DELETE", key, [("uploadId", upload)])
