# SPDX-License-Identifier: Apache-2.0
"""What a server can do to a client. Each behaviour gets one exchange and does with it as its name says; what is not
mentioned works. Arguments of a rule are in `x.arguments`."""
import gzip
import os
import time

from exchange import Answer, Gone, error_answer, xml_answer

BEHAVIOURS = {}
BOMB = gzip.compress(bytes(64 << 20), 1)


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


# the body and its length

@behaviour
def trickle_body(x):
    """A byte now and then: never silent, never done."""
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(answer, len(answer.body)))
    x.trickle(answer.body, x.arguments.get("seconds", 0.2))


@behaviour
def trickle_headers(x):
    answer = x.perform()
    x.status = answer.status
    x.trickle(x.framed(answer, len(answer.body)), x.arguments.get("seconds", 0.2))
    x.raw(x.body_of(answer))


@behaviour
def endless_body(x):
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(Answer(answer.status, b"", [h for h in answer.headers if h[0] != "Content-Length"] + [("Connection", "close")])))
    while True:
        x.raw(os.urandom(65536))


@behaviour
def endless_length(x):
    """It says that it will send 8 EiB, and begins."""
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Content-Length", str((1 << 63) - 1)))
    x.raw(x.framed(answer))
    while True:
        x.raw(os.urandom(65536))


@behaviour
def endless_headers(x):
    x.status = 200
    x.raw(b"HTTP/1.1 200 OK\r\n")
    for number in range(1 << 40):
        x.raw(b"".join(b"X-%d-%d: %s\r\n" % (number, i, b"a" * 200) for i in range(100)))


@behaviour
def endless_continue(x):
    while True:
        x.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


