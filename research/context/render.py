"""The renderers of a context: numbered citations with the text under each, and the records that callers get.

[Document 1: crisis.pdf, Page 3]
[Code 2: src/dates.py:10, parse_date]
[Commit 3: 1a2b3c4, 2025-01-02]
[Memory 4: decision, 2025-01-02]
[Experience 5: debugging, read-the-error, falsified]
[Value 6: root_cause, 12 experiences]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from research.context import escape
from research.models import (
    VISUAL_MATCH,
    DroppedSource,
    Item,
    Ref,
    ResearchContext,
    SourceDocument,
    SourceItem,
    page_link,
    section_of,
    withheld_of,
)

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


class CitedPages:
    """`[Document 1: crisis.pdf, Page 3]` above each page's text."""

    def joint(self, before: Item | None, item: Item) -> str:
        return "\n\n" if before else ""

    def entry(self, item: Item, number: int) -> str:
        return f"{self.header(item, number)}\n{self.body(item.text)}"

    def end(self, items: Sequence[Item]) -> str:
        return ""

    def header(self, item: Item, number: int) -> str:
        return header(item.ref.kind, name_of(item), number)

    def body(self, text: str) -> str:
        return escape.cited(text)


class CitedItems(CitedPages):
    """Items of several sources. Code stands in a block, which is closed where it is cut."""

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
            return facts.get("category") or facts.get("type") or "memory", day, standing(item)
        case "experience":
            return facts.get("domain", ""), facts.get("strategy", ""), facts.get("outcome_status", "")
        case _:
            return facts.get("axis", ""), _experiences(facts.get("cluster_size", 0))


def standing(item: Item) -> str:
    """What a memory is that a newer one stands before; empty for any other."""
    return "superseded" if item.metadata.get("superseded_by") else "older" if item.metadata.get("newer") else ""


def _experiences(count: object) -> str:
    return f"{count} experience{'s' * (count != 1)}"


def research_context(context: Context, max_tokens: int, types: tuple[str, ...] = ()) -> ResearchContext:
    """Return what callers get; sources that are no pages are `SourceItem`. `types`: of the sources that were asked."""
    fitted, found = context.fitted, context.found
    return ResearchContext(
        formatted_text=fitted.text,
        sources=[source_of(item) for item in fitted.items],
        total_tokens=fitted.tokens,
        truncated=fitted.truncated,
        query=found.question.text,
        max_tokens=max_tokens,
        dropped=[_dropped(item) for item in fitted.dropped],
        coverage=found.coverage,
        timings=found.timings,
        searched=found.searched,
        rewrites=found.rewrites,
        answered_by=found.answered_by,
        confidence=found.confidence,
        types=types,
    )


def source_of(item: Item) -> SourceDocument:
    if item.ref.kind != "page":
        return _source_item(item)
    facts = item.metadata
    section_path, parent_heading = section_of(item)
    return SourceDocument(
        doc_id=item.ref.key,
        filename=str(facts["filename"]),
        page=int(item.ref.part),
        extension=str(facts["extension"]),
        thumbnail_path=str(facts["thumb_path"]) or None,
        image_path=str(facts["image_path"]) or None,
        timestamp=item.created_at,
        section_path=section_path or None,
        parent_heading=parent_heading or None,
        markdown_content=item.text,
        relevance_score=item.score,
        page_label=str(facts["page_label"]),
        source_path=str(facts["source_path"]),
        title=item.title,
        cut=item.cut,
        ocr=bool(facts["ocr"]),
        ocr_engine=str(facts["ocr_engine"]),
        visual_match=VISUAL_MATCH in item.labels,
        regions=item.regions,
        legs=dict(item.legs),
        suspicious=list(item.signals),
        ref=str(item.ref),
        raw_score=item.raw_score,
        link=page_link(str(facts["source_path"]), int(item.ref.part)),
        file_id=str(facts.get("file_id", "")),
        passages=list(item.passages),
        pages=list(item.pages) or [int(item.ref.part)],
        withheld=withheld_of(item),
        structure=item.structure if item.structure and item.structure.text == item.text else None,  # of what is shown
    )


def _source_item(item: Item) -> SourceItem:
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
    if item.ref.kind != "page":
        return DroppedSource("", name_of(item), 0, item.score, str(item.ref), _link(item))
    facts, page = item.metadata, int(item.ref.part)
    link = page_link(str(facts["source_path"]), page)
    return DroppedSource(item.ref.key, str(facts["filename"]), page, item.score, str(item.ref), link)


def _link(item: Item) -> str:
    """Opens the file of code at its line, in whatever takes that; other things have no file."""
    if item.ref.kind != "code":
        return ""
    return page_link(item.ref.key, 1).removesuffix("#page=1") + f"#L{item.metadata.get('start_line', 1)}"


def item_of(source: SourceDocument) -> Item:
    """A source of the contract as far as a renderer and the budget need it."""
    return Item(
        ref=Ref("page", source.doc_id, str(source.page)),
        title=source.title,
        text=source.markdown_content,
        score=source.relevance_score,
        metadata={"filename": source.filename},
        cut=source.cut,
    )
