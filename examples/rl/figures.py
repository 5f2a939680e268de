# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, from the logs of its processes: what demo.json holds (README.md lists it)."""
import statistics

from party import Failure

STEP_NAMES = ("step", "version", "root", "reward", "exact", "density", "changed", "bytes", "full_bytes", "gaps_bytes",
              "gaps_zstd_bytes", "times_smaller", "age", "samples", "stale", "loss", "ratio", "clipped", "wait_ms",
              "train_ms", "publish_ms", "encode_ms", "verify_ms", "digest_ms", "store_ms", "commit_ms", "apply_ms")
# how a step can be sent: key in demo.json, field of the trainer's log
WAYS = {"full": "full_bytes", "gaps": "gaps_bytes", "gaps_zstd": "gaps_zstd_bytes", "ulpsync": "bytes"}


def median(values):
    return statistics.median(values) if values else None


def mean(steps, name):
    values = [step[name] for step in steps if name in step]
    return statistics.fmean(values) if values else None


def worker_figures(party, number):
    name = f"worker-{number}"
    versions = party.log[name].of("version")
    timed = [e for e in versions if "publish_to_active_ms" in e]
    active = [{"version": e["version"], "ms": e["publish_to_active_ms"]} for e in timed]
    patched = [e["publish_to_active_ms"] for e in timed if not e["anchors"]]  # else it was not there, and began anew
    return {
        "worker": number,
        "root": party.final(name)["root"],
        "lives": party.lives[name],
        "versions_held": len(versions),
        "bytes": sum(e["bytes"] for e in versions),
        "samples": sum(e["samples"] for e in party.log[name].of("samples")),
        "publish_to_active_ms": active,
        "publish_to_active_ms_median": median(patched),
        "apply_ms_median": median([e["apply_ms"] for e in versions]),
    }


def bytes_of_ways(steps):
    """A way that the build cannot measure is null."""
    ways = {}
    for way, name in WAYS.items():
        known = all(name in step for step in steps)
        total = sum(step[name] for step in steps) if known else None
        ways[way] = {"total": total, "step": total / len(steps)} if known else None
    return ways


def total_figures(steps):
    tenth = max(1, len(steps) // 10)
    figures = {f"mean_{name}": mean(steps, name) for name in ("density", "publish_ms", "age")}
    for name in ("reward", "exact"):
        figures[f"{name}_first"], figures[f"{name}_last"] = mean(steps[:tenth], name), mean(steps[-tenth:], name)
    figures["times_smaller"] = sum(step["full_bytes"] for step in steps) / sum(step["bytes"] for step in steps)
    return figures


def all_steps(party, count):
    events = party.log["trainer"].of("step")
    if [event["step"] for event in events] != list(range(count + 1)):
        raise Failure(f"{party.log['trainer'].path} does not have every step; is the disk full?")
    return [{name: event[name] for name in STEP_NAMES if name in event} for event in events], events[0]["elements"]


def figures_of(party, step_count):
    steps, elements = all_steps(party, step_count)
    final = party.final("trainer")
    workers = [worker_figures(party, number) for number in range(party.workers)]
    return {
        "elements": elements,
        "root": final["root"],
        "identical_workers": all(worker["root"] == final["root"] for worker in workers),
        "killed": party.killed,
        "totals": total_figures(steps[1:]),
        "bytes": bytes_of_ways(steps[1:]),
        "workers": workers,
        "first": steps[0],
        "steps": steps[1:],
        "pretraining": [{name: e[name] for name in ("step", "loss", "seconds")} for e in party.log["trainer"].of("pretrain")],
    }
