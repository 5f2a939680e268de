#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the built libraries and the public headers disagree about what is public.

usage: exports.py [--shared LIB.so] [--static LIB.a] [--header DIR] [--libc-only LIB.so]

--shared, --static   every global symbol starts with ulp_ and is declared with ULP_API in a header under DIR,
                     and everything declared so is there
--libc-only          the library needs libc.so.6 (and the dynamic loader) and nothing else at run time
"""

import argparse
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from c_functions import declared_name
from source import Violation, blank_comments_and_literals, blank_directives, line_of, read_text, report

API_DECLARATION = re.compile(r"\bULP_API\b(?P<declaration>[^;{]*)")
PREFIX = "ulp_"
LIBC = ("libc.so.6", "ld-linux*")

# Older linkers export these from every shared library; nobody wrote them.
LINKER_SYMBOLS = {"_init", "_fini", "__bss_start", "_edata", "_end"}


def output_of(*command):
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError as error:
        raise SystemExit(f"{command[0]}: {error.strerror}: install binutils")
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(command)}: {error.stderr.strip()}")
    return result.stdout


def declared_api(folder):
    """{name: (header, line)} of everything declared with ULP_API."""
    declared = {}
    for header in sorted(Path(folder).rglob("*.h")):
        code = blank_directives(blank_comments_and_literals(read_text(header)))
        for match in API_DECLARATION.finditer(code):
            name, offset = declared_name(match["declaration"]) or ("", 0)
            declared[name] = (str(header), line_of(code, match.start("declaration") + offset))
    return declared


def symbols(listing):
    """(member, name) of each line `nm --format=posix` prints; member is "" outside an archive."""
    member = ""
    for line in listing.splitlines():
        header = re.fullmatch(r".*\[(?P<member>[^]]*)\]:", line)
        fields = line.split()
        if header:
            member = header["member"]
        elif len(fields) >= 2:
            name, _, version = fields[0].partition("@")
            # A version script makes a symbol of each version's own name.
            if not (fields[1] == "A" and version.lstrip("@") in ("", name)):
                yield member, name


def shared_symbols(library):
    listing = output_of("nm", "-D", "--defined-only", "--format=posix", library)
    return [symbol for symbol in symbols(listing) if symbol[1] not in LINKER_SYMBOLS]


def static_symbols(library):
    return list(symbols(output_of("nm", "-g", "--defined-only", "--format=posix", library)))


def surplus(library, found, declared, hint):
    """Symbols of the library that are not public API."""
    for member, name in found:
        place = f"{library}[{member}]" if member else library
        if not name.startswith(PREFIX):
            yield f"{place}: {name} is global but does not start with {PREFIX}: {hint}"
        elif name not in declared:
            yield f"{place}: {name} is global but no public header declares it with ULP_API: declare it, or {hint}"


def missing(library, found, declared):
    """Public API the library does not have, reported where it is declared."""
    names = {name for _, name in found}
    for name, (header, line) in declared.items():
        if name not in names:
            yield Violation(header, line, f"{name} is declared with ULP_API but not in {library}: define or remove it")


def needed_problems(library):
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", library)):
        if not any(fnmatchcase(needed, pattern) for pattern in LIBC):
            yield f"{library}: needs {needed} at run time: link nothing but libc, or switch the option off"


def library_problems(options):
    declared = declared_api(options.header)
    if not declared:
        yield f"{options.header}: no header declares anything with ULP_API: is this the public header folder?"
    if options.shared:
        found = shared_symbols(options.shared)
        yield from surplus(options.shared, found, declared, "make it static or build with -fvisibility=hidden")
        yield from missing(options.shared, found, declared)
    if options.static:
        found = static_symbols(options.static)
        hint = "make it static, or localise it (ld -r, then objcopy --localize-hidden)"
        yield from surplus(options.static, found, declared, hint)
        yield from missing(options.static, found, declared)


def parse_options(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--shared")
    parser.add_argument("--static")
    parser.add_argument("--header")
    parser.add_argument("--libc-only")
    options = parser.parse_args(arguments)
    if bool(options.shared or options.static) != bool(options.header):
        parser.error("--header goes with --shared or --static")
    if not (options.header or options.libc_only):
        parser.error("nothing to check")
    return options


def main(arguments):
    options = parse_options(arguments)
    problems = []
    if options.header:
        problems += map(str, library_problems(options))
    if options.libc_only:
        problems += needed_problems(options.libc_only)
    return report(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
