#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that each house check can fail, on the right line, and that a good tree passes.

usage: python3 test_house.py
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from c_functions import FunctionFinder, declared_name
from source import blank_comments, blank_comments_and_literals, includes

HOUSE = Path(__file__).resolve().parent
TABLES = ("layers.txt", "fences.txt")

GOOD_TREE = {
    "include/ulpsync/ulpsync.h": "#include <stdint.h>\n#include <ulpsync/status.h>\n",
    "include/ulpsync/status.h": "enum ulp_status { ULP_OK };\n",
    "src/base/memory.h": "#include <stddef.h>\nvoid mem_free(void *p);\n",
    "src/base/memory.c": '#include "base/memory.h"\n#include <stdlib.h>\nvoid mem_free(void *p) { free(p); }\n',
    "src/base/thread.c": "#include <pthread.h>\n",
    "src/scan/scan.h": "#include <ulpsync/status.h>\n",
    "src/scan/scan_avx2.c": '#include "scan/scan.h"\n#include <immintrin.h>\n',
    "src/patch/patch.h": '#include "scan/scan.h"\n',
    "src/chain/plan.c": '#include "patch/patch.h"\n',
    "src/store/store.h": "struct store { void (*free)(struct store *); };\n",
    "src/net/http.h": "struct http;\n",
    "src/net/http_curl.c": '#include <curl/curl.h>\n#include "net/http.h"\n',
    "src/cuda/device.h": "void device(void);\n",
    "src/api/api.c": '#include "cuda/device.h"\n#include "patch/patch.h"\n#include <ulpsync/ulpsync.h>\n',
    "synth/generator.h": "#include <ulpsync/ulpsync.h>\n",
    "cli/options.h": '#include "synth/generator.h"\n',
    "cli/main.c": '#include "cli/options.h"\n#include <stdlib.h>\nint main(void) { exit(0); }\n',
    "tests/scan/fixture.h": "int fixture;\n",
    "tests/scan/test.c": '#include "fixture.h"\n#include "scan/scan.h"\n#include <ulpsync/ulpsync.h>\n',
    "CMakeLists.txt": "# never -ffast-math\nproject(ulpsync C)\n",
}


def body(lines):
    """A function of exactly that many lines."""
    return "int f(void)\n{\n" + "    g();\n" * (lines - 3) + "}\n"


class HouseTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def write_tree(self, files):
        for table in TABLES:
            self.write(f"tests/house/{table}", (HOUSE / table).read_text())
        self.write("tests/house/long_functions.txt", "# none\n")
        for path, text in files.items():
            self.write(path, text)

    def run_check(self, script, *arguments):
        command = [sys.executable, "-B", str(HOUSE / script), *map(str, arguments)]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def assert_passes(self, script, *arguments):
        result = self.run_check(script, *arguments)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def assert_reports(self, expected, script, *arguments):
        """The check fails, and says exactly one line for each expected pair (start of line, part of the rest)."""
        result = self.run_check(script, *arguments)
        lines = [line for line in result.stdout.splitlines() if "median" not in line and line != "no functions"]
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(len(lines), len(expected), result.stdout)
        for line, (start, part) in zip(lines, sorted(expected)):
            self.assertTrue(line.startswith(start), f"{line!r} does not start with {start!r}")
            self.assertIn(part, line)