@behaviour
def short_body(x):
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(answer, len(answer.body)) + answer.body[:len(answer.body) // 2])
    raise Gone("cut short")


@behaviour
def long_body(x):
    """More than announced: a whole second answer, for whoever reuses the connection without looking."""
    answer = x.perform()
    x.status = answer.status
    other = b"smuggled" * (1 + len(answer.body) // 8)
    other = other[:len(answer.body)]
    x.raw(x.framed(answer, len(answer.body)) + answer.body + x.framed(Answer(answer.status, other, answer.headers), len(other)) + other)


@behaviour
def no_content_length(x):
    """The end of the connection is the end of the body: legal, and a cut cannot be seen."""
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Connection", "close"))
    x.raw(x.framed(answer) + x.body_of(answer))
    raise Gone("the end")


@behaviour
def no_content_length_cut(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Connection", "close"))
    x.raw(x.framed(answer) + answer.body[:len(answer.body) // 2])
    raise Gone("the end, early")


@behaviour
def two_lengths(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers += [("Content-Length", str(len(answer.body))), ("Content-Length", str(len(answer.body) // 2))]
    x.raw(x.framed(answer) + x.body_of(answer))


@behaviour
def negative_length(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Content-Length", "-1"))
    x.raw(x.framed(answer) + x.body_of(answer))
    raise Gone("the end")


@behaviour
def whole_for_range(x):
    """200 and everything, although a range was asked for."""
    x.request.values.pop("range", None)
    x.send(x.perform())


@behaviour
def wrong_content_range(x):
    answer = x.perform()
    for at, (name, value) in enumerate(answer.headers):
        if name == "Content-Range":
            span, _, total = value.removeprefix("bytes ").partition("/")
            first, last = map(int, span.split("-"))
            answer.headers[at] = (name, f"bytes {first + 1}-{last + 1}/{total}")
    x.send(answer)


@behaviour
def other_range(x):
    """A range of its own choice, and true to its word: without the first byte that was asked for, or the last."""
    answer = x.perform()
    span, _, total = (answer.header("Content-Range") or "bytes 0-0/1").removeprefix("bytes ").partition("/")
    first, last = map(int, span.split("-"))
    if x.arguments["lacks"] == "first":
        first, answer.body = first + 1, answer.body[1:]
    else:
        last, answer.body = last - 1, answer.body[:-1]
    answer.headers = [h for h in answer.headers if h[0] != "Content-Range"] + [("Content-Range", f"bytes {first}-{last}/{total}")]
    x.send(answer)


@behaviour
def wrong_total(x):
    """The range is right, and the object another 7 bytes longer."""
    answer = x.perform()
    for at, (name, value) in enumerate(answer.headers):
        if name == "Content-Range":
            span, _, total = value.partition("/")
            answer.headers[at] = (name, f"{span}/{int(total) + 7}")
    x.send(answer)


@behaviour
def garbage_content_range(x):
    answer = x.perform()
    answer.headers = [(n, "bytes 0-99999999999999999999999/*" if n == "Content-Range" else v) for n, v in answer.headers]
    x.send(answer)


@behaviour
def other_bytes(x):
    answer = x.perform()
    answer.body = bytes(b ^ 0x5a for b in answer.body)
    x.send(answer)


@behaviour
def replaced(x):
    """Another object of the same length, which says that it is another one."""
    answer = x.perform()
    answer.headers = [(n, '"another"' if n == "ETag" else v) for n, v in answer.headers]
    answer.body = bytes(b ^ 0x5a for b in answer.body)
    x.send(answer)


@behaviour
def late(x):
    """What is right, when all that were asked at the same moment have been heard."""
    answer = x.perform()
    time.sleep(0.5)
    x.send(answer)


@behaviour
def one_bit(x):
    answer = x.perform()
    middle = len(answer.body) // 2
    answer.body = answer.body[:middle] + bytes([answer.body[middle] ^ 1]) + answer.body[middle + 1:] if answer.body else b""
    x.send(answer)


@behaviour
def gzip_surprise(x):
    """Compressed, although nobody asked."""
    answer = x.perform()
    answer.body = gzip.compress(answer.body)
    answer.headers.append(("Content-Encoding", "gzip"))
    x.send(answer)


@behaviour
def gzip_same_length(x):
    """The same, with a length that gives nothing away."""
    answer = x.perform()
    coded = gzip.compress(answer.body)
    answer.body = (coded + bytes(len(answer.body)))[:len(answer.body)]
    answer.headers.append(("Content-Encoding", "gzip"))
    x.send(answer)


@behaviour
def gzip_bomb(x):
    answer = x.perform()
    answer.body = BOMB
    answer.headers.append(("Content-Encoding", "gzip"))
    x.send(answer)


def chunks_of(body, step=1000):
    return b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + step]), body[i:i + step]) for i in range(0, len(body), step))


@behaviour
def chunked(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Transfer-Encoding", "chunked"))
    x.raw(x.framed(answer))
    if x.request.method != "HEAD":
        x.raw(chunks_of(answer.body) + b"0\r\n\r\n")


@behaviour
def chunked_broken(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Transfer-Encoding", "chunked"))
    x.raw(x.framed(answer) + b"ffffffffffffffff\r\n" + answer.body)
    raise Gone("broken")


@behaviour
def chunked_cut(x):
    answer = x.perform()
    x.status = answer.status
    answer.headers.append(("Transfer-Encoding", "chunked"))
    x.raw(x.framed(answer) + chunks_of(answer.body[:len(answer.body) // 2]))
    raise Gone("no last chunk")


@behaviour
def no_http(x):
    x.raw(b"220 mail.example ESMTP ready\r\n")
    raise Gone("another protocol")


# connections

@behaviour
def reset_before_headers(x):
    x.connection.reset()
    raise Gone("reset")


@behaviour
def reset_after_headers(x):
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(answer, len(answer.body)))
    x.server.stopping.wait(0.02)
    x.connection.reset()
    raise Gone("reset")


@behaviour
def reset_mid_body(x):
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(answer, len(answer.body)) + answer.body[:len(answer.body) // 2])
    x.server.stopping.wait(0.02)
    x.connection.reset()
    raise Gone("reset")


@behaviour
def silent(x):
    x.wait_for_client()


@behaviour
def silent_mid_body(x):
    answer = x.perform()
    x.status = answer.status
    x.raw(x.framed(answer, len(answer.body)) + answer.body[:len(answer.body) // 2])
    x.wait_for_client()


@behaviour
def close_at_reuse(x):
    """Answers, keeps the connection, and closes it when it is used again."""
    x.send(x.perform())
    x.connection.close_next = True


@behaviour
def close_after(x):
    """Answers as if the connection stayed, and closes it."""
    x.send(x.perform())
    raise Gone("closed")


@behaviour
def lost_response(x):
    """Done, and nobody is told."""
    x.perform()
    raise Gone("lost")


@behaviour
def lost_by_500(x):
    """Done, and the answer is an error."""
    x.perform()
    x.send(error_answer(500, "InternalError", "We encountered an internal error. Please try again."))


@behaviour
def lost_by_silence(x):
    x.perform()
    x.wait_for_client()


# errors

@behaviour
def status(x):
    """Any: status, code, retry_after."""
    arguments = x.arguments
    headers = [("Retry-After", arguments["retry_after"])] if "retry_after" in arguments else []
    x.send(error_answer(arguments.get("status", 503), arguments.get("code", "SlowDown"), "Please reduce your request rate.", headers))


@behaviour
def status_only(x):
    x.send(Answer(x.arguments.get("status", 503)))


@behaviour
def huge_error(x):
    body = b"<Error><Code>AccessDenied</Code><Message>" + b"a" * (32 << 20) + b"</Message></Error>"
    x.send(Answer(x.arguments.get("status", 403), body, [("Content-Type", "application/xml")]))


@behaviour
def vile_error(x):
    """Bytes that must not reach a terminal."""
    body = (b"<Error><Code>Acc\x1b[31mess\x00Denied</Code><Message>\xff\xfe\x1b]0;owned\x07 %s%n%n \r\n</Message></Error>")
    x.send(Answer(403, body, [("Content-Type", "application/xml")]))


@behaviour
def expired_token(x):
    x.send(error_answer(400, "ExpiredToken", "The provided token has expired."))


@behaviour
def complete_error(x):
    """200, and then an error, as S3 may answer the end of a multipart upload."""
    x.send(xml_answer("<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"))


@behaviour
def complete_lost(x):
    """A success, and nothing is there."""
    x.send(xml_answer("<CompleteMultipartUploadResult><Key>k</Key><ETag>e</ETag></CompleteMultipartUploadResult>"))


@behaviour
def conflict(x):
    x.send(error_answer(409, "ConditionalRequestConflict", "A conflicting conditional operation is in progress"))


@behaviour
def conflict_done(x):
    """Written, and 409."""
    x.perform()
    x.send(error_answer(409, "ConditionalRequestConflict", "A conflicting conditional operation is in progress"))


# redirects

def redirect(x, where, status_code=307):
    x.send(error_answer(status_code, "TemporaryRedirect", "Please re-send this request elsewhere.", [("Location", where)]))


@behaviour
def redirect_loop(x):
    redirect(x, f"{x.server.endpoint}{x.request.target}", x.arguments.get("status", 307))


@behaviour
def redirect_away(x):
    redirect(x, f"http://127.0.0.1:{x.server.other.port}/elsewhere{x.request.path}", x.arguments.get("status", 307))


@behaviour
def redirect_downgrade(x):
    """From https to http."""
    redirect(x, f"http://127.0.0.1:{x.server.other.port}{x.request.target}", x.arguments.get("status", 302))


@behaviour
def redirect_file(x):
    redirect(x, "file:///etc/passwd", x.arguments.get("status", 302))


@behaviour
def redirect_garbage(x):
    redirect(x, x.arguments.get("where", "http://[::1"), x.arguments.get("status", 302))


@behaviour
def redirect_nowhere(x):
    x.send(Answer(302))


@behaviour
def other_region(x):
    x.send(error_answer(301, "PermanentRedirect", "The bucket you are attempting to access must be addressed elsewhere.",
                        [("x-amz-bucket-region", "eu-central-1")],
                        more="<Endpoint>bucket.s3.eu-central-1.example</Endpoint><Region>eu-central-1</Region>"))


# what was stored

@behaviour
def etag_wrong(x):
    x.send(x.perform(etag="0" * 32))


@behaviour
def part_lost(x):
    """Acknowledged, and not kept."""
    x.send(x.perform(lose=True))


@behaviour
def put_lost(x):
    """Acknowledged, and not kept."""
    bucket, key = x.server.bucket, x.request.key
    before = bucket.get(key)
    answer = x.perform()
    with bucket.lock:
        if before is None:
            bucket.objects.pop(key, None)
        else:
            bucket.objects[key] = before
    x.send(answer)


@behaviour
def condition(x):
    """rule: ignore, invert, racy, after, always."""
    x.send(x.perform(conditions=x.arguments["rule"]))


@behaviour
def refused_own(x):
    """Written by this very request, and 412: a retry inside the server met its own success."""
    answer = x.perform()
    if answer.status == 200:
        answer = error_answer(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
    x.send(answer)


@behaviour
def stale(x):
    """What was there before the last write."""
    bucket, key = x.server.bucket, x.request.key
    with bucket.lock:
        now = bucket.objects.get(key)
        old = bucket.past.get(key)
        if old is None:
            bucket.objects.pop(key, None)
        else:
            bucket.objects[key] = old
        try:
            answer = x.perform()
        finally:
            if now is not None:
                bucket.objects[key] = now
            else:
                bucket.objects.pop(key, None)
    x.send(answer)


@behaviour
def head_wrong_length(x):
    answer = x.perform()
    length = int(answer.header("Content-Length") or 0) + x.arguments.get("more", 1000)
    answer.headers = [h for h in answer.headers if h[0] != "Content-Length"] + [("Content-Length", str(length))]
    x.send(answer)


# XML and listings

@behaviour
def xml(x):
    """Any text in place of the answer: what = one of the below."""
    text = {"empty": b"", "no_root": b"<?xml version='1.0'?>", "truncated": b"<ListBucketResult><Contents><Key>a",
            "utf8": b"<ListBucketResult><Contents><Key>a\xff\xfe\x80</Key><Size>1</Size></Contents></ListBucketResult>",
            "deep": b"<a>" * 200_000, "html": b"<!DOCTYPE html><html><body>login please</body></html>",
            "size": b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a</Key><Size>99999999999999999999999</Size>"
                    b"</Contents></ListBucketResult>",
            "negative": b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a</Key><Size>-1</Size></Contents>"
                        b"</ListBucketResult>",
            "nul": b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a\x00b</Key><Size>1</Size></Contents>"
                   b"</ListBucketResult>",
            "entities": b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + b"".join(
                b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
                + b"]><ListBucketResult><Contents><Key>&j;</Key><Size>1</Size></Contents></ListBucketResult>",
            "external": b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
                        b"<ListBucketResult><Contents><Key>p/&a;</Key><Size>1</Size></Contents></ListBucketResult>",
            }[x.arguments["what"]]
    x.send(Answer(200, text, [("Content-Type", "application/xml")]))


@behaviour
def xml_huge(x):
    """A listing that does not end."""
    x.status = 200
    x.raw(x.framed(Answer(200, b"", [("Content-Type", "application/xml"), ("Connection", "close")])))
    x.raw(b"<ListBucketResult><IsTruncated>false</IsTruncated>")
    for number in range(1 << 40):
        x.raw(b"".join(b"<Contents><Key>p/%012d</Key><Size>1</Size></Contents>" % (number * 1000 + i) for i in range(1000)))


@behaviour
def xml_huge_text(x):
    x.status = 200
    x.raw(x.framed(Answer(200, b"", [("Content-Type", "application/xml"), ("Connection", "close")])))
    x.raw(b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>")
    while True:
        x.raw(b"a" * 65536)


LIES = {
    "missing": lambda entries: entries[1::2],
    "nothing": lambda entries: [],
    "extra": lambda entries: sorted(entries + [(entries[-1][0] + "-not-there", 7)]) if entries else entries,
    "unsorted": lambda entries: entries[::-1],
    "duplicate": lambda entries: [e for e in entries for _ in range(2)],
    "outside": lambda entries: [("aaa/outside", 7)] + entries + [("zzz/outside", 7)],
    "traversal": lambda entries: [("../../etc/passwd", 7)] + entries,
    "encoded": lambda entries: [(e[0].replace("/", "%2F"), e[1]) for e in entries],
    "sizes": lambda entries: [(e[0], e[1] + 1) for e in entries],
    "long": lambda entries: entries + [("p/" + "a" * 5000, 7)],
}


@behaviour
def listing(x):
    x.send(x.perform(change=LIES[x.arguments["lie"]]))


@behaviour
def listing_endless(x):
    """Always one page more: the same one, or an empty one."""
    change = LIES["nothing"] if x.arguments.get("empty") else None
    x.send(x.perform(change=change, token=x.arguments.get("token", "~")))


@behaviour
def listing_truncated_without_token(x):
    answer = x.perform()
    answer.body = answer.body.replace(b"<IsTruncated>false", b"<IsTruncated>true")
    x.send(answer)
