#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/limits.md shows the values of src/base/limits.h and cli/limits.h, all of them and no others: limits.py ROOT"""
import pathlib
import re
import sys


def value_of(text, known):
    """A number, a shift of one, or the name of another limit."""
    text = text.strip("() ")
    if text in known:
        return known[text]
    shift = re.fullmatch(r"(\d+)u? << (\d+)", text)
    return int(shift[1]) << int(shift[2]) if shift else int(text.rstrip("u"))


def header_limits(text):
    limits = {}
    for name, value in re.findall(r"^#define (LIMIT_\w+) (.+)$", text, re.M):
        limits[name] = value_of(value, limits)
    return limits


def page_limits(text):
    return {name: int(value) for name, value in re.findall(r"^\| `(LIMIT_\w+)` \| (\d+) \|", text, re.M)}


def differences(header, page):
    for name in sorted(header.keys() | page.keys()):
        if header.get(name) != page.get(name):
            yield f"{name}: the header says {header.get(name)}, docs/limits.md says {page.get(name)}"


def main():
    root = pathlib.Path(sys.argv[1])
    header = {}
    for path in ("src/base/limits.h", "cli/limits.h"):
        header.update(header_limits((root / path).read_text()))
    page = page_limits((root / "docs/limits.md").read_text())
    wrong = list(differences(header, page))
    print("\n".join(wrong) or f"{len(header)} limits agree")
    return 1 if wrong or not header else 0


if __name__ == "__main__":
    sys.exit(main())
