# SPDX-License-Identifier: Apache-2.0
"""The figures of a run as a person reads them."""

WAYS = {"full": "all weights", "gaps": "gaps + values (PULSE-style)", "gaps_zstd": "gaps + values, zstd -1", "ulpsync": "ulpsync"}
DASH = "-"


def print_bytes(figures):
    ways, steps = figures["bytes"], len(figures["steps"])
    print(f"\n  {'bytes to send':30}{'a step, mean':>14}{f'{steps} steps':>14}{'smaller':>10}")
    for way, name in WAYS.items():
        if ways[way]:
            smaller = f"1/{ways['full']['total'] / ways[way]['total']:.0f}" if ways[way]["total"] else DASH
            print(f"  {name:30}{ways[way]['step']:14.0f}{ways[way]['total']:14}{smaller:>10}")
        else:
            print(f"  {name:30}{DASH:>14}{DASH:>14}{DASH:>10}  (the build has no zstd; libzstd-dev brings it)")


def milliseconds(value, digits):
    return DASH if value is None else f"{value:.{digits}f} ms"


def print_learning(figures):
    t = figures["totals"]
    print(f"\n  reward {t['reward_first']:.3f} -> {t['reward_last']:.3f}, right answers {100 * t['exact_first']:.0f} % -> "
          f"{100 * t['exact_last']:.0f} %, density {100 * t['mean_density']:.2f} %, "
          f"publishing {milliseconds(t['mean_publish_ms'], 0)} a step")
    for worker in figures["workers"]:
        lives = f"{worker['lives']} {'life' if worker['lives'] == 1 else 'lives'}"
        print(f"  worker {worker['worker']}: {worker['samples']} samples, {worker['versions_held']} versions held in {lives}, "
              f"publish to active {milliseconds(worker['publish_to_active_ms_median'], 0)} (median), "
              f"applying {milliseconds(worker['apply_ms_median'], 2)}")


def print_roots(figures):
    """Every worker's memory holds what the trainer's does, or it is said."""
    print(f"\n  trainer   {figures['root']}")
    for worker in figures["workers"]:
        same = worker["root"] == figures["root"]
        print(f"  worker {worker['worker']}  {worker['root']}  {'the same' if same else 'NOT THE SAME'}")
