"""Premortem: what went wrong before in a domain, told before risky work (seed 002).

Five questions to experiences and values, one for each section. The sections share the budget evenly. An experience that
one section shows stands behind others in the next, so that few sections tell the same twice; where there are few
experiences, they do, because each section asks something else of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from research.errors import ContextAssemblyError
from research.sources.disarm import in_line
from research.sources.formats import candidate_of, experience
from research.sources.records import Candidate, ExperienceResult, FormattedContext, Result
from research.sources.sections import Groups, Plan, Section

if TYPE_CHECKING:
    from research.sources.assembler import ContextAssembler, Search

FAILURES, STRATEGY, SURPRISES, CAUSES, VALUES = (
    "experiences/full", "experiences/strategy", "experiences/surprise", "experiences/root_cause", "values",
)  # fmt: skip

SECTIONS = (
    Section(FAILURES, "Common Failures", 1, "experiences"),
    Section(STRATEGY, "Strategy Performance", 1, "experiences"),
    Section(SURPRISES, "Unexpected Outcomes", 1, "experiences"),
    Section(CAUSES, "Root Causes to Watch", 1, "experiences"),
    Section(VALUES, "Relevant Principles", 1, "values"),
)
_VALUES = 5  # that are looked at
_FAILED = 4.0  # factor on the odds of what failed, where a strategy's experiences are told
_LONGEST_NAME = 100


async def premortem(
    assembler: ContextAssembler, domain: str, strategy: str | None, limit: int, max_tokens: int
) -> FormattedContext:
    domain, strategy = _named("domain", domain), _named("strategy", strategy) if strategy else None
    gathered = await assembler.gather(_searches(assembler, domain, strategy, limit))
    title = f"Premortem: {in_line(domain)}" + (f" with {in_line(strategy)}" if strategy else "")
    sections = [section for section in SECTIONS if section.name in gathered.found]
    plan = Plan(title, sections, _footer, unique=False, again=_new_ones_first)
    candidates = {
        name: [assembler.candidate(name, each, _written(name, each)) for each in found]
        for name, found in gathered.found.items()
    }
    if strategy:
        candidates[STRATEGY] = [_failures_count_more(each) for each in candidates[STRATEGY]]
    return assembler.assemble(gathered, candidates, plan, max_tokens)


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


def _written(section: str, found: Result) -> Candidate:
    """Root causes are what their section is about, and are told only there."""
    if isinstance(found, ExperienceResult):
        return experience(found, with_cause=section == CAUSES)
    return candidate_of(found)


def _failures_count_more(candidate: Candidate) -> Candidate:
    item = candidate.item
    if item.metadata.get("outcome_status") == "confirmed":
        return candidate
    odds = _FAILED * item.relevance
    return replace(candidate, item=replace(item, relevance=odds / (1.0 - item.relevance + odds)))


def _new_ones_first(groups: Groups, shown: Groups) -> Groups:
    """Each section's candidates, those behind that a section above is going to show."""
    told: set[str] = set()
    ordered: dict[str, Sequence[Candidate]] = {}
    for name, group in groups.items():
        ordered[name] = sorted(group, key=lambda each: bool(each.experience) and each.experience in told)
        count = len(shown.get(name, ()))
        told |= {each.experience for each in ordered[name][:count] if each.experience}
    return ordered


def _footer(shown: Mapping[str, Sequence[Candidate]]) -> str:
    told = {each.item.metadata["id"] for items in shown.values() for each in items if each.item.source == "experience"}
    return f"Based on {len(told)} past experiences"
