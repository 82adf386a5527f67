"""Context in sections (seed 002): which items a section holds, in which order, and how they are written; premortems.

What else speaks for an item (how sure an experience is, how important a memory, how recent a commit) is a factor on the
odds of its score, so that a score stays one between 0 and 1, and what fits clearly better stays ahead.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from research.context import Plan, code_block, code_span, one_line, section, standing
from research.errors import ContextAssemblyError
from research.models import Item, Question, Retrieved, page_link, section_of
from research.sources.records import SOURCES, ContextItem, FormattedContext

if TYPE_CHECKING:
    from research.context import Found, TokenCounter
    from research.sources.assembler import ContextAssembler, Search

TIERS: Mapping[str, float] = {"gold": 1.3, "silver": 1.15, "bronze": 1.0, "abandoned": 0.8}
_MOST_IMPORTANT = 1.3  # for an importance of 1; the inverse for 0
_NOW = 1.15  # for what happened today
_HALF_LIFE = 30 * 24 * 3600.0  # seconds


def relevance(item: Item, now: datetime) -> float:
    """The score with what else speaks for the item."""
    factor = 1.0
    match item.ref.kind:
        case "memory":
            importance = float(item.metadata.get("importance", 0.5))
            factor = math.pow(_MOST_IMPORTANT, 2.0 * min(1.0, max(0.0, importance)) - 1.0)
        case "experience":
            tier = str(item.metadata.get("confidence_tier", ""))
            factor = TIERS.get(tier, 1.0) * _recency(item.created_at, now)
        case "commit":
            factor = _recency(item.created_at, now)
    score = min(1.0, max(0.0, item.score))
    return score * factor / (1.0 - score + score * factor) if score < 1.0 else 1.0


def _recency(told: str, now: datetime) -> float:
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return 1.0
    age = (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    return 1.0 + (_NOW - 1.0) * math.exp2(-max(0.0, age) / _HALF_LIFE)


WEIGHTS: Mapping[str, int] = {
    "memories": 1,
    "code": 2,
    "experiences": 3,
    "values": 1,
    "commits": 2,
    "documents": 3,
}
"""How rich a source's items are. Documents, which seed 002 does not have, are as rich as experiences."""

TYPES: Mapping[str, str] = {"page": "documents"} | {kind: name for name, kind in SOURCES.items()}
"""Kind of a ref → type of context."""

_INDENT = "  "  # of the lines of a list's entry
_FILES = 2  # of a commit that are named
_FIELD = re.compile("^(Goal|Hypothesis|Action|Prediction|Outcome|Surprise|Lesson|Root cause): ", re.MULTILINE)
_FACTS: Mapping[str, tuple[str, ...]] = {
    "memory": ("category", "importance"),
    "code": ("file_path", "start_line", "end_line", "language", "qualified_name"),
    "experience": ("domain", "strategy", "outcome_status", "confidence_tier", "iteration_count"),
    "value": ("axis", "cluster_id", "cluster_size", "similarity_to_centroid"),
    "commit": ("sha", "author", "timestamp", "files_changed", "insertions", "deletions"),
    "page": ("filename", "page_label"),
}
"""What is told of an item beside its text, by the seed's names."""


def type_of(item: Item) -> str:
    """The type of context that an item is of."""
    return TYPES[item.ref.kind]


@dataclass(frozen=True, slots=True)
class Sections:
    """The renderer of a context in sections. `headings` are in their order; `with_cause` is the one section in which
    experiences tell their root cause, which the seed's format leaves out."""

    title: str
    headings: Mapping[str, str]
    footer: Callable[[Sequence[Item]], str]
    section_of: Callable[[Item], str] = type_of
    with_cause: str = ""

    def joint(self, before: Item | None, item: Item) -> str:
        section = self.section_of(item)
        heading = f"## {self.headings[section]}\n"
        if before is None:
            return f"# {self.title}\n\n{heading}"
        return "\n\n" if self.section_of(before) == section else f"\n\n{heading}"

    def entry(self, item: Item, number: int) -> str:
        shown = _ENTRIES[item.ref.kind](item)
        if item.ref.kind == "experience":
            shown += _fields(item.text, with_cause=self.section_of(item) == self.with_cause)
        return f"{shown}\n\n*({_rest(item)})*" if item.cut else shown

    def end(self, items: Sequence[Item]) -> str:
        return f"\n\n---\n*{self.footer(items)}*"


@dataclass(frozen=True, slots=True)
class FoundContext:
    """What several sources have found, before any budget: `within` gives a context of it as often as one is needed."""

    found: Found
    sections: Sections
    weights: Mapping[str, float]
    now: datetime

    def within(self, max_tokens: int, counter: TokenCounter) -> FormattedContext:
        """One context within the budget, its items the most relevant first."""
        sections, now = self.sections, self.now
        plan = Plan({name: self.weights[name] for name in sections.headings}, sections.section_of)
        found = replace(self.found, items=sorted(self.found.items, key=lambda item: -relevance(item, now)))
        fitted = found.within(max_tokens, sections, counter, plan=plan).fitted
        shown = {str(item.ref) for item in fitted.items}
        entries = sorted(fitted.items, key=lambda item: -relevance(item, now))
        return FormattedContext(
            fitted.text,
            [_context_item(item, sections, relevance(item, now)) for item in entries],
            fitted.tokens,
            _counts(fitted.items),
            max_tokens=max_tokens,
            left_out=_counts([item for item in found.items if str(item.ref) not in shown]),
            duplicates=found.duplicates,
            coverage=found.coverage,
            timings=found.timings,
        )


