# SPDX-License-Identifier: Apache-2.0
"""Finds the functions a C or CUDA file defines, by matching braces; no parser, so it works without a build."""

import re
from typing import NamedTuple

from source import DIRECTIVE, blank, blank_comments_and_literals, blank_directives, line_of

EVENT = re.compile(rf"(?P<directive>{DIRECTIVE.pattern})|(?P<brace>[{{}}])", re.MULTILINE)
ATTRIBUTE = re.compile(
    r"\b(?:__attribute__|__attribute|__declspec|_Alignas|alignas|__launch_bounds__|__asm__|asm)\s*"
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
BLANKS = re.compile(r"\s*")
CONTAINER = re.compile(r'\b(?:struct|union|class|namespace)\b|\bextern\s*"')
TRAILING_WORDS = re.compile(r"(?:\s|\b(?:const|noexcept|override|final)\b|\b[A-Z][A-Z0-9_]*\b)*\Z")


class Function(NamedTuple):
    name: str
    line: int  # of its name
    lines: int  # from its name to its closing brace


class Brace(NamedTuple):
    kind: str  # "container": functions may be inside; "function"; "block": anything else
    name: str
    offset: int  # where what it opens begins


class Branch:
    """One #if ... #endif. Alternatives may each open the same brace: they all start from the same state, and the
    first one that is compiled decides how things stand after the #endif."""

    def __init__(self, state, dead):
        self.entry = state
        self.outcome = None
        self.dead = dead

    def end_alternative(self, state):
        if self.outcome is None and not self.dead:
            self.outcome = state
        self.dead = False


class Group(NamedTuple):
    word: str  # the identifier before the parenthesis, or ""
    start: int  # of that word
    inner: int  # first offset inside
    end: int  # offset of the closing parenthesis


def parenthesis_groups(head):
    """The outermost ( ) groups of a declaration."""
    depth = 0
    for match in re.finditer(r"(?P<word>[A-Za-z_]\w*)?\s*(?P<open>\()|\)", head):
        if match["open"]:
            if depth == 0:
                word, start, inner = match["word"] or "", match.start(), match.end()
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                yield Group(word, start, inner, match.start())


def declared_name(head):
    """(name, offset) of what a declaration without its `;` or body declares, or None.

    Capitals before a parenthesis are attribute macros unless nothing else is there; of the rest the last is the
    declarator, since a macro that needs no `;` may stand in front.
    """
    head = ATTRIBUTE.sub(lambda attribute: blank(attribute[0]), head)
    groups = list(parenthesis_groups(head))
    for group in groups:
        if head[group.inner :].lstrip().startswith("*"):  # int (*name(...))(...)
            name, offset = declared_name(head[group.inner : group.end]) or ("", 0)
            return name, group.inner + offset
    named = [group for group in groups if group.word]
    lower = [group for group in named if not group.word.isupper()]
    if named:
        group = (lower or named)[-1]
        return group.word, group.start
    words = list(re.finditer(r"[A-Za-z_]\w*", re.sub(r"\[[^]]*\]", lambda m: blank(m[0]), head.split("=")[0])))
    return (words[-1][0], words[-1].start()) if words else None


def without_groups(head):
    for group in reversed(list(parenthesis_groups(head))):
        head = head[: group.inner] + head[group.end :]
    return head


def brace_kind(head):
    """What a brace opens, judged by the declaration before it."""
    head = " ".join(ATTRIBUTE.sub("", head).split())
    flat = without_groups(head)
    if "=" in flat:
        return "block"  # an initialiser
    if re.search(r"\w\s*\(\)", flat) and flat[: TRAILING_WORDS.search(flat).start()].endswith(")"):
        return "function"
    return "container" if CONTAINER.search(head) else "block"


def is_zero(directive):
    return directive["word"] == "if" and directive["rest"].strip() == "0"


def blank_if_zero(code):
    """`#if 0` keeps notes and old code, whose braces need not match."""
    pieces, done, start, depth = [], 0, None, 0
    for directive in DIRECTIVE.finditer(code):
        word = directive["word"]
        if start is None:
            if is_zero(directive):
                start = directive.end()
        elif word.startswith("if"):
            depth += 1
        elif depth and word == "endif":
            depth -= 1
        elif depth == 0 and word.startswith(("el", "endif")):
            pieces += [code[done:start], blank(code[start : directive.start()])]
            done, start = directive.start(), None
    return "".join([*pieces, code[done:]])


class FunctionFinder:
    """After construction, functions holds what was found and unbalanced the lines of braces without a partner."""

    def __init__(self, text):
        self.code = blank_if_zero(blank_comments_and_literals(text))
        self.declarations = blank_directives(self.code)
        self.functions = []
        self.unbalanced = []
        self.open = ()
        self.branches = []
        for event in EVENT.finditer(self.code):
            if event["directive"]:
                self.on_directive(event)
            elif event["brace"] == "{":
                self.on_open(event.start())
            else:
                self.on_close(event.start())
        self.unbalanced += [line_of(self.code, brace.offset) for brace in self.open]

    def on_directive(self, directive):
        word = directive["word"]
        if word in ("if", "ifdef", "ifndef"):
            self.branches.append(Branch(self.open, dead=is_zero(directive)))
        elif self.branches and word.startswith("el"):
            self.branches[-1].end_alternative(self.open)
            self.open = self.branches[-1].entry
        elif self.branches and word == "endif":
            branch = self.branches.pop()
            branch.end_alternative(self.open)
            self.open = self.open if branch.outcome is None else branch.outcome

    def on_open(self, offset):
        brace = Brace("block", "", offset)
        if all(outer.kind == "container" for outer in self.open):
            brace = self.outer_brace(offset)
        self.open += (brace,)

    def outer_brace(self, offset):
        start = max(self.declarations.rfind(mark, 0, offset) for mark in ";{}") + 1
        start = BLANKS.match(self.declarations, start).end()  # past the comment above, often a long one
        head = self.declarations[start:offset]
        kind = brace_kind(head)
        if kind != "function":
            return Brace(kind, "", offset)
        name, name_offset = declared_name(head)
        return Brace(kind, name, start + name_offset)

    def on_close(self, offset):
        if not self.open:
            self.unbalanced.append(line_of(self.code, offset))
            return
        brace = self.open[-1]
        self.open = self.open[:-1]
        if brace.kind == "function":
            line = line_of(self.code, brace.offset)
            self.functions.append(Function(brace.name, line, line_of(self.code, offset) - line + 1))
