# SPDX-License-Identifier: Apache-2.0
"""Ed25519 as RFC 8032 has it: plain, without context and prehash. For tests; far too slow, and too
talkative about secrets, for anything else."""

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def digest_number(data):
    return int.from_bytes(hashlib.sha512(data).digest(), "little")


# Points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z.


def add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(number, point):
    result = NEUTRAL
    while number:
        if number & 1:
            result = add(result, point)
        point = add(point, point)
        number >>= 1
    return result


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def recover_x(y, sign):
    """None if there is none."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def decompress(data):
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def compress(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover_x(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def expand(seed):
    data = hashlib.sha512(seed).digest()
    number = int.from_bytes(data[:32], "little") & (1 << 254) - 8 | 1 << 254
    return number, data[32:]


def public_key(seed):
    return compress(multiply(expand(seed)[0], BASE))


def sign(seed, message):
    number, prefix = expand(seed)
    public = compress(multiply(number, BASE))
    nonce = digest_number(prefix + message) % ORDER
    commitment = compress(multiply(nonce, BASE))
    challenge = digest_number(commitment + public + message) % ORDER
    return commitment + ((nonce + challenge * number) % ORDER).to_bytes(32, "little")


def is_weak(public):
    """A key for which anybody can make signatures: one of small order, however it is written."""
    y = int.from_bytes(public, "little") % (1 << 255) % P
    x = recover_x(y, 0)
    return x is not None and same(multiply(8, (x, y, 1, x * y % P)), NEUTRAL)


def verify(public, message, signature):
    point = decompress(public)
    number = int.from_bytes(signature[32:], "little")
    commitment = decompress(signature[:32])
    if point is None or commitment is None or number >= ORDER or is_weak(public):
        return False
    challenge = digest_number(signature[:32] + public + message) % ORDER
    return same(multiply(number, BASE), add(commitment, multiply(challenge, point)))
