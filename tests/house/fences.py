# SPDX-License-Identifier: Apache-2.0
"""The fences of fences.txt: headers, calls, pragmas and flags that may appear only in few places.

Run by layers.py.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from source import (
    DIRECTIVE,
    Violation,
    blank,
    blank_comments,
    blank_comments_and_literals,
    c_files,
    includes,
    line_of,
    project_files,
    read_table,
    read_text,
    resolve,
)

FENCES = "tests/house/fences.txt"
FLAG_FILE_NAMES = {"CMakeLists.txt", "CMakePresets.json", "Makefile"}
FLAG_SUFFIXES = {".cmake", ".mk", ".sh", ".py", ".toml", ".yml", ".yaml"}


class Fence(NamedTuple):
    kind: str
    what: list
    within: list
    only_in: list
    instead: str

    def guards(self, path):
        """Whether the fenced thing would be out of place in this file."""
        looked_at = self.within == ["everywhere"] or any(path.startswith(folder + "/") for folder in self.within)
        return looked_at and not any(fnmatchcase(path, pattern) for pattern in self.only_in)

    def message(self, found):
        where = "nowhere" if self.only_in == ["nowhere"] else "only in " + ", ".join(self.only_in)
        return f"{found} is allowed {where}: {self.instead}"


def split_list(cell):
    return [item.strip() for item in cell.split(",")]


def read_fences(root):
    fences = []
    for line, (kind, what, within, only_in, instead) in read_table(Path(root) / FENCES, FENCES, columns=5):
        if kind not in FINDERS:
            raise SystemExit(f"{FENCES}:{line}: unknown kind {kind}: use one of {', '.join(FINDERS)}")
        fences.append(Fence(kind, split_list(what), split_list(within), split_list(only_in), instead))
    return fences


def blank_directives_named(word, code, text):
    """text with the directives blanked that blanked code shows to be real ones."""
    for directive in DIRECTIVE.finditer(code):
        if directive["word"] == word:
            text = text[: directive.start()] + blank(directive[0]) + text[directive.end() :]
    return text


class CFile:
    """One C file, blanked once for all fences."""

    def __init__(self, root, path):
        text = read_text(Path(root) / path)
        self.readable = blank_comments(text)
        self.code = blank_comments_and_literals(text)
        self.calls = blank_directives_named("pragma", self.code, self.code)
        self.foreign_includes = [include for include in includes(text) if resolve(root, path, include) is None]

    def flag_text(self):
        """`#error do not build with ...` is the one good reason to name a forbidden flag."""
        return blank_directives_named("error", self.code, self.readable)


class BuildFile:
    """A build file, script or Python source: flags are all that is looked for."""

    def __init__(self, root, path):
        self.text = read_text(Path(root) / path)

    def flag_text(self):
        return re.sub(r"(?m)(?<!\S)#.*", "", self.text)


def matches(text, pattern):
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield line_of(text, match.start("what")), match["what"]


def find_includes(source, pattern):
    for include in source.foreign_includes:
        if fnmatchcase(include.target, pattern):
            yield include.line, str(include)


def find_calls(source, name):
    return matches(source.calls, rf"(?<![\w.])(?<!->)(?P<what>{re.escape(name)})\s*\(")


def find_pragmas(source, words):
    phrase = r"[ \t]+".join(map(re.escape, words.split()))
    return matches(source.readable, rf'(?:#[ \t]*pragma[ \t]+|\b_Pragma\s*\(\s*"\s*)(?P<what>{phrase})\b')


def find_flags(source, flag):
    return matches(source.flag_text(), rf"(?<![\w-])(?P<what>{re.escape(flag)})(?![\w-])")


FINDERS = {"include": find_includes, "call": find_calls, "pragma": find_pragmas, "flag": find_flags}


def fence_breaches(fences, path, source):
    for fence in fences:
        if fence.guards(path):
            for what in fence.what:
                for line, found in FINDERS[fence.kind](source, what):
                    yield Violation(path, line, fence.message(found))


def carries_flags(path):
    return Path(path).name in FLAG_FILE_NAMES or Path(path).suffix in FLAG_SUFFIXES


def fence_violations(root):
    fences = read_fences(root)
    violations = []
    for path in c_files(root):
        violations += fence_breaches(fences, path, CFile(root, path))
    flags = [fence for fence in fences if fence.kind == "flag"]
    for path in filter(carries_flags, project_files(root)):
        violations += fence_breaches(flags, path, BuildFile(root, path))
    return violations
