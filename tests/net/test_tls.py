#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores over https: test_tls.py ULPSYNC DRIVER. Certificates are made by the openssl command; without it, skipped."""
import shutil
import ssl
import subprocess
import sys

import net_case
from net_case import Driver, NetCase, S3Server, Secrets, TOKEN, client_environment

IO = 24


class Tls(NetCase):
    def setUp(self):
        super().setUp()
        self.authority = self.certificate("ca", "/CN=test authority", "basicConstraints=critical,CA:TRUE")

    def openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)

    def certificate(self, name, subject, extension, signer=None):
        """NAME.key and NAME.pem."""
        key, request, made = (self.dir / f"{name}.{end}" for end in ("key", "csr", "pem"))
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-subj", subject]
        if not signer:
            self.openssl("req", "-x509", *new_key, "-out", made, "-days", 2, "-addext", extension)
            return made
        (self.dir / f"{name}.ext").write_text(extension)
        self.openssl("req", *new_key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.dir / f"{signer}.pem", "-CAkey", self.dir / f"{signer}.key",
                     "-CAcreateserial", "-out", made, "-days", 2, "-extfile", self.dir / f"{name}.ext")
        return made

    def serve_as(self, names):
        self.certificate("server", "/CN=server", f"subjectAltName={names}", "ca")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.dir / "server.pem", self.dir / "server.key")
        server = S3Server(keys=net_case.KEYS, token=TOKEN, context=context)
        server.__enter__()
        self.addCleanup(server.__exit__)
        server.bucket.put("p/a", net_case.Stored(b"found" * 1000))
        self.environment = client_environment(server.endpoint, token=TOKEN, AWS_CA_BUNDLE=str(self.authority))
        return server

    def test_trusted(self):
        server = self.serve_as("IP:127.0.0.1")
        store = Driver(self, "s3://bucket/p")
        for _ in range(5):
            self.assertEqual(store("read", "a", 0, 9999, self.dir / "out")["total"], 5000)
        self.assertEqual((self.dir / "out").read_bytes(), b"found" * 1000)
        self.assertEqual(len({e["connection"] for e in server.entries}), 1)
        store.close()

    def test_not_trusted(self):
        """Neither by another authority nor under another name; nothing is sent to such a server."""
        for names, bundle in (("IP:127.0.0.1", None), ("IP:127.0.0.2,DNS:elsewhere", self.authority)):
            server = self.serve_as(names)
            if not bundle:
                del self.environment["AWS_CA_BUNDLE"]
            store = Driver(self, "s3://bucket/p")
            for words in (("read", "a", 0, 99, self.dir / "out"), ("create", "b", self.authority)):
                answer = store(*words)
                self.assertEqual(answer["status"], IO, answer)
                self.assertIn("certificate", answer["message"])
            self.assertEqual(server.entries, [])

    def test_no_bundle(self):
        self.serve_as("IP:127.0.0.1")
        self.environment["AWS_CA_BUNDLE"] = str(self.dir / "none.pem")
        store = Driver(self, "s3://bucket/p")
        answer = store.opened if store.opened["status"] else store("stat", "a")
        self.assertNotEqual(answer["status"], 0)

    def test_downgrade(self):
        """From https to http: not followed, also not without the signature."""
        server = self.serve_as("IP:127.0.0.1")
        for status in (301, 302, 303, 307, 308):
            server.forget()
            server.rule("redirect_downgrade", status=status)
            store = Driver(self, "s3://bucket/p")
            for words in (("read", "a", 0, 99, self.dir / "out"), ("stat", "a"), ("create", "b", self.authority), ("list", "-", "-", 9)):
                answer = store(*words)
                self.assertEqual(answer["status"], IO, answer)
            self.assertEqual(server.other.heard, [])
            store.close()

    def test_plain_http_behind_https(self):
        """A server that does not speak TLS."""
        server = self.serve()
        self.environment = client_environment(server.endpoint.replace("http://", "https://"), token=TOKEN)
        store = Driver(self, "s3://bucket/p")
        self.assertEqual(store("stat", "a")["status"], IO)
        self.assertEqual(server.entries, [])
        Secrets.check_text(self, str(server.entries))


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: there is no openssl command")
        sys.exit(net_case.SKIPPED)
    net_case.main()
