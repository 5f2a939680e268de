# SPDX-License-Identifier: Apache-2.0
"""A trainer and its workers as processes: started, watched, one killed on purpose, all ended with whoever started them."""
import ctypes
import json
import signal
import subprocess
import time

LOOK_SECONDS = 0.05
SHOWN_LINES = 12  # of what a process said before it failed
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """What went wrong and what to do, in words for a person."""


def die_with_parent():
    """In a child, before its program: whatever ends this process ends the child."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_process(words, stdin=subprocess.DEVNULL, **more):
    try:
        return subprocess.Popen(list(map(str, words)), stdin=stdin, preexec_fn=die_with_parent, **more)
    except OSError as error:
        raise Failure(f"cannot start {words[0]}: {error.strerror}; is the build whole? `make` builds it") from error


def how_it_ended(code):
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


class Log:
    """The events that a process writes as JSON lines, read as they come."""

    def __init__(self, path):
        self.path, self.at, self.events = path, 0, []

    def read(self):
        """All events so far; a line that has no end yet is left for later."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self.at)
                whole = file.read().rpartition(b"\n")
            self.at += len(whole[0] + whole[1])
            for line in whole[0].splitlines():
                try:
                    self.events.append(json.loads(line))
                except ValueError:  # whoever was killed did not finish it
                    continue
        return self.events

    def of(self, kind):
        return [event for event in self.read() if event["event"] == kind]


class Party:
    """A trainer and its workers, around one store."""

    def __init__(self, options, run, logs, common, trainer):
        self.build, self.store, self.workers, self.away_s = options.build, options.store, options.workers, options.away
        self.run, self.logs, self.trainer_words = run, logs, trainer
        self.common = ["--store", self.store, "--run", run, *common]
        self.names = ["trainer", *(f"worker-{number}" for number in range(self.workers))]
        self.log = {name: Log(logs / f"{name}.jsonl") for name in self.names}
        self.lives = dict.fromkeys(self.names, 0)
        self.processes, self.killed, self.back_at = {}, None, None

    def start(self, name, program, words):
        self.lives[name] += 1
        with open(self.logs / f"{name}.out", "ab") as said:
            self.processes[name] = start_process([self.build / program, *self.common, "--log", self.log[name].path, *words],
                                                 stdout=said, stderr=said)

    def start_worker(self, number, steps):
        self.start(f"worker-{number}", "rl_worker", ["--worker", number, "--workers", self.workers, "--steps", steps])

    def fail_if_one_failed(self):
        for name, process in self.processes.items():
            if process.poll():
                said = self.logs / f"{name}.out"
                raise Failure(f"{name} {how_it_ended(process.returncode)}. The end of {said}:\n{last_lines(said)}")

    def newest_step(self):
        return max((event["step"] for event in self.log["trainer"].of("step")), default=-1)

    # ---- the one that is killed ----

    def is_time_to_kill(self, kill_at):
        """In the middle, when it has weights; at the end, if the middle was missed."""
        if kill_at is None or self.killed:
            return False
        is_late = self.processes["trainer"].poll() == 0
        return is_late or (self.newest_step() >= kill_at and self.log[self.names[-1]].of("version"))

    def kill_last_worker(self, view):
        """Without warning, wherever it is; it comes back a little later and remembers nothing."""
        process = self.processes[self.names[-1]]
        process.kill()
        process.wait()
        self.killed = {"worker": self.workers - 1, "after_step": self.newest_step()}
        self.back_at = time.monotonic() + self.away_s
        del self.processes[self.names[-1]]
        view.note(f"-- worker {self.workers - 1} is killed after step {self.newest_step()}; it starts again in a moment")

    def bring_back(self, steps):
        self.back_at = None
        self.start_worker(self.workers - 1, steps)

    # ---- from the start to the end ----

    def start_all(self, steps, kill_at):
        """Whoever is to be killed would stay on after the last step: a slow machine kills it late, not never."""
        self.start("trainer", "rl_trainer", ["--workers", self.workers, "--steps", steps, *self.trainer_words])
        for number in range(self.workers):
            is_victim = kill_at is not None and number == self.workers - 1
            self.start_worker(number, steps + 1 if is_victim else steps)

    def is_under_way(self):
        return self.back_at or any(process.poll() is None for process in self.processes.values())

    def play(self, steps, view, kill_at=None):
        """Until all have ended well; with anything else none of them stays."""
        try:
            self.start_all(steps, kill_at)
            while self.is_under_way():
                self.fail_if_one_failed()
                view.look(self)
                if self.is_time_to_kill(kill_at):
                    self.kill_last_worker(view)
                if self.back_at and time.monotonic() > self.back_at:
                    self.bring_back(steps)
                time.sleep(LOOK_SECONDS)
            self.fail_if_one_failed()
            view.look(self)
        finally:
            view.end()
            self.end()

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()

    def final(self, name):
        """The event with which a process ended well."""
        finals = self.log[name].of("final")
        if not finals:
            raise Failure(f"{self.log[name].path} has no end, though {name} ended well; is the disk full?")
        return finals[-1]


def last_lines(path):
    """What a process said, with nothing in it that a terminal would obey."""
    text = path.read_bytes()[-8192:].decode("utf-8", "replace")
    lines = ["".join(c if c.isprintable() else "?" for c in line) for line in text.splitlines()[-SHOWN_LINES:]]
    return "\n".join(f"    {line}" for line in lines) if lines else "    (it said nothing)"

