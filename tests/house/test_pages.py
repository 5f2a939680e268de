#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that each check of the pages can fail, on the right line, and that good pages pass.

usage: python3 test_pages.py
"""

import unittest

from guide import is_shown
from links import anchors_of
from test_house import HouseTest

HEADER = "enum ulp_status {\n    ULP_OK = 0,\n    ULP_E_USAGE = 2, /* said */\n    ULP_E_NOMEM = 10\n};\n"
SAID = "word " * 20 + "\n"


class LinksTest(HouseTest):
    def assert_link(self, line, part, text):
        self.write("docs/a.md", text)
        self.write("docs/b.md", "# One thing\n\n## `code`, and more\n")
        self.assert_reports([(f"docs/a.md:{line}: ", part)], "links.py", self.root)

    def test_good_pages_pass(self):
        self.write("README.md", "[a](docs/a.md), [b](docs/a.md#two-words), ![figure](docs/f.svg)\n<img src=\"docs/f.svg\">\n")
        self.write("docs/a.md", "# Two words\n[up](../README.md) [here](#two-words) [folder](../docs) [web](https://host/x)\n")
        self.write("docs/f.svg", "<svg/>\n")
        self.assertEqual(self.assert_passes("links.py", self.root), "")

    def test_missing_file(self):
        self.assert_link(2, "'none.md' leads nowhere", "fine\n[x](none.md)\n")

    def test_missing_picture(self):
        self.assert_link(1, "'none.svg' leads nowhere", '<img alt="x" src="none.svg">\n')

    def test_outside_the_project(self):
        self.assert_link(1, "leads nowhere", "[x](../../etc)\n")

    def test_missing_heading(self):
        self.assert_link(1, "docs/b.md has no heading 'another'", "[x](b.md#another)\n")
        self.assert_link(1, "docs/a.md has no heading 'another'", "[x](#another)\n")

    def test_code_has_no_links(self):
        self.write("a.md", "`[x](none)` and ``[y](none)``\n\n```sh\necho '[x](none)'\n```\n")
        self.assert_passes("links.py", self.root)

    def test_lines_behind_code(self):
        self.assert_link(4, "'none.md' leads nowhere", "```sh\n[x](y)\n```\n[x](none.md)\n")

    def test_names_of_headings(self):
        text = "# `code`, and more\n## Twice\n## Twice\n```\n# not one\n```\n"
        self.assertEqual(list(anchors_of(text)), ["code-and-more", "twice", "twice-1"])


class StatusesTest(HouseTest):
    GOOD = f"# Page\n## 0 `ULP_OK`\nFine.\n## 2 `ULP_E_USAGE`\n{SAID}## 10 `ULP_E_NOMEM`\n{SAID}"

    def check(self, page, *expected):
        self.write("include/ulpsync/status.h", HEADER)
        self.write("docs/guide/troubleshooting.md", page)
        if expected:
            self.assert_reports([(f"docs/guide/troubleshooting.md:{line}: ", part) for line, part in expected],
                                "statuses.py", self.root)
        else:
            self.assertEqual(self.assert_passes("statuses.py", self.root), "")

    def test_good_page_passes(self):
        self.check(self.GOOD)

    def test_missing_status(self):
        self.check(self.GOOD.replace("## 2 `ULP_E_USAGE`", "Two"), (1, "ULP_E_USAGE is missing"))

    def test_wrong_number(self):
        self.check(self.GOOD.replace("## 2 `", "## 3 `"), (1, "ULP_E_USAGE is missing"), (4, "no ULP_E_USAGE = 3"))

    def test_unknown_status(self):
        self.check(f"{self.GOOD}## 11 `ULP_E_ODD`\n{SAID}", (8, "no ULP_E_ODD = 11"))

    def test_order(self):
        first = f"## 10 `ULP_E_NOMEM`\n{SAID}"
        self.check(f"# Page\n{first}{self.GOOD.partition(chr(10))[2].replace(first, '')}",
                   (4, "ULP_OK stands behind ULP_E_NOMEM"))

    def test_without_explanation(self):
        self.check(self.GOOD.replace(f"`ULP_E_USAGE`\n{SAID}", "`ULP_E_USAGE`\nFine.\n"), (4, "is not explained"))

    def test_header_without_statuses(self):
        self.write("include/ulpsync/status.h", "\n")
        self.write("docs/guide/troubleshooting.md", self.GOOD)
        self.assertIn("would always pass", self.run_check("statuses.py", self.root).stdout)


class GuideTest(HouseTest):
    def run_page(self, page):
        self.write("README.md", "# Nothing to run\n")
        self.write("docs/guide/a.md", page)
        return self.run_check("guide.py", self.root, "/bin/true", self.root)

    def assert_page(self, page, *parts):
        result = self.run_page(page)
        self.assertEqual(result.returncode, 1 if parts else 0, result.stdout)
        for part in parts:
            self.assertIn(part, result.stdout)

    def test_good_page_passes(self):
        self.assert_page("```text file=words\na b\n```\n```sh run\nnumber=41\ncat words\n```\n```text shown\na b\n```\n"
                         "```sh run\necho it took $number ms >&2\nulpsync anything\n```\n```text shown\nit took 7 ms\n```\n"
                         "```sh\nexit 1 # is not run\n```\n")

    def test_failure(self):
        self.assert_page("```sh run\ntrue\n```\n\n```sh run\necho so far\nfalse\n```\n",
                         "docs/guide/a.md:6: this block ends with 1:\nso far")

    def test_wrong_output(self):
        self.assert_page("```sh run\necho one word\n```\n```text shown\ntwo words\n```\n",
                         "docs/guide/a.md:5: the commands above print something else:\none word")

    def test_output_of_nothing(self):
        self.assert_page("```text shown\nwords\n```\n```sh run\ntrue\n```\n", "docs/guide/a.md:2: ")

    def test_pages_do_not_see_each_other(self):
        self.write("docs/guide/b.md", "```sh run\n[ ! -e left ]\n```\n")
        self.assert_page("```sh run\ntouch left\n```\n")

    def test_what_runs_beside_a_page_ends_with_it(self):
        self.assert_page("```sh run\nsleep 1000 &\necho $!\n```\n")

    def test_nothing_to_run(self):
        self.assertIn("would always pass", self.run_page("# Nothing\n").stdout)

    def test_what_may_differ(self):
        for shown, printed in (("took 1.5 ms", "took 20 s"), ("root 0a1b2c3d4e...", "root ff00ff00ff00ff00ff"),
                               ("a\n...\nz", "a\nb 1\nc\nz"), ("a ... z", "a bcd z"), ("1 KiB", "2 MiB")):
            self.assertTrue(is_shown(shown, printed), (shown, printed))
        for shown, printed in (("took 1 ms", "takes 1 ms"), ("a", "a b"), ("a b", "a"), ("a ... z", "a z b"), ("", "a")):
            self.assertFalse(is_shown(shown, printed), (shown, printed))


if __name__ == "__main__":
    unittest.main()