class LayersTest(HouseTest):
    def assert_bad_file(self, path, text, line, part):
        self.write_tree({**GOOD_TREE, path: text})
        self.assert_reports([(f"{path}:{line}: ", part)], "layers.py", self.root)

    def test_good_tree_passes(self):
        self.write_tree(GOOD_TREE)
        self.assertEqual(self.assert_passes("layers.py", self.root), "")

    def test_room_above(self):
        self.assert_bad_file("src/scan/a.c", '\n#include "patch/patch.h"\n', 2, "src/scan may not include src/patch/")

    def test_room_above_in_angle_brackets(self):
        self.assert_bad_file("src/scan/a.c", "#include <patch/patch.h>\n", 1, "src/scan may not include")

    def test_room_above_by_a_relative_path(self):
        self.assert_bad_file("src/scan/a.c", '#include "../patch/patch.h"\n', 1, "src/scan may not include")

    def test_only_the_named_header(self):
        self.write("src/patch/build.h", "")
        self.assert_bad_file("src/chain/a.c", '#include "patch/build.h"\n', 1, "src/chain may not include")

    def test_users_of_the_library_see_public_headers_only(self):
        for path in ("cli/a.c", "examples/a.c", "synth/a.c", "include/ulpsync/a.h"):
            with self.subTest(path):
                self.assert_bad_file(path, '#include "base/memory.h"\n', 1, "may not include src/base/memory.h")
                (self.root / path).unlink()

    def test_library_does_not_see_its_users(self):
        self.assert_bad_file("src/api/a.c", '#include "cli/options.h"\n', 1, "src/api may not include cli/options.h")

    def test_missing_file(self):
        self.assert_bad_file("src/scan/a.c", '/*\n*/ #include "scan/none.h"\n', 2, "no file in the tree")

    def test_file_outside_the_tree(self):
        self.assert_bad_file("tests/a.c", '#include "/etc/passwd"\n', 1, "no file in the tree")

    def test_spelling(self):
        self.assert_bad_file("src/scan/a.c", '#include "scan.h"\n', 1, 'write "scan/scan.h"')

    def test_spelling_of_public_headers(self):
        self.assert_bad_file("src/scan/a.c", '#include "ulpsync/status.h"\n', 1, "write <ulpsync/status.h>")

    def test_computed_include(self):
        self.assert_bad_file("src/scan/a.c", "#include HEADER\n", 1, "macro")

    def test_room_without_a_row(self):
        self.assert_bad_file("src/attic/a.c", "\n", 1, "in no room")

    def test_commented_include_is_none(self):
        self.write_tree({**GOOD_TREE, "src/scan/a.c": '/*\n#include "patch/patch.h"\n*/\n// #include "none.h"\n'})
        self.assert_passes("layers.py", self.root)

    def test_broken_table(self):
        self.write_tree(GOOD_TREE)
        self.write("tests/house/layers.txt", "# rooms\nsrc/base\n")
        self.assert_reports([("tests/house/layers.txt:2: ", "columns")], "layers.py", self.root)

    def test_room_with_two_rows(self):
        self.write_tree(GOOD_TREE)
        self.write("tests/house/layers.txt", "src/base :\nsrc/base : include\n")
        self.assert_reports([("tests/house/layers.txt:2: ", "has a row already")], "layers.py", self.root)

    def test_build_output_is_not_source(self):
        self.write_tree({**GOOD_TREE, "tests/b/CMakeCache.txt": "", "tests/b/a.c": '#include "none.h"\n'})
        self.assert_passes("layers.py", self.root)

    def test_wrong_root(self):
        self.write_tree({})
        (self.root / "empty").mkdir()
        result = self.run_check("private_words.py", self.root / "empty")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no files here", result.stdout)


