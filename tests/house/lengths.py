#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on source files and C functions that have grown too long to be read in one go.

usage: lengths.py ROOT

ROOT/tests/house/long_functions.txt lists the functions that may be longer, each with its reason.
"""

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from c_functions import FunctionFinder
from source import C_FOLDERS, C_SUFFIXES, Violation, project_files, read_text, report

FILE_LINES_MAX = 900
FUNCTION_LINES_MAX = 80
FOLDERS = C_FOLDERS | {"python", "tools"}
ALLOW_LIST = "tests/house/long_functions.txt"


class Allowed(NamedTuple):
    line: int
    path: str
    function: str


def read_allow_list(root):
    """(entries, violations): an entry without a reason is not an entry."""
    entries, violations = [], []
    for line, text in enumerate(read_text(Path(root) / ALLOW_LIST).splitlines(), start=1):
        entry, _, reason = text.partition("#")
        words = entry.split()
        if not words:
            continue
        if len(words) == 2 and reason.strip():
            entries.append(Allowed(line, *words))
        else:
            violations.append(Violation(ALLOW_LIST, line, "not an entry: write `path function # reason`"))
    return entries, violations


def sources(root):
    for path in project_files(root):
        if path.split("/")[0] in FOLDERS and Path(path).suffix in C_SUFFIXES | {".py"}:
            yield path, read_text(Path(root) / path)


def file_violations(path, text):
    lines = len(text.splitlines())
    if lines > FILE_LINES_MAX:
        yield Violation(path, lines, f"the file has {lines} lines, more than {FILE_LINES_MAX}: split it by subject")


def brace_violations(path, finder):
    for line in finder.unbalanced:
        yield Violation(path, line, "this brace has no partner, so functions cannot be measured: let each #if balance")


def too_long(function):
    return function.lines > FUNCTION_LINES_MAX


def function_violations(path, functions, allowed):
    for function in functions:
        if too_long(function) and (path, function.name) not in allowed:
            message = (
                f"{function.name} has {function.lines} lines, more than {FUNCTION_LINES_MAX}: "
                f"split it, or list it with its reason in {ALLOW_LIST}"
            )
            yield Violation(path, function.line, message)


def stale_entries(entries, needed):
    for entry in entries:
        if (entry.path, entry.function) not in needed:
            message = f"{entry.function} in {entry.path} is not there or not long any more: remove this entry"
            yield Violation(ALLOW_LIST, entry.line, message)


def percentile_90(sorted_values):
    return sorted_values[-(len(sorted_values) // 10) - 1]


def summary(functions):
    lengths = sorted(function.lines for function in functions)
    if not lengths:
        return "no functions"
    median, percentile = statistics.median_low(lengths), percentile_90(lengths)
    return f"{len(lengths)} functions: median {median} lines, 90th percentile {percentile}, longest {lengths[-1]}"


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: lengths.py ROOT")
    root = arguments[0]
    entries, violations = read_allow_list(root)
    allowed = {(entry.path, entry.function) for entry in entries}
    all_functions, needed = [], set()
    for path, text in sources(root):
        violations += file_violations(path, text)
        if Path(path).suffix in C_SUFFIXES:
            finder = FunctionFinder(text)
            violations += brace_violations(path, finder)
            violations += function_violations(path, finder.functions, allowed)
            needed |= {(path, function.name) for function in finder.functions if too_long(function)}
            all_functions += finder.functions
    violations += stale_entries(entries, needed)
    status = report(violations)
    print(summary(all_functions))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
