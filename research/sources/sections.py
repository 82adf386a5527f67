"""Items in sections as markdown, character for character as seed 002 writes them; documents as a sixth kind.

Below what was cut stands where the rest is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from research.context import Plan, code_block, code_span, one_line, section
from research.models import Item, page_link, section_of
from research.sources.adjustments import relevance
from research.sources.records import SOURCES, ContextItem, FormattedContext

if TYPE_CHECKING:
    from research.context import Found, TokenCounter

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
    return f"**Memory**: {text}\n*Category: {category}, Importance: {importance}*"


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