def told_of(items: Sequence[Item]) -> str:
    """The line below a context."""
    return f"{len(items)} items from {len(_counts(items))} sources"


def _counts(items: Sequence[Item]) -> dict[str, int]:
    of_each = [type_of(item) for item in items]
    return {name: of_each.count(name) for name in SOURCES if name in of_each}


def _context_item(item: Item, sections: Sections, relevance: float) -> ContextItem:
    facts = {name: item.metadata[name] for name in _FACTS[item.ref.kind] if name in item.metadata}
    match item.ref.kind:
        case "memory":
            facts = {"id": item.ref.key, **facts, "created_at": item.created_at}
        case "experience" | "value":
            facts = {"id": item.ref.key, **facts}
        case "page":
            page, path = int(item.ref.part), str(item.metadata.get("source_path", ""))
            place = {"page": page, "section_path": section_of(item)[0], "link": page_link(path, page)}
            facts = {"doc_id": item.ref.key, **facts, **place}
    source = "document" if item.ref.kind == "page" else item.ref.kind
    content = sections.entry(item, 1)
    return ContextItem(source, content, relevance, facts, item.score, str(item.ref), item.cut, list(item.signals))


def _memory(item: Item) -> str:
    facts = item.metadata
    category = one_line(str(facts.get("category") or facts.get("type") or "memory"))
    importance = round(float(facts.get("importance", 0.5)), 4)
    text = section(item.text, begins_line=False)
    old = f"\n*{standing(item).capitalize()}; told {one_line(item.created_at[:10])}*" if standing(item) else ""
    return f"**Memory**: {text}\n*Category: {category}, Importance: {importance}*{old}"


def _code(item: Item) -> str:
    facts = item.metadata
    name = str(facts.get("name") or facts.get("qualified_name") or item.title)
    head = f"**{one_line(str(facts.get('unit_type') or 'unit'))}** {code_span(name)} in {code_span(_place(item))}\n"
    return head + code_block(item.text, str(facts.get("language", "")))


def _experience(item: Item) -> str:
    facts = item.metadata
    return f"**Experience**: {one_line(str(facts.get('domain', '')))} | {one_line(str(facts.get('strategy', '')))}\n"


def _fields(text: str, *, with_cause: bool) -> str:
    """The parts of an experience as entries of a list."""
    ends = [match.start() for match in _FIELD.finditer(text)] + [len(text)]
    lines = [section(text[: ends[0]].strip())] if text[: ends[0]].strip() else []
    for start, end in pairwise(ends):
        name, _, said = text[start:end].partition(": ")
        if name != "Root cause" or with_cause:
            lines.append(f"- **{name}**: {_entry(said.strip())}")
    return "\n".join(lines)


def _entry(text: str) -> str:
    """A field in its entry of a list, whose further lines are indented already."""
    plain = text.replace(f"\n{_INDENT}", "\n")
    return section(plain, begins_line=False, indent=_INDENT)


def _value(item: Item) -> str:
    axis, size = one_line(str(item.metadata.get("axis", ""))), item.metadata.get("cluster_size", 0)
    return f"**Value** ({axis}, cluster size: {size}):\n{section(item.text)}"


def _commit(item: Item) -> str:
    facts, files = item.metadata, files_of(item)
    sha, author = (
        code_span(str(facts.get("sha") or item.ref.key)[:7]),
        one_line(str(facts.get("author", ""))),
    )
    shown = f"**Commit** {sha} by {author} on {one_line(str(facts.get('timestamp') or item.created_at))}\n"
    shown += section(item.text)
    if files:
        named = [one_line(name) for name in files[:_FILES]]
        shown += f"\n*Files: {', '.join([*named, '...'] if len(files) > _FILES else named)}*"
    return shown


def _document(item: Item) -> str:
    return f"**Document**: {_page(item)}\n{section(item.text)}"


_ENTRIES: Mapping[str, Callable[[Item], str]] = {
    "memory": _memory,
    "code": _code,
    "experience": _experience,
    "value": _value,
    "commit": _commit,
    "page": _document,
}


def files_of(commit: Item) -> list[str]:
    """The paths that a commit touched."""
    files = commit.metadata.get("files_changed")
    return [str(name) for name in files] if isinstance(files, list | tuple) else []


def _rest(item: Item) -> str:
    """Where the whole of a cut item is."""
    match item.ref.kind:
        case "code":
            return f"truncated, see full at {one_line(_place(item))}"
        case "experience":
            return f"truncated, full experience ID: {one_line(item.ref.key)}"
        case "page":
            return f"truncated, see full at {_page(item)}"
        case _:
            return "truncated"


def _place(code: Item) -> str:
    return f"{code.metadata.get('file_path') or code.ref.key}:{code.metadata.get('start_line', 1)}"


def _page(item: Item) -> str:
    return f"{one_line(str(item.metadata['filename']))}, Page {item.ref.part}"


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
            f"a {what} has a name of 1 to {_LONGEST_NAME} characters",
            hint="for example: ctx experience premortem debugging",
        )
    return name


def _failures_count_more(item: Item) -> Item:
    if item.metadata.get("outcome_status") == "confirmed":
        return item
    odds = _FAILED * item.score
    return replace(item, score=odds / (1.0 - item.score + odds))


def _footer(items: Sequence[Item]) -> str:
    return f"Based on {sum(item.ref.kind == 'experience' for item in items)} past experiences"