class FencesTest(HouseTest):
    def assert_fenced(self, path, text, line, part):
        self.write_tree({path: text})
        self.assert_reports([(f"{path}:{line}: ", part)], "layers.py", self.root)
        (self.root / path).unlink()

    def assert_free(self, path, text):
        self.write_tree({path: text})
        self.assert_passes("layers.py", self.root)
        (self.root / path).unlink()

    def test_headers(self):
        cases = {
            "curl/curl.h": ("src/store/http.c", "src/net/http_curl.c"),
            "mpi.h": ("src/loco/local.c", "src/loco/exchange_mpi.c"),
            "cuda_runtime.h": ("src/scan/scan.c", "src/cuda/scan.cu"),
            "cuda.h": ("src/api/load.c", "src/cuda/driver.h"),
            "zstd.h": ("src/code/rice.c", "src/code/coder_zstd.c"),
            "openssl/evp.h": ("src/store/sign.c", "src/hash/sha256.c"),
            "immintrin.h": ("src/scan/scan_x86.h", "src/scan/scan_avx512.c"),
            "x86intrin.h": ("bench/clock.c", "src/scan/scan_avx2.c"),
            "arm_neon.h": ("src/scan/scan.c", "src/scan/scan_neon.c"),
            "pthread.h": ("src/sync/follower.c", "src/base/thread.c"),
            "threads.h": ("src/sync/follower.c", "src/base/thread.c"),
        }
        for header, (wrong, right) in cases.items():
            with self.subTest(header):
                text = f"int x;\n#include <{header}>\n"
                self.assert_fenced(wrong, text, 2, f"<{header}> is allowed only in")
                self.assert_free(right, text)

    def test_header_allowed_nowhere(self):
        self.assert_fenced("src/tensor/json.c", "#include <jansson.h>\n", 1, "<jansson.h> is allowed nowhere")

    def test_allocation_calls(self):
        for name in ("malloc", "calloc", "realloc", "free", "strdup"):
            with self.subTest(name):
                text = f"void *f(void)\n{{\n    return {name} (x);\n}}\n"
                self.assert_fenced("src/scan/a.c", text, 3, f"{name} is allowed only in src/base/memory.c")
                self.assert_free("src/base/memory.c", text)
                for path in ("cli/a.c", "synth/a.c", "bench/a.c", "examples/a.c", "tests/a.c"):
                    self.assert_free(path, text)

    def test_what_only_looks_like_a_call(self):
        text = (
            "/* free(p) */ // malloc(1)\n"
            'const char *s = "free(p) \\" malloc(1)";\n'
            "void f(struct s *p) { mem_free(p); p->free(p); p->ops.free(p); free_list(p); on_exit_(p); }\n"
        )
        self.assert_free("src/scan/a.c", text)

    def test_ending_the_process(self):
        for name in ("exit", "abort"):
            with self.subTest(name):
                text = f"void f(void) {{\n    {name}(1); }}\n"
                self.assert_fenced("src/base/memory.c", text, 2, f"{name} is allowed nowhere: return a status")
                self.assert_free("cli/a.c", text)

    def test_pragma(self):
        self.assert_fenced("tests/a.c", '\n# pragma  GCC  optimize ("O3")\n', 2, "allowed nowhere")
        self.assert_fenced("src/scan/a.c", '\n_Pragma("GCC optimize O3")\n', 2, "allowed nowhere")
        self.assert_free("src/scan/a.c", '#pragma GCC diagnostic ignored "-Wx"\n// #pragma GCC optimize\n')

    def test_optimise_attribute(self):
        text = '\n__attribute__((optimize("O3"))) void f(void);\n'
        self.assert_fenced("src/scan/a.c", text, 2, "optimize is allowed nowhere")

    def test_flag(self):
        self.assert_fenced("CMakeLists.txt", "\nadd_compile_options(-O2 -ffast-math)\n", 2, "-ffast-math")
        self.assert_fenced("cmake/cuda.cmake", "\n\nset(F --use_fast_math)\n", 3, "--use_fast_math")
        self.assert_fenced("python/build.py", "flags = ['-ffast-math']\n", 1, "-ffast-math")
        self.assert_fenced("src/scan/a.c", 'char f[] = "-ffast-math";\n', 1, "-ffast-math")
        self.assert_free("CMakeLists.txt", "add_compile_options(-O2) # not -ffast-math\n")
        self.assert_free("src/scan/a.c", "#ifdef __FAST_MATH__\n#error do not use -ffast-math\n#endif\n")

    def test_unknown_kind(self):
        self.write_tree({"src/base/a.c": ""})
        self.write("tests/house/fences.txt", "\nwish : a : everywhere : nowhere : b\n")
        self.assert_reports([("tests/house/fences.txt:2: ", "unknown kind wish")], "layers.py", self.root)


