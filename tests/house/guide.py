#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what README and the guides tell their readers to type, each page in an empty directory of its own.

    ```c file=trainer.c     the block is written to that file
    ```sh run               the block is run by the shell; blocks of a page go on from each other
    ```text shown           what the block before it prints; numbers may differ, and ... stands for anything

usage: guide.py ROOT ULPSYNC LIBRARY_FOLDER [PAGE...]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fenced import blocks
from source import Violation, read_text, report

SECONDS_MAX = 60  # for a page: it takes a few, and mostly waits
PAGES_AT_ONCE = 4
LINES_TOLD = 20
MARK = "\x01block "
HEXADECIMAL = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?:\.\.\.)?")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
UNIT = re.compile(r"\b(?:[KMGT]i?B|bytes|ms|s)\b")

PKG_CONFIG = """Name: ulpsync
Description: the library of this build
Version: 0
Cflags: -I{root}/include
Libs: -L{library} -lulpsync
"""


def pages(root):
    return ["README.md", *sorted(path.relative_to(root).as_posix() for path in (root / "docs/guide").glob("*.md"))]


def script_of(page_blocks):
    """One shell for the whole page. What runs beside it ends with it."""
    lines = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT", "exec 2>&1"]
    for block in page_blocks:
        if block.language == "sh" and "run" in block.marks:
            lines += [f"printf '{MARK}%d\\n' {block.line}", block.body.rstrip()]
    return "\n".join(lines) + "\n"


def prepare(folder, root, ulpsync, library, page_blocks):
    (folder / "bin").mkdir()
    (folder / "bin/ulpsync").symlink_to(ulpsync)
    (folder / "pkgconfig").mkdir()
    (folder / "pkgconfig/ulpsync.pc").write_text(PKG_CONFIG.format(root=root, library=library))
    place = folder / "here"
    (place / "build").mkdir(parents=True)
    (place / "build/ulpsync").symlink_to(ulpsync)
    for block in page_blocks:
        if block.file():
            (place / block.file()).write_text(block.body)
    return place


def run(place, script, library):
    """(exit status, output); everything that it started is ended."""
    folder = place.parent
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                   "PKG_CONFIG_PATH": f"{folder}/pkgconfig", "LD_LIBRARY_PATH": str(library)}
    process = subprocess.Popen(["bash", "-c", script], cwd=place, env=environment, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return process.returncode, output


def end_of(text):
    return "\n".join(text.splitlines()[-LINES_TOLD:])


def outputs_by_line(output):
    """Line of a block -> what it printed."""
    printed = {}
    for piece in output.split(MARK)[1:]:
        line, _, text = piece.partition("\n")
        printed[int(line)] = text
    return printed


def plain(text):
    """Without what may differ from machine to machine, and from one encoder to the next."""
    return UNIT.sub("U", NUMBER.sub("N", HEXADECIMAL.sub("H", text)))


def is_shown(shown, printed):
    pattern = r"\s+".join(".*" if word == "..." else re.escape(word).replace(r"\.\.\.", ".*")
                          for word in plain(shown).split())
    return re.fullmatch(pattern, plain(printed).strip(), re.DOTALL) is not None


def shown_wrongly(page, page_blocks, printed):
    told = ""
    for block in page_blocks:
        if "run" in block.marks:
            told = printed.get(block.line, "")
        elif "shown" in block.marks and not is_shown(block.body, told):
            yield Violation(page, block.line, f"the commands above print something else:\n{told}")


def page_violations(root, page, ulpsync, library):
    page_blocks = list(blocks(read_text(root / page)))
    with tempfile.TemporaryDirectory() as folder:
        place = prepare(Path(folder), root, ulpsync, library, page_blocks)
        status, output = run(place, script_of(page_blocks), library)
    printed = outputs_by_line(output)
    if status:
        last = max(printed, default=1)
        return [Violation(page, last, f"this block ends with {status}:\n{end_of(printed.get(last, output))}")]
    return list(shown_wrongly(page, page_blocks, printed))


def main(arguments):
    if len(arguments) < 3:
        raise SystemExit("usage: guide.py ROOT ULPSYNC LIBRARY_FOLDER [PAGE...]")
    root, ulpsync, library = (Path(word).resolve() for word in arguments[:3])
    names = arguments[3:] or pages(root)
    if not any("run" in block.marks for page in names for block in blocks(read_text(root / page))):
        raise SystemExit("no page has anything to run: a check of nothing would always pass")
    with ThreadPoolExecutor(PAGES_AT_ONCE) as pool:
        found = pool.map(lambda page: page_violations(root, page, ulpsync, library), names)
        return report([violation for of_page in found for violation in of_page])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
