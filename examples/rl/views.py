# SPDX-License-Identifier: Apache-2.0
"""What is seen while a party is under way: nothing, a line for each step, or `ulpsync top` on a terminal."""
import os
import subprocess
import sys

from party import how_it_ended, start_process

LOOK_MS = 500  # a step of the demo takes about that long
PATIENCE_SECONDS = 5  # for a program to give the terminal back


class Quiet:
    """Only what is told."""

    def note(self, text):
        print(f"  {text}")

    def look(self, party):
        pass

    def end(self):
        pass


class Lines(Quiet):
    """A line for each thing that the trainer says, with what the workers hold at that moment."""

    def __init__(self, seen=0):
        self.seen = seen

    def look(self, party):
        events = party.log["trainer"].read()
        for event in events[self.seen:]:
            if event["event"] == "pretrain":
                print(f"pre-training: step {event['step']}, loss {event['loss']:.3f}, {event['seconds']:.1f} s")
            elif event["event"] == "step" and event["step"]:
                print(step_line(event, party))
        self.seen = len(events)


def step_line(event, party):
    held = [party.log[name].of("version")[-1:] for name in party.names[1:]]
    versions = " ".join(f"{h[0]['version'] if h else '-':>2}" for h in held)
    delays = " ".join(f"{h[0].get('publish_to_active_ms', '-') if h else '-':>2}" for h in held)
    return (f"step {event['step']:3}  reward {event['reward']:.3f}  right {100 * event['exact']:4.1f} %  "
            f"density {100 * event['density']:5.2f} %  {event['bytes']:7} bytes, 1/{event['times_smaller']:<4.0f}  "
            f"workers hold {versions}, active after {delays} ms")


class Top(Lines):
    """`ulpsync top` in the foreground from the first version on; lines before that, and if it does not stay."""

    def __init__(self, ulpsync, seen=0):
        super().__init__(seen)
        self.ulpsync, self.process, self.was_started, self.notes = ulpsync, None, False, []

    def note(self, text):
        if self.process:
            self.notes.append(text)  # for later: the screen is not ours
        else:
            super().note(text)

    def look(self, party):
        if not self.was_started and party.log["trainer"].of("step"):
            super().look(party)
            self.was_started = True
            self.process = start_process([self.ulpsync, "top", "--store", party.store, "--run", party.run, "--interval", LOOK_MS],
                                         stdin=sys.stdin)
        if self.process and self.process.poll() is not None:
            code = self.process.returncode
            self.take_back()
            self.note("the view was closed; the run goes on" if not code else
                      f"`ulpsync top` {how_it_ended(code)}; the run goes on with a line for each step")
        if not self.process:
            super().look(party)

    def end(self):
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.take_back()

    def take_back(self):
        self.process = None
        for text in self.notes:
            print(f"  {text}")
        self.notes.clear()


def view_for(options):
    """The live view belongs to a terminal that can move its cursor."""
    is_screen = sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return Top(options.build / "ulpsync") if is_screen and not options.plain else Lines()