class LengthsTest(HouseTest):
    def test_limits_themselves_pass(self):
        self.write_tree({"src/base/a.c": body(80), "tools/a.py": "x\n" * 900})
        self.assertEqual(
            self.assert_passes("lengths.py", self.root),
            "1 functions: median 80 lines, 90th percentile 80, longest 80\n",
        )

    def test_long_function(self):
        self.write_tree({"src/base/a.c": "int x;\n\n" + body(81)})
        self.assert_reports([("src/base/a.c:3: ", "f has 81 lines, more than 80")], "lengths.py", self.root)

    def test_long_files(self):
        self.write_tree({"python/a.py": "x\n" * 901, "src/base/a.c": "int x;\n" * 1000, "docs/a.py": "x\n" * 901})
        expected = [("python/a.py:901: ", "901 lines"), ("src/base/a.c:1000: ", "1000 lines")]
        self.assert_reports(expected, "lengths.py", self.root)

    def test_summary(self):
        self.write_tree({"src/base/a.c": "".join(body(lines) for lines in range(11, 21))})
        self.assertIn("10 functions: median 15 lines, 90th percentile 19", self.assert_passes("lengths.py", self.root))

    def test_listed_function_passes(self):
        self.write_tree({"src/base/a.c": body(81)})
        self.write("tests/house/long_functions.txt", "# list\nsrc/base/a.c f # hot loop\n")
        self.assert_passes("lengths.py", self.root)

    def test_entry_without_a_reason(self):
        self.write_tree({"src/base/a.c": body(81)})
        self.write("tests/house/long_functions.txt", "\nsrc/base/a.c f #\n")
        expected = [("src/base/a.c:1: ", "f has 81"), ("tests/house/long_functions.txt:2: ", "reason")]
        self.assert_reports(expected, "lengths.py", self.root)

    def test_entries_no_longer_needed(self):
        self.write_tree({"src/base/a.c": body(80)})
        self.write("tests/house/long_functions.txt", "src/base/a.c f # hot loop\nsrc/base/b.c g # gone\n")
        expected = [(f"tests/house/long_functions.txt:{line}: ", "remove this entry") for line in (1, 2)]
        self.assert_reports(expected, "lengths.py", self.root)

    def test_braces_without_partner(self):
        self.write_tree({"src/base/a.c": "int f(void)\n{\n    if (x) {\n}\n", "src/base/b.c": "\n}\n"})
        expected = [("src/base/a.c:1: ", "no partner"), ("src/base/b.c:2: ", "no partner")]
        self.assert_reports(expected, "lengths.py", self.root)


class FunctionFinderTest(unittest.TestCase):
    def assert_functions(self, text, expected):
        """expected: (name, line, lines) of each function."""
        finder = FunctionFinder(text)
        self.assertEqual([tuple(function) for function in finder.functions], expected)
        self.assertEqual(finder.unbalanced, [])

    def test_plain(self):
        self.assert_functions("static int\nf(int a,\n  int b)\n{\n    return a;\n}\n", [("f", 2, 5)])

    def test_braces_in_literals_and_comments(self):
        self.assert_functions("int f(void)\n{\n    g(\"}\\\"}\", '}', '\\'');  // }\n    /* } */\n}\n", [("f", 1, 5)])

    def test_braces_in_macros(self):
        text = "#define OPEN /* { \\\n   more } { */ \\\n    do { {\n#define CLOSE } }\nint f(void)\n{\n}\n"
        self.assert_functions(text, [("f", 5, 3)])

    def test_alternatives_that_open_the_same_brace(self):
        text = (
            "#if A\nint f(int a) {\n#elif B\nint f(int b) {\n#else\nint f(void) {\n#endif\n    return 0;\n}\n"
            "int g(void) {}\n"
        )
        self.assert_functions(text, [("f", 2, 8), ("g", 10, 1)])

    def test_alternatives_inside_a_function(self):
        text = "int f(void)\n{\n#ifdef A\n    if (a) {\n#else\n    if (b) {\n#endif\n    }\n}\n"
        self.assert_functions(text, [("f", 1, 9)])

    def test_function_in_each_alternative(self):
        text = "#if A\nint f(void) {\n}\n#else\nint x = 1;\nint f(void) {\n\n}\n#endif\nint g(void) {\n}\n"
        self.assert_functions(text, [("f", 2, 2), ("f", 6, 3), ("g", 10, 2)])

    def test_dead_code(self):
        text = "#if 0\nit's } {{ not code\n#ifdef A\n{\n#endif\n#else\nint f(void) {\n#endif\n}\n"
        self.assert_functions(text, [("f", 7, 3)])

    def test_extern_c(self):
        text = '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void) {\n}\n#ifdef __cplusplus\n}\n#endif\n'
        self.assert_functions(text, [("f", 4, 2)])

    def test_what_is_not_a_function(self):
        text = (
            "struct s { int (*read)(void *); };\nenum e { A, B };\nint a[] = { 1, 2 };\n"
            "struct s t[] = { { f }, (struct s) { g } };\ntypedef struct { int x; } u;\n"
            "struct __attribute__((packed)) p { int x; };\nstatic const struct s *v = &(struct s) { h };\n"
        )
        self.assert_functions(text, [])

    def test_attributes_and_macros_around_the_name(self):
        text = (
            '__attribute__((target("avx2"), noinline)) static struct s *f(int a) {\n}\n'
            "ULP_PRINTF(1, 2) int g(const char *format, ...) {\n}\n"
            "LIST_OF(int)\nint h(void) {\n}\n"
            "TEST(scan, empty) {\n}\n"
            "int (*pick(int a))(int) {\n}\n"
        )
        self.assert_functions(text, [("f", 1, 2), ("g", 3, 2), ("h", 6, 2), ("TEST", 8, 2), ("pick", 10, 2)])

    def test_cuda(self):
        text = (
            "namespace {\ntemplate <class T>\n__global__ void __launch_bounds__(256) k(T *p, int n = 1'000) {\n"
            '    asm volatile(R"x({)x");\n}\n}  // namespace\n'
            "struct op { __device__ int run(int a) const {\n    return a; }\n};\n"
        )
        self.assert_functions(text, [("k", 3, 3), ("run", 7, 2)])

    def test_declared_name(self):
        cases = {
            " enum ulp_status ulp_f(int a) ULP_NONNULL(1)": "ulp_f",
            ' int ulp_g(void) __attribute__((format(printf, 1, 2)))': "ulp_g",
            " void (*ulp_h(void))(int)": "ulp_h",
            " extern const char ulp_version[ULP_MAX]": "ulp_version",
        }
        for declaration, name in cases.items():
            self.assertEqual(declared_name(declaration)[0], name)


