#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/guide/troubleshooting.md explains every status of include/ulpsync/status.h, under its number, in order.

usage: statuses.py ROOT
"""

import re
import sys
from pathlib import Path

from source import Violation, line_of, read_text, report

HEADER = "include/ulpsync/status.h"
PAGE = "docs/guide/troubleshooting.md"
STATUS = re.compile(r"^\s*(ULP_\w+) = (\d+)", re.MULTILINE)
HEADING = re.compile(r"^#+ (\d+) `(ULP_\w+)`\n(?P<text>.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
WORDS_MIN = 20  # what it means, what causes it and what to do cannot be said in fewer


def header_statuses(root):
    found = [(int(number), name) for name, number in STATUS.findall(read_text(root / HEADER))]
    if not found:
        raise SystemExit(f"{HEADER}: no status was found: a check of nothing would always pass")
    return sorted(found)


def violations(root):
    wanted = header_statuses(root)
    page = read_text(root / PAGE)
    told = []
    for heading in HEADING.finditer(page):
        status = (int(heading[1]), heading[2])
        line = line_of(page, heading.start())
        if status not in wanted:
            yield Violation(PAGE, line, f"{HEADER} has no {status[1]} = {status[0]}")
        elif told and told[-1] >= status:
            yield Violation(PAGE, line, f"{status[1]} stands behind {told[-1][1]}")
        if len(heading["text"].split()) < WORDS_MIN and status[0]:
            yield Violation(PAGE, line, f"{status[1]} is not explained")
        told.append(status)
    for number, name in wanted:
        if (number, name) not in told:
            yield Violation(PAGE, 1, f"{name} is missing; its heading is: {number} `{name}`")


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: statuses.py ROOT")
    return report(list(violations(Path(arguments[0]))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
