#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a text file names a place of one machine or a package registry instead of the project.

usage: private_words.py ROOT
"""

import re
import sys
from pathlib import Path

from source import Violation, project_files, report

# Each pattern spells a character as a class, [.] or [w], so that this file does not match itself.
# A path is absolute when nothing a path or variable could end with stands before it; -I and -L are flags, not names.
ABSOLUTE = r"(?:(?<![\w.~*})\]-])|(?<=-[IL]))"
HOST = r"(?<![\w-])(?:[\w-]+[.])*"
PATTERNS = [
    (ABSOLUTE + r"/(?:[w]ork|[f]arm|[r]oot)/", "a path of one machine: write it relative to the project"),
    (r"(?<![\w-])before[-]stop(?![\w-])", "a word from outside the project: remove it"),
    (
        HOST + r"(?:pypi[.]org|pythonhosted[.]org|deb[.]debian[.]org|security[.]debian[.]org|archive[.]ubuntu[.]com"
        r"|security[.]ubuntu[.]com|ports[.]ubuntu[.]com|registry[.]npmjs[.]org|crates[.]io|proxy[.]golang[.]org"
        r"|conda[.]anaconda[.]org|repo1?[.]maven(?:[.]apache)?[.]org|rubygems[.]org|dl-cdn[.]alpinelinux[.]org)\b",
        "a package registry host: name the package, not where it was fetched",
    ),
]
WORDS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PATTERNS]


def is_text(content):
    return b"\0" not in content[:8192]


def line_violations(path, number, line):
    for pattern, advice in WORDS:
        for match in pattern.finditer(line):
            yield Violation(path, number, f"`{match[0]}` is {advice}")


def file_violations(root, path):
    content = (Path(root) / path).read_bytes()
    if not is_text(content):
        return
    for number, line in enumerate(content.decode("utf-8", errors="replace").split("\n"), start=1):
        yield from line_violations(path, number, line)


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: private_words.py ROOT")
    root = arguments[0]
    return report([violation for path in project_files(root) for violation in file_violations(root, path)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
