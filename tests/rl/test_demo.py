#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in the demo, and that it is noticed: test_demo.py EXAMPLES_RL BUILD [unittest arguments]."""
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios

import rl_case
from rl_case import TINY, RlCase, figures, run, words_of


class Differences(RlCase):
    """Planted, so that it is seen that they are noticed."""

    def test_in_the_proof(self):
        build = self.build_with(rl_worker='case "$*" in *"--sync ulpsync"*) set -- "$@" --seed 7 ;; esac; exec "$real" "$@"')
        done = run(self.out, *TINY, build=build)
        self.assert_failed(done, "states differ that must not")
        self.assertIn("THEY PART at step 1: ", done.stdout)
        seen = figures(self.out)
        self.assertEqual((seen["identical"], seen["identical_workers"], seen["proof"]["identical"]), (False, True, False))
        self.assertEqual([bool(row["difference"]) for row in seen["proof"]["steps"]], [False, True])

    def test_in_the_memory_of_a_worker(self):
        """It stays with the first version, and says so itself."""
        build = self.build_with(rl_worker='case "$*" in *"--lag 1"*"--worker 0"*) set -- "$@" --steps 0 ;; esac; exec "$real" "$@"')
        done = run(self.out, *TINY, build=build)
        self.assert_failed(done, "states differ that must not")
        self.assertIn("NOT THE SAME", done.stdout)
        seen = figures(self.out)
        self.assertEqual((seen["identical"], seen["identical_workers"], seen["proof"]["identical"]), (False, False, True))
        self.assertEqual(seen["workers"][0]["root"], seen["first"]["root"])


