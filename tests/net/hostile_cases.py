# SPDX-License-Identifier: Apache-2.0
"""What servers do, and what a store must make of it. A case is one behaviour met by one operation of a store. Whatever
happens, what is reported as done is done, what is returned is right, and the store can be used afterwards."""
from dataclasses import dataclass, field, replace

IO, LIMIT, PERMISSION, EXISTS, UNSUPPORTED = 24, 11, 22, 21, 13
OK = frozenset({0})
REFUSED = frozenset({IO, LIMIT})
OK_OR_REFUSED = OK | REFUSED
READS = ("read", "range", "stat", "list")

# The operation of the server that an operation of a store meets first.
MEETS = {"read": "Get", "range": "Get", "stat": "Head", "list": "List", "create": "Put", "put": "Put", "remove": "Delete",
         "large": "*Upload*"}

# A busy machine needs its time for many bytes, also on the server's side.
HASTY, UNHURRIED = (1000, 5, 6000), (3000, 5, 20000)


@dataclass
class Case:
    behaviour: str
    act: str
    want: frozenset
    nth: str = "*"
    operation: str = ""
    seconds: float = 14
    requests_max: int = 12
    sent_max: int = 24 << 20  # what fits into the buffers of two sockets is counted too
    message: str = ""
    patience: tuple = ()  # as net_case.HASTY
    web: bool = False  # read as from any web server, without S3 and without a signature
    server: dict = field(default_factory=dict)
    arguments: dict = field(default_factory=dict)

    def __post_init__(self):
        if not self.patience:
            self.patience = UNHURRIED if self.act == "large" else HASTY
        if self.act == "large":
            self.seconds = 60

    @property
    def name(self):
        more = "".join(f" {v}" for v in (*self.arguments.values(), *self.server.values()))
        return f"{'web ' if self.web else ''}{self.act}: {self.behaviour}{more} ({self.operation or MEETS[self.act]} {self.nth})"


def each(acts, behaviour, want, **more):
    return [Case(behaviour, act, want, **more) for act in acts]


def transport():
    """Whatever happens once is got over; what goes on is given up in bounded time."""
    for behaviour in ("reset_before_headers", "no_http", "silent"):
        for act in (*READS, "create", "put", "remove"):
            if behaviour != "no_http":
                yield Case(behaviour, act, OK, "1")
            if behaviour != "silent" or act in ("read", "create", "list"):
                yield Case(behaviour, act, frozenset({IO}))
    for behaviour in ("reset_after_headers", "reset_mid_body", "short_body", "silent_mid_body"):
        for act in ("read", "range", "list"):
            yield Case(behaviour, act, OK, "1")
        yield Case(behaviour, "read", frozenset({IO}))
    for behaviour in ("close_at_reuse", "close_after"):
        yield from each((*READS, "create", "put", "remove", "large"), behaviour, OK, requests_max=40)
    yield from each(("read", "list"), "trickle_body", REFUSED)
    yield from each(("read", "create", "stat"), "trickle_headers", REFUSED)
    yield from each(("read", "range", "list"), "endless_body", REFUSED)
    yield from each(("read", "list"), "endless_length", REFUSED)
    yield from each(("read", "create", "stat", "list", "remove"), "endless_headers", REFUSED)
    yield from each(("read", "create"), "endless_continue", REFUSED)


def lengths():
    yield from each(("read", "range", "list"), "long_body", OK_OR_REFUSED)
    yield from each(("read", "range", "list"), "no_content_length", OK_OR_REFUSED)
    yield from each(("read", "range"), "no_content_length_cut", OK, nth="1")
    yield from each(("read", "range", "list"), "no_content_length_cut", REFUSED)
    yield from each(READS, "two_lengths", OK_OR_REFUSED)
    yield from each(("read", "stat"), "negative_length", REFUSED)
    yield from each(("read", "range"), "whole_for_range", OK_OR_REFUSED)
    yield from each(("read", "range"), "wrong_content_range", REFUSED)
    yield from each(("read", "range"), "garbage_content_range", REFUSED)
    yield from each(("read", "range"), "other_range", REFUSED, arguments={"lacks": "first"})
    yield from each(("read", "range"), "other_range", OK_OR_REFUSED, arguments={"lacks": "last"})
    yield from each(("read", "range", "list"), "gzip_surprise", REFUSED)
    yield from each(("read", "range", "list"), "gzip_same_length", REFUSED)
    yield from each(("read", "list"), "gzip_bomb", REFUSED)
    yield from each(("read", "range", "list"), "chunked", OK_OR_REFUSED)
    yield from each(("read", "list"), "chunked_broken", REFUSED)
    yield from each(("read", "list"), "chunked_cut", REFUSED)


