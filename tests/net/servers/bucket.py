# SPDX-License-Identifier: Apache-2.0
"""What an S3 bucket holds, in memory, and how the kinds of servers differ in handling it."""
import hashlib
import threading
import time


class Personality:
    """Where servers differ. See each one's documentation, and what was seen of them."""
    name = "aws"
    complete_honours_conditions = True  # If-None-Match on CompleteMultipartUpload
    complete_tells_etag = True
    part_bytes_min = 5 << 20
    keeps_metadata = True
    lists_v1 = True
    reads_by_redirect = False


class Radosgw(Personality):
    name = "radosgw"
    complete_honours_conditions = False
    complete_tells_etag = False


class HuggingFace(Personality):
    name = "huggingface"
    keeps_metadata = False
    lists_v1 = False
    reads_by_redirect = True


PERSONALITIES = {p.name: p for p in (Personality, Radosgw, HuggingFace)}


def etag_of(data):
    return hashlib.md5(data).hexdigest()


class Stored:
    def __init__(self, data, etag=None, metadata=None):
        self.data, self.etag, self.metadata = data, etag or etag_of(data), metadata or {}
        self.time = time.time()


class Upload:
    def __init__(self, key):
        self.key, self.parts = key, {}


class Bucket:
    """All functions may be called from several threads."""

    def __init__(self):
        self.lock = threading.RLock()
        self.objects, self.uploads = {}, {}
        self.past = {}  # what each key was before it was last written
        self.number = 0

    def get(self, key):
        with self.lock:
            return self.objects.get(key)

    def put(self, key, stored):
        with self.lock:
            self.past[key] = self.objects.get(key)
            self.objects[key] = stored

    def remove(self, key):
        with self.lock:
            self.past[key] = self.objects.pop(key, None)

    def create(self, key, stored):
        """Whether it was put: only where there is none."""
        with self.lock:
            if key in self.objects:
                return False
            self.put(key, stored)
            return True

    def begin(self, key):
        with self.lock:
            self.number += 1
            name = f"upload-{self.number}+/="  # characters that must be encoded
            self.uploads[name] = Upload(key)
            return name

    def keys(self, prefix="", after=""):
        with self.lock:
            return sorted((k for k in self.objects if k.startswith(prefix) and k > after), key=str.encode)
