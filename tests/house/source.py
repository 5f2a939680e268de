# SPDX-License-Identifier: Apache-2.0
"""What the house checks share: finding the project's files, reading C without comments, reporting.

Every "blank" function returns text of the same length with the same newlines, so that an offset found in blanked text
is also the offset, and gives the line, in the file.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

C_SUFFIXES = {".c", ".h", ".cu", ".cuh"}
C_FOLDERS = {"src", "include", "cli", "study", "synth", "examples", "bench", "fuzz", "tests"}

# A folder holding one of these was made by a tool, whatever its name is.
GENERATED_FOLDER_MARKS = {"CMakeCache.txt", "pyvenv.cfg", "CACHEDIR.TAG"}

# A number is a token only to keep the quote in 1'000 (CUDA files are C++) from opening a character literal.
TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<literal> (?<!\w)(?:u8|[uUL])?R"(?P<fence>[^()\\\s"]{0,16})\(.*?\)(?P=fence)"
                 | "(?:\\.|[^"\\\n])*"?
                 | '(?:\\.|[^'\\\n])*' )
    | (?P<number>  (?<!\w)[0-9][\w.]*(?:'[\w.]+)+ )
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<word>\w*)(?P<rest>(?:\\\n|[^\n])*)", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|include_next|import)\b(?:[ \t]|\\\n)*", re.MULTILINE)
INCLUDE_TARGET = re.compile(r'"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>')


class Violation(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


class Include(NamedTuple):
    line: int
    target: str  # empty when a macro names the file
    quoted: bool

    def __str__(self):
        return f'"{self.target}"' if self.quoted else f"<{self.target}>"


def report(violations):
    """Prints one line per violation, in file order; returns the exit status."""
    for violation in sorted(violations):
        print(violation)
    return 1 if violations else 0


def project_files(root):
    """The files people write, as sorted paths relative to root: no build output, nothing git ignores."""
    root = Path(root)
    names = git_files(root) if (root / ".git").exists() else None
    if names is None:
        names = walked_files(root)
    files = sorted(name for name in names if (root / name).is_file())
    if not files:
        raise SystemExit(f"{root}: no files here: a check of nothing would always pass")
    return files


def git_files(root):
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None  # no git here, or a checkout it refuses to read: walking still gives an answer
    return set(os.fsdecode(listing).split("\0")) - {""}


def walked_files(root):
    for folder, subfolders, names in os.walk(root):
        if Path(folder) != root and GENERATED_FOLDER_MARKS.intersection(names):
            subfolders.clear()
            continue
        subfolders[:] = [name for name in subfolders if name not in (".git", "__pycache__")]
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def c_files(root):
    for path in project_files(root):
        if path.split("/")[0] in C_FOLDERS and Path(path).suffix in C_SUFFIXES:
            yield path


def read_text(path):
    return Path(path).read_text(encoding="utf-8", errors="replace")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def blank(text, keep=""):
    """Spaces for everything but newlines, the characters in keep, and a backslash that continues a directive."""
    return re.sub(rf"(?!\\\n)[^\n{keep}]", " ", text)


def blank_comments(text):
    return TOKEN.sub(lambda token: blank(token[0]) if token["comment"] else token[0], text)


def blank_comments_and_literals(text):
    """The quotes of strings and characters stay, so that `extern "C"` can still be recognised."""

    def blank_token(token):
        if token["number"]:
            return token[0]
        return blank(token[0], keep="" if token["comment"] else "\"'")

    return TOKEN.sub(blank_token, text)


def blank_directives(code):
    """Expects code whose comments and literals are blank, so that a `#` opening a line is a directive."""
    return DIRECTIVE.sub(lambda directive: blank(directive[0]), code)


def includes(text):
    """Every #include of a C file; the directive is sought where a string cannot pretend to be one."""
    readable = blank_comments(text)
    for directive in INCLUDE.finditer(blank_comments_and_literals(text)):
        line = line_of(text, directive.end())
        target = INCLUDE_TARGET.match(readable, directive.end())
        if target is None:
            yield Include(line, "", False)
        elif target["quoted"] is not None:
            yield Include(line, target["quoted"], True)
        else:
            yield Include(line, target["angled"], False)


def resolve(root, path, include):
    """The project file an include of the file `path` means, in the order the compiler looks, or None."""
    places = ["src", "include", ""]
    if include.quoted:
        places.insert(0, os.path.dirname(path))
    for place in places:
        candidate = os.path.normpath(os.path.join(place, include.target))
        inside = include.target and not candidate.startswith(("..", "/"))
        if inside and (Path(root) / candidate).is_file():
            return candidate
    return None


def read_table(path, shown_as, columns):
    """Rows of a text table: `#` starts a comment, `:` separates columns. Yields (line, [column, ...])."""
    for line, row in enumerate(read_text(path).splitlines(), start=1):
        row = row.split("#")[0]
        if not row.strip():
            continue
        cells = [cell.strip() for cell in row.split(":")]
        if len(cells) != columns:
            raise SystemExit(f"{shown_as}:{line}: expected {columns} columns separated by ':', found {len(cells)}")
        yield line, cells
