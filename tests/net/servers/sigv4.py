# SPDX-License-Identifier: Apache-2.0
"""AWS Signature Version 4 for S3, written from AWS's description: signs what tests send, and checks, strictly, what
clients send. It shares nothing with the signer that it checks."""
import datetime
import hashlib
import hmac
import re
import urllib.parse

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256(b"").hexdigest()
SKEW_SECONDS = 15 * 60
PLAIN = "-_.~"


class Refused(Exception):
    """What S3 would answer: status, code, sentence."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def encode(text, safe=""):
    return urllib.parse.quote(text, safe=PLAIN + safe, errors="surrogateescape")


def canonical_path(path):
    return encode(urllib.parse.unquote(path, errors="surrogateescape"), "/") or "/"


def canonical_query(query):
    pairs = []
    for item in filter(None, query.split("&")):
        name, _, value = item.partition("=")
        pairs.append((encode(urllib.parse.unquote(name)), encode(urllib.parse.unquote(value))))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def canonical_request(method, path, query, headers, signed, payload_hash):
    """headers: (lower-case name, value) as they came; those of one name are joined."""
    lines = []
    for name in signed:
        values = [re.sub(" +", " ", value.strip()) for key, value in headers if key == name]
        lines.append(f"{name}:{','.join(values)}\n")
    return "\n".join([method, canonical_path(path), canonical_query(query), "".join(lines), ";".join(signed), payload_hash])


def signing_key(secret, date, region):
    key = ("AWS4" + secret).encode()
    for part in (date, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def signature(secret, time_text, region, canonical):
    date = time_text[:8]
    to_sign = "\n".join([ALGORITHM, time_text, f"{date}/{region}/s3/aws4_request",
                         hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()])
    return hmac.new(signing_key(secret, date, region), to_sign.encode(), hashlib.sha256).hexdigest()


def sign(method, host, path, query, headers, body, keys, region, token=None, now=None):
    """The headers that a request needs, the given ones included."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    time_text = now.strftime("%Y%m%dT%H%M%SZ")
    payload_hash = hashlib.sha256(body).hexdigest()
    all_headers = [("host", host), ("x-amz-date", time_text), ("x-amz-content-sha256", payload_hash)]
    all_headers += [(name.lower(), value) for name, value in headers]
    if token:
        all_headers.append(("x-amz-security-token", token))
    signed = sorted({name for name, _ in all_headers})
    found = signature(keys[1], time_text, region, canonical_request(method, path, query, all_headers, signed, payload_hash))
    scope = f"{keys[0]}/{time_text[:8]}/{region}/s3/aws4_request"
    all_headers.append(("authorization", f"{ALGORITHM} Credential={scope}, SignedHeaders={';'.join(signed)}, Signature={found}"))
    return all_headers


FORM = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/s3/aws4_request, ?"
                  r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})")


class Verifier:
    """Everything that AWS documents as a must is one, also where its servers are lenient."""

    def __init__(self, access, secret, region, token=None, clock=None):
        self.access, self.secret, self.region, self.token = access, secret, region, token
        self.clock = clock or (lambda: datetime.datetime.now(datetime.timezone.utc))

    def check(self, method, path, query, headers, body):
        """Raises Refused. headers: (lower-case name, value)."""
        values = {}
        for name, value in headers:
            values.setdefault(name, []).append(value)
        if "authorization" not in values:
            raise Refused(403, "AccessDenied", "the request is not signed")
        for name in ("authorization", "x-amz-date", "x-amz-content-sha256", "host"):
            if len(values.get(name, [])) != 1:
                raise Refused(400, "InvalidRequest", f"there must be one {name} header")
        match = FORM.fullmatch(values["authorization"][0])
        if not match:
            raise Refused(400, "AuthorizationHeaderMalformed", "the Authorization header is malformed")
        access, date, region, signed_text, given = match.groups()
        if access != self.access:
            raise Refused(403, "InvalidAccessKeyId", "there is no such access key")
        if region != self.region:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region is wrong; expecting '{self.region}'")
        self.check_time(values["x-amz-date"][0], date)
        self.check_token(values.get("x-amz-security-token", []))
        signed = signed_text.split(";")
        self.check_signed(signed, values)
        payload_hash = values["x-amz-content-sha256"][0]
        canonical = canonical_request(method, path, query, headers, signed, payload_hash)
        if not hmac.compare_digest(signature(self.secret, values["x-amz-date"][0], region, canonical), given):
            raise Refused(403, "SignatureDoesNotMatch", "the signature is not that of this request")
        if payload_hash != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch", "x-amz-content-sha256 is not the hash of what was sent")

    def check_time(self, time_text, date):
        try:
            when = datetime.datetime.strptime(time_text, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            raise Refused(403, "AccessDenied", "x-amz-date is malformed") from None
        if time_text[:8] != date:
            raise Refused(403, "SignatureDoesNotMatch", "the date of the scope is not that of the request")
        if abs((when - self.clock()).total_seconds()) > SKEW_SECONDS:
            raise Refused(403, "RequestTimeTooSkewed",
                          "The difference between the request time and the current time is too large.")

    def check_token(self, tokens):
        if tokens != ([self.token] if self.token else []):
            raise Refused(403 if tokens else 400, "InvalidToken", "the session token is not the one that was given out")

    @staticmethod
    def check_signed(signed, values):
        if signed != sorted(set(signed)):
            raise Refused(400, "AuthorizationHeaderMalformed", "signed headers must be sorted, each once")
        must = {"host"} | {name for name in values if name.startswith("x-amz-") or name == "content-type"}
        if must - set(signed):
            raise Refused(403, "AccessDenied", f"headers that must be signed are not: {sorted(must - set(signed))}")
        if set(signed) - set(values):
            raise Refused(403, "SignatureDoesNotMatch", "a signed header is not there")
