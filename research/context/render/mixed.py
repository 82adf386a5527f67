"""Numbered citations of several sources: a page as always, everything else under a header in the same spirit.

    [Document 1: crisis.pdf, Page 3]
    [Code 2: src/dates.py:10, parse_date]
    [Commit 3: 1a2b3c4, 2025-01-02]
    [Memory 4: decision, 2025-01-02]
    [Experience 5: debugging, read-the-error, falsified]
    [Value 6: root_cause, 12 experiences]

Code stands in a block, which is closed where it is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from research.context import escape
from research.context.render import cited
from research.models import DroppedSource, Item, ResearchContext, SourceDocument, SourceItem, page_link, withheld_of

if TYPE_CHECKING:
    from research.context.pipeline import Context

_LONGEST_NAME = 200  # characters
_FACTS: Mapping[str, tuple[str, ...]] = {
    "code": ("file_path", "start_line", "end_line", "language", "qualified_name", "unit_type"),
    "commit": ("sha", "author", "timestamp", "files_changed", "insertions", "deletions"),
    "memory": ("type", "category", "session", "namespace", "persona", "speaker"),
    "experience": ("domain", "strategy", "outcome_status", "confidence_tier", "iteration_count"),
    "value": ("axis", "cluster_id", "cluster_size"),
}
"""What is told of an item beside its text."""


class CitedItems(cited.CitedPages):
    """The renderer of a context of several sources."""

    def header(self, item: Item, number: int) -> str:
        return header(item.ref.kind, name_of(item), number)

    def body(self, text: str) -> str:
        return escape.closed(escape.cited(text))


def header(kind: str, name: str, number: int) -> str:
    """The line above a source of this kind, whose name is safe already."""
    return f"[{'Document' if kind == 'page' else kind.capitalize()} {number}: {name}]"


def name_of(item: Item) -> str:
    """What stands behind the number in an item's header, on one line and safe."""
    if item.ref.kind == "page":
        return f"{escape.name(str(item.metadata['filename']))}, Page {item.ref.part}"
    return ", ".join(escape.one_line(str(part), _LONGEST_NAME) for part in _told(item) if str(part).strip())


def _told(item: Item) -> tuple[object, ...]:
    """What a header names of an item that is no page."""
    facts, day = item.metadata, item.created_at[:10]
    match item.ref.kind:
        case "code":
            return f"{facts.get('file_path') or item.ref.key}:{facts.get('start_line', 1)}", item.title
        case "commit":
            return item.ref.key[:7], day
        case "memory":
            return facts.get("category") or facts.get("type") or "memory", day
        case "experience":
            return facts.get("domain", ""), facts.get("strategy", ""), facts.get("outcome_status", "")
        case _:
            return facts.get("axis", ""), _experiences(facts.get("cluster_size", 0))


def _experiences(count: object) -> str:
    return f"{count} experience{'s' * (count != 1)}"


def mixed_context(context: Context, max_tokens: int, types: tuple[str, ...]) -> ResearchContext:
    """What callers get; sources that are no pages are `SourceItem`."""
    pages = replace(context, fitted=replace(context.fitted, items=[], dropped=[]))
    return replace(
        cited.research_context(pages, max_tokens),
        sources=[_source(item) for item in context.fitted.items],
        dropped=[_dropped(item) for item in context.fitted.dropped],
        truncated=context.fitted.truncated,
        types=types,
    )


def _source(item: Item) -> SourceDocument:
    if item.ref.kind == "page":
        return cited.source_of(item)
    facts: dict[str, Any] = {name: item.metadata[name] for name in _FACTS[item.ref.kind] if name in item.metadata}
    if "files_changed" in facts:
        facts["files"] = list(facts.pop("files_changed"))
    return SourceItem(
        doc_id="",
        filename=name_of(item),
        page=0,
        extension="",
        timestamp=item.created_at,
        markdown_content=item.text,
        relevance_score=item.score,
        title=item.title,
        cut=item.cut,
        passages=[] if item.ref.kind == "code" else list(item.passages),  # code stands in its block
        legs=dict(item.legs),
        suspicious=list(item.signals),
        ref=str(item.ref),
        raw_score=item.raw_score,
        link=_link(item),
        kind=item.ref.kind,
        metadata=facts,
        withheld=withheld_of(item),
    )


def _dropped(item: Item) -> DroppedSource:
    if item.ref.kind == "page":
        return cited.dropped_of(item)
    return DroppedSource("", name_of(item), 0, item.score, str(item.ref), _link(item))


def _link(item: Item) -> str:
    """Opens the file of code at its line, in whatever takes that; other things have no file."""
    if item.ref.kind != "code":
        return ""
    return page_link(item.ref.key, 1).removesuffix("#page=1") + f"#L{item.metadata.get('start_line', 1)}"