class SourceTest(unittest.TestCase):
    def test_blanking_keeps_every_offset(self):
        text = "a /* b\n c */ \"d // \\\" e\" 'f' // g \\\n h\nR\"(i\n\")\" j\n"
        for blanked in (blank_comments(text), blank_comments_and_literals(text)):
            self.assertEqual(len(blanked), len(text))
            self.assertEqual(blanked.count("\n"), text.count("\n"))
        self.assertEqual(set("bcdefghi") & set(blank_comments_and_literals(text)), set())
        self.assertIn('"d // \\" e"', blank_comments(text))

    def test_include_inside_a_string_is_none(self):
        text = 'const char *s = R"(\n#include "a.h"\n)";\n#include /* why */ "b.h"\n# include <c.h> // d\n'
        self.assertEqual([(i.line, str(i)) for i in includes(text)], [(4, '"b.h"'), (5, "<c.h>")])


@unittest.skipUnless(all(map(shutil.which, ("cc", "ar", "nm", "readelf"))), "needs a compiler and binutils")
class ExportsTest(HouseTest):
    HEADER = (
        "#define ULP_API __attribute__((visibility(\"default\")))\n/* ULP_API int ulp_old(void); */\n"
        "ULP_API int ulp_f(int a);\nextern ULP_API const char ulp_version[];\n"
    )
    SOURCE = '#include "ulp.h"\nint ulp_f(int a) { return a; }\nconst char ulp_version[] = "1";\n'

    def build(self, source=SOURCE, header=HEADER, link=("-nostdlib",)):
        """Both libraries from one source; -nostdlib keeps compilers that link more than libc out of the picture."""
        self.write("include/ulp.h", header)
        self.write("ulp.c", source)
        commands = [
            ["cc", "-c", "-fPIC", "-Iinclude", "ulp.c", "-o", "ulp.o"],
            ["cc", "-shared", "ulp.o", "-o", "libulp.so", *link],
            ["ar", "rcs", "libulp.a", "ulp.o"],
        ]
        for command in commands:
            subprocess.run(command, cwd=self.root, check=True, capture_output=True)
        shared, static = self.root / "libulp.so", self.root / "libulp.a"
        return ("--shared", shared, "--static", static, "--header", self.root / "include")

    def test_good_libraries_pass(self):
        arguments = self.build()
        self.assertEqual(self.assert_passes("exports.py", *arguments, "--libc-only", self.root / "libulp.so"), "")

    def test_version_script_passes(self):
        self.write("map", "ULPSYNC_1 { global: ulp_*; local: *; };\n")
        self.assert_passes("exports.py", *self.build(link=("-nostdlib", "-Wl,--version-script=map")))

    def test_symbol_without_prefix(self):
        arguments = self.build(self.SOURCE + "void stray(void) {}\n")
        expected = [
            (f"{self.root}/libulp.a[ulp.o]: stray ", "does not start with ulp_"),
            (f"{self.root}/libulp.so: stray ", "does not start with ulp_"),
        ]
        self.assert_reports(expected, "exports.py", *arguments)

    def test_undeclared_symbol(self):
        arguments = self.build(self.SOURCE + "int ulp_old(void) { return 0; }\n")
        expected = [
            (f"{self.root}/libulp.a[ulp.o]: ulp_old ", "no public header"),
            (f"{self.root}/libulp.so: ulp_old ", "no public header"),
        ]
        self.assert_reports(expected, "exports.py", *arguments)

    def test_declared_but_missing(self):
        arguments = self.build(header=self.HEADER + "\nULP_API int\nulp_gone(void);\n")
        place = f"{self.root}/include/ulp.h:7: ulp_gone "
        self.assert_reports([(place, "libulp.a"), (place, "libulp.so")], "exports.py", *arguments)

    def test_header_folder_without_api(self):
        arguments = self.build(self.SOURCE.replace('#include "ulp.h"\n', ""), header="\n")
        result = self.run_check("exports.py", *arguments)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no header declares anything", result.stdout)

    def test_needs_more_than_libc(self):
        self.build(link=("-Wl,--no-as-needed", "-lm"))
        library = self.root / "libulp.so"
        self.assert_reports([(f"{library}: needs libm.so", "at run time")], "exports.py", "--libc-only", library)

    def test_needs_only_libc(self):
        self.build(link=("-Wl,--no-as-needed", "-nodefaultlibs", "-lc"))
        self.assert_passes("exports.py", "--libc-only", self.root / "libulp.so")

    def test_library_that_is_not_there(self):
        result = self.run_check("exports.py", "--libc-only", self.root / "none.so")
        self.assertEqual(result.returncode, 1, result.stdout)

    def test_nothing_to_check(self):
        self.assertEqual(self.run_check("exports.py").returncode, 2)
        self.assertEqual(self.run_check("exports.py", "--shared", "a.so").returncode, 2)


