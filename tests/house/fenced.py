# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of a Markdown page, and what their first lines ask for."""

import re
from typing import NamedTuple

FENCE = re.compile(r"^```(?P<words>[^`\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    line: int  # of its first line of text
    language: str
    marks: list  # the words behind the language
    body: str

    def file(self):
        """The name under which the block is to be written, or None."""
        names = [mark.partition("=")[2] for mark in self.marks if mark.startswith("file=")]
        return names[0] if names else None


def blocks(text):
    for fence in FENCE.finditer(text):
        language, *marks = fence["words"].split() or [""]
        yield Block(text.count("\n", 0, fence.start()) + 2, language, marks, fence["body"])


def without_blocks(text):
    """The same number of lines, those of fenced blocks empty."""
    return FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
