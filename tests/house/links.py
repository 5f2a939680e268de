#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every relative link of a Markdown page leads to a file of the project and, where it names one, to a heading.

usage: links.py ROOT
"""

import os
import re
import sys
from pathlib import Path

from fenced import without_blocks
from source import Violation, line_of, project_files, read_text, report

LINK = re.compile(r"\]\((?P<angled><[^>\n]*>|[^()\s]+)\)|(?:src|href)=\"(?P<quoted>[^\"\n]+)\"")
CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
HEADING = re.compile(r"^#+[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def anchor_of(heading):
    """As the usual viewers name it: small letters, dashes for blanks, no signs."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors_of(text):
    """A heading that stands there twice gets a number."""
    seen = {}
    for heading in HEADING.findall(without_blocks(text)):
        name = anchor_of(heading)
        count = seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{count}" if count else name


def links_of(text):
    readable = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), without_blocks(text))
    for link in LINK.finditer(readable):
        yield line_of(readable, link.start()), (link["angled"] or link["quoted"]).strip("<>")


def what_is_wrong(root, page, target):
    """A sentence, or None."""
    path, _, anchor = target.partition("#")
    there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if there.startswith("..") or not (root / there).exists():
        return f"'{target}' leads nowhere"
    if anchor and there.endswith(".md") and anchor not in anchors_of(read_text(root / there)):
        return f"{there} has no heading '{anchor}'"
    return None


def violations(root):
    for page in project_files(root):
        if not page.endswith(".md"):
            continue
        for line, target in links_of(read_text(root / page)):
            wrong = None if ELSEWHERE.match(target) else what_is_wrong(root, page, target)
            if wrong:
                yield Violation(page, line, wrong)


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: links.py ROOT")
    return report(list(violations(Path(arguments[0]))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
