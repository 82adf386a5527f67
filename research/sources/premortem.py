"""Premortem: what went wrong before in a domain, told before risky work (seed 002).

Five questions to experiences and values, one for each section. The sections share the budget evenly, and each
experience is told once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from research.context import Retrieved, one_line
from research.errors import ContextAssemblyError
from research.models import Item, Question
from research.sources.sections import FoundContext, Sections

if TYPE_CHECKING:
    from research.sources.assembler import ContextAssembler, Search

FAILURES, STRATEGY, SURPRISES, CAUSES, VALUES = (
    "experiences/full", "experiences/strategy", "experiences/surprise", "experiences/root_cause", "values",
)  # fmt: skip

HEADINGS = {
    FAILURES: "Common Failures",
    STRATEGY: "Strategy Performance",
    SURPRISES: "Unexpected Outcomes",
    CAUSES: "Root Causes to Watch",
    VALUES: "Relevant Principles",
}
_VALUES = 5  # that are looked at
_FAILED = 4.0  # factor on the odds of what failed, where a strategy's experiences are told
_LONGEST_NAME = 100


async def premortem(assembler: ContextAssembler, domain: str, strategy: str | None, limit: int) -> FoundContext:
    domain, strategy = _named("domain", domain), _named("strategy", strategy) if strategy else None
    started = time.perf_counter()
    searches = _searches(assembler, domain, strategy, limit)
    in_order = {name: searches[name] for name in HEADINGS if name in searches}
    retrieved, sections = _once(list(in_order), await assembler.gather(in_order))
    title = f"Premortem: {one_line(domain)}" + (f" with {one_line(strategy)}" if strategy else "")
    renderer = Sections(title, HEADINGS, _footer, lambda item: sections[str(item.ref)], CAUSES)
    found = assembler.sifted(Question(domain), retrieved, time.perf_counter() - started, everything=True)
    return FoundContext(found, renderer, dict.fromkeys(HEADINGS, 1), assembler.now())


def _once(names: Sequence[str], retrieved: Sequence[Retrieved]) -> tuple[list[Retrieved], dict[str, str]]:
    """Each thing once: the sections take turns, each its best that none has yet; and ref → its section."""
    section: dict[str, str] = {}
    kept: dict[str, list[Item]] = {name: [] for name in names}
    waiting = {name: list(found.items) for name, found in zip(names, retrieved, strict=True)}
    if STRATEGY in waiting:
        waiting[STRATEGY] = sorted(map(_failures_count_more, waiting[STRATEGY]), key=lambda item: -item.score)
    while any(waiting.values()):
        for name, items in waiting.items():
            while items and str(items[0].ref) in section:
                items.pop(0)
            if items:
                section[str(items[0].ref)] = name
                kept[name].append(items.pop(0))
    return [replace(found, items=kept[name]) for name, found in zip(names, retrieved, strict=True)], section


def _searches(assembler: ContextAssembler, domain: str, strategy: str | None, limit: int) -> dict[str, Search]:
    """As the seed asks."""
    searcher = assembler.searcher
    searches: dict[str, Search] = {
        FAILURES: lambda: searcher.search_experiences(
            f"failures and issues in {domain}", axis="full", domain=domain, outcome="falsified", limit=limit
        ),
        SURPRISES: lambda: searcher.search_experiences(
            f"unexpected outcomes in {domain}", axis="surprise", domain=domain, limit=limit
        ),
        CAUSES: lambda: searcher.search_experiences(
            f"why hypotheses fail in {domain}", axis="root_cause", domain=domain, limit=limit
        ),
        VALUES: lambda: searcher.search_values(
            f"principles for {domain}" + (f" using {strategy}" if strategy else ""), limit=_VALUES
        ),
    }
    if strategy:
        searches[STRATEGY] = lambda: searcher.search_experiences(
            f"outcomes using {strategy} strategy", axis="strategy", strategy=strategy, limit=limit
        )
    return searches


def _named(what: str, name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME:
        raise ContextAssemblyError(
            f"a {what} has a name of 1 to {_LONGEST_NAME} characters", hint="for example: ctx premortem debugging"
        )
    return name


def _failures_count_more(item: Item) -> Item:
    if item.metadata.get("outcome_status") == "confirmed":
        return item
    odds = _FAILED * item.score
    return replace(item, score=odds / (1.0 - item.score + odds))


def _footer(items: Sequence[Item]) -> str:
    return f"Based on {sum(item.ref.kind == 'experience' for item in items)} past experiences"
