"""How a token budget is shared by sections: by weight, what one does not need flows on to the others, whole items only.

    1. Each section with anything to show gets its share by weight.
    2. What is above a section's need flows on to those that need more, by their weights, until nothing is left to flow.
    3. Each section takes its items in order, as many as fit into what it was allotted.
    4. What is left over, less than an item each, goes item by item to whoever is furthest below what it was allotted.

So each section is within one item of its allotment, and no section below it has an item that would still fit.
Plain numbers: nothing here knows what an item is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WEIGHTS: Mapping[str, int] = {
    "experiences": 3,
    "code": 2,
    "commits": 2,
    "values": 1,
    "memories": 1,
    "documents": 3,
}
"""How rich a source's items are. Documents, which seed 002 does not have, are as rich as experiences."""

MAX_ITEM_FRACTION = 0.25
"""No item is more than this part of what its source was allotted."""


def shares(weights: Mapping[str, float], total: float) -> dict[str, float]:
    """The total by weight."""
    sum_of_weights = sum(weights.values())
    return {name: weight / sum_of_weights * total for name, weight in weights.items()} if sum_of_weights else {}


def allotted(weights: Mapping[str, float], needs: Mapping[str, float], total: float) -> dict[str, float]:
    """What each may use: its share, and of what others leave over its part by weight. Where all need less than there
    is, each gets what it needs."""
    given: dict[str, float] = {}
    open_to_more, left = {name: weight for name, weight in weights.items() if weight > 0}, total
    while open_to_more:
        parts = shares(open_to_more, left)
        content = [name for name in open_to_more if needs.get(name, 0.0) <= parts[name]]
        if not content:
            return {**dict.fromkeys(weights, 0.0), **given, **parts}
        for name in content:
            given[name] = needs.get(name, 0.0)
            left -= given[name]
            del open_to_more[name]
    return {**dict.fromkeys(weights, 0.0), **given}


def cap(budget: float) -> int:
    """The most tokens of one item of a source with this budget."""
    return int(budget * MAX_ITEM_FRACTION)


def chosen(budgets: Mapping[str, float], costs: Mapping[str, Sequence[int]], total: float) -> dict[str, int]:
    """How many items of each section are taken, from the first on. Never more than the total altogether."""
    taken = {name: _fitting(costs.get(name, ()), budget) for name, budget in budgets.items()}
    used = {name: sum(costs.get(name, ())[:count]) for name, count in taken.items()}
    left = total - sum(used.values())
    while True:
        further = [
            (budgets[name] - used[name] - costs[name][taken[name]], name)
            for name in budgets
            if taken[name] < len(costs.get(name, ())) and costs[name][taken[name]] <= left
        ]
        # Nobody is more than one item above what it was allotted.
        further = [
            (gap, name) for gap, name in further if -gap <= max(costs[name][: taken[name] + 1]) or len(budgets) == 1
        ]
        if not further:
            return taken
        _, name = max(further, key=lambda each: each[0])
        cost = costs[name][taken[name]]
        taken[name] += 1
        used[name] += cost
        left -= cost


def _fitting(costs: Sequence[int], budget: float) -> int:
    used = 0
    for count, cost in enumerate(costs):
        used += cost
        if used > budget:
            return count
    return len(costs)