def statuses():
    for status, code in ((503, "SlowDown"), (503, "ServiceUnavailable"), (429, "TooManyRequests"), (500, "InternalError"),
                         (502, "BadGateway"), (504, "GatewayTimeout")):
        yield from each((*READS, "create", "put", "remove"), "status", OK, nth="1-2", arguments={"status": status, "code": code})
    yield from each((*READS, "create", "put", "remove"), "status", frozenset({IO}), arguments={"status": 503})
    yield from each(("read", "create"), "status_only", frozenset({IO}), arguments={"status": 503})
    for retry_after in ("1", "-5", "0", "soon", "", "1e9", "Fri, 31 Dec 1999 23:59:59 GMT"):
        yield Case("status", "read", OK, "1", arguments={"status": 503, "retry_after": retry_after})
    for retry_after in ("86400", "99999999999999999999"):  # no server decides how long we wait
        yield Case("status", "read", OK | {IO}, "1", arguments={"status": 503, "retry_after": retry_after})
    yield from each(("read", "create", "list"), "status", OK | {PERMISSION, IO}, nth="1",
                    arguments={"status": 403, "code": "SlowDown"})
    yield from each((*READS, "create", "put", "remove"), "status", frozenset({PERMISSION}), requests_max=3,
                    arguments={"status": 403, "code": "AccessDenied"})
    yield from each(("read", "create", "list"), "huge_error", frozenset({PERMISSION}), requests_max=3)
    yield from each(("read", "create", "list"), "vile_error", frozenset({PERMISSION}), requests_max=3)
    yield from each(("read", "create", "list"), "expired_token", frozenset({PERMISSION}), requests_max=3, message="xpired")
    yield from each(("read", "list"), "status", frozenset({IO, UNSUPPORTED}), requests_max=3,
                    arguments={"status": 418, "code": "Teapot"})
    for offset in (3600, -3600):
        yield from each(("read", "create"), "skewed", OK | {PERMISSION}, server={"clock_offset": offset}, requests_max=6)
    yield from each(("read", "list"), "other_region", frozenset({IO}), requests_max=6, message="eu-central-1")


def redirects():
    yield from each(("read", "create", "list", "stat"), "redirect_loop", frozenset({IO}), requests_max=12)
    yield from each(("create", "put", "remove", "list"), "redirect_away", frozenset({IO, PERMISSION}))
    for act in ("read", "list", "create"):
        yield Case("redirect_file", act, frozenset({IO}), requests_max=12)
        yield Case("redirect_nowhere", act, frozenset({IO}), requests_max=12)
        for where in ("http://[::1", "gopher://127.0.0.1/x", "//", "http://user:password@127.0.0.1:1/", "\x01", "http:" + "a" * 20000):
            yield Case("redirect_garbage", act, REFUSED, requests_max=12, arguments={"where": where})


def writes():
    for behaviour in ("lost_response", "lost_by_500", "lost_by_silence", "conflict_done", "refused_own"):
        yield Case(behaviour, "create", OK | {EXISTS}, "1")
    for behaviour in ("lost_response", "lost_by_500", "lost_by_silence"):
        yield from each(("put", "remove"), behaviour, OK, nth="1")
        yield Case(behaviour, "large", OK, "1", operation="CreateUpload", requests_max=30)
        yield Case(behaviour, "large", OK, "1", operation="UploadPart", requests_max=30)
        if behaviour != "lost_by_silence":  # joining may take minutes, so silence is borne then
            yield Case(behaviour, "large", OK, "1", operation="CompleteUpload", requests_max=30)
    yield Case("conflict", "create", OK, "1")
    yield Case("conflict", "create", frozenset({IO}))
    yield Case("etag_wrong", "put", OK_OR_REFUSED)
    yield Case("etag_wrong", "large", REFUSED, operation="UploadPart", requests_max=30)
    yield Case("etag_wrong", "large", OK_OR_REFUSED, operation="CompleteUpload", requests_max=30)
    yield Case("part_lost", "large", REFUSED, "1", operation="UploadPart", requests_max=30)
    yield Case("complete_error", "large", OK_OR_REFUSED, "1", operation="CompleteUpload", requests_max=30)
    yield Case("complete_error", "large", REFUSED, operation="CompleteUpload", requests_max=30)
    yield Case("complete_lost", "large", REFUSED, operation="CompleteUpload", requests_max=30)
    for operation in ("CreateUpload", "UploadPart", "CompleteUpload"):
        yield Case("status", "large", OK, "1-2", operation=operation, requests_max=30, arguments={"status": 503})
        yield Case("reset_before_headers", "large", OK, "1", operation=operation, requests_max=30)
        if operation != "CompleteUpload":
            yield Case("silent", "large", OK, "1", operation=operation, requests_max=30)
        yield Case("reset_before_headers", "large", frozenset({IO}), operation=operation, requests_max=30)
        yield Case("status", "large", frozenset({PERMISSION}), operation=operation, requests_max=30,
                   arguments={"status": 403, "code": "AccessDenied"})
    for operation in ("CreateUpload", "CompleteUpload"):
        for what in ("empty", "truncated", "utf8", "entities", "html", "deep"):
            yield Case("xml", "large", OK_OR_REFUSED, operation=operation, requests_max=30, arguments={"what": what})
        yield Case("endless_body", "large", OK_OR_REFUSED, operation=operation, requests_max=30)


def listings():
    for what in ("empty", "no_root", "truncated", "utf8", "deep", "html", "size", "negative", "nul", "entities", "external"):
        yield Case("xml", "list", REFUSED, arguments={"what": what})
    yield Case("xml_huge", "list", OK_OR_REFUSED)
    yield Case("xml_huge_text", "list", REFUSED)
    for lie in ("missing", "nothing", "extra", "unsorted", "duplicate", "outside", "traversal", "encoded", "sizes", "long"):
        yield Case("listing", "list", OK_OR_REFUSED, arguments={"lie": lie})
    yield Case("listing_endless", "list", REFUSED, requests_max=30)
    yield Case("listing_endless", "list", REFUSED, requests_max=2000, arguments={"empty": True})
    yield Case("listing_endless", "list", OK_OR_REFUSED, requests_max=30, arguments={"token": "t" * 20000})
    yield Case("listing_truncated_without_token", "list", OK_OR_REFUSED)


def web():
    """The same servers, read over plain HTTP."""
    for group in (transport, lengths, redirects):
        for case in group():
            if case.act in ("read", "range", "stat"):
                yield replace(case, web=True)


def all_cases():
    for group in (transport, lengths, statuses, redirects, writes, listings, web):
        yield from group()