class PrivateWordsTest(HouseTest):
    # Put together from halves, so that the check does not find them in this file.
    PATHS = ["/wo" + "rk/a", "/fa" + "rm/a", "/ro" + "ot/a"]
    WORDS = ["before" + "-stop", "pypi" + ".org", "files.python" + "hosted.org", "deb.debian" + ".org"]

    def test_good_tree_passes(self):
        near_misses = "".join(f"src{path} ${{HOME}}{path} ~{path} ../a{path}\n" for path in self.PATHS)
        self.write("a.md", near_misses + "stop before, python.org, debian.org\n")
        self.assert_passes("private_words.py", self.root)

    def test_each_word(self):
        for word in [*self.PATHS, *self.WORDS, "-I" + self.PATHS[0], "https://" + self.WORDS[1] + "/simple"]:
            with self.subTest(word):
                self.write("docs/a.md", f"fine\nsee '{word}'\n")
                self.assert_reports([("docs/a.md:2: ", "` is a")], "private_words.py", self.root)

    def test_binary_files_are_left_alone(self):
        (self.root / "a.bin").write_bytes(b"\0" + self.PATHS[0].encode())
        self.assert_passes("private_words.py", self.root)

    def test_house_does_not_flag_itself(self):
        shutil.copytree(HOUSE, self.root / "house")
        self.assert_passes("private_words.py", self.root)

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_checkout(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True, capture_output=True)
        self.write(".gitignore", "*.log\n")
        self.write("ignored.log", self.PATHS[0])
        self.write("new.md", self.PATHS[0])
        self.assert_reports([("new.md:1: ", "a path of one machine")], "private_words.py", self.root)


if __name__ == "__main__":
    unittest.main()
