#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two trainers' logs step by step: compare.py ONE.jsonl OTHER.jsonl

The same run, with all weights sent after each step and with patches, must have the same roots and the same rewards, bit
for bit. Exit code 0 if it has.
"""
import json
import sys


def read_events(path):
    with open(path, encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def steps_of(events):
    return {event["step"]: event for event in events if event["event"] == "step"}


def difference(one, other):
    """None where both say the same, or what differs. Rewards are written with all their digits."""
    if one is None or other is None:
        return "only one of them has this step"
    differing = [name for name in ("root", "reward", "loss") if one.get(name) != other.get(name)]
    return f"{' and '.join(differing)} differ" if differing else None


def compare(one_events, other_events):
    """For each step what both logs have, and what differs."""
    one, other = steps_of(one_events), steps_of(other_events)
    rows = []
    for step in sorted(one.keys() | other.keys()):
        pair = one.get(step), other.get(step)
        rows.append({"step": step, "roots": [event and event["root"] for event in pair],
                     "rewards": [event and event.get("reward") for event in pair], "difference": difference(*pair)})
    return rows


def agree(rows):
    """Nothing differs, and there was something to compare: a step beside what both began with."""
    return len(rows) > 1 and not any(row["difference"] for row in rows)


def print_row(row):
    def cell(root, reward):
        return f"{root[:16] if root else '-':16}  {'' if reward is None else f'{reward:.6f}':8}"

    cells = map(cell, row["roots"], row["rewards"])
    print(f"  {row['step']:4}  {'  '.join(cells)}  {row['difference'] or '='}")


def print_rows(rows):
    print(f"  step  {'root, all weights':16} reward    {'root, patches':16}  reward")
    for row in rows:
        print_row(row)
    parted = [row for row in rows if row["difference"]]
    if parted:
        print(f"  THEY PART at step {parted[0]['step']}: {parted[0]['difference']}")
    elif not agree(rows):
        print("  NOTHING TO COMPARE: no step was made")
    else:
        print(f"  IDENTICAL: {len(rows)} states and {len(rows) - 1} rewards, bit for bit")


def main(one_path, other_path):
    rows = compare(read_events(one_path), read_events(other_path))
    print_rows(rows)
    return 0 if agree(rows) else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
