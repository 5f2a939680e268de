# SPDX-License-Identifier: Apache-2.0
"""The cheapest way to a version, over the map of a record: docs/format/chain.md, Following."""

import heapq
from typing import NamedTuple

from record import require


class Plan(NamedTuple):
    anchor: object  # None: from what is held
    ways: list
    bytes: int


def plan(record, goal, held=None, came_by_step=False, base_root=None):
    """From version `held`, or from an anchor. `came_by_step`: the version in front of it is there,
    too. `base_root`: of a model that is at hand, which makes an anchor with this root free."""
    # A place is a version, and whether one came from the version right in front of it.
    queue, count, done = [], 0, set()
    if held is not None:
        queue.append((0, 0, count, (held, came_by_step), None, ()))
    for anchor in record.anchors:
        count += 1
        at_hand = anchor.root == base_root
        if at_hand or not anchor.reference:
            cost = 0 if at_hand else anchor.bytes()
            queue.append((cost, 0, count, (anchor.version, False), anchor, ()))
    heapq.heapify(queue)
    while queue:
        cost, steps, _, place, anchor, taken = heapq.heappop(queue)
        if place in done:
            continue
        done.add(place)
        if place[0] == goal:
            return Plan(anchor, list(taken), cost)
        for way in record.ways:
            if way.start == place[0] and (place[1] or not way.history):
                count += 1
                end = (way.end, way.start + 1 == way.end)
                entry = (cost + way.bytes(), steps + 1, count, end, anchor, (*taken, way))
                heapq.heappush(queue, entry)
    return require(False, "ULP_E_UNREACHABLE", f"no way leads to version {goal}")
