# SPDX-License-Identifier: Apache-2.0
"""The library, asked through patch_helper, which answers a line to a line."""

import subprocess


class Library:
    def __init__(self, helper):
        self.process = subprocess.Popen(
            [helper], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, *request):
        """(status name, the rest of the answer)"""
        self.process.stdin.write(
            " ".join("-" if word is None else str(word) for word in request) + "\n"
        )
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"patch_helper ended at: {request}"
        status, _, rest = answer.rstrip("\n").partition(" ")
        return status, rest

    def diff(self, coder, base, child, out, before=None, regions=()):
        """(parent, child), in hexadecimal; the child is all zero where there are regions:
        (name, row, rows, column, columns)."""
        words = [":".join(map(str, region)) for region in regions]
        status, rest = self.ask("diff", coder, base, before, child, out, *words)
        assert status == "ULP_OK", (status, rest, coder, regions)
        return rest.split()

    def apply(self, patches, base, before=None, child=None, out=None):
        """(status name, root of the child or a message)"""
        return self.ask("apply", base, before, child, out, *patches)

    def verify(self, patch):
        return self.ask("verify", patch)[0]
