#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every bad model is refused: with the right code, with a message of its own, quickly, quietly.

usage: bad_models.py COMMAND [WORD]

COMMAND is the ulpsync command; with WORD only cases with that word in their name run. Every file
has the same name, so two messages differ only if they say something different: what is wrong,
which tensor, at which byte.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import directory_cases
import tensor_cases
import text_cases
from making import DIRECTORY, FIFO, MODEL, Link


def lay_out(folder, content):
    """Makes the model of one case in a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, what in ({MODEL: content} if isinstance(content, bytes) else content).items():
        place = folder / name
        if isinstance(what, Link):
            place.symlink_to(what.target)
        elif what == FIFO:
            os.mkfifo(place)
        elif what == DIRECTORY:
            place.mkdir()
        else:
            place.write_bytes(what)


def run(command, arguments, top, seconds):
    """(exit code, standard output, standard error); the code is None when time ran out."""
    try:
        done = subprocess.run([command, *arguments], cwd=top, capture_output=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        return None, "", ""
    texts = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return done.returncode, *texts


def fault(case, code, message, stderr):
    """What is wrong with one run, or None."""
    if code is None:
        return f"ran for more than {case.seconds} s"
    if code == 0:
        return "was accepted"
    if "Sanitizer" in stderr or "runtime error" in stderr or not 1 < code < 126:
        return f"crashed with {code}:\n{stderr}"
    if code != case.code:
        return f"exit code {code}, not {case.code}: {message}"
    if case.fragment not in message:
        return f"'{case.fragment}' is not in: {message}"
    return None


def check_text(case, command, top, path):
    """(fault, message) of `info`, which speaks on standard error alone."""
    code, stdout, stderr = run(command, ["info", path], top, case.seconds)
    message = stderr.split("\n")[0].removeprefix("ulpsync: ")
    found = fault(case, code, message, stderr)
    return found or (f"standard output has {stdout!r}" if stdout else None), message


def check_json(case, command, top, path, expected):
    """The fault of `digest --json`, which says the same as an object on standard output."""
    code, stdout, stderr = run(command, ["digest", "--json", path], top, case.seconds)
    try:
        error = json.loads(stdout)["error"] if code is not None else {"message": "", "code": 0}
    except (ValueError, KeyError):
        return fault(case, code, "", stderr) or f"no JSON error: {stdout!r}"
    found = fault(case, code, error["message"], stderr)
    if not found and (error["code"] != case.code or error["message"] != expected):
        found = f"--json says otherwise: {error}"
    return found


def check(case, command, top, messages):
    """The fault of one case, or None; notes its message."""
    lay_out(top / "model", case.content)
    if isinstance(case.content, bytes):
        path = f"model/{MODEL}"
    else:
        path = "/".join(filter(None, ("model", case.path)))
    found, message = check_text(case, command, top, path)
    found = found or check_json(case, command, top, path, message)
    if not found and message in messages:
        found = f"says the same as the case '{messages[message]}': {message}"
    messages.setdefault(message, case.name)
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    command, word = str(Path(sys.argv[1]).resolve()), "".join(sys.argv[2:])
    passed = failed = 0
    messages = {}
    with tempfile.TemporaryDirectory(prefix="ulpsync-hostile-") as top:
        for cases in (text_cases, tensor_cases, directory_cases):
            for case in cases.cases():
                if word not in case.name:
                    continue
                found = check(case, command, Path(top), messages)
                passed, failed = passed + (not found), failed + bool(found)
                if found:
                    print(f"{case.name}: {found}")
    kinds = {re.sub(r"'[^']*'|0x[0-9a-f]+|\d+", "_", message) for message in messages}
    print(f"{len(messages)} messages, {len(kinds)} when names and numbers are left out")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