class Failures(RlCase):
    def test_a_worker_fails(self):
        build = self.build_with(rl_worker='printf "worker of \\033[31mthis\\033[0m test\\n" >&2; exit 9')
        done = run(self.out, *TINY, build=build)
        self.assert_failed(done, "worker-0 ended with exit code 9", f"The end of {self.out}/worker-0.out", "worker of ?[31mthis")
        self.assertNotIn("\033", done.stderr)
        # and once more: what the first one left is no hindrance
        (self.out / "store").mkdir(exist_ok=True)
        (self.out / "store" / "left").write_text("x")
        self.assert_failed(run(self.out, *TINY, build=build), "worker-0 ended with exit code 9")
        self.assertFalse((self.out / "store" / "left").exists())

    def test_a_worker_fails_late(self):
        build = self.build_with(rl_worker='case "$*" in *"--lag 0"*"--worker 1"*) kill -SEGV $$ ;; esac\nexec "$real" "$@"')
        done = run(self.out, *TINY, build=build)
        self.assert_failed(done, "worker-1 was ended by SIGSEGV", "proof-full/worker-1.out", "(it said nothing)")
        self.assertFalse((self.out / "demo.json").exists())

    def test_a_worker_is_missing(self):
        self.assert_failed(run(self.out, *TINY, build=self.build_with(rl_worker=None)), "cannot start", "`make` builds it")

    def test_the_trainer_fails(self):
        build = self.build_with(rl_trainer='exec "$real" "$@" --corpus /no/such/text')
        self.assert_failed(run(self.out, *TINY, build=build), "trainer ended with exit code", "rl_trainer: ULP_E_", "/no/such/text")

    def test_the_store_cannot_be(self):
        self.assert_failed(run(self.out, *TINY, "--store", "/dev/null/store"), "cannot make directory '/dev/null/store'")

    def test_no_report(self):
        build = self.build_with(ulpsync='[ "$1" = report ] && { echo "no ink" >&2; exit 6; }; exec "$real" "$@"')
        self.assert_failed(run(self.out, *TINY, build=build), "everything held, but the report ended with exit code 6", "no ink")

    def test_the_log_is_not_whole(self):
        build = self.build_with(rl_trainer='"$real" "$@" --log /dev/full')
        self.assert_failed(run(self.out, *TINY, "--workers", 1, build=build), "is the disk full?")

    def test_the_disk_is_full(self):
        place = self.dir / "small"
        place.mkdir()
        script = 'mount -t tmpfs -o size=3m tmpfs "$0" && exec "$@"'
        small = ["unshare", "-rm", "sh", "-c", script, str(place)]
        try:
            can = subprocess.run([*small, "true"], capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            can = False
        if not can:
            self.skipTest("no file system can be mounted here")
        done = subprocess.run([*small, *words_of(place / "out", *TINY)], capture_output=True, text=True, check=False,
                              timeout=rl_case.SECONDS)
        self.assert_failed(done, "No space left on device")

    def test_nobody_reads(self):
        """As with `| head -1`."""
        process = subprocess.Popen(words_of(self.out, *TINY), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual((process.stderr.read(), process.wait(rl_case.SECONDS)), (b"", 128 + signal.SIGPIPE))
        process.stderr.close()
        self.assert_nobody_is_left()


class Directories(RlCase):
    def test_files_of_others_are_left_alone(self):
        self.out.mkdir()
        (self.out / "thesis").write_text("x")
        self.assert_failed(run(self.out, *TINY), "that no demo left there", "--out")
        self.assertEqual([path.name for path in self.out.iterdir()], ["thesis"])

    def test_a_file_in_the_way(self):
        self.out.write_text("x")
        self.assert_failed(run(self.out, *TINY), f"cannot use {self.out}", "--out")

    def test_a_run_that_exists(self):
        """In a store that is kept each demo has a name of its own, unless one is given."""
        done = run(self.out, "--store", self.dir / "store", *TINY)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = figures(self.out)["run"]
        self.assertRegex(name, r"^rl-\d{8}-\d{6}$")
        again = run(self.out, "--store", self.dir / "store", "--run", name, *TINY)
        self.assert_failed(again, f"the store has a run {name} already; choose another name")


class Stopped(RlCase):
    def start(self):
        process = subprocess.Popen(words_of(self.out, *TINY, "--steps", 100000), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while process.poll() is None and not process.stdout.readline().startswith("step"):
            pass
        self.assertEqual(len(rl_case.alive(self.dir)), 4)
        return process

    def test_by_a_signal(self):
        process = self.start()
        self.assertIn("another demo is using", run(self.out, *TINY).stderr)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=rl_case.SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("STOPPED: no process of the demo runs any more", said)
        self.assertNotIn("Traceback", said)
        self.assertEqual(rl_case.alive(self.dir), [])

    def test_by_kill(self):
        self.start().kill()
        self.assert_nobody_is_left()


class OnATerminal(RlCase):
    """Each waits for what it wants to see before it goes on, however long that takes."""
    CTRL_C = b"\x03"

    def watch(self, *words, build=None, answers=(), **environment):
        """Everything that the terminal got, and the exit code; `answers`: what is waited for, and what is typed or done then."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen(words_of(self.out, *TINY, *words, build=build), stdin=theirs, stdout=theirs, stderr=theirs,
                                   start_new_session=True, env={**os.environ, "TERM": "xterm", **environment},
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        shown, answers = b"", list(answers)
        with contextlib.suppress(OSError):  # the terminal is closed
            while data := os.read(ours, 65536):
                shown += data
                if answers and answers[0][0] in shown:
                    answer = answers.pop(0)[1]
                    answer() if callable(answer) else os.write(ours, answer)
        os.close(ours)
        code = process.wait(rl_case.SECONDS)
        self.assert_nobody_is_left()
        return shown.decode(errors="replace"), code

    def watch_for_ever(self, last, *answers, **more):
        """A run that ends by Ctrl-C only, when `last` was seen."""
        shown, code = self.watch("--steps", 100000, answers=[*answers, (last, self.CTRL_C)], **more)
        self.assertEqual(code, 128 + signal.SIGINT, shown)
        self.assertIn("STOPPED: no process of the demo runs any more", shown)
        self.assertNotIn("FAILED", shown)
        return shown

    def test_the_view_is_shown(self):
        seen = self.dir / "seen"
        build = self.build_with(rl_worker=f'until [ -e "{seen}" ]; do sleep 0.05; done; exec "$real" "$@"')
        shown, code = self.watch(build=build, answers=[(b"q quits", seen.touch)])
        self.assertEqual(code, 0, shown)
        view, _, after = shown.partition("\033[?1049h")[2].partition("\033[?1049l")
        self.assertIn("q quits", view)
        self.assertNotIn("worker 1 is killed", view)
        self.assertIn("worker 1 is killed after step", after)
        self.assertIn("IDENTICAL", after)
        self.assertNotIn("workers hold", shown)

    def test_stopped_by_the_keyboard(self):
        """Ctrl-C goes to all of them at once."""
        self.assertIn("\033[?1049l", self.watch_for_ever(b"q quits"), "the terminal was not given back")

    def test_the_view_can_be_closed(self):
        shown = self.watch_for_ever(b"workers hold", (b"q quits", b"q"))
        self.assertIn("the view was closed; the run goes on", shown)
        self.assertIn("step   1  reward", shown)

    def test_it_is_told_what_to_show(self):
        build = self.build_with(ulpsync='[ "$1" = top ] || exec "$real" "$@"; [ -t 0 ] && [ -t 1 ] && echo "VIEW $*"; exec sleep 999')
        self.assertIn(f"VIEW top --store {self.out}/store --run rl ", self.watch_for_ever(b"VIEW", build=build))

    def test_a_view_that_fails(self):
        build = self.build_with(ulpsync='[ "$1" = top ] && exit 5; exec "$real" "$@"')
        shown = self.watch_for_ever(b"workers hold", build=build)
        self.assertIn("`ulpsync top` ended with exit code 5; the run goes on", shown)

    def test_lines_if_wished(self):
        self.assertNotIn("\033", self.watch_for_ever(b"workers hold", TERM="dumb"))


class LeftOut(RlCase):
    def test_without_the_programs(self):
        """As in a build without OpenBLAS; the tour is shown in its place, and here it does not come far."""
        done = run(self.out, build=self.build_with(rl_trainer=None, rl_worker=None, ulpsync="exit 3"))
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("1. A small transformer", done.stdout)
        self.assertIn("LEFT OUT: learning", done.stdout)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    rl_case.main()
